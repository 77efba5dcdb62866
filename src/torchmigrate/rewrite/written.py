"""From `code` to its text."""

from __future__ import annotations

import ast

from torchmigrate.rewrite.code import Code, Quotes


def written(new: Code, quotes: Quotes, *, instead_of: str = "") -> str:
    """New code with what it quotes.

    Args:
        instead_of: the code whose place it takes; where that has line breaks, others may stand. An expression
            such as `x := 1`, which needs parentheses in most places, gets them.

    Raises CannotFix if the template binds a name (in a lambda, in a comprehension) that is in a part.
    """
    text = _written(new, quotes, instead_of)
    return f"({text})" if instead_of and _is_loose(text) and not _is_loose(instead_of) else text


def _is_loose(text: str) -> bool:
    """Whether this is an assignment expression or a `yield` without parentheses."""
    if ":=" not in text and "yield" not in text:
        return False
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        pass
    else:
        return False
    try:
        only = ast.parse(f"({text})", mode="eval").body
    except SyntaxError:
        return False
    return isinstance(only, (ast.NamedExpr, ast.Yield, ast.YieldFrom))


def _written(new: Code, quotes: Quotes, instead_of: str) -> str:
    if "$" not in new.template:
        return new.template
    name = new.template[1:]
    if name.isidentifier() and isinstance(part := new.parts.get(name), str):
        return part
    from torchmigrate.rewrite.filling import filled_in  # with LibCST
    from torchmigrate.rewrite.template import breaks_lines

    return filled_in(new, quotes, bracketed=breaks_lines(instead_of))[0]
