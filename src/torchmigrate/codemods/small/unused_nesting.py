"""TM446: encoders that warn because their layers cannot use nested tensors."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.findings import Finding
from torchmigrate.match.matching import given_by, signature_of
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext

_LAYER = "torch.nn.TransformerEncoderLayer"
_BATCH_FIRST = 8  # its position


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every encoder whose layer is made without `batch_first=True`."""
    for hit in hits:
        layer = given_by(signature_of(rule, hit.symbol), hit.use).expression("encoder_layer")
        made = file.flow.only_origin(layer) if layer is not None else None
        if isinstance(made, ast.Call) and _is_sequence_first(made, file):
            yield from file.fixes.findings([hit])


def _is_sequence_first(call: ast.Call, file: FileContext) -> bool:
    """Whether a call surely makes a layer that takes the sequence first."""
    if file.names.qualified(call.func) != _LAYER:
        return False
    given = {item.arg: item.value for item in call.keywords}
    if (
        None in given
        or len(call.args) > _BATCH_FIRST
        or any(isinstance(item, ast.Starred) for item in call.args)
    ):
        return False
    value = file.around.value(given["batch_first"]) if "batch_first" in given else False
    return value is False
