"""Argument operations: the arguments of the new call, from those of the old one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from msgspec import Struct

from torchmigrate.catalogue.model import Case
from torchmigrate.match.context import CannotFix
from torchmigrate.match.signature import RECEIVER
from torchmigrate.rewrite.call_layout import CallLayout, NewArgument
from torchmigrate.rewrite.cases.environment import Environment, requote, same_code
from torchmigrate.rewrite.spelling import Spell
from torchmigrate.rewrite.template import Filled, fill, parse_template, text_of
from torchmigrate.source.trees import has_effects


def _only_rewords(case: Case) -> bool:
    """Whether a case only says anew what the call says itself, so that what `**` may hold does not matter."""
    return not (case.drop or case.add or case.insert or case.map)


class _Sources(Struct):
    """The new sources of a case, filled in but not yet spelled."""

    inserted: list[Filled]
    values: dict[str, Filled]  # parameter -> its new value
    added: dict[str, Filled]  # keyword -> value

    def used(self) -> set[str]:
        """The parameters that live on in a new source."""
        filled: Iterable[Filled] = (*self.inserted, *self.values.values(), *self.added.values())
        return {part.name for item in filled for part in item.parts}


def new_arguments(
    case: Case, environment: Environment, layout: CallLayout, symbol: str, spell: Spell
) -> list[NewArgument]:
    """The arguments after the operations of a case; equal to those of the call if nothing changes.

    Raises:
        DoesNotFit: a value is not in the case's map.
        CannotFix: an argument would be lost, get another meaning, or stand where Python does not allow it.
    """
    given = environment.given
    if not (given.bound.understood or (given.bound.visible and _only_rewords(case))):
        raise CannotFix("the call passes arguments in a form that is not supported")
    positional = any(item.keyword is None for item in given.arguments)
    if given.signature is None and positional and (case.insert or case.to_keyword):
        raise CannotFix("the signature is unknown, so positional arguments are not supported")
    sources = _sources(case, environment, symbol)
    _check_lost(case, environment, sources)
    found = _kept(case, environment, layout, sources, spell)
    for keyword, filled in sources.added.items():
        _add(found, keyword, filled, spell)
    leading = [NewArgument(text=text_of(filled.node, filled.parts, spell)) for filled in sources.inserted]
    found[:0] = leading
    _check_order(found)
    return found


def unchanged(layout: CallLayout) -> list[NewArgument]:
    """The arguments of a call as they are."""
    return [NewArgument(index, slot.keyword, slot.star) for index, slot in enumerate(layout.slots)]


def _sources(case: Case, environment: Environment, symbol: str) -> _Sources:
    given = environment.given

    def filled(source: str) -> Filled:
        return fill(parse_template(source), environment, symbol)

    values: dict[str, Filled] = {}
    for name in case.map:
        content = environment.get(name) if given.state(name) == "given" else None
        if content is not None and not isinstance(content, list) and content.new:
            values[name] = Filled(parse_template(content.code).node)
    for name, source in case.set.items():
        old = given.expression(name)
        if given.state(name) == "given" and old is not None and not same_code(source, old):
            content = environment.get(name)
            code = content.code if content is not None and not isinstance(content, list) else ""
            values[name] = filled(requote(source, code))
    keywords = {item.keyword for item in given.arguments}
    added = {
        keyword: filled(source)
        for keyword, source in case.add.items()
        if keyword in case.drop or not (keyword in keywords or given.state(keyword) == "given")
    }
    return _Sources([filled(source) for source in case.insert], values, added)


def _check_lost(case: Case, environment: Environment, sources: _Sources) -> None:
    """Raise CannotFix if an argument vanishes whose evaluation may matter."""
    used = sources.used()
    bound = environment.given.bound
    for name in (*case.drop, *sources.values):
        if RECEIVER in bound.given.get(name, ()):
            raise CannotFix("the receiver is not an argument")
        for index in bound.given.get(name, ()):
            value = environment.given.arguments[index].value
            if name not in used and (value is None or has_effects(value)):
                raise CannotFix("the removed argument may have side effects")


def _kept(
    case: Case, environment: Environment, layout: CallLayout, sources: _Sources, spell: Spell
) -> list[NewArgument]:
    """The old arguments that stay, with their new keywords and values."""
    signature = environment.given.signature
    parameter_of = environment.given.bound.parameter_of()
    found: list[NewArgument] = []
    shifted = False  # positional arguments from here on would be for another parameter
    for index, slot in enumerate(layout.slots):
        name = parameter_of.get(index)
        if name is None:
            if slot.star == "**":
                found.append(NewArgument(index, None, slot.star))
                continue
            if not slot.star and slot.keyword is None and signature is None and not shifted:
                found.append(NewArgument(index))
                continue
            raise CannotFix("the call passes arguments in a form that is not supported")
        if name in case.drop:
            shifted = shifted or slot.keyword is None
            continue
        parameter = signature.by_name[name] if signature is not None else None
        kind = parameter.kind if parameter is not None else "keyword-only"
        keyword = slot.keyword
        if keyword is not None and kind != "keywords":
            keyword = case.keywords.get(name, name)
        elif keyword is None and slot.star != "**" and (shifted or name in case.to_keyword):
            if kind == "positional" or name in case.keywords:
                keyword = case.keywords.get(name, name)
                shifted = True
            elif kind != "positional-only" or name in case.to_keyword:
                raise CannotFix(f"{name} cannot be passed by keyword")
        filled = sources.values.get(name)
        text = _summed(text_of(filled.node, filled.parts, spell)) if filled is not None else None
        found.append(NewArgument(index, keyword, slot.star, text))
    return found


def _summed(text: str) -> str:
    """What a template adds to an argument: `255 + 1` as `256`, also in parentheses; `n - 1 + 1` as `n`."""
    terms = re.fullmatch(r"[( ]*(-?\d+)[) ]* ([+-]) (\d+)", text)
    if terms is None:
        return _without_opposites(text)
    first, second = int(terms[1]), int(terms[3])
    return str(first + second if terms[2] == "+" else first - second)


def _without_opposites(text: str) -> str:
    if re.search(r"[+-] (\d+)$", text) is None or "#" in text or "\n" in text:
        return text
    match ast.parse(text, mode="eval").body:
        case ast.BinOp(ast.BinOp(rest, first, ast.Constant(taken)), second, ast.Constant(added)):
            opposite = {type(first), type(second)} == {ast.Add, ast.Sub}
            if opposite and taken == added and type(taken) is int:
                return ast.get_source_segment(text, rest) or text
    return text


def _add(found: list[NewArgument], keyword: str, filled: Filled, spell: Spell) -> None:
    """Append a keyword argument; where it is made of one that was dropped, in the place of that."""
    slots = {part.content.slot for part in filled.parts}
    kept = {item.origin for item in found}
    origin = slots.pop() if len(slots) == 1 else None
    item = NewArgument(
        None if origin in kept else origin, keyword, "", text_of(filled.node, filled.parts, spell)
    )
    at = next((index for index, other in enumerate(found) if other.star == "**"), len(found))
    if item.origin is not None:
        place = next((i for i, other in enumerate(found) if (other.origin or 0) > item.origin), at)
        if place < at and all(other.keyword is not None or other.star for other in found[place:]):
            at = place
    found.insert(at, item)


def _check_order(found: list[NewArgument]) -> None:
    """Raise CannotFix for arguments that Python does not allow in this order, or twice."""
    keywords = [item.keyword for item in found if item.keyword is not None]
    if len(keywords) != len(set(keywords)):
        raise CannotFix("the call already passes the new keyword")
    named = False
    for item in found:
        plain = item.keyword is None and not item.star
        if plain and named:
            raise CannotFix("a positional argument would follow a keyword")
        named = named or item.keyword is not None or item.star == "**"
