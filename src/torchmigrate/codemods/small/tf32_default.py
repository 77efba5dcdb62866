"""TM121: the first matrix product of a file that names CUDA and says nothing of the precision."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext
from torchmigrate.semantics.facts.dtypes import TENSOR

_DECIDING = ("tf32", "float32_matmul_precision", "fp32_precision")


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """One finding for the file, at the first call or `@` of tensors."""
    if any(word in file.source.text for word in _DECIDING):
        return
    places = [(hit.use.start, hit.use.end, hit.symbol) for hit in hits if hit.use.call is not None]
    for node, _, fstring in file.names.operations:
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.MatMult) or fstring is not None:
            continue
        if TENSOR in file.facts.of(node.left, frozenset([TENSOR])) and not file.runs_elsewhere(node):
            places.append((*file.source.span(node), "torch.Tensor.__matmul__"))
    if places:
        start, end, symbol = min(places)
        yield finding_at(rule, file, (start, end), symbol=symbol, fix=None)
