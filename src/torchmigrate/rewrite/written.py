"""From `code` to its text."""

from __future__ import annotations

from torchmigrate.rewrite.code import Code, Quotes


def written(new: Code, quotes: Quotes, *, instead_of: str = "") -> str:
    """New code with what it quotes.

    Args:
        instead_of: the code whose place it takes; where that has line breaks, others may stand.

    Raises CannotFix if the template binds a name (in a lambda, in a comprehension) that is in a part.
    """
    if "$" not in new.template:
        return new.template
    name = new.template[1:]
    if name.isidentifier() and isinstance(part := new.parts.get(name), str):
        return part
    from torchmigrate.rewrite.filling import filled_in  # with LibCST
    from torchmigrate.rewrite.template import breaks_lines

    return filled_in(new, quotes, bracketed=breaks_lines(instead_of))[0]
