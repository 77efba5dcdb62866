"""Whether a rule applies to a use. Works on `ast` alone: LibCST is for those that are rewritten."""

from __future__ import annotations

import ast

from msgspec.structs import replace

from torchmigrate.catalogue.model import Rule
from torchmigrate.match.conditions import ArgumentValue, all_hold
from torchmigrate.match.context import Match, MatchContext
from torchmigrate.match.pattern import METAVARIABLE, match_pattern
from torchmigrate.match.signature import RECEIVER, Argument, Keywords, arguments_of, bind, parse_signature
from torchmigrate.semantics.model import Role, Use
from torchmigrate.semantics.public_names import public_name
from torchmigrate.semantics.values.objects import inherited

__all__ = ["Match", "given_by", "matches", "symbol_of"]

_DECORATED = Argument("", None, None, None)  # what a bare decorator is called with


def matches(rule: Rule, place: MatchContext) -> Match | None:
    """Whether a rule applies to a use, by its roles, parameters, missing arguments and conditions.

    What is not certain (`*args`, `**kwargs`, values that are not literal) does not match.
    """
    use = place.use
    if rule.roles and use.role.value not in rule.roles:
        return None
    symbol = symbol_of(rule, use)
    if rule.only_in_patterns and not _in_pattern(rule, symbol, place):
        return None
    if not (rule.parameters or rule.missing or rule.match):
        return Match(use.start, use.end, symbol)
    if place.call is None and use.role is not Role.DECORATOR:
        return None
    given = given_by(signature_of(rule, symbol), use, place.keywords, place.prepared)
    if any(given.state(name) != "absent" for name in rule.missing):
        return None
    if not all_hold(rule.match, given, place, finding=True):
        return None
    if not rule.parameters:
        return Match(use.start, use.end, symbol)
    names = [name for name in rule.parameters if given.state(name) == "given" and place.call is not None]
    if not names:
        return None
    start, end = _span(given, names[0], place)
    return Match(start, end, symbol, names[0], tuple(names[1:]))


def _in_pattern(rule: Rule, symbol: str, place: MatchContext) -> bool:
    """Whether the use is a call in the pattern of a case, as far as the conditions of the case are known."""
    variables = rule.symbols.get(symbol, {})
    for case in rule.cases:
        if case.pattern is None or place.use.call is None:
            continue
        pattern = METAVARIABLE.sub(lambda found: variables.get(found[1], found[0]), case.pattern)
        found = match_pattern(pattern, symbol, place)
        if found is None:
            continue
        given = replace(given_by(signature_of(rule, symbol), place.use), captures=found[1])
        if all_hold(case.when, given, place, finding=True):
            return True
    return False


def symbol_of(rule: Rule, use: Use) -> str:
    """The name by which a rule knows a use; the use's own where it is a member of a moved module."""
    for candidate in use.candidates:
        public = public_name(candidate)
        for name in (candidate, public, *inherited(public)):
            if name in rule.symbols:
                return name
    return use.candidates[0]


def signature_of(rule: Rule, symbol: str) -> str | None:
    """The signature of a symbol: its own, or the signature of the rule."""
    return rule.symbols.get(symbol, {}).get("signature", rule.signature)


def given_by(
    signature: str | None, use: Use, keywords: Keywords | None = None, prepared: ast.Call | None = None
) -> ArgumentValue:
    """What a use gives to the parameters of the signature.

    keywords: what `**options` gives. prepared: the call that `functools.partial` prepares.
    """
    known = parse_signature(signature) if signature is not None else None
    call = use.call or prepared
    if call is None:
        arguments = [_DECORATED] if use.role is Role.DECORATOR else []
    else:
        arguments = arguments_of(call, keywords)
    receiver = use.node.value if use.method and isinstance(use.node, ast.Attribute) else None
    return ArgumentValue(known, arguments, bind(known, arguments, method=use.method), receiver)


def _span(given: ArgumentValue, name: str, place: MatchContext) -> tuple[int, int]:
    """Where the argument for a parameter is; the name of the use where that cannot be pointed at."""
    index = given.bound.given[name][0]
    node = given.arguments[index].node if index != RECEIVER else None
    if node is None or place.use.in_fstring or place.use.in_string:
        return place.use.start, place.use.end
    return place.span(node)
