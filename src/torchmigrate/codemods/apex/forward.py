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
from torchmigrate.semantics.flow.mentions import Spot, blocks
from torchmigrate.semantics.model import Use
from torchmigrate.source.trees import children, walk

# Methods of a module that run nothing.
_SETTINGS = frozenset(
    """add_module apply bfloat16 buffers children cpu cuda double eval extra_repr
    finish_parameter_update float get_buffer get_parameter get_submodule half join
    load_state_dict modules named_buffers named_children named_modules named_parameters
    no_sync parameters register_backward_hook register_buffer register_forward_hook
    register_module register_parameter requires_grad_ save set_extra_state share_memory
    state_dict to to_empty train type xpu zero_grad""".split()
)
_SETTING = pattern(
    r"_*(?:add|clear|count|disable|enable|freeze|from|get|has|init|is|load|log|named|num|print|register|remove|reset"
    r"|resize|save|set|summary|tie|unfreeze|update)(?:_|$)"
)
_EVALUATES = pattern(r"(?:^|_)(?:eval[a-z]*|valid[a-z]*|infer[a-z]*|predict[a-z]*|generate|test)(?:_|$)")
_PREPARES = pattern(r"_*(?:build|create|get|init|load|log|make|prepare|print|save|set|setup)(?:_|$)")
_LOSS = pattern(r"loss|criteri|entropy|objective", re.IGNORECASE)
_NO_LOSS = pattern(r"reduce|update|append|log|add_scalar|print|write", re.IGNORECASE)
_MOST_CALLS = 3  # that a loss is followed through, outwards
_IN_PLACE = frozenset({"append", "extend", "add_", "mul_", "div_"})


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
        self._covered = Answers(self._is_covered, False)
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
            return callee.attr not in _SETTINGS and _SETTING.match(callee.attr) is None
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
            if not isinstance(statement, (ast.FunctionDef, ast.ClassDef))
        )

    def _is_barrier(self, statement: ast.stmt) -> bool:
        """Whether a backward pass is in a statement, or in what that calls."""
        return any(
            _is_backward(call) or self.objects.called(call) in self._trains for call in _calls(statement)
        )

    @cached_property
    def _trains(self) -> set[Function]:
        """The functions with a backward pass, and those that call them."""
        found = {
            function
            for function in self.functions.every
            if any(_is_backward(call) for _, call in function.calls)
        }
        while new := {caller for caller, _, _, called in self.objects.calls if called in found} - found:
            found |= new
        return found

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
        needed = {node.id for node in walk(loss) if isinstance(node, ast.Name)}
        needed |= {ast.unparse(node) for node in walk(loss) if isinstance(node, ast.Attribute)}
        own_work: list[ast.stmt] = []
        found = False
        here: Spot | None = self.functions.spots[id(last)]
        while here is not None and not found:
            for chosen in _slices(here, needed, self._is_barrier):
                forward = [index for index in chosen if self.runs(here.block[index], function, deep=True)]
                if not forward:
                    own_work += [here.block[index] for index in chosen if _computes(here.block[index])]
                    continue
                statements = here.block[min(forward) : max(chosen) + 1]
                while len(statements) > 1 and _is_arithmetic(statements[-1]):
                    statements = statements[:-1]
                self._note(function, statements)
                self._lossy |= self._busy
                self._covered.clear()
                found = True
            here = here.outer
        if not found:
            follow = function not in inner and len(inner) < _MOST_CALLS
            calls = self.objects.calls_to(function) if follow else []
            given = [
                (caller, statement, argument)
                for caller, statement, call in calls
                for argument, name in arguments(call, function)
                if name in needed
            ]
            if not given or any(_computes(argument) for _, _, argument in given):
                return False
            if not all(self._computes(*place, (*inner, function)) for place in given):
                return False
        for statement in own_work:
            if not found or statement.lineno > self.ranges[-1][1][0].lineno:
                self._note(function, [statement])
        return True

    # ---- without --------------------------------------------------------------------------------------

    def others(self, function: Function, after: Callable[[ast.stmt], bool]) -> None:
        """Note the forward passes without a backward pass, as in evaluation.

        Args:
            after: whether a statement runs after `amp.initialize`.

        Raises:
            Unclear: one stands where it cannot be wrapped.
        """
        if self._covered(function):
            return
        for block in _blocks_of(function):
            index = 0
            while index < len(block):
                statement = block[index]
                index += 1
                if id(statement) in self._busy or not after(statement):
                    continue
                if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                    continue
                if not any(
                    self._call_runs(call, function)
                    for call in own(statement, ast.Call)
                    if isinstance(call, ast.Call)
                ):
                    continue
                if any(id(item) in self._busy for item in walk(statement)):
                    raise Unclear.at(statement.lineno, "the model runs in the header of a block")
                chosen = [statement, *self._to_loss(statement, block[index:])]
                spot = self.functions.spots[id(statement)]
                while (
                    len(chosen) == 1 and spot.outer is not None and isinstance(spot.outer.statement, ast.If)
                ):
                    spot = spot.outer
                    rest = self._to_loss(statement, spot.block[spot.index + 1 :])
                    if rest and not any(id(item) in self._busy for item in walk(spot.statement)):
                        chosen = [spot.statement, *rest]
                self._note(function, chosen)
                self.optional.add(id(chosen[0]))
                index += len(chosen) - 1 if chosen[0] is statement else 0

    def _is_covered(self, function: Function) -> bool:
        """Whether a function is only called where a loss is computed, under autocast."""
        calls = self._callers.get(function, [])
        covered = [id(statement) in self._lossy or self._covered(caller) for caller, statement in calls]
        return bool(calls) and False not in covered

    @cached_property
    def _callers(self) -> dict[Function, list[tuple[Function, ast.stmt]]]:
        """Where each function of the file is called."""
        found: dict[Function, list[tuple[Function, ast.stmt]]] = {}
        for caller, statement, _, called in self.objects.calls:
            found.setdefault(called, []).append((caller, statement))
        return found

    def _to_loss(self, first: ast.stmt, rest: Sequence[ast.stmt]) -> list[ast.stmt]:
        """The statements after a forward pass up to the last that computes a loss of its results."""
        tainted = _bound(first)
        last = 0
        for number, statement in enumerate(rest, 1):
            if (
                self._is_barrier(statement)
                or id(statement) in self._busy
                or not isinstance(statement, (ast.Assign, ast.AugAssign, ast.Expr, ast.AnnAssign))
            ):
                break
            value = getattr(statement, "value", None)
            if isinstance(statement, ast.Expr) or not (_read(statement) & tainted):
                continue
            tainted |= _bound(statement)
            if isinstance(value, ast.Call) and _is_loss(value):
                last = number
        return list(rest[:last])

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
    is_before = _before(uses, objects)
    found: dict[int, ast.Call] = {}
    for function in objects.functions.every:
        found.update(
            (id(call), call)
            for _, call in function.calls
            if forward.is_pass(call) and not is_before(call, function)
        )
    return sorted(found.values(), key=lambda call: (call.lineno, call.col_offset))


