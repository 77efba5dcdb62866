"""TM443: modules that look for their parameters in `forward`, and run as replicas of `DataParallel`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at
from torchmigrate.codemods.base.operations import is_self
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext
from torchmigrate.source.trees import walk

_MOST = 64  # classes whose objects a model holds


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every `next(self.parameters())` that a replica runs."""
    classes = [
        owner
        for hit in hits
        if hit.use.call is not None and hit.use.call.args
        for owner in [file.flow.class_of(hit.use.call.args[0])]
        if owner is not None
    ]
    seen = list(dict.fromkeys(classes))
    for owner in seen:
        methods = file.flow.classes.methods[owner]
        if len(seen) < _MOST:
            seen += [each for each in _held(owner, file) if each not in seen]
        run = [methods[name] for name in ("forward", "__call__") if name in methods]
        for method in run:
            for node in walk(method):
                if isinstance(node, ast.Call) and _is_own_method(node, methods):
                    called = methods[node.func.attr]  # type: ignore[attr-defined]
                    run += [called] if called not in run else []
                elif isinstance(node, ast.Call) and _takes_first(node):
                    yield finding_at(rule, file, file.source.span(node), symbol=hits[0].symbol, fix=None)


def _held(owner: ast.ClassDef, file: FileContext) -> Iterator[ast.ClassDef]:
    """The classes of the file whose objects a module holds."""
    for call in walk(owner):
        made = file.flow.definition(call.func) if isinstance(call, ast.Call) else None
        if isinstance(made, ast.ClassDef):
            yield made


def _is_own_method(node: ast.Call, methods: dict[str, ast.FunctionDef | ast.AsyncFunctionDef]) -> bool:
    return isinstance(node.func, ast.Attribute) and is_self(node.func.value) and node.func.attr in methods


def _takes_first(node: ast.Call) -> bool:
    """Whether a call is `next(self.parameters())`."""
    if not isinstance(node.func, ast.Name) or node.func.id != "next" or len(node.args) != 1:
        return False
    inner = node.args[0]
    if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name) and inner.func.id == "iter":
        inner = inner.args[0] if inner.args else inner
    return (
        isinstance(inner, ast.Call)
        and isinstance(inner.func, ast.Attribute)
        and inner.func.attr == "parameters"
        and is_self(inner.func.value)
    )
