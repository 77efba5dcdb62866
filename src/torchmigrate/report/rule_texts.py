"""The texts of a rule, for all of its symbols."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchmigrate.catalogue.model import Rule


def generic(rule: Rule, text: str) -> str:
    """A text of a rule for all of its symbols: the first ones stand for `{name}`, `{new}`, ..."""
    if "{" not in text:
        return text
    values: dict[str, list[str]] = {"name": [*rule.symbols, *rule.modules]}
    if rule.parameters:
        values["argument"] = list(rule.parameters)
    moved = [{"new": new} for new in rule.modules.values() if new]
    for variables in (*rule.symbols.values(), *moved):
        for key, value in variables.items():
            values.setdefault(key, []).append(value)
    values |= {key: [value] for key, value in rule.shown.items()}
    for key, found in values.items():
        text = text.replace(f"`{{{key}}}`", _some(found)).replace(f"{{{key}}}", found[0])
    return text


def _some(names: Sequence[str]) -> str:
    return f"`{names[0]}`" if len(set(names)) == 1 else f"`{names[0]}`, …"
