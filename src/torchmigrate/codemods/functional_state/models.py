"""TM302, TM303: functional models of functorch become `functional_call` with dicts of parameters.

The rules share one plan for a file: what a call of `make_functional` or `combine_state_for_ensemble` gives is
followed through the whole file, and everything that it reaches is rewritten, or nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import partial

from msgspec import Struct, field
from msgspec.structs import replace

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at
from torchmigrate.codemods.base.unclear import Unclear
from torchmigrate.codemods.functional_state.makes import MakeWriter
from torchmigrate.codemods.functional_state.states import Make, States
from torchmigrate.codemods.functional_state.tuples import TupleWriter
from torchmigrate.codemods.functional_state.uses import Uses
from torchmigrate.codemods.functional_state.writer import StateWriter
from torchmigrate.findings import Applicability, DroppedUse, Edit, Finding, Fix, because
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.imports.planner import Refusal
from torchmigrate.rewrite.placing import use_at
from torchmigrate.rewrite.statements import Crowded
from torchmigrate.semantics.model import Binding, Role, Use, Via
from torchmigrate.versions.range import applicability

CALL = "torch.func.functional_call"
_MAKERS = {"make_functional": 1, "make_functional_with_buffers": 2, "combine_state_for_ensemble": 2}
_TYPES = frozenset(("FunctionalModule", "FunctionalModuleWithBuffers"))

_AS_FUNCTION = (
    "the functional model becomes a function instead of a module, also for code in other files that "
    "receives it"
)

_AS_ATTRIBUTE = (
    "the functional model becomes a function instead of a submodule: `state_dict()` no longer has its empty "
    "parameters, and the object cannot be pickled"
)

_IMPORTED_AGAIN = "another file may import the name from this one"
_ALONE = 8  # every attempt reads the whole file


class ModelGroup(Struct):
    """Calls that are rewritten together, or not at all.

    reason: why not. calls: of the functional models. blocking: the expression that is in the way.
    kept: why the state stays a tuple. changed: why that is unsafe.
    """

    makes: dict[int, Use]
    edits: tuple[Edit, ...] = ()
    releases: tuple[DroppedUse, ...] = ()
    reason: str = ""
    calls: list[ast.Call] = field(default_factory=list)
    blocking: ast.expr | None = None
    kept: str = ""
    changed: str = _AS_FUNCTION
    fix: Fix | None = None
    shown: bool = False


_PLAN = "functional state"


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding at every hit, and at every call of a model that one of them makes."""
    if not hits:
        return
    groups = file.once(_PLAN, lambda: _plan(file))
    level, reasons = applicability(rule.cases[0], rule, file.versions)
    own = [group for group in groups if any(hit.use is use for hit in hits for use in group.makes.values())]
    for group in own:
        if not group.reason and group.fix is None:
            title = "Call the model with a dict of parameters"
            why = because(group.changed) if group.kept else reasons
            group.fix = file.fixes.fix(rule, title, level, why, group.edits, group.releases)
    by_use = {id(use): group for group in groups for use in group.makes.values()}
    elsewhere = {hit.symbol for hit in hits if hit.use.role is not Role.ANNOTATION}
    for hit in hits:
        of_hit = by_use.get(id(hit.use)) or _group_of_import(hit, groups)
        fix = of_hit.fix if of_hit is not None else _without_import(rule, hit, file)
        if fix is None and file.fixes.is_idle(hit, elsewhere):
            continue
        finding = file.fixes.finding(hit, fix)
        yield _explained(finding, of_hit)
    for group in own:
        if group.shown:
            continue
        group.shown = True
        nodes: list[ast.expr] = [*group.calls]
        if group.blocking is not None and not any(group.blocking is node for node in nodes):
            nodes.append(group.blocking)
        taken = {(hit.match.start, hit.match.end) for hit in hits}
        for node in nodes:
            span = file.source.span(node)
            if span in taken or any(node is use.node for use in group.makes.values()):
                continue
            finding = finding_at(rule, file, span, symbol="functorch.make_functional", fix=group.fix)
            yield _explained(finding, group)


