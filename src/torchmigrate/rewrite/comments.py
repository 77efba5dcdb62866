"""Comments in pieces of source, and whether edits lose one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from torchmigrate.findings import Applicability, Edit, Fix, Obstacle, Reason
from torchmigrate.patterns import pattern
from torchmigrate.source.text import Source

_TO_NEXT = r"[ \t\f]*(\r\n|\r|\n|\Z)?"  # what follows a comment on its line, and the end of the line
COMMENT_LOST = Reason(Obstacle.COMMENT)

_STRING_OR_COMMENT = pattern(
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
    return replace(fix, applicability=level, held_by=(*fix.held_by, COMMENT_LOST))


def comment_added(source: Source, row: int, comment: str) -> Edit:
    """Add a comment at the end of a line, after another one that may be there."""
    place = source.line_start(row) + len(source.line_text(row).rstrip(" \t\f"))
    return Edit(place, place, f"  {comment}")


def comment_removed(source: Source, start: int, end: int) -> Edit:
    """Remove a comment, or one of several on its line; with its line, if it has it to itself."""
    text = source.text
    rest = re.compile(_TO_NEXT).match(text, end)
    assert rest is not None, "it matches nothing as well"
    if rest[1] is None:  # another comment follows on this line
        return Edit(start, rest.end(), "")
    while start and text[start - 1] in " \t\f":
        start -= 1
    alone = start == 0 or text[start - 1] in "\r\n"  # nothing else in this line: all of it goes
    return Edit(start, rest.end() if alone else rest.start(1), "")


def listed_again(source: Source, span: tuple[int, int], items: Sequence[str]) -> Edit:
    """The list in a comment with other items, between which stands what stood there."""
    start, end = span
    between = re.search(r"[,\s]+", source.text[start:end])
    return Edit(start, end, (between.group() if between else ", ").join(items))
