"""TM258: tables of translations to ONNX that give an operator several functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext

_TABLE = "custom_translation_table"


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every list in a table that is written in the call, or assigned to a name of its own."""
    for hit in hits:
        keywords = hit.use.call.keywords if hit.use.call is not None else []
        tables = [item.value for item in keywords if item.arg == _TABLE]
        names = {item.id for item in tables if isinstance(item, ast.Name)}
        tables += [
            node.value
            for node in file.names.nodes(ast.Assign)
            if any(isinstance(target, ast.Name) and target.id in names for target in node.targets)
        ]
        for table in tables:
            for value in table.values if isinstance(table, ast.Dict) else ():
                if isinstance(value, (ast.List, ast.Tuple)):
                    yield finding_at(rule, file, file.source.span(value), symbol=hit.symbol, fix=None)
