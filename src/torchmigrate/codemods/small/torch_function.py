"""TM060: classes with a `__torch_function__` that is an ordinary method.

Modes are objects on a stack, and have one by right.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.nodes import name_span

_NAME = "__torch_function__"


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every such method of a class that is not a mode."""
    for owner in file.names.nodes(ast.ClassDef):
        if any("Mode" in ast.unparse(base) for base in owner.bases):
            continue
        for method in owner.body:
            if isinstance(method, ast.FunctionDef) and method.name == _NAME and not method.decorator_list:
                span = file.source.span(method)[0], name_span(file.source, method)[1]
                yield finding_at(rule, file, span, symbol=f"torch.Tensor.{_NAME}", fix=None)
