"""TM349: functions compiled with `fullgraph=True` that are called within a dispatch mode of the file."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext
from torchmigrate.semantics.model import Role
from torchmigrate.source.trees import walk

_COMPILE = "torch.compile"


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every `fullgraph=True` of a function that is called in such a `with` statement."""
    compiled = [hit for hit in hits if hit.symbol == _COMPILE and _is_whole(hit)]
    if not compiled:
        return
    classes = {
        hit.use.statement.name
        for hit in hits
        if hit.use.role is Role.BASE and isinstance(hit.use.statement, ast.ClassDef)
    }
    modes = {id(hit.use.call) for hit in hits if hit.symbol != _COMPILE and hit.use.role is Role.CALL}
    called = {
        node.func.id
        for statement in file.names.nodes(ast.With)
        if any(_is_mode(item.context_expr, classes, modes) for item in statement.items)
        for one in statement.body
        for node in walk(one)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    yield from file.fixes.findings([hit for hit in compiled if _name(hit) in called])


def _is_whole(hit: RuleMatch) -> bool:
    return hit.use.call is not None and any(
        keyword.arg == "fullgraph" and hit.place.value(keyword.value) is True
        for keyword in hit.use.call.keywords
    )


def _is_mode(node: ast.expr, classes: set[str], modes: set[int]) -> bool:
    if not isinstance(node, ast.Call):
        return False
    return id(node) in modes or (isinstance(node.func, ast.Name) and node.func.id in classes)


def _name(hit: RuleMatch) -> str | None:
    """The name of what is compiled."""
    decorated, statement = hit.use.decorates, hit.use.statement
    if isinstance(decorated, ast.FunctionDef):
        return decorated.name
    if isinstance(statement, ast.Assign) and statement.value is hit.use.call and len(statement.targets) == 1:
        return getattr(statement.targets[0], "id", None)
    return None
