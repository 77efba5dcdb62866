"""TM532: results of a call that are compared with None, which no longer tells anything."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext
from torchmigrate.source.trees import is_below


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every comparison of the result, or of the name that it is assigned to, with None."""
    seen: set[ast.Compare] = set()
    parents = file.names.parents
    compared: dict[str | int, list[ast.Compare]] = {}  # by name, or by the call itself
    for node in file.names.nodes(ast.Compare) if hits else ():
        if _is_none(node):
            left = node.left
            key: str | int = left.id if isinstance(left, ast.Name) else id(left)
            compared.setdefault(key, []).append(node)
    for hit in hits:
        statement = hit.use.statement
        names = {
            target.id
            for target in (statement.targets if isinstance(statement, ast.Assign) else ())
            if isinstance(target, ast.Name)
            and isinstance(statement, ast.Assign)
            and statement.value is hit.use.call
        }
        wanted: list[str | int] = [*sorted(names), id(hit.use.call)]
        for one in wanted:
            for node in compared.get(one, ()):
                if node not in seen and is_below(node, hit.use.scope.node, parents):
                    seen.add(node)
                    yield finding_at(rule, file, file.source.span(node), symbol=hit.symbol, fix=None)


def _is_none(node: ast.Compare) -> bool:
    return (
        len(node.ops) == 1
        and isinstance(node.ops[0], (ast.Is, ast.IsNot))
        and isinstance(node.comparators[0], ast.Constant)
        and node.comparators[0].value is None
    )
