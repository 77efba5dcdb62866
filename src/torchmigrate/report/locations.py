"""Where findings are and what fixes replace, in the lines of the file that other programs open."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct

from torchmigrate.files.paths import work_tree_of
from torchmigrate.findings import Edit, Finding, Problem, in_order
from torchmigrate.printing import printable
from torchmigrate.source.text import Source


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


def said_place(source: Source, finding: Finding) -> str:
    """ "cell 3:2:5: " before the message of a finding in a notebook, whose lines are none of the file."""
    cell, row, column = source.place(finding.start)
    return "" if cell is None else f"cell {cell}:{row}:{column}: "


def said_place_of_problem(problem: Problem) -> str:
    """The same for what could not be done."""
    if problem.cell is None:
        return ""
    return f"cell {problem.cell}: " if problem.line is None else f"cell {problem.cell}:{problem.line}: "


def row_of_problem(problem: Problem) -> int:
    """The row of the file that a problem is at: the first one, if nothing better is known."""
    return problem.line if problem.line is not None and problem.cell is None else 1


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
