"""Which lines of a text have changed."""

from __future__ import annotations

from collections.abc import Iterator

MOST_COMPARED = 1_000_000  # pairs of lines; with more, all between the first and the last change is one


def changes(before: list[str], after: list[str]) -> Iterator[tuple[int, int, int, int]]:
    """The ranges of lines that differ, of the old ones and of the new ones, in order."""
    left = 0
    most = min(len(before), len(after))
    while left < most and before[left] == after[left]:
        left += 1
    right = 0
    while right < most - left and before[-1 - right] == after[-1 - right]:
        right += 1
    old, new = before[left : len(before) - right], after[left : len(after) - right]
    if len(old) * len(new) > MOST_COMPARED:
        yield left, left + len(old), left, left + len(new)
        return
    import difflib

    for kind, i1, i2, j1, j2 in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal":
            yield left + i1, left + i2, left + j1, left + j2
