"""The steps of optimizers, and the gradients between backward pass and step."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from torchmigrate.codemods.apex.objects import Objects
from torchmigrate.codemods.apex.presence import Branches
from torchmigrate.codemods.apex.uses import Uses
from torchmigrate.codemods.base.unclear import Unclear
from torchmigrate.patterns import pattern
from torchmigrate.rewrite.code import Code, code
from torchmigrate.rewrite.statements import Rewriting
from torchmigrate.semantics.flow.functions import Function, own
from torchmigrate.semantics.flow.mentions import LOOPS, Spot, common_block
from torchmigrate.source.trees import last_name, walk

_OLD_METHODS = frozenset(
    "backward clip_master_grads clip_fp32_grads update_master_grads unscale_grads _amp_stash".split()
)
_CLIPPING = ("clip_grad_norm_", "clip_grad_norm", "clip_grad_value_")
_GRADIENTS = pattern(r"(?:^|_)grad(?:s|ients?)?(?:_|$)")
_NO_GRADIENTS = pattern(r"zero|no_grad|enable|require|reduce|sync|checkpoint")


class Step(Struct):
    """A call `optimizer.step()`, or a statement that reads or changes the gradients of an optimizer.

    statement: a loop over the optimizers counts as one; numbers: which of the optimizers it is, one after the
    other.
    """

    call: ast.Call | None
    statement: ast.stmt
    function: Function
    numbers: frozenset[int]
    optimizer: ast.expr


class Steps:
    """Everything between the backward pass and the next one.

    Args:
        optimizers: those that are initialized.
        scaler: how the scaler is written in a function.
    """

    def __init__(
        self,
        uses: Uses,
        objects: Objects,
        branches: Branches,
        rewriting: Rewriting,
        optimizers: Sequence[ast.expr],
    ) -> None:
        self.uses = uses
        self.objects = objects
        self.functions = objects.functions
        self.branches = branches
        self.rewriting = rewriting
        self.remarks: list[str] = []
        self.steps = [step for step in self._steps() if id(step.statement) not in branches.dropped]
        if not self.steps:
            raise Unclear(
                f"this file does not step the optimizer that `{uses.initialize[0].function.name}` "
                "initializes: pass the scaler on, and call `scaler.step(optimizer)` and `scaler.update()`"
            )
        every = {
            number for item in optimizers for one in objects.each(item) for number in objects.optimizers(one)
        }
        if not every <= frozenset().union(*(step.numbers for step in self.steps)):
            raise Unclear("this file does not step one of the optimizers")
        self.steps = [*filter(self._trains, self.steps)]
        self._check_scaled()
        self.gradients = list(self._gradients())

    @property
    def involved(self) -> list[tuple[Function, ast.stmt]]:
        return [(item.function, item.statement) for item in (*self.steps, *self.gradients)]

    def rewrite(self, scaler: Callable[[Function], str]) -> None:
        """Step and update through the scaler, and unscale before gradients are used.

        Raises:
            Unclear: there is no place for that which is right in every iteration.
        """
        for step in self.steps:
            new = code("$scaler.step($optimizer)", scaler=scaler(step.function), optimizer=step.optimizer)
            if step.call is not None:
                self.rewriting.replace_node(step.call, new)
        by_function: dict[int, list[Step]] = defaultdict(list)
        for step in self.steps:
            by_function[id(step.function)].append(step)
        for steps in by_function.values():
            for place in self._updates(steps):
                update = code("$scaler.update()", scaler=scaler(steps[0].function))
                self.rewriting.add_behind(place, update)
        by_step: dict[int, tuple[Step, list[Step]]] = {}
        moved: list[tuple[Step, Step]] = []
        for item in self.gradients:
            always = self._step_of(item)
            if always is None:
                moved.append((self._later_step(item), item))
            else:
                by_step.setdefault(id(always.statement), (always, []))[1].append(item)
        for step, items in by_step.values():
            place = self._before_all(items, step)
            self.rewriting.add_before(place, _unscaled(scaler(items[0].function), items[0]))
        for step, item in moved:
            self._move(item, step, None if id(step.statement) in by_step else scaler(step.function))
            by_step.setdefault(id(step.statement), (step, []))

    # ---- steps ----------------------------------------------------------------------------------------

    def _steps(self) -> Iterator[Step]:
        for node, call, statement, function in self.objects.attributes("step", *_OLD_METHODS):
            numbers = self.objects.optimizers(node.value)
            if node.attr == "step" and not numbers and self._is_other(node, function):
                raise Unclear.at(
                    node.lineno,
                    f"`{ast.unparse(node.value)}` was not passed to "
                    "`amp.initialize`, and would step with scaled gradients: step it through the "
                    "scaler",
                )
            if numbers and node.attr in _OLD_METHODS:
                raise Unclear.at(node.lineno, f"cannot analyze `{node.attr}` of the optimizer")
            if numbers:
                yield self._step(node, call, statement, function, numbers)

    def _is_other(self, node: ast.Attribute, function: Function) -> bool:
        """Whether an optimizer that apex does not know steps where a loss is scaled."""
        name = ast.unparse(node.value).lower()
        scales = any(item.function is function for item in self.uses.scaled)
        return scales and "optim" in name and "sched" not in name

    def _step(
        self,
        node: ast.Attribute,
        call: ast.Call | None,
        statement: ast.stmt,
        function: Function,
        numbers: frozenset[int],
    ) -> Step:
        plain = isinstance(statement, ast.Expr) and statement.value is call
        if call is None or not plain or call.args or call.keywords:
            raise Unclear.at(node.lineno, "a scaler cannot step with a closure, and its step has no result")
        outer = self.functions.spots[id(statement)].outer
        loop = outer.statement if outer is not None else None
        stored = ast.dump(_stored(node.value))
        if isinstance(loop, ast.For) and any(ast.dump(item) == stored for item in walk(loop.target)):
            statement = loop
        return Step(call, statement, function, numbers, node.value)

    def _updates(self, steps: list[Step]) -> list[ast.stmt]:
        """The statements after which the scaler is updated: the last step of an iteration."""
        groups: dict[object, list[Step]] = defaultdict(list)
        for step in steps:
            around = [item for item in self.functions.loops(step.statement) if item is not step.statement]
            groups[around[-1] if around else None].append(step)
        found: list[ast.stmt] = []
        for group in groups.values():
            if len({step.numbers for step in group}) == 1:
                found += [step.statement for step in group]
                continue
            common = common_block([self.functions.spots[id(step.statement)] for step in group])
            order = sorted(common or [], key=lambda spot: spot.index)
            line = group[0].statement.lineno
            if len({spot.index for spot in order}) < len(group):
                raise Unclear.at(line, "cannot tell when to update the scaler")
            if not any(order[0].statement is step.statement for step in group):
                raise Unclear.at(line, "the first of several optimizers does not step every time")
            found.append(order[-1].statement)
        return found

    def _trains(self, step: Step) -> bool:
        """Whether there are gradients at a step. Before all of training, `zero_grad()` may take care of them.

        Raises:
            Unclear: a scaler cannot step there.
        """
        scaled = [item.statement for item in self.uses.scaled if item.function is step.function]
        around = {id(item) for item in self.functions.loops(step.statement)}
        looped = any(id(item) in around for one in scaled for item in self.functions.loops(one))
        if not scaled or looped or step.statement.lineno > min(item.lineno for item in scaled):
            return True
        spot = self.functions.spots[id(step.statement)]
        while spot.index == 0 and spot.outer is not None and isinstance(spot.outer.statement, ast.If):
            spot = spot.outer
        before = spot.block[spot.index - 1] if spot.index else None
        emptied = f"{ast.unparse(step.optimizer)}.zero_grad()"
        if around or before is None or ast.unparse(before) != emptied:
            raise Unclear.at(step.statement.lineno, "the optimizer steps before a backward pass")
        return False

    def _check_scaled(self) -> None:
        """What apex ran before it unscaled saw the gradients of this backward pass alone.

        Raises:
            Unclear: they may be added to those of others here.
        """
        for item in self.uses.scaled:
            if not item.others or item.delayed or self._step_after(item.statement, self.steps) is not None:
                continue
            if all(_called(inner) == "synchronize" for inner in item.others):
                continue  # Horovod does that more often than there is a step
            raise Unclear.at(
                item.others[0].lineno,
                "gradients are used before apex unscales the gradients of "
                "this backward pass; with a scaler, they are the sum since the last step: move this next "
                "to the step",
            )

    def _step_after(self, statement: ast.stmt, steps: Sequence[Step]) -> Step | None:
        """The first step that follows a statement of its function under no other condition."""
        for step in steps:
            spots = [self.functions.spots[id(item)] for item in (statement, step.statement)]
            common = common_block(spots) if self.functions.owners[id(statement)] is step.function else None
            if common and common[1].statement is step.statement and common[0].index < common[1].index:
                return step
        return None

    # ---- gradients ------------------------------------------------------------------------------------

    def _clipped_elsewhere(self) -> Iterator[Step]:
        """The calls of functions that clip, and do nothing else of training.

        Raises:
            Unclear: one is called where no step follows.
        """
        # A function with a backward pass of its own trains something else.
        stepping = {step.function for step in self.steps} | {*filter(_trains, self.functions.every)}
        known = {id(item.statement) for item in self.uses.of("master")} | self.branches.dropped
        for function in self.functions.every:
            for statement in function.statements if function not in stepping else ():
                clips = any("clip_grad" in ast.unparse(call.func) for call in own(statement, ast.Call))
                if not clips or id(statement) in known:
                    continue
                places = self._steps_after(function, self.steps)
                if len({step.numbers for _, step in places}) != 1:
                    raise Unclear.at(
                        statement.lineno,
                        "gradients are clipped away from the step, where they "
                        "are still scaled; call `scaler.unscale_(optimizer)` first",
                    )
                for place, step in places:
                    yield Step(None, place, step.function, step.numbers, step.optimizer)

    def _steps_after(self, function: Function, steps: Sequence[Step]) -> list[tuple[ast.stmt, Step]]:
        """The step that always follows each call of a function; none if one has none."""
        calls = self.objects.calls_to(function)
        known = [(statement, self._step_after(statement, steps)) for _, statement, _ in calls]
        found = [(statement, step) for statement, step in known if step is not None]
        return found if len(found) == len(known) else []

    def _gradients(self) -> Iterator[Step]:
        yield from self._clipped_elsewhere()
        masters = {id(item.statement) for item in self.uses.of("master")}
        scaled = {id(node) for item in self.uses.scaled for inner in item.others for node in walk(inner)}
        for function in {id(step.function): step.function for step in self.steps}.values():
            mine = [step for step in self.steps if step.function is function]
            # The backward pass may be in another function.
            begin = min(
                (item.statement.lineno for item in self.uses.scaled if item.function is function), default=0
            )
            for statement in function.statements:
                if id(statement) in self.branches.dropped | masters | scaled:
                    continue
                if statement.lineno < begin or not _touches(statement):
                    continue
                if statement.lineno > max(step.statement.lineno for step in mine):
                    continue
                for step in {step.numbers: step for step in self._steps_of(statement, mine)}.values():
                    yield Step(None, statement, function, step.numbers, step.optimizer)
        for item in self.uses.of("master"):
            numbers = self.objects.optimizers(item.value)
            if not numbers or item.value is None:
                raise Unclear.at(item.statement.lineno, "cannot tell which optimizer this is")
            yield Step(None, item.statement, item.function, numbers, item.value)

    def _steps_of(self, statement: ast.stmt, steps: Sequence[Step]) -> list[Step]:
        """The steps with the gradients that a statement uses: those before the next backward pass.

        Raises:
            Unclear: of several optimizers, none steps there.
        """
        if len({step.numbers for step in steps}) == 1:
            return list(steps[:1])
        lines = [item.statement.lineno for item in self.uses.scaled]
        found = [
            step
            for step in steps
            if statement.lineno < step.statement.lineno
            and not any(statement.lineno < line < step.statement.lineno for line in lines)
        ]
        scaled_here = any(item.function is step.function for item in self.uses.scaled for step in steps)
        if not found or not scaled_here:
            raise Unclear.at(statement.lineno, "cannot tell whose gradients these are")
        return found

    def _step_of(self, item: Step) -> Step | None:
        """The step that always follows the use of gradients."""
        same = [step for step in self.steps if step.numbers == item.numbers]
        found = self._step_after(item.statement, same)
        return found or next((step for _, step in self._steps_after(item.function, same)), None)

    def _later_step(self, item: Step) -> Step:
        """The step before which gradients can be clipped instead: it does not follow each time.

        Raises:
            Unclear: what is done cannot be done there.
        """
        same = [step for step in self.steps if step.numbers == item.numbers]
        mine = [step for step in same if step.function is item.function]
        statement = item.statement
        unclear = self._unclear(statement)
        if len(mine) != 1 or _called(statement) not in _CLIPPING:
            raise unclear
        spots = [self.functions.spots[id(part)] for part in (statement, mine[0].statement)]
        here, there = spots
        while here.outer is not None and id(here.outer.statement) in self.branches.joined:
            here = here.outer
        inner = there.within(here.block)
        if inner is None or inner.index <= here.index or inner.statement is mine[0].statement:
            raise unclear
        path = there.chain()[len(inner.chain()) - 1 : -1]
        if not all(isinstance(spot.statement, ast.If) for spot in path):
            raise unclear
        read = {ast.unparse(node) for node in walk(statement) if isinstance(node, (ast.Name, ast.Attribute))}
        for other in item.function.statements:
            if statement.lineno < other.lineno < mine[0].statement.lineno:
                nodes: list[ast.Name | ast.Attribute] = [*own(other, ast.Name), *own(other, ast.Attribute)]
                if any(not isinstance(node.ctx, ast.Load) and ast.unparse(node) in read for node in nodes):
                    raise unclear
        return mine[0]

    def _unclear(self, statement: ast.stmt) -> Unclear:
        return Unclear.at(
            statement.lineno,
            "gradients are used where the optimizer may not step; a scaler "
            "unscales them once before each step, so move this next to the step",
        )

    def _move(self, item: Step, step: Step, scaler: str | None) -> None:
        """Clip right before the step; scaler: where gradients have to be unscaled for that."""
        if scaler is not None:
            self.rewriting.add_before(step.statement, _unscaled(scaler, item))
        self.rewriting.copy_before(item.statement, step.statement)
        self.rewriting.remove(item.statement)
        self.remarks.append(
            f"line {item.statement.lineno}: accumulated gradients must be clipped once, before the step"
        )

    def _before_all(self, items: list[Step], step: Step) -> ast.stmt:
        """The statement before which gradients are unscaled, once for all of their uses."""
        spots = [self.functions.spots[id(item.statement)] for item in items]
        common = common_block(spots)
        assert common is not None, "all stand before the same step"
        place = min(common, key=lambda spot: spot.index)
        here: Spot | None = place
        limit = self.functions.spots[id(step.statement)].block
        while here is not None and here.block is not limit:
            here = here.outer
            if here is not None and isinstance(here.statement, (*LOOPS, ast.Try)):
                place = here
        within = {id(node) for node in walk(place.statement)}
        if any(id(scaled.statement) in within for scaled in self.uses.scaled):
            raise self._unclear(items[0].statement)  # the backward pass would come after
        return place.statement


def _stored(node: ast.expr) -> ast.AST:
    """A name as a loop binds it."""
    return ast.Name(node.id, ast.Store()) if isinstance(node, ast.Name) else node


def _unscaled(scaler: str, item: Step) -> Code:
    return code("$scaler.unscale_($optimizer)", scaler=scaler, optimizer=item.optimizer)


def _trains(function: Function) -> bool:
    return any(
        node.attr == "backward" for statement in function.statements for node in own(statement, ast.Attribute)
    )


def _called(statement: ast.stmt) -> str:
    """The last name of the function that is all of a statement, so that nothing is done with its result."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    return last_name(call.func) if isinstance(call, ast.Call) else ""


def _touches(statement: ast.stmt) -> bool:
    """Whether a statement reads or changes gradients: `clip_grad_norm_`, `p.grad`, a norm of them."""
    for node in own(statement, ast.Call, ast.Attribute):
        if isinstance(node, ast.Call):
            name = last_name(node.func).lower()
            if _GRADIENTS.search(name) and not _NO_GRADIENTS.search(name):
                return bool(node.args)
        elif isinstance(node, ast.Attribute) and node.attr == "grad" and isinstance(node.ctx, ast.Load):
            return True
    return False
