"""From a flag to the name of weights: the edits of `pretrained=flag` wherever it is written."""

from __future__ import annotations

import ast

from torchmigrate.findings import Edit
from torchmigrate.rewrite.calls import CallEditor
from torchmigrate.rewrite.code import Code, code
from torchmigrate.rewrite.nodes import keyword_renamed, replaced
from torchmigrate.source.text import Source


def _weights_for(flag: ast.expr, weights: str) -> Code | None:
    """The code for the weights that a flag asks for; None if it is not a flag.

    Args:
        weights: the code for what `True` stood for.
    """
    if isinstance(flag, ast.Constant):
        if flag.value is None or flag.value is False or (type(flag.value) is int and flag.value == 0):
            return code("None")
        is_true = flag.value is True or (type(flag.value) is int and flag.value == 1)
        return code("$weights", weights=weights) if is_true else None
    if isinstance(flag, ast.Starred):
        return None
    return code("$weights if $flag else None", weights=weights, flag=flag)


def argument_edits(
    argument: ast.keyword | ast.expr, new: str, weights: str, source: Source, call: ast.Call
) -> tuple[Edit, ...] | None:
    """Give `new=` weights in place of a flag, by keyword or position; None where that cannot be written.

    Parentheses around the flag stay, with the comments in them.
    """
    value = _weights_for(argument.value if isinstance(argument, ast.keyword) else argument, weights)
    if value is None:
        return None
    if isinstance(argument, ast.keyword):
        return keyword_renamed(source, argument, new), replaced(source, argument.value, value)
    editor = CallEditor(source, call)
    editor.set(argument, value, keyword=new)
    return editor.edits()


def flag_argument(call: ast.Call, name: str, position: int | None) -> ast.keyword | ast.expr | None:
    """The argument that gives a flag: by its name, or as a literal in a position where it may stand."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword
    given = call.args[position] if position is not None and len(call.args) > position else None
    return given if isinstance(given, ast.Constant) and isinstance(given.value, bool) else None
