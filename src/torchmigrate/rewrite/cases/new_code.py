"""The new code of a case that changes arguments, or has a template.

Apart from `rewriting`, since all of this needs LibCST, which takes longer to load than most files to check:
a project in which names only get other names never does.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from torchmigrate.catalogue.model import Case, Rule
from torchmigrate.findings import Edit
from torchmigrate.match.conditions import ArgumentValue, binds_or_waits, is_plain
from torchmigrate.match.context import CannotFix, DoesNotFit, MatchContext
from torchmigrate.match.signature import RECEIVER
from torchmigrate.rewrite.call_layout import parse_call, relayout
from torchmigrate.rewrite.cases.environment import Environment
from torchmigrate.rewrite.cases.operations import new_arguments, unchanged
from torchmigrate.rewrite.cases.result import Context, needed_around
from torchmigrate.rewrite.cases.template_edits import (
    around_arguments,
    callee_of,
    core_edits,
    find_core,
    whole_edits,
)
from torchmigrate.rewrite.template import Part, binds, fill, parse_template
from torchmigrate.source.trees import has_effects


def by_operations(
    case: Case, call: ast.Call, given: ArgumentValue, place: MatchContext, symbol: str
) -> tuple[list[Edit], bool]:
    """Edits that change the arguments of a call, and whether a comment then stands at another one."""
    layout = parse_call(place.source, call)
    environment = Environment(given, place, layout, case.map)
    arguments = new_arguments(case, environment, layout, symbol, place.spell)
    return relayout(layout, arguments) if arguments != unchanged(layout) else ([], False)


def by_template(
    text: str,
    case: Case,
    rule: Rule,
    root: ast.AST,
    given: ArgumentValue,
    context: Context | None,
    place: MatchContext,
    symbol: str,
) -> tuple[list[Edit], str | None, bool]:
    """Edits that write a template in the place of `root`; its callee; whether a comment is misplaced."""
    use = place.use
    if use.in_string and use.call is not None:
        raise CannotFix("the call is inside of a string")
    if use.method and use.call is None:
        raise DoesNotFit("the method is not called")
    template = parse_template(text)
    own_pattern = case.pattern is not None
    layout = parse_call(place.source, use.call) if use.call is not None else None
    filled = fill(template, Environment(given, place, layout, case.map), symbol)
    _check_lost(filled.parts, given, case, rule, place)
    _check_order(filled.parts)
    start, end = (use.start, use.end) if root is use.node else place.span(root)
    alone = binds(filled) >= needed_around(case.result, context, root, place)
    callee = callee_of(filled.node)
    core = find_core(filled.node) if layout is not None and not own_pattern else None
    if core is None or layout is None:
        return whole_edits(filled, start, end, place.spell, not alone), callee, False
    shape = around_arguments(filled, core, layout, place.spell)
    if not alone:
        shape = replace(shape, before="(" + shape.before, after=shape.after + ")")
    edits, misplaced = core_edits(shape, layout, end)
    return edits, callee, misplaced


def _check_lost(
    parts: Sequence[Part], given: ArgumentValue, case: Case, rule: Rule, place: MatchContext
) -> None:
    """Every argument must live on in the template, or the case must say that it need not."""
    used = {part.name for part in parts}
    vanish: list[ast.AST] = []
    if case.pattern is not None:
        for name, captured in given.captures.items():
            if name not in used:
                vanish += captured if isinstance(captured, list) else [captured]
    elif place.use.call is not None:
        if not given.bound.understood:
            raise CannotFix("the call passes arguments in a form that is not supported")
        said = {*used, *case.when, *case.drop, *rule.match}
        parameter_of = given.bound.parameter_of()
        if RECEIVER in parameter_of and parameter_of[RECEIVER] not in used and given.receiver is not None:
            vanish.append(given.receiver)
        for index, argument in enumerate(given.arguments):
            name = parameter_of.get(index, "")
            if name not in said:
                raise DoesNotFit("the new call does not take one of the arguments")
            if name not in used and argument.value is not None:
                vanish.append(argument.value)
    if any(map(has_effects, vanish)):
        raise CannotFix("the removed argument may have side effects")


def _check_order(parts: Sequence[Part]) -> None:
    """Raise if a template evaluates its arguments twice, or those in another order that must keep theirs.

    Raises DoesNotFit for what is written twice without being plain, CannotFix for the order.
    """
    for name, times in Counter(part.name for part in parts).items():
        written = [part.content for part in parts if part.name == name]
        if times > 1 and len({content.start for content in written}) < times:
            expressions = [content.expression for content in written]
            if any(expression is not None and not is_plain(expression) for expression in expressions):
                raise DoesNotFit("the new code would evaluate an argument twice")
    contents = [part.content for part in parts if part.content.expression is not None]
    for index, one in enumerate(contents):
        for other in contents[index + 1 :]:
            if other.start < one.start and any(
                binds_or_waits(item.expression) for item in (one, other) if item.expression is not None
            ):
                raise CannotFix("the order of evaluation would change")
