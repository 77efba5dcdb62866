"""TM259: models in TorchScript that are given to the exporter which takes none."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.findings import Finding
from torchmigrate.match.matching import given_by, signature_of
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext
from torchmigrate.source.trees import walk

_MAKERS = ("torch.jit.script", "torch.jit.trace", "torch.jit.load", "torch.jit.freeze")


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """The exports whose model is made by `torch.jit`: there, or as the one value of a name in its scope."""
    yield from file.fixes.findings([hit for hit in hits if _is_scripted(hit)])


def _is_scripted(hit: RuleMatch) -> bool:
    model = given_by(signature_of(hit.rule, hit.symbol), hit.use).expression("model")
    if isinstance(model, ast.Name):
        values = [
            node.value
            for node in walk(hit.use.scope.node)
            if isinstance(node, ast.Assign)
            and any(isinstance(target, ast.Name) and target.id == model.id for target in node.targets)
        ]
        model = values[0] if len(values) == 1 else None
    return isinstance(model, ast.Call) and hit.place.qualified(model.func) in _MAKERS