def _before(uses: Sequence[Use], objects: Objects) -> Callable[[ast.Call, Function], bool]:
    """Whether a call surely runs before `amp.initialize`: by its line, or by those of all calls around it."""
    first: dict[int, tuple[int, int]] = {}
    for use in uses:
        function = objects.functions.owners.get(id(use.statement))
        if use.call is not None and function is not None:
            here = (use.call.lineno, use.call.col_offset)
            first[id(function)] = min(here, first.get(id(function), here))
    callers: dict[int, list[tuple[ast.Call, Function]]] = {}
    for caller, _, call, called in objects.calls:
        callers.setdefault(id(called), []).append((call, caller))
    known: dict[int, bool] = {}

    def is_before(call: ast.Call, function: Function) -> bool:
        if id(function) in first:
            return (call.lineno, call.col_offset) < first[id(function)]
        if id(function) not in known:
            known[id(function)] = False  # while it calls itself
            around = callers.get(id(function), [])
            known[id(function)] = bool(around) and all(is_before(*item) for item in around)
        return known[id(function)]

    return is_before


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    """The calls in a node, not those in functions that it defines."""
    todo = [node]
    while todo:
        here = todo.pop()
        if isinstance(here, ast.Call):
            yield here
        if here is node or not isinstance(here, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            todo.extend(children(here))


def _blocks_of(function: Function) -> Iterator[list[ast.stmt]]:
    todo = [function.node.body]
    while todo:
        block = todo.pop()
        yield block
        for statement in block:
            if not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                todo.extend(blocks(statement))


def _is_backward(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "backward"


def _slices(spot: Spot, needed: set[str], is_barrier: Callable[[ast.stmt], bool]) -> list[list[int]]:
    """The statements before one in its block that compute some names, those between backward passes together.

    `needed` becomes what they read.
    """
    slices: list[list[int]] = [[]]
    for index in range(spot.index - 1, -1, -1):
        statement = spot.block[index]
        if is_barrier(statement):
            slices.append([])
            continue
        made = _bound(statement) & needed
        if not made:
            continue
        slices[-1].append(index)
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            needed -= made
        needed |= _read(statement)
    return [item for item in slices if item]


def _bound(statement: ast.stmt) -> set[str]:
    found: set[str] = set()
    for node in walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(ast.unparse(node))
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            found.add(ast.unparse(node.value))
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            function = node.value.func
            if isinstance(function, ast.Attribute) and function.attr in _IN_PLACE:
                found.add(ast.unparse(function.value))
    return found


def _read(statement: ast.stmt) -> set[str]:
    found = {
        node.id for node in walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    found |= {
        ast.unparse(node)
        for node in walk(statement)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    }
    if isinstance(statement, ast.AugAssign):
        found |= _bound(statement)
    return found


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
