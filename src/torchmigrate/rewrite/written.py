"""From `code` to its text."""

from __future__ import annotations

from torchmigrate.rewrite.code import Code, Quotes


def written(new: Code, quotes: Quotes) -> str:
    """New code with what it quotes.

    Raises CannotFix if the template binds a name (in a lambda, in a comprehension) that is in a part.
    """
    if "$" not in new.template:
        return new.template
    name = new.template[1:]
    if name.isidentifier() and isinstance(part := new.parts.get(name), str):
        return part
    from torchmigrate.rewrite.filling import filled_in  # with LibCST

    return filled_in(new, quotes)[0]
