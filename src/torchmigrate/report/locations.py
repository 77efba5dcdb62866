"""Where findings are and what fixes replace, in the lines of the file that other programs open."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from msgspec import Struct

from torchmigrate.files.paths import work_tree_of
from torchmigrate.findings import Edit, Finding, Fix, Problem, Severity, in_order
from torchmigrate.printing import printable
from torchmigrate.report.base import FileFindings
from torchmigrate.report.reasons import advice, message_of
from torchmigrate.source.text import Source

MOST_EDITS = 100  # edits of a fix that every finding is shown with


class Region(Struct, frozen=True):
    """Rows and columns of a file, both 1-based, columns in characters; the end is exclusive.

    Without columns, it is a row of JSON in a notebook, which holds the line that is meant.
    """

    row: int
    column: int | None
    end_row: int
    end_column: int | None


class Replacement(Struct, frozen=True):
    """A text that takes the place of a region."""

    region: Region
    text: str


def region_of(source: Source, start: int, end: int) -> Region:
    """Where a range of the text (offsets) is in its file."""
    cell, row, column = source.place(start)
    if cell is not None:
        row = source.file_row(start)
        return Region(row, None, row, None)
    _, end_row, end_column = source.place(end)
    return Region(row, column, end_row, end_column)


class Item(Struct, frozen=True):
    """A finding, or what could not be done, as programs read it.

    shown: the path as messages name it. place: "cell 3:2:5: " in a notebook, whose rows are none of the file.
    text: what was found, on one line. region: of a problem, the first row if nothing better is known.
    problem: what could not be done; None: there is a finding, in a file.
    """

    path: Path
    shown: str
    code: str
    severity: Severity
    place: str
    text: str
    region: Region
    file: FileFindings | None = None
    finding: Finding | None = None
    problem: Problem | None = None

    @property
    def message(self) -> str:
        """The text for formats with one region, which cannot name the place in a cell."""
        return self.place + self.text

    @property
    def notes(self) -> Iterator[tuple[str, str]]:
        """The other places, and what can be done: ("note" | "fix" | ..., text on one line)."""
        if self.file is None or self.finding is None:
            return
        if also := self.file.also(self.finding):
            yield "note", also
        yield from ((kind, printable(text)) for kind, text in advice(self.finding))


def _items(file: FileFindings) -> Iterator[Item]:
    for finding in file.findings:
        cell, row, column = file.source.place(finding.start)
        where = "" if cell is None else f"cell {cell}:{row}:{column}: "
        region = region_of(file.source, finding.start, finding.end)
        said = where, printable(message_of(finding))
        yield Item(file.path, file.shown, finding.code, finding.severity, *said, region, file, finding)


def _item_of(problem: Problem, shown: str) -> Item:
    line, where = problem.line, ""
    if problem.cell is not None:
        where = f"cell {problem.cell}: " if line is None else f"cell {problem.cell}:{line}: "
        line = None
    region = Region(line or 1, 1, line or 1, 1)
    said = where, printable(problem.reason)
    return Item(problem.path, shown, problem.kind.value, problem.severity, *said, region, problem=problem)


class ItemReporter:
    """A reporter of a format that has findings and problems in the same form.

    make: the part of the output for one of them. join: the output, of all parts in order.
    """

    def __init__(self, make: Callable[[Item], Any], join: Callable[[list[Any]], str] = "".join) -> None:
        self._make = make
        self._join = join

    def piece(self, file: FileFindings) -> list[Any]:
        return list(map(self._make, _items(file)))

    def problem(self, problem: Problem, shown: str) -> list[Any]:
        return [self._make(_item_of(problem, shown))]

    def whole(self, pieces: Sequence[list[Any]]) -> str:
        return self._join(list(chain.from_iterable(pieces)))


def replacements(source: Source, edits: tuple[Edit, ...]) -> list[Replacement]:
    """What the edits of a fix do to the file, in order of place.

    None where the lines of the file are not those of the code: in a notebook, and where several lines of an
    example change, which may each have a prompt or an indent before them.
    """
    made = []
    for edit in in_order(edits):
        if source.in_pieces and (
            source.place(edit.start).cell is not None
            or "\n" in edit.text + source.text[edit.start : edit.end]
        ):
            return []
        made.append(Replacement(region_of(source, edit.start, edit.end), edit.text))
    return made


def absolute(path: Path) -> str:
    """The absolute path of a file, links and all."""
    return os.path.abspath(path)  # noqa: PTH100 (Path.absolute keeps `..`)


def in_repository(path: Path, shown: str, variable: str) -> str:
    """The path that a server finds a file by: relative to the root of its repository, wherever this runs.

    Without a repository it is relative to the directory that an environment variable of the server names;
    else it is as messages show it.
    """
    place = Path(absolute(path))
    checkout = os.environ.get(variable)
    for root in (work_tree_of(place.parent), Path(checkout) if checkout else None):
        if root is not None and place.is_relative_to(root):
            return printable(place.relative_to(root).as_posix())
    return shown


class SharedEdits:
    """Which finding of a file has the edits of a fix: each one, or where they are many, the first alone.

    So the output grows with the file, and not with its square.
    """

    def __init__(self) -> None:
        self._first: dict[int, tuple[tuple[Edit, ...], Finding]] = {}  # the edits keep their id

    def elsewhere(self, fix: Fix, finding: Finding) -> Finding | None:
        """The finding that has the edits of a fix; None: this one."""
        if len(fix.edits) <= MOST_EDITS:
            return None
        _, first = self._first.setdefault(id(fix.edits), (fix.edits, finding))
        return None if first is finding else first
