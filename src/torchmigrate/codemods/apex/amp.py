"""TM220 to TM228, TM230 to TM232: apex.amp in a file, rewritten to `torch.amp` as a whole, and apex.parallel.

One fix for everything in the file: a scaler where `amp.initialize` was, autocast around the forward passes,
`scaler.scale`, `step` and `update`, the state in checkpoints, the imports. Or no fix, and the reason why.
What apex.parallel has is replaced call by call, by the same fix.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.apex.forward import passes
from torchmigrate.codemods.apex.members import Member, members
from torchmigrate.codemods.apex.objects import AMP, objects_of
from torchmigrate.codemods.apex.plan import ApexPlan, make_plan
from torchmigrate.codemods.apex.uses import BothBackends, concerned, given_amp, is_foreign
from torchmigrate.codemods.base.findings import finding_at
from torchmigrate.codemods.base.functions import functions_of
from torchmigrate.codemods.base.unclear import Unclear
from torchmigrate.findings import Applicability, Finding, Fix, Reason, because
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.joined import joined_fixes
from torchmigrate.rewrite.statements import Crowded
from torchmigrate.semantics.flow.functions import Functions
from torchmigrate.semantics.model import Role, Use
from torchmigrate.versions.range import applicability, required

RULES = {
    "TM220": "apex-amp-initialize",
    "TM221": "apex-amp-scale-loss",
    "TM222": "apex-amp-master-params",
    "TM223": "apex-amp-state",
    "TM224": "apex-amp-functions",
    "TM225": "apex-amp",
    "TM228": "apex-fp16-optimizer",
}
_PARALLEL = frozenset(["TM230", "TM231", "TM232"])
# Of what names nothing of apex:
_FORWARD = "apex-amp-forward"  # TM226
_MEMBERS = "apex-amp-optimizer"  # TM227
_PLAN = "apex_amp"
_SUPPRESSED = "line {line} is suppressed, but all uses of apex.amp must change together"


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every hit of one of the rules; the fix, or what is in its way, is the same for all."""
    made, parallel = file.once(_PLAN, lambda: _migration(rule, file))
    if rule.code in _PARALLEL:
        yield from (finding for finding in parallel if finding.code == rule.code)
        return
    fix = made if isinstance(made, Fix) else None
    if rule.name in (_FORWARD, _MEMBERS):
        found = [_finding(rule, file, *place, fix) for place in _unnamed(rule, hits, file)]
    else:
        mine = [hit for hit in hits if not is_foreign(hit.use)]
        found = [file.fixes.finding(hit, fix) for hit in mine]
        found += [_finding(rule, file, *place, fix) for place in _given(rule, file)]
        if isinstance(made, _Kept) and made.both:
            functions = functions_of(file)
            recipes = [_without_branch(hit.use, functions) for hit in mine]
            found = [replace(item, help=help) for item, help in zip(found, recipes, strict=True)]
    for finding in found:
        yield replace(finding, blocked_by=made.why) if isinstance(made, _Kept) else finding


def _migration(rule: Rule, file: FileContext) -> tuple[Fix | _Kept | None, list[Finding]]:
    """The migration of apex.amp, and the findings about apex.parallel; one fix makes both if it can."""
    first = next((hit.rule for hit in file.hits if hit.rule.code in RULES), rule)
    made = None if first.code in _PARALLEL else _make(first, file)
    found = file.fixes.findings([hit for hit in file.hits if hit.rule.code in _PARALLEL])
    if isinstance(made, Fix):
        fixes = {id(finding.fix): finding.fix for finding in found if finding.fix is not None}
        joined = joined_fixes({id(made): made, **fixes})
        made = joined[id(made)]
        found = [
            replace(finding, fix=joined[id(finding.fix)]) if finding.fix is not None else finding
            for finding in found
        ]
    return made, found


class _Kept(Struct, frozen=True):
    """The file stays as it is. both: it has a branch without apex already."""

    why: tuple[Reason, ...]
    both: bool = False


