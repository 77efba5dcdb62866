"""TM900: put `torch.compile` around the models that a script trains or calls.

The rule finds variables that hold a model which their scope builds. The new line goes after the last
statement that prepares the model (moves it, assigns its attributes) and before the first that runs or wraps
it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from msgspec.structs import replace

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at
from torchmigrate.codemods.compile.compiled import is_taken_over
from torchmigrate.codemods.compile.kinds import Built, Event, below
from torchmigrate.codemods.compile.life import RUNS, Life, Lives, ModelEvent
from torchmigrate.findings import Edit, Finding, Fix
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.patterns import pattern
from torchmigrate.rewrite.code import code
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.imports.planner import Refusal
from torchmigrate.rewrite.placing import inside_one, line_behind, runs_one_of, use_at
from torchmigrate.semantics.flow.mentions import Spot, position
from torchmigrate.semantics.flow.steps import UNKNOWN_STEP
from torchmigrate.source.trees import last_name
from torchmigrate.versions.range import applicability, required

COMPILE = "torch.compile"
IN_PLACE_SINCE = "2.1"  # nn.Module.compile is in the wheel of 2.1.0, not in the wheel of 2.0.1

# Without one of these, nothing in a file is a model on its way to being trained or run.
_TESTS = ("pytest.", "unittest.")
_NOT_MODEL_NAMES = pattern(r"loss|criteri|metric|augment|transform(?!er)|normali[sz]|preproc", re.IGNORECASE)

_MOVED_LATER = "it is moved to a device after its first use"
_TOGETHER = "it is prepared and used or wrapped in the same statement"
_MAYBE_UNBOUND = "it is created under a condition"
_SHARES_LINE = "other statements are on the same line"
_COPIES = (
    "the copies that `DataParallel` creates would run the compiled code of the original: use "
    "`DistributedDataParallel` first"
)
_SHARD = "with FSDP, compile the sharded model"
_TWICE = "the file computes gradients with `{}=`, which compiled models reject"


def find(rule: Rule, hits: list[RuleMatch], file: FileContext) -> Iterable[Finding]:
    """A finding for every model of a file that could be compiled.

    Args:
        rule: TM900.
        hits: the uses of the rule's symbols; not needed, since what matters is how the models are used.
        file: names, source, versions and imports of the file.
    """
    names = file.names
    imported = {binding.module or "" for binding in names.imports}
    if is_taken_over(names) or any(below(module, _TESTS) for module in imported):
        return
    lives = Lives(file)
    every = lives.every()
    found = [life for life in every if _is_candidate(life, lives)]
    models = {
        build.core for life in every for build in life.builds if build.kind is Built.MODEL or life in found
    }
    # A part of another model is compiled with that, or not at all.
    found = [life for life in found if not any(item.node in models for item in life.happenings)]
    called = {file.flow.definition(build.core.func) for life in found for build in life.builds}
    for life in found:
        # What calls the function compiles the model, or does so already.
        if not _is_handed_out(life) or not (lives.kinds.compiler_lines or life.scope.node in called):
            yield _finding(life, rule, file)


def _differentiates_twice(file: FileContext) -> str | None:
    """What a file has that goes through a backward graph again: what is compiled cannot do that.

    Checked on torch 2.13: `create_graph` raises always, `retain_graph` after a backward without it.
    """
    for node in file.names.nodes(ast.keyword):
        if node.arg in ("create_graph", "retain_graph") and getattr(node.value, "value", True):
            return _TWICE.format(node.arg)
    return None


def _may_train(life: Life, lives: Lives) -> bool:
    """Whether a scope is the module or a function, but no test, and no method of a module, where models are
    only parts; an attribute is followed only where nothing in the file compiles."""
    node, owner = life.scope.node, life.scope.parent
    if isinstance(node, ast.Module):
        return True
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    if "." in life.name and lives.kinds.compiler_lines:
        return False
    if node.name.startswith("test_") and not lives.flow.index.named(node.name):
        return False
    if owner is None or not isinstance(owner.node, ast.ClassDef):
        return True
    return (
        "forward" not in lives.flow.classes.methods[owner.node]
        and lives.kinds.class_built(owner.node) is Built.UNKNOWN
    )


def _is_only(life: Life, lives: Lives) -> bool:
    """Whether a variable never holds anything but the model; an attribute may be `None` before."""
    flow = lives.flow
    target = life.builds[0].target
    if isinstance(target, ast.Name):
        given: list[ast.AST] = [binding.node for binding in life.scope.bindings.get(life.name, ())]
    else:
        owner = flow.classes.owner_of(target.value)
        assert owner is not None, "an attribute of `self`"
        given = [item for item, _ in flow.classes.members[owner, target.attr]]
    steps = [step for item in given for step in flow.sources(item) or (UNKNOWN_STEP,)]
    return all(
        step.node in life.holders
        or (isinstance(target, ast.Attribute) and isinstance(step.node, ast.Constant))
        for each in steps
        for step in ((flow.steps(each) if each.path else ()) or (each,))
    )


# ---- is it worth it ---------------------------------------------------------------------------------


def _is_candidate(life: Life, lives: Lives) -> bool:
    """Whether a model could be compiled, and is worth it."""
    if life.name in life.scope.globals or life.name in life.scope.nonlocals or life.has(Event.LEAVE):
        return False
    if _rebuilt(life) or not _may_train(life, lives) or not _is_only(life, lives):
        return False
    names = [life.name, *(last_name(build.core.func) for build in life.builds)]
    if any(map(_NOT_MODEL_NAMES.search, names)):
        return False
    moved, in_mode = life.has(Event.MOVE, Event.TO_CPU), life.has(Event.MODE)
    if any(build.kind is not Built.MODEL for build in life.builds) and not (
        (moved or in_mode) and life.has(Event.PARAMETERS)
    ):
        return False
    if _is_handed_out(life):
        return life.builds[0].kind is Built.MODEL and life.has(Event.WRAP, Event.TRAINED)
    if life.has(Event.TRAINED):
        return life.has(Event.CALL, Event.USE, Event.GIVEN)
    looped = any(item.event is Event.CALL and _repeated(item, life) for item in life.happenings)
    return looped and (moved or in_mode or life.has(Event.STATE))


def _is_handed_out(life: Life) -> bool:
    """Whether a function builds the model for others, which run it."""
    returned = any(item.event is Event.RETURNED and not item.nested for item in life.happenings)
    return returned and not life.has(Event.CALL, Event.USE)


def _repeated(item: ModelEvent, life: Life) -> bool:
    """Whether something happens in a loop that the model is not built in."""
    built = {id(spot.statement) for spot in life.builds[0].spot.chain()[:-1]}
    return bool(item.loops - built)


def _rebuilt(life: Life) -> bool:
    """Whether a model is built anew, and not only in one branch or another."""
    spots = [build.spot for build in life.builds]
    for number, one in enumerate(spots):
        for other in spots[number + 1 :]:
            pair = inside_one([one, other])
            if pair[0].statement is not pair[1].statement or not isinstance(
                pair[0].statement, (ast.If, ast.Try)
            ):
                return True
    return False


# ---- where the line goes ----------------------------------------------------------------------------


def _obstacle(life: Life, place: Spot) -> str | None:
    """Why the line cannot simply be put after the statement at `place`; None: it can."""
    if life.has(Event.COPIES):
        return _COPIES
    if life.has(Event.SHARD):
        return _SHARD
    barrier = _barrier(life)
    if barrier is not None:
        moves = [item for item in _straight(life) if item.event is Event.MOVE]
        later = [item for item in moves if item.position >= barrier.position]
        if any(item.mention is barrier.mention for item in later):
            return _TOGETHER
        if later and later == moves:  # otherwise the later moves are for something else
            return _MOVED_LATER
        runs = barrier.spot.within(place.block)
        if runs is not None and runs.index <= place.index:
            return _TOGETHER
    built = life.builds[0].spot
    if built.block is not place.block and not _surely_built(life, place):
        return _MAYBE_UNBOUND
    return None


def _place(life: Life) -> Spot:
    """The statement that the line goes after: the last that builds or prepares the model before it runs."""
    barrier = _barrier(life)
    spots = [build.spot for build in life.builds]
    spots += [
        item.spot
        for item in _straight(life)
        if item.event in (Event.MOVE, Event.TO_CPU, Event.CHANGE, Event.PREPARE)
        and (barrier is None or item.position < barrier.position)
        and not _while_running(item, barrier, life)
    ]
    return max(inside_one(spots), key=lambda spot: spot.index)


def _while_running(item: ModelEvent, barrier: ModelEvent | None, life: Life) -> bool:
    """Whether a change, and no move, belongs to the loop that runs the model."""
    if item.event in (Event.MOVE, Event.TO_CPU) or barrier is None or not _repeated(item, life):
        return False
    return bool(item.loops & barrier.loops)


def _straight(life: Life) -> list[ModelEvent]:
    """What happens to the model in the scope itself, after its first build."""
    start = position(life.builds[0].spot, life.builds[0].target)
    return [item for item in life.happenings if not item.nested and item.position > start]


def _barrier(life: Life) -> ModelEvent | None:
    """The first that runs the model, wraps it or hands it to something that may."""
    for item in _straight(life):
        if item.event in (*RUNS, Event.STORED, Event.RETURNED):
            return item
        if item.event is Event.GIVEN and _repeated(item, life):
            return item
    return None


def _surely_built(life: Life, place: Spot) -> bool:
    """Whether the model exists after a statement that builds it in its branches."""
    statements = {id(build.spot.statement) for build in life.builds}
    if runs_one_of(place.block[: place.index + 1], statements):
        return True
    return any(item.spot.block is place.block and item.spot.index > place.index for item in _straight(life))


# ---- finding and fix --------------------------------------------------------------------------------


def _finding(life: Life, rule: Rule, file: FileContext) -> Finding:
    place = _place(life)
    made = _obstacle(life, place) or _differentiates_twice(file) or _fix(life, place, rule, file)
    finding = finding_at(
        rule,
        file,
        file.source.span(life.builds[0].target),
        symbol=next(iter(rule.symbols)),
        fix=made if isinstance(made, Fix) else None,
        variables={"model": life.name},
    )
    return replace(finding, help=f"{made}; {finding.help}") if isinstance(made, str) else finding


def _fix(life: Life, place: Spot, rule: Rule, file: FileContext) -> Fix | str:
    """The fix, or why there is none."""
    line = line_behind(place, file.source)
    if line is None:
        return _SHARES_LINE
    case = rule.cases[0]
    name = life.name
    edits: tuple[Edit, ...] = ()
    if _keeps_its_keys(life):
        case = replace(case, requires=IN_PLACE_SINCE)
        new = code("$name.compile()", name=name)
        title = f"Compile `{name}` in place, which keeps the keys of its state dict"
    else:
        spelling = file.imports.spell(
            COMPILE,
            use_at(COMPILE, place.statement, [spot.block for spot in place.chain()], life.scope, file),
        )
        if isinstance(spelling, Refusal):
            return spelling.reason
        edits = spelling.edits
        case = replace(case, reason=f"{case.reason}; the wrapper adds a prefix to state dict keys")
        new = code("$name = $compile($name)", name=name, compile=spelling.text)
        title = f"Wrap `{name}` in `{COMPILE}`"
    level, reason = applicability(case, rule, file.versions)
    requires = required(case, rule)
    return file.fixes.fix(rule, title, level, reason, (line.insert(new), *edits), requires=requires)


def _keeps_its_keys(life: Life) -> bool:
    """Whether something asks for the keys, the class or the parts of the model, which a wrapper changes."""
    if life.has(Event.STATE, Event.IDENTITY) or "." in life.name or _is_handed_out(life):
        return True  # what other methods and callers do with it is not all in sight
    barrier = _barrier(life)
    for item in life.happenings:
        if item.event is not Event.CHANGE or isinstance(getattr(item.node, "ctx", None), ast.Load):
            continue  # `model.layers[0] = ...` reaches the model, `model.layers = ...` may not
        if item.nested or (barrier is not None and item.position > barrier.position):
            return True
    return False
