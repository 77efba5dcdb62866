"""TM128: an index, or a bound of a slice, that is computed by dividing integers."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext
from torchmigrate.semantics.facts.dtypes import INTEGER
from torchmigrate.semantics.flow.forward import Forward

_INTEGER = frozenset([INTEGER])
_MOST = 64  # places that a quotient goes to


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every division whose quotient is an index."""
    for node, _, guards, fstring in file.names.operations:
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Div) or fstring is not None:
            continue
        if isinstance(node.left, ast.Constant) or INTEGER not in file.facts.of(node.left, _INTEGER):
            continue
        number = isinstance(node.right, ast.Constant) and type(node.right.value) is int
        if not number and INTEGER not in file.facts.of(node.right, _INTEGER):
            continue
        if file.runs_elsewhere(guards):
            continue
        if any(not _is_dictionary(item.value, file) for item in _indexed(node, file)):
            span = file.source.span(node)
            yield finding_at(rule, file, span, symbol="torch.Tensor.__truediv__", fix=None)


def _indexed(node: ast.BinOp, file: FileContext) -> Iterator[ast.Subscript]:
    """What the quotient is an index of, or a bound of a slice, wherever it goes."""
    parents, forward = file.names.parents, Forward(file.flow)
    seen: list[ast.AST] = [node]
    for place in seen:
        outer = parents.get(place)
        while isinstance(outer, (ast.Slice, ast.Tuple)):
            place, outer = outer, parents.get(outer)
        if isinstance(outer, ast.Subscript) and outer.slice is place:
            yield outer
        if len(seen) < _MOST:
            seen += [use for use in forward.of(place) if use not in seen]


def _is_dictionary(node: ast.expr, file: FileContext) -> bool:
    made = [step.node for step in file.flow.origins(node)]
    called = [item.func for item in made if isinstance(item, ast.Call)]
    return any(isinstance(item, (ast.Dict, ast.DictComp)) for item in made) or any(
        getattr(function, "attr", getattr(function, "id", "")).lower().endswith("dict") for function in called
    )
