"""TM439: an optimizer that takes a state as it is, where that of another one, or something else, holds it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import fix_by
from torchmigrate.findings import Finding, Fix
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.code import code
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.imports.planner import Refusal
from torchmigrate.rewrite.nodes import replaced
from torchmigrate.semantics.model import Binding
from torchmigrate.source.trees import is_below

_COPY = "copy.deepcopy"
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every `a.load_state_dict(b.state_dict())`, and for a state that is used again later."""
    for hit in hits:
        call = hit.use.call
        given = call.args[0] if call is not None and call.args else None
        if call is None or given is None or not isinstance(hit.use.node, ast.Attribute):
            continue
        if isinstance(given, ast.Name):
            shared = _is_shared(given, call, hit, file)
        else:
            shared = _is_state(given) and not _is_same(hit.use.node, given)
        if shared:
            yield file.fixes.finding(hit, _fix(rule, given, hit, file))


def _fix(rule: Rule, given: ast.expr, hit: RuleMatch, file: FileContext) -> Fix | None:
    # What only an annotation or a run says of the optimizer makes the fix unsafe (`FixMaker.finding`).
    if not (file.fixes.may_fix(hit) or hit.use.stated) or hit.use.in_fstring:
        return None
    spelling = file.imports.spell(_COPY, hit.use)
    if isinstance(spelling, Refusal):
        return None
    new = code("$copy($state)", copy=spelling.text, state=given)
    edit = replaced(file.source, given, new)
    return fix_by(rule, file, "Load a copy of the state", edit, *spelling.edits)


def _is_state(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "state_dict"
    )


def _is_same(method: ast.Attribute, given: ast.expr) -> bool:
    """Whether an optimizer loads what it has already."""
    assert isinstance(given, ast.Call) and isinstance(given.func, ast.Attribute), "the caller looked"
    return ast.dump(method.value) == ast.dump(given.func.value)


def _is_shared(given: ast.Name, call: ast.Call, hit: RuleMatch, file: FileContext) -> bool:
    """Whether something else has what a name of this scope holds: its optimizer, or what is done later."""
    source = file.source
    bindings = hit.use.scope.bindings.get(given.id, ())
    at = source.span(given)[0]
    places = [source.span(binding.statement)[0] for binding in bindings]
    before = [binding for binding, place in zip(bindings, places, strict=True) if place < at]
    if not before or before[-1].scope is not hit.use.scope:
        return False
    binding = before[-1]
    statement = binding.statement
    if not isinstance(statement, ast.Assign) or statement.targets != [binding.node]:
        return False
    if not _is_sure(call, binding, file):
        return False
    assert isinstance(hit.use.node, ast.Attribute), "the caller looked"
    if _is_state(statement.value):
        return not _is_same(hit.use.node, statement.value)
    if len(bindings) == 1 and _is_loaded_again(call, binding, file):
        return True
    until = min((place for place in places if place > at), default=len(source.text))
    return _is_given(given.id, (source.span(call)[1], until), binding, file)


def _is_sure(call: ast.Call, binding: Binding, file: FileContext) -> bool:
    """Whether a call stands behind a binding in its block, or deeper, so that nothing else reaches it."""
    node: ast.AST | None = call
    while node is not None and node is not binding.scope.node:
        if any(node is item for item in binding.block):
            return node is not binding.statement
        node = file.names.parents.get(node)
    return False


def _is_loaded_again(call: ast.Call, binding: Binding, file: FileContext) -> bool:
    """Whether each round of a loop loads what was made before it."""
    node: ast.AST | None = call
    while node is not None and node is not binding.scope.node:
        if isinstance(node, _LOOPS):
            return not is_below(binding.statement, node, file.names.parents)
        node = file.names.parents.get(node)
    return False


def _is_given(name: str, between: tuple[int, int], binding: Binding, file: FileContext) -> bool:
    """Whether a name is an argument between two places, such as of another `load_state_dict`."""
    return any(
        isinstance(argument, ast.Name)
        and argument.id == name
        and between[0] < file.source.span(argument)[0] < between[1]
        and is_below(node, binding.scope.node, file.names.parents)
        for node in file.names.nodes(ast.Call)
        for argument in node.args
    )
