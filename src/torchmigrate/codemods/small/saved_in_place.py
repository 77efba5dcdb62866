"""TM362: tensors from `ctx.saved_tensors` that `backward` changes in place.

The fix changes a copy, unless `backward` adds to an item and returns the tensor: several calls share such a
tensor, and add their gradients up in it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at
from torchmigrate.codemods.base.in_place import changed_by_call
from torchmigrate.codemods.base.subclasses import Method, Subclass, subclass_of
from torchmigrate.findings import Finding, Fix, because
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.code import code
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.statements import Crowded
from torchmigrate.semantics.facts.dtypes import is_augmented_in_place
from torchmigrate.semantics.flow.domain import UNKNOWN, Domain, Values
from torchmigrate.semantics.flow.steps import OPEN_STEP, Path
from torchmigrate.semantics.flow.values import ValueFlow
from torchmigrate.source.trees import walk
from torchmigrate.versions.range import applicability


class _Saved(Domain[int]):
    """Which of the saved tensors of a context an expression is.

    Args:
        context: the name of the context.
    """

    def __init__(self, flow: ValueFlow, context: str) -> None:
        super().__init__(flow)
        self._context = context

    def part(self, node: ast.AST, path: Path) -> Values[int]:
        (number,) = path if len(path) == 1 else (None,)
        known = _is_saved(node, self._context) and isinstance(number, int)
        return frozenset([number if known and isinstance(number, int) else UNKNOWN])

    def through(self, node: ast.AST) -> Values[int]:
        return self.of(node.target) if is_augmented_in_place(node) else frozenset([UNKNOWN])


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
        inputs = _inputs(forward, file.flow)
        saved, seen = _Saved(file.flow, context), set()
        for change, name in _changes(backward):
            number = saved.only(name)
            again = _read_again(backward, context, change)
            if number is None or number in seen or (not again and number not in inputs):
                continue
            seen.add(number)
            shared = _adds_up(backward, change, name)
            fix = _fix(hit.rule, file, name, shared) if not again and file.fixes.may_fix(hit) else None
            made = finding_at(hit.rule, file, file.source.span(change), symbol=hit.symbol, fix=fix)
            yield replace(made, message=made.message.replace("x, = ctx.saved_tensors", name.id))


def _context(subclass: Subclass, method: Method) -> str | None:
    """The name of the context of a static method."""
    static = any(isinstance(mark, ast.Name) and mark.id == "staticmethod" for mark in method.decorator_list)
    return (
        method.args.args[0].arg if static and len(method.decorator_list) == 1 and method.args.args else None
    )


def _inputs(forward: Method, flow: ValueFlow) -> set[int]:
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
    return {number for number, item in enumerate(calls[0].args) if flow.origins(item) == {OPEN_STEP}}


def _is_saved(node: ast.AST, context: str) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and node.attr == "saved_tensors"
        and isinstance(node.value, ast.Name)
        and node.value.id == context
    )


def _changes(backward: Method) -> list[tuple[ast.expr, ast.Name]]:
    """What is changed in place, in source order: a variable or an item of one, with the variable."""
    found: list[ast.expr] = []
    for node in walk(backward):
        if is_augmented_in_place(node):
            found.append(node.target)
        elif isinstance(node, ast.Assign):
            found += [target for target in node.targets if isinstance(target, ast.Subscript)]
        else:
            changed = changed_by_call(node)
            found += [changed] if isinstance(changed, ast.Name) else []
    roots = [(node, node.value if isinstance(node, ast.Subscript) else node) for node in found]
    named = [(node, root) for node, root in roots if isinstance(root, ast.Name)]
    return sorted(named, key=lambda pair: (pair[0].lineno, pair[0].col_offset))


def _read_again(backward: Method, context: str, change: ast.expr) -> bool:
    """Whether the saved tensors are read after a change."""
    return any(
        isinstance(node, ast.Attribute) and _is_saved(node, context) and node.lineno > change.lineno
        for node in walk(backward)
    )


def _adds_up(backward: Method, change: ast.expr, name: ast.Name) -> bool:
    """Whether a change adds to an item of a variable that is returned."""
    adds = any(isinstance(node, ast.AugAssign) and node.target is change for node in walk(backward))
    return (
        adds
        and isinstance(change, ast.Subscript)
        and any(
            isinstance(node, ast.Return) and name.id in (getattr(part, "id", "") for part in walk(node))
            for node in walk(backward)
        )
    )


def _fix(rule: Rule, file: FileContext, name: ast.Name, shared: bool) -> Fix | None:
    bindings = file.flow.index.scope_of(name).bindings.get(name.id, ())
    made = [item.statement for item in bindings if isinstance(item.statement, ast.Assign)]
    if len(made) != 1 or any(
        not is_augmented_in_place(item.statement) for item in bindings if item.statement not in made
    ):
        return None
    rewriting = file.rewriting()
    try:
        new = "$name = $name.data" if shared else "$name = $name.clone()"
        rewriting.add_behind(made[0], code(new, name=name.id))
        edits = rewriting.edits()
    except Crowded:
        return None
    level, reasons = applicability(rule.cases[0], rule, file.versions)
    if shared:
        reasons = because("torch before 1.10 took the old values for granted as well; gradients may be wrong")
        return file.fixes.fix(rule, f"Change `{name.id}.data`", level, reasons, edits)
    return file.fixes.fix(rule, f"Change a copy of `{name.id}`", level, reasons, edits)
