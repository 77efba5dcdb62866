"""TM128: an index, or a bound of a slice, that is computed by dividing integers."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext
from torchmigrate.semantics.facts.dtypes import INTEGER, TENSOR, ValueFacts
from torchmigrate.semantics.model import Scope
from torchmigrate.source.trees import is_below


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every division whose quotient is an index of a tensor."""
    kinds: ValueFacts | None = None
    indexed: dict[str, list[ast.Subscript]] | None = None
    for node, scope, guards, fstring in file.names.operations:
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Div) or fstring is not None:
            continue
        if isinstance(node.left, ast.Constant) or id(node.left) not in file.names.values:
            continue  # nothing is known about it
        kinds = kinds or ValueFacts(file.names, file.around)
        number = isinstance(node.right, ast.Constant) and type(node.right.value) is int
        if INTEGER not in kinds.of(node.left, scope) or file.runs_elsewhere(guards):
            continue
        if not number and INTEGER not in kinds.of(node.right, scope):
            continue
        indexed = _by_index(file) if indexed is None else indexed
        if any(TENSOR in kinds.of(item.value, scope) for item in _indexed(node, scope, file, indexed)):
            span = file.source.span(node)
            yield finding_at(rule, file, span, symbol="torch.Tensor.__truediv__", fix=None)


def _by_index(file: FileContext) -> dict[str, list[ast.Subscript]]:
    """The subscripts of a file by the names that they have as an index."""
    found: dict[str, list[ast.Subscript]] = {}
    for item in file.names.nodes(ast.Subscript):
        for part in _parts(item):
            if isinstance(part, ast.Name):
                found.setdefault(part.id, []).append(item)
    return found


def _parts(item: ast.Subscript) -> Iterator[ast.expr]:
    """The indices of a subscript, and the bounds of its slices."""
    for part in item.slice.elts if isinstance(item.slice, ast.Tuple) else [item.slice]:
        if isinstance(part, ast.Slice):
            yield from (bound for bound in (part.lower, part.upper, part.step) if bound is not None)
        else:
            yield part


def _indexed(
    node: ast.BinOp, scope: Scope, file: FileContext, indexed: dict[str, list[ast.Subscript]]
) -> Iterator[ast.Subscript]:
    """What the quotient is an index of, at once or by the one name that it is given."""
    parents = file.names.parents
    parent = around = parents.get(node)
    if isinstance(around, ast.Slice):
        around = parents.get(around)
    if isinstance(around, ast.Tuple):
        around = parents.get(around)
    if isinstance(around, ast.Subscript) and any(part is node for part in _parts(around)):
        yield around
    if not isinstance(parent, ast.Assign) or len(parent.targets) != 1:
        return
    target = parent.targets[0]
    if not isinstance(target, ast.Name) or len(scope.bindings.get(target.id, ())) != 1:
        return
    for item in indexed.get(target.id, ()):
        if is_below(item, scope.node, file.names.parents):
            yield item
