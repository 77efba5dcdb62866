"""TM441: layers of the file whose `forward` does not take what `TransformerEncoder` passes."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at, fix_by
from torchmigrate.codemods.base.subclasses import takes
from torchmigrate.findings import Finding
from torchmigrate.match.matching import given_by, signature_of
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.nodes import name_span
from torchmigrate.rewrite.parameters import NewParameter, parameters_added

_ENCODER = "torch.nn.TransformerEncoder"  # decoders pass two new arguments


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every `forward` of a layer that an encoder or decoder of the file is made of."""
    seen: set[ast.AST] = set()
    for hit in hits:
        layer = given_by(signature_of(rule, hit.symbol), hit.use).expression("layer")
        owner = file.flow.class_of(layer) if layer is not None else None
        method = file.flow.classes.method(owner, "forward") if owner is not None else None
        parameter = rule.symbols[hit.symbol]["parameter"]
        if method is None or method in seen or takes(method, parameter):
            continue
        seen.add(method)
        fix = None
        last = [*method.args.posonlyargs, *method.args.args][-1]
        unset = [item for item in method.args.defaults if isinstance(item, ast.Constant) and not item.value]
        if hit.symbol == _ENCODER and unset and not method.args.vararg and not method.args.kwonlyargs:
            new = NewParameter(parameter, None, unset[0])
            edits = parameters_added(file.source, method, last, [new])
            fix = fix_by(rule, file, f"Accept `{parameter}`", *edits) if edits else None
        yield finding_at(rule, file, name_span(file.source, method), symbol=hit.symbol, fix=fix)
