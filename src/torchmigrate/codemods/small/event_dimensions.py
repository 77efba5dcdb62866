"""TM403 and TM404: transforms that count their event dimensions as before torch 1.8.

There, `event_dim` told how many of the rightmost dimensions belong to one event, and `domain` and `codomain`
only which values are valid. Now these two say both, and `event_dim` is read from them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at, fix_by
from torchmigrate.codemods.base.subclasses import Method, Subclass, subclass_of, subclasses_elsewhere
from torchmigrate.findings import Edit, Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.code import Part, code
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.imports.planner import Refusal
from torchmigrate.rewrite.lines import is_alone
from torchmigrate.rewrite.nodes import has_comment, name_span
from torchmigrate.rewrite.placing import use_at
from torchmigrate.rewrite.statements import Crowded
from torchmigrate.semantics.model import Scope
from torchmigrate.source.trees import walk

_PARTS = ("_call", "_inverse", "log_abs_det_jacobian")  # of a transform
_SIDES = ("domain", "codomain")
_CONSTRAINTS = "torch.distributions.constraints"
_REAL = f"{_CONSTRAINTS}.real"
_VECTOR = f"{_CONSTRAINTS}.real_vector"
# Of single numbers; what the values of an event are where it has several of them.
_OF_NUMBERS = frozenset(
    f"{_CONSTRAINTS}.{name}"
    for name in "real positive unit_interval boolean nonnegative_integer positive_integer".split()
)


class _Refused(Exception):
    """There is no fix."""


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every assignment to `event_dim`, or every class without `domain` or `codomain`."""
    for hit in hits:
        item = subclass_of(hit.use)
        if item is None or not item.sole:
            continue
        for span, edits in _LOOK[rule.name](item, file):
            fix = None
            if edits is not None and file.fixes.may_fix(hit):
                fix = fix_by(rule, file, _TITLE[rule.name], *edits)
            yield finding_at(rule, file, span, symbol=hit.symbol, fix=fix)
    for item, symbol in subclasses_elsewhere(rule.symbols, *_ELSEWHERE[rule.name], file):
        if file.runs_elsewhere(item.node):
            continue
        for span, edits in _LOOK[rule.name](item, file):
            fix = fix_by(rule, file, _TITLE[rule.name], *edits) if edits is not None else None
            yield finding_at(rule, file, span, symbol=symbol, fix=fix)


def _assigned(item: Subclass, file: FileContext) -> Iterator[tuple[tuple[int, int], list[Edit] | None]]:
    """`self.event_dim = ...`, which is a property of the base."""
    if any(_binds(node, "event_dim") for node in item.node.body):
        return
    for target in item.stores("event_dim"):
        try:
            edits = _stated(item, target, file)
        except (_Refused, Crowded):
            edits = None
        yield file.source.span(target), edits


def _undeclared(item: Subclass, file: FileContext) -> Iterator[tuple[tuple[int, int], list[Edit] | None]]:
    """A transform that does not say between what it leads."""
    if not all(map(item.defines, _SIDES)) and any(map(item.method, _PARTS)):
        yield name_span(file.source, item.node), None


# ---- what says the number of dimensions today --------------------------------------------------------------


def _stated(item: Subclass, target: ast.Attribute, file: FileContext) -> list[Edit]:
    """Both sides in the place of the number: `self.domain = constraints.independent(..., number)`."""
    statement = file.names.parents.get(target)
    function = file.names.parents.get(statement) if statement is not None else None
    scope = next((each for each in file.names.scopes if each.node is function), None)
    if not isinstance(function, Method) or scope is None:
        raise _Refused  # in a branch, the other branch needs the event dimensions of the class
    if not isinstance(statement, ast.Assign) or statement.targets != [target]:
        raise _Refused
    if not is_alone(file.source, function.body, statement) or has_comment(file.source, statement):
        raise _Refused
    if not all(isinstance(each, _SIMPLE) for each in walk(statement.value)):
        raise _Refused
    spell = _Speller(file, statement, [item.node.body, function.body], scope)
    independent = spell(f"{_CONSTRAINTS}.independent")
    sides = [
        code(
            "$independent($values, $number)",
            independent=independent,
            values=_values(item, side, file, spell),
            number=statement.value,
        )
        for side in _SIDES
    ]
    new = [
        code("$own.domain = $value", own=target.value, value=sides[0]),
        code("$own.codomain = $value", own=target.value, value=sides[1]),
    ]
    rewriting = file.rewriting()
    rewriting.replace_statement(statement, new)
    return [*rewriting.edits(), *spell.edits]


def _values(item: Subclass, side: str, file: FileContext, spell: _Speller) -> Part:
    """Which numbers one side allows, of what the class says of it."""
    bound = [node for node in item.node.body if _binds(node, side)]
    if not bound and (item.base is None or item.defines(side)):
        raise _Refused  # a method sets it, or a class of another file may
    if not bound:
        return spell(_REAL)
    node = bound[-1]
    if len(bound) > 1 or not isinstance(node, ast.Assign):
        raise _Refused  # a property
    name = file.around.qualified(node.value)
    if name not in _OF_NUMBERS and name != _VECTOR:
        raise _Refused
    return spell(_REAL if name == _VECTOR else name)


_SIMPLE = (ast.Name, ast.Attribute, ast.Constant, ast.UnaryOp, ast.BinOp, ast.operator, ast.unaryop)


class _Speller:
    """How names are written at one place; what that imports is in `edits`. Raises _Refused."""

    def __init__(
        self, file: FileContext, statement: ast.stmt, around: Sequence[list[ast.stmt]], scope: Scope
    ) -> None:
        self.file = file
        self.place = statement, around, scope
        self.edits: list[Edit] = []

    def __call__(self, name: str) -> str:
        spelling = self.file.imports.spell(name, use_at(name, *self.place, self.file))
        if isinstance(spelling, Refusal):
            raise _Refused
        self.edits += spelling.edits
        return spelling.text


def _binds(node: ast.stmt, name: str) -> bool:
    if isinstance(node, (Method, ast.ClassDef)):
        return node.name == name
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return any(isinstance(target, ast.Name) and target.id == name for target in targets)


_LOOK = {"transform-event-dim": _assigned, "transform-domain": _undeclared}
# Of classes derived from those of other files: what they name, and what the others must not name.
_ELSEWHERE = {
    "transform-event-dim": ("event_dim", "event_dim"),
    "transform-domain": ("log_abs_det_jacobian", "event_dim domain codomain"),
}
_TITLE = {
    "transform-event-dim": "Set `domain` and `codomain` instead",
    "transform-domain": "Declare them as real numbers",
}
