"""How qualified names are written at a use."""

from __future__ import annotations

import builtins
from collections.abc import Callable

from torchmigrate.match.context import CannotFix

Spell = Callable[[str], "str | None"]


def spell_name(name: str, spell: Spell) -> str:
    """A qualified name as it is written here; builtins are their own spelling. Raises CannotFix."""
    if "." not in name and hasattr(builtins, name):
        return name
    spelled = spell(name)
    if spelled is None:
        raise CannotFix(f"{name} cannot be written here")
    return spelled
