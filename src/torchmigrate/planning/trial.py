"""What is left when fixes have been made in memory."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence

from msgspec.structs import replace

from torchmigrate.findings import Edit, Finding


class Back:
    """The way back through one round of edits, which are in the order of their places."""

    def __init__(self, edits: Sequence[Edit]) -> None:
        self.edits = edits
        self.starts: list[int] = []  # of the new texts, in the text that came out
        self.shifts: list[int] = []  # of the text after each
        shift = 0
        for edit in edits:
            self.starts.append(edit.start + shift)
            shift += len(edit.text) - (edit.end - edit.start)
            self.shifts.append(shift)

    def range_of(self, start: int, end: int) -> tuple[int, int]:
        """Where a range of the new text came from: all that was replaced by it, where it is new."""
        return self._one(start, False), self._one(end, True)

    def _one(self, offset: int, is_end: bool) -> int:
        index = bisect_right(self.starts, offset) - 1
        if index < 0:
            return offset
        edit = self.edits[index]
        if offset < self.starts[index] + len(edit.text):
            return edit.end if is_end else edit.start
        return offset - self.shifts[index]


def left_of(
    found: Sequence[Finding], left: Sequence[Finding], back: Sequence[Back]
) -> tuple[set[int], list[Finding]]:
    """Which findings of a text are still there after rounds of fixes, and what is new among what is left.

    Args:
        found: in the text as it was.
        left: in the text as it is now.
        back: of each round, the first one first.

    Returns:
        The indices of `found`, each for one that is left; and the findings that are none of these, at the
        place that their code came from.
    """
    by_code: defaultdict[str, list[int]] = defaultdict(list)
    for index, finding in enumerate(found):
        by_code[finding.code].append(index)
    still: set[int] = set()
    fresh: list[Finding] = []
    rest: list[tuple[Finding, int, int]] = []
    for finding in left:
        start, end = finding.start, finding.start
        for each in reversed(back):
            start, end = each.range_of(start, end)
        exact = [index for index in by_code[finding.code] if found[index].start == start]
        first = next((index for index in exact if index not in still), None)
        if first is None:
            rest.append((finding, start, end))
        else:
            still.add(first)
    for finding, start, end in rest:
        near = (
            index
            for index in by_code[finding.code]
            if index not in still and start <= found[index].start <= end
        )
        first = next(near, None)
        if first is None:
            moved = replace(finding, start=start, end=max(end, start + 1), fix=None, places=())
            # What is shown there is the code as it is.
            fresh.append(replace(moved, message=f"{finding.message} (in the fixed code)"))
        else:
            still.add(first)
    return still, fresh
