"""TM439: an optimizer that takes the state of another one as it is."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every `a.load_state_dict(b.state_dict())`."""
    for hit in hits:
        given = hit.use.call.args[:1] if hit.use.call is not None else []
        if given and _is_state(given[0]) and not _is_same(hit.use.node, given[0]):
            yield file.fixes.finding(hit, None)


def _is_state(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "state_dict"
    )


def _is_same(method: ast.AST, given: ast.expr) -> bool:
    """Whether an optimizer loads what it has already."""
    assert isinstance(given, ast.Call) and isinstance(given.func, ast.Attribute), "the caller looked"
    return isinstance(method, ast.Attribute) and ast.dump(method.value) == ast.dump(given.func.value)
