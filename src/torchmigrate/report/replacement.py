"""What a fix makes of the source, as removed and added lines, the way ruff shows it."""

from __future__ import annotations

import re
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from msgspec import Struct

from torchmigrate.findings import Edit, Fix, in_order
from torchmigrate.source.changes import changes
from torchmigrate.source.text import Source

MOST_PLACES = 4  # of one fix that are shown, those around the finding
MOST_LINES = 10  # that are shown of what one place loses, and of what it gets
_MOST_CHARACTERS = 20_000  # of the rows of one place; more is not compared
_NEAR = 2  # rows between two edits that are shown as one place


class Line(Struct, frozen=True):
    """A line that is shown.

    number: the row of the fixed file; None: the line is not in it. sign: "-" or "+", or " " where nothing
    changes. at: offset in the text of what differs.
    """

    number: int | None
    sign: str
    text: str
    at: int = 0


class ReplacedPlace(NamedTuple):
    """A place that a fix changes. cell: of a notebook. cut: lines were left out."""

    cell: int | None
    lines: list[Line]
    cut: bool = False


class Replacements:
    """Shows what fixes of one source do; findings may share a fix with edits all over the file.

    whole: all of it; else what is near a finding, and of much the beginning.
    """

    def __init__(self, source: Source, *, whole: bool = False) -> None:
        self.source = source
        self._most_places = sys.maxsize if whole else MOST_PLACES
        self._most_lines = sys.maxsize if whole else MOST_LINES
        self._most_characters = sys.maxsize if whole else _MOST_CHARACTERS
        self._groups: dict[int, tuple[Sequence[Edit], list[list[Edit]]]] = {}
        self._grown: dict[int, list[int]] = {}  # lines, by the groups before
        self._places: dict[tuple[int, int], ReplacedPlace | None] = {}
        self._shown: set[tuple[int, int]] = set()

    def of(self, fix: Fix, offset: int) -> tuple[list[ReplacedPlace], int]:
        """The places of a fix that are nearest to a finding, and how many others there are.

        What was shown before is only shown again where the finding is.
        """
        groups = self._grouped(fix.edits)
        here = bisect_right(groups, offset, key=lambda group: group[0].start)
        first = max(0, min(here - self._most_places // 2, len(groups) - self._most_places))
        row = self.source.position(offset)[0]
        places = []
        for number in range(first, min(first + self._most_places, len(groups))):
            key = id(fix.edits), number
            if key in self._shown and not self._holds(groups[number], row):
                continue
            self._shown.add(key)
            place = self._place(fix.edits, groups, number)
            if place is not None:
                places.append(place)
        return places, len(groups) - len(places)

    def _holds(self, group: list[Edit], row: int) -> bool:
        return self.source.position(group[0].start)[0] <= row <= self.source.position(group[-1].end)[0]

    def _grouped(self, edits: Sequence[Edit]) -> list[list[Edit]]:
        """The edits in order, those that are near each other together."""
        known = self._groups.get(id(edits))
        if known is None:
            groups: list[list[Edit]] = []
            for edit in in_order(edits):
                if groups and self._near(groups[-1][-1], edit):
                    groups[-1].append(edit)
                else:
                    groups.append([edit])
            known = self._groups[id(edits)] = edits, groups  # which keeps the id
        return known[1]

    def _near(self, one: Edit, other: Edit) -> bool:
        row, next_row = self.source.position(one.end)[0], self.source.position(other.start)[0]
        return next_row - row <= _NEAR + 1 and self._last_row(row) >= next_row

    def _last_row(self, row: int) -> int:
        return self.source.rows_around(row)[1]

    def _place(self, edits: Sequence[Edit], groups: list[list[Edit]], number: int) -> ReplacedPlace | None:
        key = id(edits), number
        if key not in self._places:
            self._places[key] = self._made(groups[number], self._growth(edits, groups, number))
        return self._places[key]

    def _growth(self, edits: Sequence[Edit], groups: list[list[Edit]], number: int) -> int:
        """How many lines the file, or the cell, gets by what is changed before a group."""
        grown = self._grown.get(id(edits))
        if grown is None:
            text = self.source.text
            by_group = (
                sum(_newlines(edit.text) - _newlines(text[edit.start : edit.end]) for edit in group)
                for group in groups
            )
            grown = self._grown[id(edits)] = [*accumulate(by_group, initial=0)]
        start = self.source.rows_around(self.source.position(groups[number][0].start)[0])[0]
        offset = self.source.line_start(start) if start > 1 else 0
        first = bisect_left(groups, offset, key=lambda group: group[0].start)
        return grown[number] - grown[first]

    def _made(self, edits: list[Edit], growth: int) -> ReplacedPlace | None:
        source = self.source
        first = source.position(edits[0].start)[0]
        last = source.position(edits[-1].end)[0]
        begin, end = source.rows_around(first)
        # With a line before and after; an edit may end where the next line begins.
        top, bottom = max(begin, first - 1), max(last, min(end, last + 1))
        start = source.line_start(top) if top <= source.line_count else len(source.text)
        text = "".join(map(self._row, range(top, bottom + 1)))
        if len(text) > self._most_characters:
            return None
        new, done = "", start
        for edit in edits:
            new += text[done - start : edit.start - start] + edit.text
            done = edit.end
        new += text[done - start :]
        old_lines, new_lines = _lines(text), _lines(new)
        found = list(changes(old_lines, new_lines))
        if not found:
            return None
        lines: list[Line] = []
        cut, most = False, self._most_lines
        row = source.shown_row(top) + growth
        lead = [source.lead(number) for number in range(top, top + len(old_lines))] or [""]

        def kept(from_: int, to: int, ahead: int) -> None:
            for index in range(from_, to):
                lines.append(Line(row + index + ahead, " ", lead[index] + old_lines[index]))

        at, ahead = max(0, found[0][0] - 1), 0
        for i1, i2, j1, j2 in found:
            kept(at, i1, ahead)
            old = [lead[index] + old_lines[index] for index in range(i1, i2)]
            here = lead[min(i1, len(lead) - 1)]
            same = i2 - i1 == j2 - j1
            fresh = [(lead[i1 + index - j1] if same else here) + new_lines[index] for index in range(j1, j2)]
            differs = [_common(*pair) for pair in zip(old, fresh, strict=False)]
            differs += [0] * max(len(old), len(fresh))
            lines += [Line(None, "-", text, at) for text, at in zip(old[:most], differs, strict=False)]
            lines += [
                Line(row + j1 + index, "+", text, at)
                for index, (text, at) in enumerate(zip(fresh[:most], differs, strict=False))
            ]
            cut = cut or len(old) > most or len(fresh) > most
            at, ahead = i2, j2 - i2
        kept(at, min(at + 1, len(old_lines)), ahead)
        return ReplacedPlace(source.place(edits[0].start).cell, lines, cut)

    def _row(self, row: int) -> str:
        """A row as it is in the file, with its newline."""
        source = self.source
        try:
            start = source.line_start(row)
        except IndexError:
            return ""
        try:
            end = source.line_start(row + 1)
        except IndexError:
            end = len(source.text)
        shown = source.shown_line(row)
        return shown + source.text[start + len(shown) : end]


def _lines(text: str) -> list[str]:
    lines = re.split(r"\r\n|\r|\n", text)
    return lines if lines[-1] else lines[:-1]


def _newlines(text: str) -> int:
    return text.count("\n") + text.count("\r") - text.count("\r\n")


def _common(one: str, other: str) -> int:
    """How many characters both begin with."""
    least = min(len(one), len(other))
    return next((index for index in range(least) if one[index] != other[index]), least)
