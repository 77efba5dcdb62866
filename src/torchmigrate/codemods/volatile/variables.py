"""TM331 and TM045: volatile variables, and `with torch.no_grad():` around what is computed from them.

All places of one function are rewritten as one fix, or none: the wrapper goes, and the statements from the
one that made the variable to the last that computes with it, or with what was computed, go under a `with`.
Where a function of the file returns some, its callers change with it.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence

from msgspec.structs import replace

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at
from torchmigrate.codemods.volatile.function import is_false
from torchmigrate.codemods.volatile.plan import VolatilePlan
from torchmigrate.codemods.volatile.sites import VARIABLE
from torchmigrate.findings import Finding, Fix, Reason
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.patterns import pattern
from torchmigrate.rewrite.context import FileContext
from torchmigrate.semantics.flow.mentions import parameters
from torchmigrate.semantics.model import Role, SemanticModel
from torchmigrate.source.trees import children, walk

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
    imports = any((item.target or "").partition(".")[0] == "torch" for item in file.names.imports)
    taking: defaultdict[str, list[ast.FunctionDef]] = defaultdict(list)
    own: dict[str, bool] = {}  # functions of the file: whether they make volatile variables
    calls: list[ast.Call] = []
    todo: list[ast.AST] = [file.names.tree]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.FunctionDef):
            own.setdefault(node.name, False)
            if "volatile" in parameters(node.args):
                taking[node.name].append(node)
        elif isinstance(node, ast.Call):
            calls.append(node)
        elif isinstance(node, ast.JoinedStr):
            continue  # where things are in there is known since Python 3.12 only
        todo.extend(children(node))
    wrappers = {id(use.call) for use in file.names.uses if VARIABLE in use.candidates}
    asked = {name: [_handed_on(node, wrappers) for node in taking[name]] for name in taking}
    for _ in taking:  # one of them may hand it on to another
        before = dict(own)
        for name, callees in asked.items():
            own[name] = own[name] or any(
                callee is None or own.get(callee, _WRAPPER.search(callee))
                for each in callees
                for callee in each
            )
        if own == before:
            break
    known = {id(use.call) for use in file.names.uses if use.role is Role.CALL}
    for call in calls:
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if id(call) in known or not (own[name] if name in own else imports and _WRAPPER.search(name)):
            continue
        for item in call.keywords:
            if item.arg == "volatile" and not (isinstance(item.value, ast.Name) or is_false(item.value)):
                finding = finding_at(rule, file, file.source.span(item), symbol=VARIABLE, fix=None)
                fix = plan.outcome(call, rule)
                advice = f"`{name}` creates volatile variables: remove its parameter, and {rule.advice}"
                yield _explained(finding, fix) if fix is not None else replace(finding, help=advice)


def _handed_on(function: ast.FunctionDef, wrappers: Collection[int]) -> set[str | None]:
    """What a function calls with `volatile=volatile`; None: it makes such a variable itself.

    Args:
        wrappers: id() of the calls of `Variable` in the file.
    """
    found: set[str | None] = set()
    for node in walk(function):
        if isinstance(node, ast.Attribute) and node.attr == "volatile" and isinstance(node.ctx, ast.Store):
            found.add(None)
        if not isinstance(node, ast.Call):
            continue
        given = [item.value for item in node.keywords if item.arg == "volatile"]
        if id(node) in wrappers:
            found.add(None)
        elif any(getattr(value, "id", "") == "volatile" for value in given):
            found.add(
                node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            )
    return found
