"""TM839: spectrograms that became complex, in files that take them for pairs of real and imaginary parts."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.operations import number
from torchmigrate.codemods.fft.layouts import Layouts
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext
from torchmigrate.semantics.flow.values import ValueFlow

# Functions and a transform that only take pairs.
_OF_PAIRS = frozenset(
    [
        *(f"torchaudio.functional.{name}" for name in ("angle", "complex_norm", "istft", "magphase")),
        "torchaudio.transforms.ComplexNorm",
    ]
)


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every spectrogram, if the code is known to be older, or the file shows it."""
    older = file.versions.known_to(rule.library) is not None
    if hits and (older or _has_pairs(file) or _reads_pairs(hits, file)):
        yield from file.fixes.findings(hits)


def _has_pairs(file: FileContext) -> bool:
    """Whether a file uses a function of pairs, or reads both `[..., 0]` and `[..., 1]`."""
    if any(not _OF_PAIRS.isdisjoint(use.candidates) for use in file.names.uses):
        return True
    return {0, 1} <= {_part(node) for node in file.names.nodes(ast.Subscript)}


def _reads_pairs(hits: Sequence[RuleMatch], file: FileContext) -> bool:
    """Whether a file takes apart a spectrogram, or computes its absolute values, as only pairs allow."""
    flow, calls = file.flow, file.names.nodes(ast.Call)
    makers = {hit.use.call for hit in hits if hit.use.call is not None}
    made = [call for call in calls if call in makers or _origins(call.func, flow) <= makers]
    layouts = Layouts(flow, {}, lambda call: None, pairs=frozenset(made))
    lengths = [item.pair for call in calls if (item := layouts.length(call)) is not None]
    read = [*lengths, *filter(None, map(layouts.unbound, calls))]
    return any(_origins(pair, flow) <= {*made} for pair in read)


def _origins(node: ast.AST, flow: ValueFlow) -> set[ast.AST | None]:
    return {step.node for step in flow.origins(node)}


def _part(node: ast.Subscript) -> float | None:
    """The number in `x[..., 0]`."""
    index = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
    is_last = len(index) == 2 and isinstance(index[0], ast.Constant) and index[0].value is ...
    return number(index[1]) if is_last else None
