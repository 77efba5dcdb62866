"""Where models run: the statements from a forward pass to its loss, which belong under autocast."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

from torchmigrate.codemods.apex.objects import Objects
from torchmigrate.codemods.apex.uses import Scaled
from torchmigrate.codemods.base.unclear import Unclear
from torchmigrate.patterns import pattern
from torchmigrate.semantics.flow.answers import Answers
from torchmigrate.semantics.flow.functions import Function, Functions, arguments, own
from torchmigrate.semantics.flow.mentions import Spot
from torchmigrate.semantics.flow.steps import EACH, Step
from torchmigrate.semantics.model import Use
from torchmigrate.source.trees import children, walk

# Methods of a module that run nothing, and the first words of such methods.
_SETTING = pattern(
    r"(?:apply|bfloat16|buffers|children|cpu|cuda|double|eval|float|half|join|modules|no_sync|parameters|state_dict"
    r"|to|to_empty|train|type|xpu|zero_grad)$"
    r"|_*(?:add|clear|count|disable|enable|extra|finish|freeze|from|get|has|init|is|load|log|named|num|print|register"
    r"|remove|requires|reset|resize|save|set|share|summary|tie|unfreeze|update)(?:_|$)"
)
_EVALUATES = pattern(r"(?:^|_)(?:eval[a-z]*|valid[a-z]*|infer[a-z]*|predict[a-z]*|generate|test)(?:_|$)")
_PREPARES = pattern(r"_*(?:build|create|get|init|load|log|make|prepare|print|save|set|setup)(?:_|$)")
_LOSS = pattern(r"loss|criteri|entropy|objective", re.IGNORECASE)
_NO_LOSS = pattern(r"reduce|update|append|log|add_scalar|print|write", re.IGNORECASE)
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_PARTS = (ast.Attribute, ast.Subscript)
_OPERATORS = (ast.operator, ast.unaryop, ast.boolop, ast.cmpop)  # one node for all of a kind
_MOST_CALLS = 3  # that a loss is followed through, outwards


class Forward:
    """Finds the forward passes of a file.

    Args:
        objects: what is a model.
        has_scaler: whether autocast can be switched on inside of a function.
    """

    def __init__(self, objects: Objects, has_scaler: Callable[[Function], bool]) -> None:
        self.objects = objects
        self.functions = objects.functions
        self.has_scaler = has_scaler
        self.ranges: list[tuple[Function, list[ast.stmt]]] = []
        self.optional: set[int] = set()  # the first statements of those without a backward pass
        self._busy: set[int] = set()
        self._lossy: set[int] = set()  # the statements under autocast with a backward pass
        self._stores: dict[Function, dict[str, list[ast.expr]]] = {}
        self._inside = Answers(self._runs_inside, False)

    # ---- what runs a model ----------------------------------------------------------------------------

    def runs(self, node: ast.AST, function: Function, *, deep: bool = False) -> bool:
        """Whether the expressions of a statement, and of those inside it, run a model.

        Args:
            deep: also in functions that could see to autocast themselves.
        """
        return any(self._call_runs(call, function, deep=deep) for call in _calls(node))

    def _call_runs(self, call: ast.Call, function: Function, *, deep: bool = False) -> bool:
        callee = call.func
        if self.objects.is_model(callee):
            return True
        if isinstance(callee, ast.Attribute) and self.objects.is_model(callee.value):
            return _SETTING.match(callee.attr) is None
        called = self.objects.called(call)
        if called is not None:
            return called.name != "__init__" and self.inside(called, deep=deep)
        given = [*call.args, *(item.value for item in call.keywords)]
        if any(self.objects.is_model(item) for item in given):
            name = ast.unparse(callee).rpartition(".")[2]
            return _EVALUATES.search(name) is not None and _PREPARES.match(name) is None
        return False

    def is_pass(self, call: ast.Call) -> bool:
        """Whether a call is a forward pass itself: `model(x)`, `model.forward(x)`."""
        callee = call.func
        if isinstance(callee, ast.Attribute) and callee.attr == "forward":
            callee = callee.value
        return self.objects.is_model(callee)

    def inside(self, function: Function, *, deep: bool) -> bool:
        """Whether a function runs a model, and does not see to autocast itself (`deep`: even if it does)."""
        return self._inside((function, deep))

    def _runs_inside(self, asked: tuple[Function, bool]) -> bool:
        function, deep = asked
        return (deep or not self.has_scaler(function)) and any(
            self.runs(statement, function, deep=deep)
            for statement in function.statements
            if not isinstance(statement, DEFINITIONS)
        )

    def _is_barrier(self, statement: ast.stmt) -> bool:
        """Whether a backward pass is in a statement, or in what that calls."""
        return any(
            _is_backward(call) or self.objects.called(call) in self._trains for call in _calls(statement)
        )

    @cached_property
    def _trains(self) -> set[Function]:
        """The functions with a backward pass, and those that call them."""
        every = self.functions.every
        found = [function for function in every if any(_is_backward(call) for _, call in function.calls)]
        for function in found:
            found += {caller for caller, _, _ in self.objects.calls_to(function)} - {*found}
        return {*found}

    # ---- with a loss ----------------------------------------------------------------------------------

    def with_loss(self, scaled: Scaled) -> None:
        """Note the statements from the forward pass to the loss of a backward pass.

        Raises:
            Unclear: the forward pass is not seen.
        """
        line = scaled.statement.lineno
        if self.runs(scaled.loss, scaled.function, deep=True):
            raise Unclear.at(line, "the model runs inside of `amp.scale_loss`")
        if _computes(scaled.loss):
            raise Unclear.at(line, "compute the loss before `amp.scale_loss`")
        if not self._computes(scaled.function, scaled.statement, scaled.loss, ()):
            raise Unclear.at(
                line,
                f"cannot find where the model computes `{ast.unparse(scaled.loss)}`; run that "
                "code under `torch.autocast`",
            )

    def _computes(
        self, function: Function, last: ast.stmt, loss: ast.expr, inner: tuple[Function, ...]
    ) -> bool:
        """Note where a loss is computed before a statement, in its function or in those that call it."""
        made, names = self._made_by(loss, function)
        own_work: list[ast.stmt] = []
        found = False
        here: Spot | None = self.functions.spots[id(last)]
        while here is not None and not found:
            for chosen in self._slices(here, made):
                forward = [item for item in chosen if self.runs(item, function, deep=True)]
                if not forward:
                    own_work += [item for item in chosen if _computes(item)]
                    continue
                first, end = (self.functions.spots[id(item)].index for item in (forward[-1], chosen[0]))
                statements = here.block[first : end + 1]
                while len(statements) > 1 and _is_arithmetic(statements[-1]):
                    statements = statements[:-1]
                self._note(function, statements)
                self._lossy |= self._busy
                found = True
            here = here.outer
        if not found:
            follow = function not in inner and len(inner) < _MOST_CALLS
            given = [
                (caller, statement, argument)
                for caller, statement, call in (self.objects.calls_to(function) if follow else ())
                for argument, name in arguments(call, function)
                if name in names
            ]
            if not given or any(_computes(argument) for _, _, argument in given):
                return False
            if not all(self._computes(*place, (*inner, function)) for place in given):
                return False
        for statement in own_work:
            if not found or statement.lineno > self.ranges[-1][1][0].lineno:
                self._note(function, [statement])
        return True

    def _slices(self, spot: Spot, made: set[int]) -> list[list[ast.stmt]]:
        """The statements of some before one in its block, the last first, cut at backward passes."""
        slices: list[list[ast.stmt]] = [[]]
        for statement in spot.block[: spot.index][::-1]:
            if self._is_barrier(statement):
                slices.append([])
            elif id(statement) in made:
                slices[-1].append(statement)
        return [item for item in slices if item]

    def _made_by(self, value: ast.expr, function: Function) -> tuple[set[int], set[str]]:
        """The statements of a function that compute a value, by id(), with those around them; their names."""
        flow, functions = self.objects.flow, self.functions
        found: set[int] = set()
        nodes: dict[ast.AST, None] = {value: None}
        todo: list[ast.AST] = [value]
        while todo:
            node = todo.pop()
            statement = flow.index.statement_of(node)
            if functions.owners.get(id(statement)) is not function or isinstance(node, DEFINITIONS):
                continue
            found.update(id(spot.statement) for spot in functions.spots[id(statement)].chain())
            is_list = isinstance(node, (ast.List, ast.Dict))
            steps = flow.steps(Step(node, (EACH,))) if is_list else flow.sources(node)
            stored = self._stored(function).get(ast.unparse(node), []) if isinstance(node, _PARTS) else []
            parts = [*stored, *(step.node for step in steps if step.node is not None), *children(node)]
            new = dict.fromkeys(
                part for part in parts if part not in nodes and not isinstance(part, _OPERATORS)
            )
            nodes |= new
            todo += new
        return found, {node.id for node in nodes if isinstance(node, ast.Name)}

    def _stored(self, function: Function) -> dict[str, list[ast.expr]]:
        """What a function stores in attributes and items, such as those of a state that it is given."""
        if function not in self._stores:
            found = self._stores[function] = {}
            for statement in (item for item in function.statements if isinstance(item, ast.Assign)):
                for target in statement.targets:
                    if isinstance(target, _PARTS):
                        found.setdefault(ast.unparse(target), []).append(statement.value)
        return self._stores[function]

    # ---- without --------------------------------------------------------------------------------------

    def others(self, function: Function, after: Callable[[ast.stmt], bool]) -> None:
        """Note the forward passes without a backward pass, as in evaluation.

        Args:
            after: whether a statement runs after `amp.initialize`.

        Raises:
            Unclear: one stands where it cannot be wrapped.
        """
        if function not in self._uncovered:
            return
        for statement in function.statements:
            if id(statement) in self._busy or not after(statement) or isinstance(statement, DEFINITIONS):
                continue
            if not any(self._call_runs(call, function) for call in own(statement, ast.Call)):
                continue
            if any(id(item) in self._busy for item in walk(statement)):
                raise Unclear.at(statement.lineno, "the model runs in the header of a block")
            spot = self.functions.spots[id(statement)]
            chosen = self._to_loss(statement, spot, function)
            while len(chosen) == 1 and spot.outer is not None and isinstance(spot.outer.statement, ast.If):
                spot = spot.outer
                if not any(id(item) in self._busy for item in walk(spot.statement)):
                    chosen = self._to_loss(statement, spot, function)
            self._note(function, chosen)
            self.optional.add(id(chosen[0]))

    @cached_property
    def _uncovered(self) -> set[Function]:
        """The functions that are called where no loss is computed under autocast."""
        return self.objects.reached((), lambda _, statement: id(statement) not in self._lossy)

    def _to_loss(self, forward: ast.stmt, spot: Spot, function: Function) -> list[ast.stmt]:
        """The statements from a forward pass, which is at a spot, to the last that makes a loss of it."""
        last = spot.index
        for index, statement in enumerate(spot.block[last + 1 :], last + 1):
            if not isinstance(statement, (ast.Assign, ast.AugAssign, ast.Expr, ast.AnnAssign)):
                break
            if id(statement) in self._busy or self._is_barrier(statement):
                break
            loss = statement.value if not isinstance(statement, ast.Expr) else None
            is_loss = isinstance(loss, ast.Call) and _is_loss(loss)
            if loss is not None and is_loss and id(forward) in self._made_by(loss, function)[0]:
                last = index
        return spot.block[spot.index : last + 1] if last > spot.index else [forward]

    def _note(self, function: Function, statements: list[ast.stmt]) -> None:
        inner = {
            id(node) for statement in statements for node in walk(statement) if isinstance(node, ast.stmt)
        }
        if inner & self._busy:
            if inner <= self._busy:
                return
            overlapping = [item for item in self.ranges if {id(part) for part in item[1]} & inner]
            for item in overlapping:  # two losses of one forward pass
                block = self.functions.spots[id(item[1][0])].block
                if self.functions.spots[id(statements[0])].block is not block:
                    raise Unclear.at(statements[0].lineno, "several losses share the forward pass")
                numbers = [self.functions.spots[id(part)].index for part in (*statements, *item[1])]
                statements = block[min(numbers) : max(numbers) + 1]
                self.ranges.remove(item)
        for statement in statements:
            for node in walk(statement):
                if isinstance(node, ast.stmt):
                    self._busy.add(id(node))
        self.ranges.append((function, statements))


def joined(
    ranges: list[tuple[Function, list[ast.stmt]]], functions: Functions
) -> list[tuple[Function, list[ast.stmt]]]:
    """The ranges in source order, neighbours as one."""
    found: list[tuple[Function, list[ast.stmt]]] = []
    for function, statements in sorted(ranges, key=lambda item: item[1][0].lineno):
        first = functions.spots[id(statements[0])]
        last = functions.spots[id(found[-1][1][-1])] if found else None
        if last is not None and last.block is first.block and last.index + 1 == first.index:
            found[-1] = (function, [*found[-1][1], *statements])
        else:
            found.append((function, statements))
    return found


def passes(uses: Sequence[Use], objects: Objects) -> list[ast.Call]:
    """The calls of the models that are given to `amp.initialize`, in source order, but for those before it.

    Until then nothing is in mixed precision.

    Args:
        uses: those of `amp.initialize`.
    """
    forward = Forward(objects, lambda function: False)
    first: dict[Function, int] = {}
    for use in uses:
        function = objects.functions.owners.get(id(use.statement))
        if use.call is not None and function is not None:
            first[function] = min(use.call.lineno, first.get(function, use.call.lineno))

    def is_after(function: Function, statement: ast.stmt) -> bool:
        return statement.lineno >= first.get(function, 0)

    reached = objects.reached(first, is_after)
    found = {
        call: None
        for function in objects.functions.every
        if function in reached
        for statement, call in function.calls
        if is_after(function, statement) and forward.is_pass(call)
    }
    return sorted(found, key=lambda call: (call.lineno, call.col_offset))


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    """The calls in a node, not those in functions that it defines."""
    todo = [node]
    while todo:
        here = todo.pop()
        if isinstance(here, ast.Call):
            yield here
        if here is node or not isinstance(here, DEFINITIONS):
            todo.extend(children(here))


def _is_backward(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "backward"


def _is_arithmetic(statement: ast.stmt) -> bool:
    """Whether a statement only calculates with existing values: `loss = loss / steps`."""
    return isinstance(statement, (ast.Assign, ast.AugAssign)) and not _computes(statement)


def _computes(statement: ast.AST) -> bool:
    """Whether a statement, or an expression, calls something that may depend on autocast."""
    light = {"item", "mean", "sum", "float", "detach", "backward", "len", "int", "clone", "append", "update"}
    return any(ast.unparse(call.func).rpartition(".")[2] not in light for call in _calls(statement))


def _is_loss(call: ast.Call) -> bool:
    name = ast.unparse(call.func)
    return _LOSS.search(name) is not None and _NO_LOSS.search(name) is None and not name.endswith(".item")
