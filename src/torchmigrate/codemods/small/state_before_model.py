"""TM536: `optim_state_dict_to_load` with the state first, as torch 2.0 had it."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext
from torchmigrate.semantics.flow.values import ValueFlow

_FSDP = "torch.distributed.fsdp.FullyShardedDataParallel"
_STATES = frozenset(
    [f"{_FSDP}.{name}" for name in ("optim_state_dict", "full_optim_state_dict", "sharded_optim_state_dict")]
    + ["torch.load"]
)


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """The calls that surely have the old order: by a keyword, or by what the first two arguments are."""
    yield from file.fixes.findings([hit for hit in hits if _is_old(hit, file.flow)])


def _is_old(hit: RuleMatch, flow: ValueFlow) -> bool:
    call = hit.use.call
    if call is None or not call.args or any(isinstance(item, ast.Starred) for item in call.args[:2]):
        return False
    if len(call.args) == 1:  # the model would be given twice in the new order
        return any(item.arg == "model" for item in call.keywords)
    first, second = call.args[:2]
    return _is_made_by(first, _STATES, flow) or _is_made_by(second, (_FSDP,), flow)


def _is_made_by(node: ast.expr, names: Container[str], flow: ValueFlow) -> bool:
    """Whether an expression is, in some run, what a call of one of some functions gives."""
    made = [step.node for step in flow.origins(node) if not step.path]
    return any(isinstance(call, ast.Call) and flow.names.qualified(call.func) in names for call in made)
