"""TM864: `model.to_bettertransformer()`, on models of transformers, whose types are not known."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext

_METHODS = frozenset(("to_bettertransformer", "reverse_bettertransformer"))


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """Every call, unless the file defines such a method, or asks by name whether there is one."""
    names = file.names
    if any(item.name in _METHODS for item in names.nodes(ast.FunctionDef)):
        return
    if any(item.value in _METHODS for item in names.nodes(ast.Constant) if isinstance(item.value, str)):
        return
    for call in names.nodes(ast.Call):
        function = call.func
        if isinstance(function, ast.Attribute) and function.attr in _METHODS:
            symbol = next(name for name in rule.symbols if name.endswith(f".{function.attr}"))
            yield finding_at(rule, file, file.source.span(call), symbol=symbol, fix=None)
