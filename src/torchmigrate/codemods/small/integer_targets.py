"""TM445: `torch.full` with an integer as the target of a loss that needs floats."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext
from torchmigrate.semantics.flow.forward import Forward

_LOSSES = frozenset(["torch.nn.BCELoss", "torch.nn.BCEWithLogitsLoss", "torch.nn.HuberLoss"])
_FUNCTIONS = frozenset(
    f"torch.nn.functional.{name}"
    for name in ("binary_cross_entropy", "binary_cross_entropy_with_logits", "huber_loss")
)
_KEEP = frozenset("cuda to view reshape squeeze unsqueeze detach clone requires_grad_".split())
_MOST = 16  # expressions that the tensor goes to


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every such tensor."""
    forward = Forward(file.flow)
    for hit in hits:
        if hit.use.call is not None and _is_target(hit.use.call, forward, file):
            yield from file.fixes.findings([hit])


def _is_target(call: ast.Call, forward: Forward, file: FileContext) -> bool:
    """Whether a loss gets the result of a call as its target."""
    seen: list[ast.AST] = [call]
    parents = file.names.parents
    for place in seen:
        outer = parents.get(place)
        further = [*forward.of(place)]
        used = parents.get(outer) if isinstance(outer, ast.Attribute) else None
        if isinstance(outer, ast.Attribute) and outer.attr in _KEEP and isinstance(used, ast.Call):
            further.append(used)
        if isinstance(outer, ast.Call) and place in outer.args[1:2] and _is_loss(outer.func, file):
            return True
        if len(seen) < _MOST:
            seen += [item for item in further if item not in seen]
    return False


def _is_loss(node: ast.expr, file: FileContext) -> bool:
    """Whether an expression is one of the losses, as a function or an object."""
    if file.names.qualified(node) in _FUNCTIONS:
        return True
    made = file.flow.origins(node)
    return bool(made) and all(
        isinstance(step.node, ast.Call) and file.names.qualified(step.node.func) in _LOSSES for step in made
    )
