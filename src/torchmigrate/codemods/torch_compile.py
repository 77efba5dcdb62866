"""TM900: put `torch.compile` around the models that a script trains or calls.

Found is a variable that holds a model of this scope, from the call that builds it on. The new line goes behind
the last statement that prepares the model (moves it, assigns its attributes) and before the first that runs
or wraps it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from torchmigrate.codemods._mentions import Spot, blocks
from torchmigrate.codemods._model_kinds import OWN_COMPILERS, Built, below
from torchmigrate.codemods._model_life import Build, Event, Happening, Life, Lives
from torchmigrate.fixes import FixPlanner, fill
from torchmigrate.hits import Hit
from torchmigrate.import_edits import end_of, line_start, logical_line, start_of
from torchmigrate.imports import Refusal
from torchmigrate.model import Applicability, Edit, Finding, Fix
from torchmigrate.catalogue.model import Rule
from torchmigrate.names.model import NO_GUARDS, Role, Scope, Use
from torchmigrate.versions.range import applicability, severity

COMPILE = "torch.compile"
IN_PLACE_SINCE = "2.1"  # nn.Module.compile is in the wheel of 2.1.0, not in that of 2.0.1

# Without one of these, nothing in a file is a model on its way to being trained or run.
_SCREEN = re.compile(r"\.\s*(?:parameters|named_parameters|to|cuda|train|eval|load_state_dict)\s*\(")
_NOT_MODEL_NAMES = re.compile(r"loss|criteri|metric|augment|transform|normali[sz]|preproc", re.IGNORECASE)

_MOVED_LATER = "it is moved to a device after its first use"
_TOGETHER = "it is prepared and used or wrapped in the same statement"
_MAYBE_UNBOUND = "it is built under a condition"
_SHARES_LINE = "the statement shares its line with others"
_COPIES = (
    "the copies that `DataParallel` makes would run the compiled code of the original: use "
    "`DistributedDataParallel` first"
)
_SHARD = "with FSDP, it is the sharded model that is compiled"


def find(rule: Rule, hits: list[Hit], planner: FixPlanner) -> Iterable[Finding]:
    """A finding for every model of a file that could be compiled.

    Args:
        rule: TM900.
        hits: the uses of the rule's symbols; not needed, since what matters is how the models are used.
        planner: names, source, versions and imports of the file.
    """
    if not _SCREEN.search(planner.source.text):
        return
    names = planner.names
    if any(below(binding.target or "", OWN_COMPILERS) for binding in names.bindings if binding.is_import):
        return
    lives = Lives(names)
    for scope in names.scopes:
        if scope.kind == "module" or (scope.kind == "function" and not _in_model(scope, lives)):
            yield from _in_scope(scope, lives, rule, planner)


def _in_model(scope: Scope, lives: Lives) -> bool:
    """Whether a function is a method of a module class, where models are only parts; or a test."""
    name = getattr(scope.node, "name", "")
    if name.startswith("test_") and any(
        binding.is_import and below(binding.target or "", ("pytest", "unittest")) for binding in lives.names.bindings
    ):
        return True
    owner = scope.parent
    if owner is None or not isinstance(owner.node, ast.ClassDef):
        return not isinstance(scope.node, (ast.FunctionDef, ast.AsyncFunctionDef))
    methods = {item.name for item in owner.node.body if isinstance(item, ast.FunctionDef)}
    kind = lives.kinds.class_built(owner.node, owner.parent or owner)
    return "forward" in methods or kind is not Built.UNKNOWN


def _in_scope(scope: Scope, lives: Lives, rule: Rule, planner: FixPlanner) -> Iterator[Finding]:
    found = [life for life in lives.of(scope) if _is_candidate(life, scope)]
    cores = {id(build.core) for life in found for build in life.builds}
    for life in found:
        # A part of another model is compiled with that.
        if not any(id(item.node) in cores for item in life.happenings):
            yield _finding(life, scope, rule, planner)


# ---- is it worth it ---------------------------------------------------------------------------------


def _is_candidate(life: Life, scope: Scope) -> bool:
    if life.name in scope.globals or life.name in scope.nonlocals or life.has(Event.LEAVE):
        return False
    if _rebuilt(life):
        return False
    known = life.rebinds | {id(build.spot.statement) for build in life.builds}
    if any(id(binding.statement) not in known for binding in scope.bindings.get(life.name, ())):
        return False
    if any(_NOT_MODEL_NAMES.search(name) for build in life.builds for name in (life.name, _callee(build))):
        return False
    chained = {method for build in life.builds for method in build.chain}
    moved = life.has(Event.MOVE, Event.TO_CPU) or bool(chained - {"train", "eval", "apply", "requires_grad_"})
    in_mode = life.has(Event.MODE) or bool(chained & {"train", "eval"})
    if any(build.kind is not Built.MODEL for build in life.builds) and not (
        (moved or in_mode) and life.has(Event.PARAMETERS)
    ):
        return False
    if life.has(Event.TRAINED):
        used = life.has(Event.CALL, Event.USE) or (life.has(Event.GIVEN) and not life.has(Event.RETURNED))
        return used
    looped = any(item.event is Event.CALL and item.mention.looped for item in life.happenings)
    return looped and (moved or in_mode or life.has(Event.STATE))


def _rebuilt(life: Life) -> bool:
    """Whether a model is built anew, and not only in one branch or another."""
    spots = [build.spot for build in life.builds]
    for number, one in enumerate(spots):
        for other in spots[number + 1 :]:
            pair = _together([one, other])
            if pair[0].statement is not pair[1].statement or not isinstance(pair[0].statement, (ast.If, ast.Try)):
                return True
    return False


def _callee(build: Build) -> str:
    function = build.core.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


# ---- where the line goes ----------------------------------------------------------------------------


def _obstacle(life: Life, place: Spot, planner: FixPlanner) -> str | None:
    """Why the line cannot simply be put behind the statement at `place`; None: it can."""
    if life.has(Event.COPIES):
        return _COPIES
    if life.has(Event.SHARD):
        return _SHARD
    barrier = _barrier(life)
    if barrier is not None:
        later = [item for item in _straight(life) if item.mention.position >= barrier.mention.position]
        if any(item.event is Event.MOVE and item.mention is barrier.mention for item in later):
            return _TOGETHER
        if any(item.event is Event.MOVE for item in later):
            return _MOVED_LATER
        runs = barrier.mention.spot.within(place.block)
        if runs is None or runs.index <= place.index:
            return _TOGETHER
    built = life.builds[0].spot
    if built.block is not place.block and not _surely_built(life, place):
        return _MAYBE_UNBOUND
    line = _line_of(place.block, place.statement, planner)
    return None if line is not None else _SHARES_LINE


def _place(life: Life) -> Spot:
    """The statement that the line goes behind: the last that builds or prepares the model before it runs."""
    barrier = _barrier(life)
    spots = [build.spot for build in life.builds]
    spots += [
        item.mention.spot
        for item in _straight(life)
        if item.event in (Event.MOVE, Event.TO_CPU, Event.CHANGE)
        and (barrier is None or item.mention.position < barrier.mention.position)
    ]
    return max(_together(spots), key=lambda spot: spot.index)


def _straight(life: Life) -> list[Happening]:
    """What happens to the model in the scope itself, behind its first build."""
    first = life.builds[0].target
    start = (first.lineno, first.col_offset)
    return [item for item in life.happenings if not item.mention.nested and item.mention.position > start]


def _barrier(life: Life) -> Happening | None:
    """The first that runs the model, wraps it or hands it to something that may."""
    for item in _straight(life):
        if item.event in (Event.CALL, Event.WRAP, Event.COPIES, Event.SHARD, Event.USE, Event.STORED, Event.RETURNED):
            return item
        if item.event is Event.GIVEN and item.mention.looped:
            return item
    return None


def _together(spots: list[Spot]) -> list[Spot]:
    """The statements of the innermost common block that these stand in."""
    for candidate in reversed(spots[0].chain()):
        found = [spot.within(candidate.block) for spot in spots]
        if all(item is not None for item in found):
            return [item for item in found if item is not None]
    raise AssertionError("all statements stand in the body of the scope")


def _surely_built(life: Life, place: Spot) -> bool:
    """Whether the model exists behind a statement that builds it in its branches."""
    statements = {id(build.spot.statement) for build in life.builds}
    if _builds_always(place.block[: place.index + 1], statements):
        return True
    return any(
        item.mention.spot.block is place.block and item.mention.spot.index > place.index for item in _straight(life)
    )


def _builds_always(block: list[ast.stmt], builds: set[int]) -> bool:
    """Whether one of the builds has run at the end of a block, if that is reached."""
    for statement in block:
        if id(statement) in builds:
            return True
        if isinstance(statement, (ast.Return, ast.Raise, ast.Continue, ast.Break)):
            return True
        if isinstance(statement, ast.If):
            branches = [statement.body, statement.orelse]
        elif isinstance(statement, ast.Try):
            branches = [statement.body, *(handler.body for handler in statement.handlers)]
        elif isinstance(statement, (ast.With, ast.AsyncWith)):
            branches = [statement.body]
        else:
            continue
        if all(_builds_always(branch, builds) for branch in branches):
            return True
    return False


@dataclass(frozen=True, slots=True)
class _Line:
    """Where a new line is put: an offset, its indentation, and the newlines before and behind it."""

    offset: int
    indent: str
    before: str
    behind: str


def _line_of(block: list[ast.stmt], statement: ast.stmt, planner: FixPlanner) -> _Line | None:
    """The line behind a statement; None where it does not have its lines to itself."""
    source = planner.source
    start = start_of(source, statement)
    indent = source.text[line_start(source.text, start) : start]
    inner = statement
    while (inside := list(blocks(inner))) and inside:
        block = inside[-1]
        inner = block[-1]
    line = logical_line(source, block, inner)
    if indent.strip() or (inner is statement and (line.indent is None or len(line.statements) > 1)):
        return None
    newline = source.text[line.end : line.after]
    if newline:
        return _Line(line.after, indent, "", newline)
    return _Line(line.end, indent, source.newline, "") if line.end == len(source.text) else None


# ---- finding and fix --------------------------------------------------------------------------------


def _finding(life: Life, scope: Scope, rule: Rule, planner: FixPlanner) -> Finding:
    target = life.builds[0].target
    source = planner.source
    place = _place(life)
    obstacle = _obstacle(life, place, planner)
    fix = None if obstacle is not None else _fix(life, place, scope, rule, planner)
    advice = fill(rule.advice or "", life.name, {})
    level = severity(rule, planner.versions)
    assert level is not None, "rules that say nothing at the target are not looked up"
    start = source.offset(target.lineno, target.col_offset)
    return Finding(
        code=rule.code,
        name=rule.name,
        message=fill(rule.summary, life.name, {}),
        severity=level,
        start=start,
        end=start + len(target.id),
        help=f"{obstacle}; {advice}" if obstacle is not None else advice,
        fix=fix,
        url=rule.references[0] if rule.references else None,
        symbol=COMPILE,
    )


def _fix(life: Life, place: Spot, scope: Scope, rule: Rule, planner: FixPlanner) -> Fix | None:
    line = _line_of(place.block, place.statement, planner)
    if line is None:
        return None
    case = rule.cases[0]
    name = life.name
    edits: tuple[Edit, ...] = ()
    if _keeps_its_keys(life):
        case = replace(case, requires=IN_PLACE_SINCE)
        code = f"{name}.compile()"
        title = f"Compile `{name}` in place, which keeps the keys of its state dict"
    else:
        spelling = planner.imports.spell(COMPILE, _use_at(life.builds[0], place, scope, planner))
        if isinstance(spelling, Refusal):
            return None
        edits = spelling.edits
        code = f"{name} = {spelling.text}({name})"
        title = f"Wrap `{name}` in `{COMPILE}`"
    level, reason = applicability(case, rule, planner.versions)
    if level is Applicability.UNSAFE:
        # How it would be if nothing but the releases counted.
        _, older = applicability(replace(case, applicability=Applicability.SAFE, reason=None), rule, planner.versions)
        reason = "; ".join(text for text in (older, reason) if text) or None
    text = f"{line.before}{line.indent}{code}{line.behind}"
    # Mergeable: two models that are moved together get their lines at the same place.
    edit = Edit(line.offset, line.offset, text, mergeable=True)
    return planner.fix(rule, title, level, reason, (edit, *edits))


def _keeps_its_keys(life: Life) -> bool:
    """Whether something asks for the keys, the class or the parts of the model, which a wrapper changes."""
    if life.has(Event.STATE, Event.IDENTITY):
        return True
    barrier = _barrier(life)
    return any(
        item.event is Event.CHANGE
        and (item.mention.nested or (barrier is not None and item.mention.position > barrier.mention.position))
        for item in life.happenings
    )


def _use_at(build: Build, place: Spot, scope: Scope, planner: FixPlanner) -> Use:
    """The place of the new line, as the import planner sees places."""
    start = start_of(planner.source, place.statement)
    return Use(
        node=build.target,
        candidates=(COMPILE,),
        sure=True,
        role=Role.CALL,
        start=start,
        end=end_of(planner.source, place.statement),
        statement=place.statement,
        block=place.block,
        scope=scope,
        guards=NO_GUARDS,
    )
