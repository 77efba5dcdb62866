"""TM302, TM303: functional models of functorch become `functional_call` with dicts of parameters.

The rules share one plan for a file: what a call of `make_functional` or `combine_state_for_ensemble` gives is
followed through the whole file, and everything that it reaches is rewritten, or nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods._findings import finding_at
from torchmigrate.codemods._functional_flow import Flow
from torchmigrate.codemods._functional_kinds import Make, Unclear
from torchmigrate.codemods._functional_makes import MakeText
from torchmigrate.codemods._functional_text import StateText
from torchmigrate.codemods._local_names import LocalNames
from torchmigrate.codemods._placing import use_at
from torchmigrate.fixes import FixPlanner
from torchmigrate.hits import Hit
from torchmigrate.imports import Refusal
from torchmigrate.model import Edit, Finding, Fix, Release
from torchmigrate.names.model import Role, Use
from torchmigrate.versions.range import applicability

NEEDS_HITS = True
CALL = "torch.func.functional_call"
_MAKERS = {"make_functional": 1, "make_functional_with_buffers": 2, "combine_state_for_ensemble": 2}

_ALONE = 8  # every attempt reads the whole file


@dataclass(slots=True)
class Group:
    """Calls that are rewritten together, or not at all.

    reason: why not. calls: of the functional models. blocking: the expression that is in the way.
    """

    makes: dict[int, Use]
    edits: tuple[Edit, ...] = ()
    releases: tuple[Release, ...] = ()
    reason: str = ""
    calls: list[ast.Call] = field(default_factory=list)
    blocking: ast.expr | None = None
    fix: Fix | None = None
    shown: bool = False


_groups: WeakKeyDictionary[FixPlanner, list[Group]] = WeakKeyDictionary()


def find(rule: Rule, hits: Sequence[Hit], planner: FixPlanner) -> Iterator[Finding]:
    """A finding at every hit, and at every call of a model that one of them makes."""
    if not hits:
        return
    groups = _groups.get(planner)
    if groups is None:
        groups = _groups[planner] = _plan(planner)
    level, reason = applicability(rule.cases[0], rule, planner.versions)
    own: list[tuple[Group, Fix | None]] = []
    for group in groups:
        if not any(hit.use is use for hit in hits for use in group.makes.values()):
            continue
        if not group.reason and group.fix is None:
            title = "Call the model with a dict of parameters"
            group.fix = planner.fix(rule, title, level, reason, group.edits, group.releases)
        own.append((group, group.fix))
    by_use = {id(use): group for group in groups for use in group.makes.values()}
    for hit in hits:
        of_hit = by_use.get(id(hit.use)) or _group_of_import(hit, groups)
        fix = of_hit.fix if of_hit is not None else None
        finding = planner.finding(hit, fix)
        reasons = of_hit.reason if of_hit is not None else ""
        yield finding._replace(help=f"{reasons}; {finding.help}") if reasons else finding
    for group, shared in own:
        if group.shown:
            continue
        group.shown = True
        nodes: list[ast.expr] = [*group.calls]
        if group.blocking is not None and not any(group.blocking is node for node in nodes):
            nodes.append(group.blocking)
        taken = {(hit.match.start, hit.match.end) for hit in hits}
        for node in nodes:
            span = planner.source.span(node)
            if span in taken or any(node is use.node for use in group.makes.values()):
                continue
            finding = finding_at(rule, planner, span, symbol="functorch.make_functional", fix=shared)
            yield finding._replace(help=f"{group.reason}; {finding.help}") if group.reason else finding


def _group_of_import(hit: Hit, groups: Sequence[Group]) -> Group | None:
    """The group that uses what an import binds, if there is only one."""
    if hit.use.role is not Role.IMPORT:
        return None
    found = [group for group in groups if any(use.binding is hit.use.binding for use in group.makes.values())]
    return found[0] if len(found) == 1 else None


def maker(use: Use) -> int:
    """How many states the function gives that a use calls; 0: it is another one."""
    name = use.candidates[0]
    root, _, last = name.partition(".")
    last = name.rpartition(".")[2]
    return _MAKERS.get(last, 0) if root == "functorch" or name.startswith("torch._functorch.") else 0


def _plan(planner: FixPlanner) -> list[Group]:
    """All calls as one group, or each as its own where all together are not understood."""
    makes = {
        id(use.call): use
        for use in planner.names.uses
        if use.call is not None and use.role is Role.CALL and maker(use)
    }
    local = LocalNames(planner.names)
    whole = _attempt(makes, planner, local)
    if not whole.reason or not 1 < len(makes) <= _ALONE:
        return [whole]
    alone = [_attempt({key: use}, planner, local) for key, use in makes.items()]
    return alone if any(not group.reason for group in alone) else [whole]


def _attempt(uses: dict[int, Use], planner: FixPlanner, local: LocalNames) -> Group:
    group = Group(uses)
    text = StateText(planner.source, local, planner.names.tree)
    makes: dict[int, Make] = {}
    for key, use in uses.items():
        assert use.call is not None, "only calls are collected"
        makes[key] = Make(use.call, maker(use), use.candidates[0].endswith("combine_state_for_ensemble"))
    flow = Flow(makes, planner.names, local, text)
    try:
        flow.run()
        for use in uses.values():
            bound = use.binding
            guarded = use.guards.attempt is not None or bound is None or bound.guards.attempt is not None
            if not use.sure or use.in_fstring or guarded or use.via == "star":
                raise Unclear("the function is imported or called under a condition")
        group.calls = list(dict.fromkeys(flow.calls))
        _write(group, makes, flow, planner)
    except Unclear as error:
        group.reason, group.blocking = str(error), error.node
        group.calls = group.calls or list(dict.fromkeys(flow.calls))
        group.edits = ()
    return group


def _write(group: Group, makes: dict[int, Make], flow: Flow, planner: FixPlanner) -> None:
    """Collect the edits of a group.

    Raises:
        Unclear: a name cannot be imported, or the text does not allow it.
    """
    text, imports = flow.text, planner.imports
    extra: dict[Edit, None] = {}

    def spell(name: str, use: Use) -> str:
        spelling = imports.spell(name, use)
        if isinstance(spelling, Refusal):
            raise Unclear(spelling.reason)
        extra.update(dict.fromkeys(spelling.edits))
        return spelling.text

    if flow.as_value and text.module_methods:
        raise Unclear("a functional model is a function here and a module there", text.module_methods[0])
    writer = MakeText(planner.source, text, flow, wrapped=flow.as_value)
    for key, make in makes.items():
        use = group.makes[key]
        statement = flow.made.get(key)
        if statement is None:
            raise Unclear("the result is not assigned", make.call)
        writer.write(make, statement, lambda name, use=use: spell(name, use))  # type: ignore[misc]
    if not flow.as_value:
        for call in group.calls:
            statement = flow.local.statement_of(call)
            block = flow.local.block_of(statement) if statement is not None else None
            if statement is None or block is None or flow.local.in_fstring(call):
                raise Unclear("a model is called where nothing can be written", call)
            outer = [call, *flow.local.around(call)]
            scope = next(flow.scopes[id(node)] for node in outer if id(node) in flow.scopes)
            function = spell(CALL, use_at(CALL, statement, [block], scope, planner))
            kind = flow.read(call.func, scope)
            problem = text.functional_call(call, function, getattr(kind, "states", 1))
            if problem:
                raise Unclear(f"the call {problem}", call)
    group.edits = tuple(sorted([*text.edits, *extra]))
    group.releases = tuple(release for use in group.makes.values() for release in imports.releases(use))
