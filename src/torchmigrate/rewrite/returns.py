"""More values in what is returned."""

from __future__ import annotations

import ast
from collections.abc import Sequence

import libcst as cst

from torchmigrate.findings import Edit
from torchmigrate.match.context import CannotFix
from torchmigrate.match.precedence import PRIMARY, tightness
from torchmigrate.rewrite.cursor import Cursor
from torchmigrate.source.text import Source


def values_returned(
    source: Source,
    statement: ast.Return,
    codes: Sequence[str],
    *,
    unpacked: bool = False,
) -> list[Edit] | None:
    """More values after what a statement returns.

    Args:
        codes: the new values.
        unpacked: whether the value is a tuple, and they become part of it; where it is written as one they do
            anyway.

    None where LibCST does not see the statement as Python does.
    """
    try:
        return _edits(source, statement, ", ".join(codes), unpacked)
    except CannotFix:
        return None


def _edits(source: Source, statement: ast.Return, added: str, unpacked: bool) -> list[Edit]:
    """As `values_returned`, whose `codes` are `added`. Raises CannotFix."""
    start, end = source.span(statement)
    node = _parse(source.text[start:end])
    cursor = Cursor(source.text, start, end)
    cursor.skip("return")
    value = node.value
    if value is None:
        return [Edit(end, end, f" {added}")]
    if isinstance(node.whitespace_after_return, cst.BaseParenthesizableWhitespace):
        cursor.skip(node.whitespace_after_return)
    if isinstance(value, cst.Tuple):
        at = cursor.skip(*value.lpar)
        *others, last = value.elements
        at = cursor.skip(*others, last.with_changes(comma=cst.MaybeSentinel.DEFAULT))
        return [Edit(at, at, f", {added}")]
    opening, closing = ("*", "") if unpacked else ("", "")
    if unpacked and tightness(value) < PRIMARY:
        opening, closing = "*(", ")"
    # A star in `return` without parentheses needs Python 3.8, which every torch of today has.
    edits = Edit(cursor.position, cursor.position, opening), Edit(end, end, f"{closing}, {added}")
    return [edit for edit in edits if edit.text]


def _parse(code: str) -> cst.Return:
    try:
        line = cst.parse_statement(code)
    except (cst.ParserSyntaxError, RecursionError) as error:
        raise CannotFix("LibCST cannot read it") from error
    node = line.body[0] if isinstance(line, cst.SimpleStatementLine) else None
    if not isinstance(node, cst.Return):
        raise CannotFix("LibCST sees another statement")
    return node
