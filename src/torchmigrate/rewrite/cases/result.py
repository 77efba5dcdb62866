"""How the result of a call is used, and how its uses change if the new call returns something else."""

from __future__ import annotations

import ast

from msgspec import Struct

from torchmigrate.catalogue.model import ResultUse
from torchmigrate.findings import Edit
from torchmigrate.match.conditions import literal
from torchmigrate.match.context import CannotFix, MatchContext
from torchmigrate.match.pattern import PREFIX
from torchmigrate.match.precedence import outer_needs, tightness
from torchmigrate.patterns import pattern
from torchmigrate.rewrite.lines import line_start
from torchmigrate.rewrite.parentheses import behind_closers
from torchmigrate.rewrite.spelling import Spell
from torchmigrate.rewrite.template import code_of, parse_template
from torchmigrate.source.trees import has_effects

_FIELD = pattern(r"\$(?![A-Za-z_])")
_LINE_REST = pattern(r"[ \t\f]*(?:#[^\r\n]*)?(?=[\r\n]|\Z)")
_NEWLINE = pattern(r"\r\n|\n|\r")


class Context(Struct, frozen=True):
    """What is done with the result of a call.

    kind: "index" (`call[1]`), "field" (`call.V`), "unpack" (`a, b = call`), "ignored" (a statement of its
    own), "plain" (used whole), "other" (not understood). outer: the node that does it. index: the field.
    """

    kind: str
    outer: ast.AST
    index: int = 0


def context_of(result: ResultUse, root: ast.expr, place: MatchContext) -> Context:
    """How the value of `root` is used."""
    parent = place.parents(root)
    count = len(result.fields)
    other = Context("other", root)
    if isinstance(parent, ast.Subscript) and parent.value is root:
        index = literal(parent.slice)
        if type(index) is not int or not isinstance(parent.ctx, ast.Load) or not -count <= index < count:
            return other
        return Context("index", parent, index % count)
    if isinstance(parent, ast.Attribute):
        if parent.attr not in result.fields or not isinstance(parent.ctx, ast.Load):
            return other
        return Context("field", parent, result.fields.index(parent.attr))
    if isinstance(parent, ast.Expr):
        return Context("plain", root) if place.source.shows(parent) else Context("ignored", parent)
    if isinstance(parent, ast.Assign):
        if all(isinstance(target, ast.Name) for target in parent.targets):
            return Context("plain", root)
        target = parent.targets[0]
        if not isinstance(target, (ast.Tuple, ast.List)):
            return Context("plain", root) if len(parent.targets) == 1 else other
        nested = (ast.Tuple, ast.List, ast.Starred)
        simple = not any(isinstance(element, nested) for element in target.elts)
        fits = len(parent.targets) == 1 and simple and len(target.elts) == count
        return Context("unpack", parent) if fits else other
    iterates = (ast.Starred, ast.For, ast.AsyncFor, ast.comprehension, ast.YieldFrom, ast.withitem)
    return other if parent is None or isinstance(parent, iterates) else Context("plain", root)


def fits(result: ResultUse, context: Context, place: MatchContext) -> bool:
    """Whether a case for this use of the result is about this context."""
    kind = context.kind
    if result.plain and kind in ("plain", "ignored"):
        return True
    if result.take is not None:
        if kind == "unpack":
            others = [target for index, target in enumerate(_targets(context)) if index != result.take]
            return all(_is_ignored(target, place) for target in others)
        return kind == "ignored" or (kind in ("index", "field") and context.index == result.take)
    if result.adjust or result.new_fields or not result.plain:
        return kind in ("index", "field", "unpack", "ignored")
    return False


def _targets(context: Context) -> list[ast.expr]:
    assert isinstance(context.outer, ast.Assign), "the result is unpacked, but not in an assignment"
    target = context.outer.targets[0]
    assert isinstance(target, (ast.Tuple, ast.List)), "the assignment has several targets"
    return target.elts


def _is_ignored(target: ast.expr, place: MatchContext) -> bool:
    """Whether what is assigned to a target is not used: it is `_`, or nothing reads it."""
    return isinstance(target, ast.Name) and (not target.id.strip("_") or place.unused(target))


