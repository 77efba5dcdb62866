"""TM351: checkpoints with a policy that run under hooks for saved tensors."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext

_HOOKS = frozenset(
    f"torch.autograd.graph.{name}"
    for name in ("saved_tensors_hooks", "save_on_cpu", "disable_saved_tensors_hooks")
)


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """The findings of checkpoints that run under hooks for saved tensors, as far as the function shows it."""
    yield from file.fixes.findings([hit for hit in hits if _is_within(hit, file)])


def _is_within(hit: RuleMatch, file: FileContext) -> bool:
    outer = file.names.parents.get(hit.use.node)
    while outer is not None:
        if isinstance(outer, ast.With) and any(
            isinstance(item.context_expr, ast.Call) and hit.place.qualified(item.context_expr.func) in _HOOKS
            for item in outer.items
        ):
            return True
        outer = file.names.parents.get(outer)
    return False
