"""TM349: functions compiled with `fullgraph=True` that are called within a dispatch mode of the file."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext
from torchmigrate.source.trees import walk

_MODE = "torch.utils._python_dispatch.TorchDispatchMode"
_MODES = frozenset([_MODE, "torch.utils.flop_counter.FlopCounterMode"])


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every `fullgraph=True` of a function that is called in such a `with` statement."""
    for hit in hits:
        name = _name(hit)
        if name is not None and name in _called(hit, file):
            yield file.fixes.finding(hit, None)


def _called(hit: RuleMatch, file: FileContext) -> set[str]:
    """The names that are called within a mode. hit: the place where names are understood."""
    classes = {
        node.name
        for node in file.names.nodes(ast.ClassDef)
        if any(hit.place.qualified(base) == _MODE for base in node.bases)
    }
    return {
        node.func.id
        for statement in file.names.nodes(ast.With)
        if any(_is_mode(item.context_expr, classes, hit) for item in statement.items)
        for one in statement.body
        for node in walk(one)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }


def _is_mode(node: ast.expr, classes: set[str], hit: RuleMatch) -> bool:
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Name) and node.func.id in classes:
        return True
    return hit.place.qualified(node.func) in _MODES


def _name(hit: RuleMatch) -> str | None:
    """The name of what is compiled."""
    decorated, statement = hit.use.decorates, hit.use.statement
    if isinstance(decorated, ast.FunctionDef):
        return decorated.name
    if isinstance(statement, ast.Assign) and statement.value is hit.use.call and len(statement.targets) == 1:
        return getattr(statement.targets[0], "id", None)
    return None
