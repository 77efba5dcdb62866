"""Whether places in a text are in one of many ranges, without looking at each of them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import accumulate


class Ranges:
    """Ranges of offsets, which may overlap; ends are exclusive."""

    def __init__(self, spans: Iterable[tuple[int, int]]) -> None:
        ordered = sorted(spans)
        self._starts = [start for start, _ in ordered]
        self._ends = list(accumulate((end for _, end in ordered), max))

    def __bool__(self) -> bool:
        return bool(self._starts)

    def __contains__(self, offset: int) -> bool:
        index = bisect_right(self._starts, offset) - 1
        return index >= 0 and offset < self._ends[index]

    def cut_at(self, offset: int) -> bool:
        """Whether an offset is within a range, not where it starts."""
        index = bisect_left(self._starts, offset) - 1
        return index >= 0 and offset < self._ends[index]

    def hold(self, start: int, end: int) -> bool:
        """Whether one of the ranges, which do not overlap, holds all from `start` to `end`."""
        index = bisect_right(self._starts, start) - 1
        return index >= 0 and end <= self._ends[index]
