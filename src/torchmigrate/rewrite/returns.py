"""More values in what is returned."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

import libcst as cst

from torchmigrate.findings import Edit
from torchmigrate.match.context import CannotFix
from torchmigrate.match.precedence import PRIMARY, tightness
from torchmigrate.source.text import Source

_NEWLINE = re.compile(r"\r\n|\n|\r")


def values_returned(
    source: Source, statement: ast.Return, codes: Sequence[str], *, first: bool, unpacked: bool
) -> list[Edit]:
    """More values behind what a statement returns, or before it.

    Args:
        codes: the new values.
        first: whether they come before the others.
        unpacked: whether the value is a tuple, and they become part of it; where it is written as one they do
            anyway.

    Raises CannotFix if LibCST does not see the statement as Python does.
    """
    start, end = source.span(statement)
    code = source.text[start:end]
    newline = _NEWLINE.search(code)
    printer = cst.Module([], default_newline=newline[0] if newline else "\n")
    node = _parse(code, printer)

    def size(*parts: cst.CSTNode | cst.MaybeSentinel) -> int:
        return sum(len(printer.code_for_node(part)) for part in parts if isinstance(part, cst.CSTNode))

    added = ", ".join(codes)
    if node.value is None:
        return [Edit(end, end, f" {added}")]
    at = start + len("return") + size(node.whitespace_after_return)
    value = node.value
    if isinstance(value, cst.Tuple):
        if first:
            at += size(*value.lpar)
            return [Edit(at, at, f"{added}, ")]
        end -= size(value.elements[-1].comma, *value.rpar)
        return [Edit(end, end, f", {added}")]
    opening, closing = ("*", "") if unpacked else ("", "")
    if unpacked and tightness(value) < PRIMARY:
        opening, closing = "*(", ")"
    # A star in `return` without parentheses needs Python 3.8, which every torch of today has.
    before, behind = (f"{added}, {opening}", closing) if first else (opening, f"{closing}, {added}")
    return [edit for edit in (Edit(at, at, before), Edit(end, end, behind)) if edit.text]


def _parse(code: str, printer: cst.Module) -> cst.Return:
    try:
        line = cst.parse_statement(code)
    except (cst.ParserSyntaxError, RecursionError) as error:
        raise CannotFix("LibCST cannot read it") from error
    node = line.body[0] if isinstance(line, cst.SimpleStatementLine) else None
    if not isinstance(node, cst.Return) or printer.code_for_node(node) != code:
        raise CannotFix("LibCST sees another statement")
    return node
