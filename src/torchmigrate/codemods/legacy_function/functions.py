"""TM332: old autograd functions (objects with state) become static methods with a context, calls included."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at
from torchmigrate.codemods.base.unclear import Unclear
from torchmigrate.codemods.legacy_function.calls import CallSites, check_fresh
from torchmigrate.codemods.legacy_function.classes import LegacyClass, is_static, legacy_forward, read_class
from torchmigrate.codemods.legacy_function.methods import ClassRewriting
from torchmigrate.findings import Applicability, Finding, Fix, Reason, because
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.nodes import name_span
from torchmigrate.rewrite.statements import Crowded
from torchmigrate.semantics.flow.tree_index import TreeIndex
from torchmigrate.versions.range import applicability

_ELSEWHERE = "the calls are in other files: replace `{name}(...)(x)` with `{name}.apply(x, ...)` there"


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding at the base and the methods of every old class, and at its calls; one fix for all."""
    local: TreeIndex | None = None
    for hit in hits:
        node = hit.use.statement
        if not isinstance(node, ast.ClassDef):
            continue
        if legacy_forward(node) is None:
            continue
        local = local or TreeIndex(file.names)
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
    if isinstance(local.function_of(node), ast.ClassDef):
        raise Unclear(f"`{node.name}` is defined in another class")
    rewriting = file.rewriting()
    calls: CallSites | None = None
    try:
        found: LegacyClass = read_class(node, local)
        calls = CallSites(found, rewriting, local)
        calls.write()
        ClassRewriting(found, rewriting, local).write()
        edits = rewriting.edits()
    finally:
        places.extend(calls.places if calls is not None else _made(node, local))
    level, reasons = applicability(rule.cases[0], rule, file.versions)
    if not places:
        check_fresh(found)
        level, reasons = Applicability.DISPLAY, because(_ELSEWHERE.format(name=node.name))
    return file.fixes.fix(rule, f"Make the methods of `{node.name}` static", level, reasons, edits)


def _made(node: ast.ClassDef, local: TreeIndex) -> list[ast.expr]:
    """Where objects of a class are made, if nothing else is known."""
    found: list[ast.expr] = []
    for item in local.named(node.name):
        call = local.parent(item)
        if isinstance(call, ast.Call) and call.func is item:
            found.append(call)
    return found