def needed_around(
    result: ResultUse | None, context: Context | None, root: ast.AST, place: MatchContext
) -> int:
    """How tightly the new call must bind, where an index or field after the old one vanishes."""
    start, end = (place.use.start, place.use.end) if root is place.use.node else place.span(root)
    text = place.source.text
    needs = outer_needs(root, place.parents(root), text, start, end)
    if result is None or context is None or result.take is None or context.kind not in ("index", "field"):
        return needs
    outer = context.outer
    if place.source.text[end : _suffix_start(context, root, place)].strip():
        return needs  # in parentheses, which stay
    return outer_needs(outer, place.parents(outer), text, *place.span(outer))


def result_edits(
    result: ResultUse, context: Context, root: ast.AST, place: MatchContext, spell: Spell
) -> list[Edit]:
    """Edits on what is around the call. Raises CannotFix if there is no place for them."""
    if context.kind in ("index", "field"):
        if result.take is not None:
            return [Edit(_suffix_start(context, root, place), place.span(context.outer)[1], "")]
        return _field_edits(result, context, place, spell)
    if context.kind != "unpack":
        return []
    targets = _targets(context)
    names = [ast.dump(target) for target in targets if not _is_ignored(target, place)]
    if len(names) != len(set(names)):
        raise CannotFix("a target occurs twice")
    if result.take is not None:
        return _single_target(context, targets[result.take], place)
    return _adjusted_targets(result, context, targets, place, spell)


def _suffix_start(context: Context, root: ast.AST, place: MatchContext) -> int:
    """Where the index or field after a call begins; parentheses around the call are before it."""
    return behind_closers(place.span(root)[1], place.span(context.outer)[1], place.source.text)


def _field_edits(result: ResultUse, context: Context, place: MatchContext, spell: Spell) -> list[Edit]:
    start, end = place.span(context.outer)
    edits: list[Edit] = []
    if isinstance(context.outer, ast.Attribute) and result.new_fields:
        old, new = context.outer.attr, result.new_fields[context.index]
        if old != new:
            edits.append(Edit(end - len(old), end, new))
    template = result.adjust.get(context.index)
    if template is not None:
        node = parse_template(_FIELD.sub("$it", template)).node
        prefix, *suffix = code_of(node, spell).split(PREFIX + "it")
        if len(suffix) != 1:
            raise CannotFix("the result would be computed twice")
        needs = outer_needs(context.outer, place.parents(context.outer), place.source.text, start, end)
        around = ("(", ")") if tightness(node) < needs else ("", "")
        edits += [Edit(start, start, around[0] + prefix), Edit(end, end, suffix[0] + around[1])]
    return edits


def _single_target(context: Context, target: ast.expr, place: MatchContext) -> list[Edit]:
    """`X, LU = ...` becomes `X = ...`."""
    assert isinstance(context.outer, ast.Assign), "the result is unpacked, but not in an assignment"
    start, end = place.span(context.outer.targets[0])
    inner_start, inner_end = place.span(target)
    if start == inner_start:
        return [Edit(inner_end, end, "")]
    if end == inner_end:
        return [Edit(start, inner_start, "")]
    return [Edit(start, end, place.source.text[inner_start:inner_end])]


def _adjusted_targets(
    result: ResultUse, context: Context, targets: list[ast.expr], place: MatchContext, spell: Spell
) -> list[Edit]:
    """A line after the statement for each target whose field the new call returns in another form."""
    lines: list[str] = []
    for index, template in sorted(result.adjust.items()):
        target = targets[index]
        if _is_ignored(target, place):
            continue
        if has_effects(target):
            raise CannotFix("the target may have side effects")
        code = place.segment(target)
        if "\n" in code or "\r" in code:
            raise CannotFix("the target spans several lines")
        new = code_of(parse_template(_FIELD.sub("$it", template)).node, spell)
        lines.append(f"{code} = {new.replace(PREFIX + 'it', code)}")
    if not lines:
        return []
    text = place.source.text
    start, end = place.span(context.outer)
    if context.outer is not place.use.statement:
        raise CannotFix("the statement is part of another one")
    first = line_start(text, start)
    rest = _LINE_REST.match(text, end)
    if text[first:start].strip() or rest is None:  # other statements are on its lines
        return [Edit(end, end, "".join(f"; {line}" for line in lines))]
    newline = _NEWLINE.search(text, end) or _NEWLINE.search(text)
    line_break = (newline[0] if newline else "\n") + text[first:start]
    return [Edit(rest.end(), rest.end(), "".join(line_break + line for line in lines))]
