"""Where a new line can stand: common blocks, and the text position behind a statement."""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from torchmigrate.codemods._mentions import Spot, blocks
from torchmigrate.import_edits import line_start, logical_line, start_of
from torchmigrate.model import Edit
from torchmigrate.source import Source


def together(spots: Sequence[Spot]) -> list[Spot]:
    """The statements of the innermost common block that these stand in."""
    for candidate in reversed(spots[0].chain()):
        found = [spot.within(candidate.block) for spot in spots]
        if all(item is not None for item in found):
            return [item for item in found if item is not None]
    raise AssertionError("all statements stand in the body of the scope")


def runs_one_of(block: Sequence[ast.stmt], wanted: Collection[int]) -> bool:
    """Whether one of some statements (by id()) has run at the end of a block, if that is reached."""
    for statement in block:
        if id(statement) in wanted:
            return True
        if isinstance(statement, (ast.Return, ast.Raise, ast.Continue, ast.Break)):
            return True
        if isinstance(statement, ast.If):
            branches = [statement.body, statement.orelse]
        elif isinstance(statement, ast.Try):
            branches = [statement.body, *(handler.body for handler in statement.handlers)]
        elif isinstance(statement, (ast.With, ast.AsyncWith)):
            branches = [statement.body]
        else:
            continue
        if all(runs_one_of(branch, wanted) for branch in branches):
            return True
    return False


@dataclass(frozen=True, slots=True)
class Line:
    """Where a new line is put: an offset, its indentation, and the newlines before and behind it."""

    offset: int
    indent: str
    before: str
    behind: str

    def insert(self, code: str) -> Edit:
        """The edit that puts a statement there; several at one place are all applied."""
        text = f"{self.before}{self.indent}{code}{self.behind}"
        return Edit(self.offset, self.offset, text, mergeable=True)


def line_behind(spot: Spot, source: Source) -> Line | None:
    """The place of a new line behind a statement; None where it does not have its lines to itself."""
    block, statement = spot.block, spot.statement
    start = start_of(source, statement)
    indent = source.text[line_start(source.text, start) : start]
    inner = statement
    while (inside := list(blocks(inner))) and inside:
        block = inside[-1]
        inner = block[-1]
    line = logical_line(source, block, inner)
    if indent.strip() or (inner is statement and (line.indent is None or len(line.statements) > 1)):
        return None
    newline = source.text[line.end : line.after]
    if newline:
        return Line(line.after, indent, "", newline)
    return Line(line.end, indent, source.newline, "") if line.end == len(source.text) else None
