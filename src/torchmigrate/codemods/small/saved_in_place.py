"""TM362: tensors from `ctx.saved_tensors` that `backward` changes in place."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at
from torchmigrate.codemods.base.in_place import changed_by_call
from torchmigrate.codemods.base.subclasses import Method, Subclass, subclass_of
from torchmigrate.findings import Finding, Fix
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.code import code
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.statements import Crowded
from torchmigrate.semantics.facts.dtypes import is_augmented_in_place
from torchmigrate.source.trees import walk
from torchmigrate.versions.range import applicability


class _Saved(Struct, frozen=True):
    """A variable of `backward`, and which of the saved tensors it is."""

    name: str
    number: int
    statement: ast.Assign


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every saved tensor that is changed in place."""
    for hit in hits:
        subclass = subclass_of(hit.use)
        forward, backward = (subclass and subclass.method(name) for name in ("forward", "backward"))
        if subclass is None or not subclass.sole or not forward or not backward:
            continue
        context = _context(subclass, backward)
        if context is None:
            continue
        inputs = _inputs(forward)
        for saved in _saved(backward, context):
            change = next(_changes(backward, saved), None)
            if change is None:
                continue
            again = _read_again(backward, context, change)
            if not again and saved.number not in inputs:
                continue
            fix = _fix(hit.rule, file, saved, change) if not again and file.fixes.may_fix(hit) else None
            made = finding_at(hit.rule, file, file.source.span(change), symbol=hit.symbol, fix=fix)
            yield replace(made, message=made.message.replace("x, = ctx.saved_tensors", saved.name))


def _context(subclass: Subclass, method: Method) -> str | None:
    """The name of the context of a static method."""
    static = any(isinstance(mark, ast.Name) and mark.id == "staticmethod" for mark in method.decorator_list)
    return (
        method.args.args[0].arg if static and len(method.decorator_list) == 1 and method.args.args else None
    )


def _inputs(forward: Method) -> set[int]:
    """Which of the tensors that `forward` saves are its own parameters."""
    calls = [
        node
        for node in walk(forward)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "save_for_backward"
    ]
    if len(calls) != 1 or any(isinstance(item, ast.Starred) for item in calls[0].args):
        return set()
    given = {item.arg for item in forward.args.args[1:]}
    given -= {
        node.id for node in walk(forward) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    }
    return {
        number for number, item in enumerate(calls[0].args) if isinstance(item, ast.Name) and item.id in given
    }


def _saved(backward: Method, context: str) -> Iterator[_Saved]:
    """The variables that are bound once, to a saved tensor, at the top of the method's body."""
    for statement in backward.body:
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            continue
        target, value = statement.targets[0], statement.value
        found: list[tuple[ast.expr, int]] = []
        if _is_saved(value, context) and isinstance(target, (ast.Tuple, ast.List)):
            if not any(isinstance(item, ast.Starred) for item in target.elts):
                found = [(item, number) for number, item in enumerate(target.elts)]
        elif isinstance(value, ast.Subscript) and _is_saved(value.value, context):
            index = value.slice.value if isinstance(value.slice, ast.Constant) else None
            found = [(target, index)] if type(index) is int else []
        for item, number in found:
            if isinstance(item, ast.Name) and _is_bound_once(item.id, backward):
                yield _Saved(item.id, number, statement)


def _is_saved(node: ast.expr, context: str) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and node.attr == "saved_tensors"
        and isinstance(node.value, ast.Name)
        and node.value.id == context
    )


def _is_bound_once(name: str, backward: Method) -> bool:
    nodes = walk(backward)
    augmented = {id(node.target) for node in nodes if is_augmented_in_place(node)}
    stores = [
        node
        for node in nodes
        if isinstance(node, ast.Name)
        and node.id == name
        and not isinstance(node.ctx, ast.Load)
        and id(node) not in augmented
    ]
    return len(stores) == 1


def _changes(backward: Method, saved: _Saved) -> Iterator[ast.expr]:
    """Where a saved tensor is changed in place, in source order."""
    found: list[ast.expr] = []
    for node in walk(backward):
        if is_augmented_in_place(node):
            found.append(node.target)
        elif isinstance(node, ast.Assign):
            found += [target for target in node.targets if isinstance(target, ast.Subscript)]
        else:
            changed = changed_by_call(node)
            found += [changed] if isinstance(changed, ast.Name) else []
    mine = [node for node in found if _root(node) == saved.name]
    yield from sorted(mine, key=lambda node: (node.lineno, node.col_offset))


def _root(node: ast.expr) -> str | None:
    inner = node.value if isinstance(node, ast.Subscript) else node
    return inner.id if isinstance(inner, ast.Name) else None


def _read_again(backward: Method, context: str, change: ast.expr) -> bool:
    """Whether the saved tensors are read after a change."""
    return any(
        isinstance(node, ast.Attribute) and _is_saved(node, context) and node.lineno > change.lineno
        for node in walk(backward)
    )


def _fix(rule: Rule, file: FileContext, saved: _Saved, change: ast.expr) -> Fix | None:
    rewriting = file.rewriting()
    try:
        rewriting.add_behind(saved.statement, code("$name = $name.clone()", name=saved.name))
        edits = rewriting.edits()
    except Crowded:
        return None
    level, reasons = applicability(rule.cases[0], rule, file.versions)
    return file.fixes.fix(rule, f"Change a copy of `{saved.name}`", level, reasons, edits)
