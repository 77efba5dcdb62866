"""TM054: `x.T`, `x.mT`, `x.H` and `x.mH` of tensors that are known not to be matrices.

Most `.T` are on matrices, which are not reported. The number of dimensions is read from the call
that makes the tensor, or from what was recorded; where it is not plain, nothing is found.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import fix_by
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.code import code
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.nodes import suffix_replaced

_OF_NUMBERS = "2.0"  # since when transposing a tensor without dimensions warns
_OF_BATCHES = ("mT", "mH")
_CONJUGATES = ("H", "mH")


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every `.T` that does not transpose a matrix."""
    for hit in hits:
        node = hit.use.node
        if not isinstance(node, ast.Attribute) or not (hit.use.sure or hit.use.seen):
            continue
        rank = file.facts.rank(node.value)
        if rank is None:
            rank = file.facts.rank_seen(node.value)
            hit.use.seen = rank is not None
        if rank is None or rank == 2 or (node.attr in _OF_BATCHES and rank > 2):
            continue
        if node.attr != "T" and rank > 0:  # raises; `mH` is of the last two dimensions, and a vector has none
            yield file.fixes.finding(hit, None)
            continue
        if rank == 0:  # which only warns, and since later
            hit = replace(hit, rule=replace(hit.rule, deprecated=_OF_NUMBERS, removed=None))
        fix = None
        end, last = file.source.span(node.value)[1], file.source.span(node)[1]
        numbers = [str(number) for number in reversed(range(rank))]
        new = code("$x.permute(*$order)", x=node.value, order=numbers) if rank > 2 else None
        title = f"Replace with `.permute({', '.join(numbers)})`" if new else f"Remove `.{node.attr}`"
        if node.attr in _CONJUGATES:
            new, title = code("$x.conj()", x=node.value), "Replace with `.conj()`"
        edit = suffix_replaced(file.source, node.value, end, last, (".", node.attr), new)
        if not hit.use.in_fstring and edit is not None:
            fix = fix_by(rule, file, title, edit)
        yield file.fixes.finding(hit, fix)
