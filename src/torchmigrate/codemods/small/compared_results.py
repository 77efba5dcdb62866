"""TM532: results of a call that are compared with None, which says nothing any more."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext
from torchmigrate.source.trees import walk


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every comparison of the result, or of the name that it is assigned to, with None."""
    seen: set[ast.Compare] = set()
    for hit in hits:
        statement = hit.use.statement
        names = {
            target.id
            for target in (statement.targets if isinstance(statement, ast.Assign) else ())
            if isinstance(target, ast.Name)
            and isinstance(statement, ast.Assign)
            and statement.value is hit.use.call
        }
        for node in walk(hit.use.scope.node):
            if isinstance(node, ast.Compare) and node not in seen and _is_none(node):
                left = node.left
                if left is hit.use.call or (isinstance(left, ast.Name) and left.id in names):
                    seen.add(node)
                    yield finding_at(rule, file, file.source.span(node), symbol=hit.symbol, fix=None)


def _is_none(node: ast.Compare) -> bool:
    return (
        len(node.ops) == 1
        and isinstance(node.ops[0], ast.Is | ast.IsNot)
        and isinstance(node.comparators[0], ast.Constant)
        and node.comparators[0].value is None
    )