def _explained(finding: Finding, group: ModelGroup | None) -> Finding:
    """A finding that says why its group is not rewritten, or not with dicts."""
    if group is None or not (group.reason or group.kept):
        return finding
    line = getattr(group.blocking, "lineno", None)
    why = group.reason or f"the parameters stay a tuple, because {group.kept}"
    return replace(finding, blocked_by=because(why, line=line))


def _group_of_import(hit: RuleMatch, groups: Sequence[ModelGroup]) -> ModelGroup | None:
    """The group that uses what an import binds; of several the first, if all are rewritten."""
    if hit.use.role is not Role.IMPORT:
        return None
    found = [group for group in groups if any(use.binding is hit.use.binding for use in group.makes.values())]
    return found[0] if len(found) == 1 or (found and not any(group.reason for group in found)) else None


def _without_import(rule: Rule, hit: RuleMatch, file: FileContext) -> Fix | None:
    """The fix that removes an import that nothing in the file uses."""
    binding = hit.use.binding
    if hit.use.role is not Role.IMPORT or binding is None or binding.uses or binding.guards.attempt:
        return None
    edits = file.imports.removals([DroppedUse(binding.id, ())])
    if not edits or binding.exported or binding.in_string:
        return None
    return file.fixes.fix(
        rule, "Remove the unused import", Applicability.UNSAFE, because(_IMPORTED_AGAIN), edits
    )


def maker(use: Use) -> int:
    """How many states the function gives that a use calls; 0: it is another one."""
    name = use.candidates[0]
    root, _, last = name.partition(".")
    last = name.rpartition(".")[2]
    return _MAKERS.get(last, 0) if root == "functorch" or name.startswith("torch._functorch.") else 0


def _plan(file: FileContext) -> list[ModelGroup]:
    """All calls as one group, or each as its own if all together are not understood; else with tuples."""
    makes = {
        id(use.call): use
        for use in file.names.uses
        if use.call is not None and use.role is Role.CALL and maker(use)
    }
    whole = _attempt(makes, file)
    if not whole.reason or not makes:
        return [whole]
    groups = [whole]
    if 1 < len(makes) <= _ALONE:
        alone = [_attempt({key: use}, file) for key, use in makes.items()]
        groups = alone if any(not group.reason for group in alone) else [whole]
    refused = [group for group in groups if group.reason]
    rest = {key: use for group in refused for key, use in group.makes.items()}
    tuples = _with_tuples(rest, refused, file)
    if not tuples.reason:
        return [*(group for group in groups if not group.reason), tuples]
    for group in refused:
        if tuples.reason not in group.reason:
            group.reason = f"{group.reason}; the parameters cannot stay a tuple either: {tuples.reason}"
    return groups


def _states(uses: dict[int, Use], file: FileContext) -> States:
    """What the calls give, and where it goes."""
    makes: dict[int, Make] = {}
    for key, use in uses.items():
        assert use.call is not None, "only calls are collected"
        makes[key] = Make(use.call, maker(use), use.candidates[0].endswith("combine_state_for_ensemble"))
    return States(file.flow, makes)


def _check_uses(uses: dict[int, Use]) -> None:
    """Raise unless the functions are certainly those of functorch.

    Raises:
        Unclear: they are not.
    """
    for use in uses.values():
        bound = use.binding
        if bound is not None and _is_alone(bound):
            raise Unclear("the `try` only contains this import; without the `try`, there is a fix")
        guarded = use.guards.attempt is not None or bound is None or _has_other_side(bound)
        if not use.sure or use.in_fstring or guarded or use.via is Via.STAR:
            raise Unclear("the function is imported or called under a condition")


def _is_alone(bound: Binding) -> bool:
    """Whether nothing would be left to try without the import."""
    attempt = bound.guards.attempt
    if attempt is None or bound.guards.part != "body":
        return False
    return all(
        isinstance(item, (ast.Import, ast.ImportFrom)) and all(alias.name in _MAKERS for alias in item.names)
        for item in attempt.node.body
    )


def _has_other_side(bound: Binding) -> bool:
    """Whether something else happens where an import fails than a message."""
    attempt = bound.guards.attempt
    if attempt is None:
        return False
    handlers = [statement for handler in attempt.node.handlers for statement in handler.body]
    return (
        bound.guards.part != "body"
        or bool(attempt.node.orelse or attempt.node.finalbody)
        or not all(isinstance(item, (ast.Expr, ast.Raise, ast.Pass)) for item in handlers)
    )


