"""TM994: `zero_grad(set_to_none=False)`, of optimizers and modules.

No type is needed: no other library has a method of this name with this parameter. A positional False is
only reported.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at, fix_by
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.code import code
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.nodes import is_written, replaced


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every call that asks for zeros."""
    for node in file.names.nodes(ast.Call):
        if not isinstance(node.func, ast.Attribute) or node.func.attr != "zero_grad":
            continue
        given, value = _set_to_none(node)
        if value is None:
            continue
        span = file.source.span(value)
        fix = None
        if given is not None and is_written(file.source, value, "False"):
            fix = fix_by(rule, file, "Set gradients to None", replaced(file.source, value, code("True")))
            span = file.source.span(given)
        yield finding_at(rule, file, span, symbol="torch.optim.Optimizer.zero_grad", fix=fix)


def _set_to_none(call: ast.Call) -> tuple[ast.keyword | None, ast.Constant | None]:
    """The keyword, and the False that is given; a positional one has no keyword."""
    for keyword in call.keywords:
        if keyword.arg == "set_to_none":
            return keyword, _false(keyword.value)
    return None, _false(call.args[0]) if len(call.args) == 1 else None


def _false(node: ast.expr) -> ast.Constant | None:
    return node if isinstance(node, ast.Constant) and node.value is False else None
