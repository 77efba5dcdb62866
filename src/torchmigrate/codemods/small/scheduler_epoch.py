"""TM453: the epoch of `scheduler.step(epoch)`, which is removed where the scheduler's own count is the same.

A scheduler itself counts 1, 2, 3, ... So the argument is removed where the file shows that it is just this
count. Where it is counted from 0 and comes first in its loop, as was usual until torch 1.0, the step without
it belongs at the end of the loop: dropped alone, it would shift the schedule by an epoch.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.small.scheduler_order import at_end, counted_from, loops_by_block
from torchmigrate.findings import Applicability, Finding, Fix, because
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext
from torchmigrate.source.trees import walk

_BY_METRIC = "torch.optim.lr_scheduler.ReduceLROnPlateau.step"  # where the epoch makes no difference
_TITLE = "Step the scheduler at the end of the loop"
_REASON = "after the loop, the scheduler has counted one more step"
# What may stand before the step in its loop: calls by these names change no parameters.
_HARMLESS = frozenset("print format info debug train eval time range len set_epoch zero_grad tqdm".split())


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every epoch that is given."""
    loops = loops_by_block(file.names.tree)
    for hit, finding in zip(hits, file.fixes.findings(hits), strict=True):
        if hit.symbol == _BY_METRIC or finding.fix is None:
            yield finding
            continue
        loop = loops.get(id(hit.use.block))
        first = counted_from(hit.use.call, loop) if hit.use.call is not None else None
        fix: Fix | None = finding.fix if first == 1 else None
        if first == 0 and loop is not None and not _may_train(hit):
            edits = at_end(hit, loop, file)
            if edits is not None:
                fix = file.fixes.fix(rule, _TITLE, Applicability.UNSAFE, because(_REASON), edits)
        yield replace(finding, fix=fix)


def _may_train(hit: RuleMatch) -> bool:
    """Whether something before the step in its loop may step the optimizer."""
    block = hit.use.block
    for statement in block[: block.index(hit.use.statement)]:
        for node in walk(statement):
            if isinstance(node, ast.Call):
                function = node.func
                name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
                if name not in _HARMLESS or (name == "train" and node.args):
                    return True
    return False
