"""TM220 to TM225: apex.amp in a file, rewritten to `torch.amp` as a whole.

One fix for everything in the file: a scaler where `amp.initialize` was, autocast around the forward passes,
`scaler.scale`, `step` and `update`, the state in checkpoints, the imports. Or no fix, and the reason why.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods._apex_plan import Plan, make_plan
from torchmigrate.codemods._apex_uses import Unclear, concerned
from torchmigrate.codemods._rewriting import Crowded
from torchmigrate.fixes import FixPlanner
from torchmigrate.hits import Hit
from torchmigrate.imports import Refusal
from torchmigrate.model import Finding, Fix
from torchmigrate.versions.range import applicability

NEEDS_HITS = True
CODES = frozenset({"TM220", "TM221", "TM222", "TM223", "TM224", "TM225"})
_SCALER_SINCE = "torch 2.3"
_SHARED = "apex_amp"


def find(rule: Rule, hits: Sequence[Hit], planner: FixPlanner) -> Iterator[Finding]:
    """A finding for every hit of one of the rules; the fix, or what is in its way, is the same for all."""
    made = planner.shared.get(_SHARED)
    if made is None:
        made = planner.shared[_SHARED] = _make(rule, planner)
    for hit in hits:
        finding = planner.finding(hit, made if isinstance(made, Fix) else None)
        if isinstance(made, str):
            finding = finding._replace(help=f"{made}; {finding.help}")
        yield finding


def _make(rule: Rule, planner: FixPlanner) -> Fix | str:
    known = {id(hit.use) for hit in planner.hits if hit.rule.code in CODES}
    if any(id(use) not in known for use in concerned(planner.names)):
        return (
            "all uses of apex.amp in a file change together, and some are suppressed, guarded or not selected"
        )
    try:
        plan = make_plan(planner)
    except (Unclear, Crowded) as error:
        return str(error)
    if isinstance(plan, Refusal):
        return plan.reason
    return _fix(plan, rule, planner)


def _fix(plan: Plan, rule: Rule, planner: FixPlanner) -> Fix:
    level, reason = applicability(rule.cases[0], rule, planner.versions)
    text = "; ".join([reason or "", *plan.remarks]).strip("; ")
    releases = tuple(
        release
        for use in plan.uses.every
        if not isinstance(use.node, ast.alias)
        for release in planner.imports.releases(use)
    )
    return planner.fix(
        rule, "Train with `torch.amp`", level, text, plan.edits, releases, requires=(_SCALER_SINCE,)
    )
