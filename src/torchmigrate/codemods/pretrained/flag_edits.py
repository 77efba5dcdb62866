"""From a flag to the name of weights: the edits of `pretrained=flag` wherever it is written."""

from __future__ import annotations

import ast

from torchmigrate.findings import Edit
from torchmigrate.rewrite.nodes import replaced
from torchmigrate.rewrite.parentheses import argument_span
from torchmigrate.rewrite.quotes import requoted
from torchmigrate.source.text import Source

_NEEDS_NO_PARENTHESES = (
    ast.Name,
    ast.Attribute,
    ast.Call,
    ast.Subscript,
    ast.UnaryOp,
    ast.Compare,
    ast.BoolOp,
)


def weights_for(flag: ast.expr, weights: str, source: Source) -> str | None:
    """The code for the weights that a flag asks for; None where it is no flag.

    Args:
        weights: the code for what `True` stood for.
    """
    text = source.text[slice(*source.span(flag))]
    if isinstance(flag, ast.Constant):
        if flag.value is None or flag.value is False or (type(flag.value) is int and flag.value == 0):
            return "None"
        is_true = flag.value is True or (type(flag.value) is int and flag.value == 1)
        return weights if is_true else None
    if isinstance(flag, ast.Starred):
        return None
    return f"{weights} if {text if isinstance(flag, _NEEDS_NO_PARENTHESES) else f'({text})'} else None"


def argument_edit(
    argument: ast.keyword | ast.expr, new: str, weights: str, source: Source, call: ast.Call | None = None
) -> Edit | None:
    """Give `new=` weights in place of a flag, by keyword or position; None where that cannot be written.

    Parentheses around the flag stay, with the comments in them.

    Args:
        call: whose argument it is; may be None for one that has a keyword.
    """
    text = source.text
    flag = argument.value if isinstance(argument, ast.keyword) else argument
    code = weights_for(flag, weights, source)
    if code is None:
        return None
    start, end = source.span(argument) if call is None else argument_span(argument, call, source)
    first, last = source.span(flag)
    before = text[start:first]
    if isinstance(argument, ast.keyword):
        before = new + before.removeprefix(argument.arg or "")
    else:
        before = f"{new}={before}"
    return Edit(start, end, requoted(f"{before}{code}{text[last:end]}", text[start:end], text))


def entry_edits(key: ast.expr, flag: ast.expr, new: str, weights: str, source: Source) -> list[Edit] | None:
    """Turn `"pretrained": flag`, or `options["pretrained"] = flag`, into an entry for weights."""
    code = weights_for(flag, weights, source)
    start, end = source.span(key)
    quote = source.text[start]
    if code is None or source.text[start:end] != f"{quote}{ast.literal_eval(key)}{quote}":
        return None
    first, last = source.span(flag)
    return [
        replaced(source, key, f"{quote}{new}{quote}"),
        replaced(source, flag, requoted(code, source.text[first:last], source.text)),
    ]


def flag_argument(call: ast.Call, name: str, position: int | None) -> ast.keyword | ast.expr | None:
    """The argument that gives a flag: by its name, or as a literal in a position where it may stand."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword
    given = call.args[position] if position is not None and len(call.args) > position else None
    return given if isinstance(given, ast.Constant) and isinstance(given.value, bool) else None
