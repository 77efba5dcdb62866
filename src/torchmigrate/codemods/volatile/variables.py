"""TM331 and TM045: volatile variables, and `with torch.no_grad():` around what is computed from them.

All places of one function are rewritten as one fix, or none: the wrapper goes, and the statements from the
one that made the variable to the last that computes with it, or with what was computed, go under a `with`.
Where a function of the file returns some, its callers change with it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Sequence

from msgspec.structs import replace

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at
from torchmigrate.codemods.volatile.plan import VolatilePlan
from torchmigrate.codemods.volatile.sites import VARIABLE, is_false
from torchmigrate.findings import Finding, Fix, Reason
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.patterns import pattern
from torchmigrate.rewrite.context import FileContext
from torchmigrate.semantics.flow.steps import Step
from torchmigrate.semantics.model import Role, SemanticModel

_PLAN = "volatile"
_WRAPPER = pattern(r"var(?:iable)?s?\Z|\Avar|prepare_batch\Z", re.IGNORECASE)


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every place; those of one function share the fix, or what is in its way."""
    makes = VARIABLE in rule.symbols
    if not _sets_volatile(file.names):
        yield from (file.fixes.finding(hit, None) for hit in hits)
        return
    mine = [hit for hit in file.hits if hit.rule.codemod == rule.codemod and VARIABLE in hit.rule.symbols]
    plan = file.once(_PLAN, lambda: VolatilePlan(mine, file))
    if makes:
        for hit in hits:
            yield _explained(file.fixes.finding(hit, None), plan.outcome(hit.use.scope, rule))
        yield from _wrapped(rule, file, plan)
        return
    yield from (file.fixes.finding(hit, None) for hit in hits)  # reads
    for setting in plan.settings:
        span = file.source.span(setting.target)
        finding = finding_at(rule, file, span, symbol="torch.Tensor.volatile", fix=None)
        yield _explained(finding, plan.outcome(setting.scope, rule))


def _sets_volatile(names: SemanticModel) -> bool:
    """Whether the file sets something named `volatile`."""
    return (
        any(item.arg == "volatile" for item in names.nodes(ast.keyword))
        or any(
            item.attr == "volatile" and isinstance(item.ctx, ast.Store) for item in names.nodes(ast.Attribute)
        )
        or any(item.arg == "volatile" for item in names.nodes(ast.arg))
    )


def _explained(finding: Finding, fix: Fix | tuple[Reason, ...] | None) -> Finding:
    """A finding with its fix, or with what is in the way of one."""
    if isinstance(fix, Fix):
        return replace(finding, fix=fix)
    return replace(finding, blocked_by=fix or ())


def _wrapped(rule: Rule, file: FileContext, plan: VolatilePlan) -> Iterator[Finding]:
    """Calls that ask a function of the file, or one called `to_var`, to make volatile variables."""
    flow = file.flow
    imports = any((item.target or "").partition(".")[0] == "torch" for item in file.names.imports)
    made = {use.call for use in file.names.uses if VARIABLE in use.candidates and use.call is not None}
    known = {use.call for use in file.names.uses if use.role is Role.CALL}
    own = {node.name for node in file.names.nodes(ast.FunctionDef)}
    given: dict[ast.AST, tuple[ast.Call, ast.keyword]] = {
        item.value: (call, item)
        for call in file.names.nodes(ast.Call)
        for item in call.keywords
        if item.arg == "volatile" and not is_false(item.value)
    }
    asks = {call for call, _ in given.values() if call not in known and imports and _is_wrapper(call, own)}
    todo = [Step(value) for value, (call, _) in given.items() if call in made or call in asks]
    todo += [Step(setting.statement.value) for setting in plan.settings]
    seen = set(todo)
    for step in todo:  # what they are given comes from such calls
        if step.node in given and given[step.node][0] not in known:
            asks.add(given[step.node][0])
        new = [each for each in flow.steps(step) if each not in seen]
        seen.update(new)
        todo += new
    for value, (call, item) in given.items():
        if call in asks and not isinstance(value, ast.Name):
            finding = finding_at(rule, file, file.source.span(item), symbol=VARIABLE, fix=None)
            fix = plan.outcome(call, rule)
            advice = f"`{_name(call)}` creates volatile variables: remove its parameter, and {rule.advice}"
            yield _explained(finding, fix) if fix is not None else replace(finding, help=advice)


def _name(call: ast.Call) -> str:
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def _is_wrapper(call: ast.Call, own: Collection[str]) -> bool:
    """Whether a function of another file has the name of one that makes variables."""
    return _name(call) not in own and bool(_WRAPPER.search(_name(call)))
