"""Where a new line can stand: common blocks, and the text position after a statement."""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence

from msgspec import Struct
from msgspec.structs import replace

from torchmigrate.findings import Edit
from torchmigrate.rewrite.code import Code, Quotes
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.lines import end_of, line_start, logical_line, start_of
from torchmigrate.rewrite.written import written
from torchmigrate.semantics.flow.mentions import Spot, blocks, common_block
from torchmigrate.semantics.model import UNGUARDED, Role, Scope, Use
from torchmigrate.source.text import Source


def inside_one(spots: Sequence[Spot]) -> list[Spot]:
    """What `together` gives, for statements of one scope."""
    found = common_block(spots)
    assert found is not None, "all statements stand in the body of the scope"
    return found


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


class Line(Struct, frozen=True):
    """Where a new line is put: an offset, its indentation, and the newlines before and after it."""

    source: Source
    offset: int
    indent: str
    before: str
    behind: str

    def insert(self, statement: Code) -> Edit:
        """The edit that puts a statement there; several at one place are all applied."""
        code = written(statement, Quotes(self.source))
        text = f"{self.before}{self.indent}{code}{self.behind}"
        return Edit(self.offset, self.offset, text, mergeable=True)


def line_behind(spot: Spot, source: Source) -> Line | None:
    """The place of a new line after a statement; None where it does not have its lines to itself."""
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
        return Line(source, line.after, indent, "", newline)
    if line.end < len(source.text):
        return None
    return Line(source, line.end, indent, source.newline, "")


def use_at(
    name: str, statement: ast.stmt, around: Sequence[list[ast.stmt]], scope: Scope, file: FileContext
) -> Use:
    """The place of new code as the import file sees places: a use of torch, if there is one before.

    Args:
        name: the qualified name that the code will use.
        statement: the statement that it will stand in or next to.
        around: the blocks that the statement stands in, the innermost last.
    """
    start = start_of(file.source, statement)
    use = Use(
        node=statement,
        candidates=(name,),
        sure=True,
        role=Role.CALL,
        start=start,
        end=end_of(file.source, statement),
        statement=statement,
        block=around[-1],
        scope=scope,
        guarded=UNGUARDED,
    )
    for other in file.names.uses:
        if other.start >= start:
            break
        head = other.binding.target if other.binding is not None else None
        here = other.scope is scope and any(other.block is block for block in around)
        if here and head == "torch" and other.sure and other.attribute_path and not other.in_fstring:
            return replace(
                use,
                node=other.node,
                candidates=other.candidates,
                attribute_path=other.attribute_path,
                binding=other.binding,
            )
    return use
