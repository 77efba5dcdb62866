"""Where torch warned that something changes while a project ran, and no finding says what."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from torchmigrate.evidence.evidence import Warned
from torchmigrate.patterns import pattern
from torchmigrate.report.summary import plural

MOST = 20  # of different texts
_OF_CHANGE = pattern(r"deprecat|removed|no longer|in favou?r of|future|will be", re.IGNORECASE)


def is_of_change(text: str) -> bool:
    """Whether a warning says that something changes."""
    return _OF_CHANGE.search(text) is not None


def warned_lines(warned: Iterable[Warned]) -> Iterator[str]:
    """A sentence for each text, with the first of the places that led to it."""
    found: dict[str, list[str]] = {}
    for each in sorted(set(warned)):
        found.setdefault(each.text, []).append(f"{each.path}:{each.line}")
    for text, lines in list(found.items())[:MOST]:
        more = f" (and {plural(len(lines) - 1, 'more line')})" if len(lines) > 1 else ""
        yield f"{lines[0]}: torch warned here, and no finding is about it{more}: {text}"
