"""A rule as it stands for one of its symbols: what the symbol says of itself, and its variables filled in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from msgspec.structs import replace

from torchmigrate.catalogue.model import STATUS, Case, Rule

# What a symbol may say for itself, in place of what the rule says.
OWN = ("signature", "advice", *STATUS)
OWN_OF_CASES = ("requires",)

_V = TypeVar("_V")


def rule_for_symbol(rule: Rule, symbol: str) -> Rule:
    """The rule for a symbol: its own releases, signature, advice, `requires`; parameters such as `$old`."""
    variables = rule.symbols.get(symbol)
    if not variables:
        return rule
    own: dict[str, str | None] = {key: variables[key] for key in OWN if key in variables}
    if any(status in own for status in STATUS):  # its own history, not a part of the rule's
        own = dict.fromkeys(STATUS) | own
    if own:
        rule = replace(rule, **own)
    if "requires" in variables:
        rule = replace(
            rule, cases=tuple(replace(case, requires=variables["requires"]) for case in rule.cases)
        )
    if not _has_variables(rule):
        return rule

    def fill(name: str) -> str:
        return variables.get(name[1:], name) if name.startswith("$") else name

    return replace(
        rule,
        parameters=tuple(map(fill, rule.parameters)),
        missing=tuple(map(fill, rule.missing)),
        match=_keys(rule.match, fill),
        cases=tuple(_case(case, fill) for case in rule.cases),
    )


def rule_for_constructor(rule: Rule, symbol: str) -> Rule | None:
    """A rule on the arguments of a class, for what subclasses call: `super().__init__(...)`.

    Such a call gives the same arguments after the object. What makes another call of it does not fit there.

    Args:
        symbol: the class; the rule stands for it (`rule_for_symbol`).

    Returns:
        The rule for `SYMBOL.__init__`; None for one that is about something else than arguments.
    """
    constructor = f"{symbol}.__init__"
    if rule.only_in_patterns or constructor in rule.symbols:
        return None
    if not (rule.parameters or rule.missing or rule.match):
        return None
    variables = dict(rule.symbols[symbol])
    signature = variables.pop("signature", rule.signature)
    if signature is not None:
        rest = signature.strip()[1:].strip()
        variables["signature"] = "(self)" if rest == ")" else f"(self, {rest}"
    fits = (
        replace(case, roles=("call",))
        for case in rule.cases
        if "call" in case.roles and not (case.rename or case.template or case.insert or case.result)
    )
    return replace(rule, symbols={constructor: variables}, signature=None, roles=("call",), cases=tuple(fits))


def _has_variables(rule: Rule) -> bool:
    names: list[Iterable[str]] = [rule.parameters, rule.missing, rule.match]
    for case in rule.cases:
        names += [case.when, case.drop, case.keywords, case.keywords.values()]
        names += [case.add, case.set, case.to_keyword, case.map]
    return any(name.startswith("$") for group in names for name in group)


def _case(case: Case, fill: Callable[[str], str]) -> Case:
    return replace(
        case,
        when=_keys(case.when, fill),
        drop=tuple(map(fill, case.drop)),
        keywords={fill(old): fill(new) for old, new in case.keywords.items()},
        add=_keys(case.add, fill),
        set=_keys(case.set, fill),
        to_keyword=tuple(map(fill, case.to_keyword)),
        map=_keys(case.map, fill),
    )


def _keys(values: Mapping[str, _V], fill: Callable[[str], str]) -> dict[str, _V]:
    return {fill(name): value for name, value in values.items()}