def _attempt(uses: dict[int, Use], file: FileContext) -> ModelGroup:
    """The group of calls whose states become dicts."""
    states = _states(uses, file)
    calls = [call for call in states.calls_of_models if file.names.parents.get(call.func) is call]
    group = ModelGroup(uses, calls=calls)
    try:
        _check_uses(uses)
        found = Uses(states, StateWriter(file))
        found.run()
        _write(group, found, file)
    except (Unclear, Crowded) as error:
        group.reason, group.blocking = str(error), getattr(error, "node", None)
    return group


def _with_tuples(uses: dict[int, Use], refused: Sequence[ModelGroup], file: FileContext) -> ModelGroup:
    """The group of calls whose state stays a tuple. refused: why they cannot be dicts."""
    calls = [call for group in refused for call in group.calls]
    group = ModelGroup(uses, calls=calls, blocking=refused[0].blocking, kept=refused[0].reason)
    extra: dict[Edit, None] = {}
    try:
        _check_uses(uses)
        _check_types(file)
        states = _states(uses, file)
        writer = TupleWriter(StateWriter(file), states)
        for key, make in states.makes.items():
            writer.write(make, partial(_spelled, uses[key], file, extra))
        if writer.submodules:
            group.changed = _AS_ATTRIBUTE
        group.edits = tuple(sorted([*writer.writer.rewriting.edits(), *extra]))
    except (Unclear, Crowded) as error:
        group.reason, group.blocking = str(error), getattr(error, "node", None)
        return group
    group.releases = _releases(uses, file)
    return group


def _check_types(file: FileContext) -> None:
    """Raise if the file names the types that functorch gives.

    Raises:
        Unclear: it does.
    """
    for use in file.names.uses:
        if use.role is not Role.IMPORT and use.candidates[0].rpartition(".")[2] in _TYPES:
            raise Unclear(f"the file uses `{use.candidates[0]}`, but the model would become a function")


def _spelled(use: Use, file: FileContext, extra: dict[Edit, None], name: str) -> str:
    """How a name is written at a use. extra: gets the edits for its import."""
    spelling = file.imports.spell(name, use)
    if isinstance(spelling, Refusal):
        raise Unclear(spelling.reason)
    extra.update(dict.fromkeys(spelling.edits))
    return spelling.text


def _releases(uses: dict[int, Use], file: FileContext) -> tuple[DroppedUse, ...]:
    return tuple(release for use in uses.values() for release in file.imports.releases(use))


def _write(group: ModelGroup, uses: Uses, file: FileContext) -> None:
    """Collect the edits of a group.

    Raises:
        Unclear: a name cannot be imported, or the text does not allow it.
        Crowded: as Rewriting says.
    """
    writer, index = uses.writer, file.flow.index
    extra: dict[Edit, None] = {}
    if uses.as_value and uses.module_methods:
        raise Unclear(
            "a functional model is used as a function in one place and as a module in another",
            uses.module_methods[0],
        )
    _check_types(file)
    makes = MakeWriter(writer, uses.states, wrapped=uses.as_value)
    for key, make in uses.states.makes.items():
        makes.write(make, partial(_spelled, group.makes[key], file, extra))
    if not uses.as_value:
        # From the outer to the inner ones: what both put at one place is in this order.
        for call in sorted(group.calls, key=lambda call: (call.lineno, call.col_offset, -len(call.args))):
            statement = index.statement_of(call)
            block = index.block_of(statement) if statement is not None else None
            if statement is None or block is None or index.in_fstring(call):
                raise Unclear("a model is called in code that cannot be changed", call)
            use = use_at(CALL, statement, [block], index.scope_of(call), file)
            function = _spelled(use, file, extra, CALL)
            problem = writer.functional_call(call, function, uses.states.model(call.func))
            if problem:
                raise Unclear(f"the call {problem}", call)
    group.edits = tuple(sorted([*writer.rewriting.edits(), *extra]))
    group.releases = _releases(group.makes, file)