def _without_branch(use: Use, functions: Functions) -> str:
    """What to do with a use of apex where the code also has a way to train without it."""
    statement = use.statement
    if use.role is Role.IMPORT:
        return (
            "remove the import, the flag that says whether apex is installed, and the branches that need apex"
        )
    spot = functions.spots[id(statement)]
    inner = spot
    while inner.outer is not None and not isinstance(inner.outer.statement, ast.If):
        inner = inner.outer
    test = inner.outer.statement if inner.outer is not None else None
    if not isinstance(test, ast.If):
        return (
            f"remove the code that needs apex in `{functions.owners[id(statement)].name}`, and keep "
            "`torch.amp`"
        )
    branch = f"`{ast.unparse(test.test)}` (line {test.lineno})"
    branch = branch if inner.block is test.body else f"the `else` of {branch}"
    return (
        f"remove the apex branch, {branch}, and the option that selects it; keep the branch with `torch.amp`"
    )


_Place = tuple[ast.expr, str, str | None]  # an expression, the symbol that it stands for, and what to do


def _finding(
    rule: Rule, file: FileContext, node: ast.expr, symbol: str, recipe: str | None, fix: Fix | None
) -> Finding:
    found = finding_at(rule, file, file.source.span(node), symbol=symbol, fix=fix)
    return replace(found, help=recipe) if recipe is not None else found


def _unnamed(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> list[_Place]:
    """The forward passes of a file without autocast, or the steps and clipping of one without a scaler."""
    if rule.name == _MEMBERS:
        return [(item.node, "apex.amp.scale_loss", item.recipe) for item in _known_members(hits, file)]
    calls = passes([hit.use for hit in hits], objects_of(file)) if "autocast" not in file.source.text else ()
    return [(call, "apex.amp.initialize", None) for call in calls]


def _given(rule: Rule, file: FileContext) -> list[_Place]:
    """The uses of apex.amp where it is a parameter."""
    if rule.name != RULES["TM225"]:
        return []
    places = [file.names.parents.get(node) for node, _ in given_amp(file.names, objects_of(file))]
    return [(item, f"{AMP}.{item.attr}", None) for item in places if isinstance(item, ast.Attribute)]


def _known_members(hits: Sequence[RuleMatch], file: FileContext) -> list[Member]:
    if "GradScaler" in file.source.text:
        return []
    uses = [hit.use for hit in hits if hit.rule.name == _MEMBERS]
    return file.once(_MEMBERS, lambda: members(uses, file.names, objects_of(file)))


def _make(rule: Rule, file: FileContext) -> Fix | _Kept:
    hidden: list[ast.stmt | ast.expr] = [
        use.statement
        for use in concerned(file.names)
        if any(file.hides(code, name, use.start) for code, name in RULES.items())
    ]
    hidden += [
        member.node
        for member in _known_members(file.hits, file)
        if file.hides("TM227", _MEMBERS, file.source.span(member.node)[0])
    ]
    if hidden:
        return _Kept(because(_SUPPRESSED.format(line=hidden[0].lineno), line=hidden[0].lineno))
    try:
        plan = make_plan(file)
    except BothBackends as error:
        return _Kept(error.reasons, both=True)
    except (Unclear, Crowded) as error:
        return _Kept(error.reasons)
    return _fix(plan, rule, file)


def _fix(plan: ApexPlan, rule: Rule, file: FileContext) -> Fix:
    case = rule.cases[0]
    title = "Train with `torch.amp`"
    if plan.unused:
        case = replace(
            case,
            applicability=Applicability.UNSAFE,
            reason="another file may import the name from this one",
            requires=None,
        )
        title = "Replace `to_python_float`" if plan.uses.others else "Remove the unused import"
    level, reasons = applicability(case, rule, file.versions)
    releases = tuple(
        release
        for use in plan.uses.every
        if not isinstance(use.node, ast.alias)
        for release in file.imports.releases(use)
    )
    return file.fixes.fix(
        rule,
        title,
        level,
        (*reasons, *because(*plan.remarks)),
        plan.edits,
        releases,
        requires=required(case, rule),
    )
