"""TM332: old autograd functions (objects with state) become static methods with a context, calls included."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at
from torchmigrate.codemods.base.unclear import Unclear
from torchmigrate.codemods.legacy_function.calls import CallSites
from torchmigrate.codemods.legacy_function.classes import LegacyClass, is_static, legacy_forward, read_class
from torchmigrate.codemods.legacy_function.methods import ClassRewriting
from torchmigrate.codemods.legacy_function.objects import keep_objects
from torchmigrate.findings import Finding, Fix, Reason, because
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.nodes import name_span
from torchmigrate.rewrite.statements import Crowded
from torchmigrate.semantics.flow.tree_index import TreeIndex
from torchmigrate.versions.range import applicability

_KEPT = "`{name}` is a plain class after the fix, and `isinstance(f, Function)` is False for its objects"


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding at the base and the methods of every old class, and at its calls; one fix for all."""
    local = file.flow.index
    for hit in hits:
        node = hit.use.statement
        if not isinstance(node, ast.ClassDef):
            continue
        if legacy_forward(node) is None:
            continue
        if _works_as_it_is(node, local):
            continue
        places: list[ast.expr] = []
        try:
            if not file.fixes.may_fix(hit):
                raise Unclear("the base class is unknown")
            fix = _fix(rule, node, file, local, places)
            blocked_by: tuple[Reason, ...] = ()
        except (Unclear, Crowded) as error:
            fix, blocked_by = None, error.reasons
        finding = file.fixes.finding(hit, fix)
        found = [finding]
        for span in (*_methods(node, file), *map(file.source.span, places)):
            found.append(finding_at(rule, file, span, symbol="torch.autograd.Function", fix=fix))
        for item in found:
            yield replace(item, blocked_by=blocked_by)


def _methods(node: ast.ClassDef, file: FileContext) -> Iterator[tuple[int, int]]:
    """The names of the methods that change."""
    for item in node.body:
        if isinstance(item, ast.FunctionDef) and not is_static(item):
            yield name_span(file.source, item)


def _works_as_it_is(node: ast.ClassDef, local: TreeIndex) -> bool:
    """Whether nothing shows that objects are made: `apply` takes ordinary methods, too."""
    if len(local.binders(node.name)) > 1:
        return True  # another class, perhaps the new one for another release
    init = [item for item in node.body if isinstance(item, ast.FunctionDef) and item.name == "__init__"]
    if any(len(item.args.args) > 1 or item.args.kwonlyargs or item.args.vararg for item in init):
        return False
    mentions = [local.parent(item) for item in local.named(node.name)]
    return all(isinstance(item, ast.Attribute) and item.attr == "apply" for item in mentions)


def _fix(rule: Rule, node: ast.ClassDef, file: FileContext, local: TreeIndex, places: list[ast.expr]) -> Fix:
    """The fix of a class with all its calls.

    Raises:
        Unclear, Crowded: why there is none.
    """
    if isinstance(local.function_of(node), ast.ClassDef) or any(
        isinstance(item, ast.FunctionDef) and item.name == "backward" and is_static(item)
        for item in node.body
    ):
        raise Unclear(f"`{node.name}` is defined in another class, or its `backward` is static")
    if node.decorator_list or node.keywords or len(node.bases) != 1:
        raise Unclear("the class has a decorator, a metaclass or several bases")
    level, reasons = applicability(rule.cases[0], rule, file.versions)
    try:
        rewriting = file.rewriting()
        found: LegacyClass = read_class(node, local)
        calls = CallSites(found, rewriting, file.flow)
        calls.write()
        ClassRewriting(found, rewriting, file.flow).write()
        edits = rewriting.edits()
        places.extend(calls.places)
        title = f"Make the methods of `{node.name}` static"
    except Unclear as error:  # where only comments or lines are in the way, a person can move them
        places.extend(_made(node, local))
        rewriting = file.rewriting()
        try:
            keep_objects(node, rewriting, file.flow)
            edits = rewriting.edits()
        except (Unclear, Crowded):
            raise error from None
        title = f"Keep the objects of `{node.name}`, and run them by an autograd function"
        reasons = because(_KEPT.format(name=node.name))
    return file.fixes.fix(rule, title, level, reasons, edits)


def _made(node: ast.ClassDef, local: TreeIndex) -> list[ast.expr]:
    """Where objects of a class are made, if nothing else is known."""
    found: list[ast.expr] = []
    for item in local.named(node.name):
        call = local.parent(item)
        if isinstance(call, ast.Call) and call.func is item:
            found.append(call)
    return found
