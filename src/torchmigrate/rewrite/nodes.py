"""Edits of single expressions and arguments: replaced, renamed, called, with something behind them."""

from __future__ import annotations

import ast
import re

from torchmigrate.findings import Edit
from torchmigrate.rewrite.parentheses import GAP, argument_span
from torchmigrate.source.text import Positioned, Source

_CLOSERS = rf"(?P<closing>(?:{GAP}\))*)"
_ATOMS = (ast.Name, ast.Call, ast.Attribute, ast.Subscript)


def replaced(source: Source, node: Positioned, code: str) -> Edit:
    """Something else in the place of a node; the parentheses around it stay."""
    return Edit(*source.span(node), code)


def renamed(source: Source, node: Positioned, old: str, new: str) -> Edit | None:
    """Another name at the end of a chain of attributes; None where it is not written there as it is."""
    end = source.span(node)[1]
    start = end - len(old)
    return Edit(start, end, new) if source.text[start:end] == old else None


def suffix_replaced(
    source: Source, owner_end: int, end: int, written: tuple[str, ...], code: str
) -> Edit | None:
    """Something else for what follows an expression, such as `.data[0]`; None where it is written otherwise.

    Args:
        owner_end: offset of the end of the expression, before the parentheses that close around it.
        end: offset of the end of what follows.
        written: the tokens of it, from the dot on.
        code: takes their place; empty: the gap before the dot goes, too.
    """
    tokens = GAP.join(map(re.escape, written))
    found = re.compile(rf"{_CLOSERS}{GAP}(?P<tokens>{tokens})").fullmatch(source.text, owner_end, end)
    if found is None:
        return None
    return Edit(found.start("tokens") if code else found.end("closing"), end, code)


def method_called(source: Source, node: ast.expr, method: str) -> Edit:
    """A method called on an expression, which gets parentheses where it needs them."""
    start, end = source.span(node)
    if isinstance(node, _ATOMS):
        return Edit(end, end, f".{method}()")
    return Edit(start, end, f"({source.text[start:end]}).{method}()")


def argument_added_behind(
    source: Source, call: ast.Call, argument: ast.expr | ast.keyword, code: str
) -> Edit:
    """One more argument behind one that is there."""
    _, end = argument_span(argument, call, source)
    return Edit(end, end, f", {code}")
