"""TM313: None for one dimension in the `dynamic_shapes` of an export."""

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
    """A finding for every such None: a value of `{0: batch, 1: None}`. For a whole input it is right."""
    for hit in hits:
        call = hit.use.call
        given = (
            [keyword.value for keyword in call.keywords if keyword.arg == "dynamic_shapes"] if call else []
        )
        for node in (inner for value in given for inner in walk(value)):
            if isinstance(node, ast.Dict) and all(map(_is_dimension, node.keys)):
                for value in node.values:
                    if isinstance(value, ast.Constant) and value.value is None:
                        yield finding_at(rule, file, file.source.span(value), symbol=hit.symbol, fix=None)


def _is_dimension(key: ast.expr | None) -> bool:
    return isinstance(key, ast.Constant) and type(key.value) is int
