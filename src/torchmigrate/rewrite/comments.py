"""Comments in pieces of source, and whether edits lose one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from torchmigrate.findings import Applicability, Edit, Fix, Obstacle, Reason

COMMENT_LOST = Reason(Obstacle.COMMENT)

_STRING_OR_COMMENT = re.compile(
    r"'''(?:\\.|[^\\])*?'''|\"\"\"(?:\\.|[^\\])*?\"\"\"|'(?:\\.|[^'\\\r\n])*'|\"(?:\\.|[^\"\\\r\n])*\"|#[^\r\n]*",
    re.S,
)


def comments(code: str) -> Counter[str]:
    """The comments in a piece of source, each with how often it is there."""
    if "#" not in code:
        return Counter()
    return Counter(found.rstrip() for found in _STRING_OR_COMMENT.findall(code) if found.startswith("#"))


def lost_comments(edits: Iterable[Edit], text: str) -> Counter[str]:
    """The comments that edits take out of a text and do not put in again."""
    before: Counter[str] = Counter()
    after: Counter[str] = Counter()
    for edit in edits:
        before.update(comments(text[edit.start : edit.end]))
        after.update(comments(edit.text))
    return before - after


def without_silent_losses(fix: Fix, text: str) -> Fix:
    """The fix, not safe and with the reason where it loses a comment, whatever other reason it has."""
    if COMMENT_LOST in fix.held_by or not lost_comments(fix.edits, text):
        return fix
    level = min(fix.applicability, Applicability.UNSAFE)
    return fix._replace(applicability=level, held_by=(*fix.held_by, COMMENT_LOST))
