"""The functional models of functorch in a file, and their states: parameters, buffers, gradients."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from msgspec import Struct

from torchmigrate.semantics.flow.calls import (
    Function,
    argument_of,
    default_of,
    is_plain,
    parameters,
    returned,
)
from torchmigrate.semantics.flow.domain import OPEN, UNKNOWN, Domain, Sentinel, Values
from torchmigrate.semantics.flow.steps import OPEN_STEP, UNKNOWN_STEP, Path, Step, Steps
from torchmigrate.semantics.flow.values import ValueFlow
from torchmigrate.source.trees import walk

STATE = "state"  # parameters, buffers or gradients of a model: a tuple so far, a dict from now on
BUNDLE = "bundle"  # a tuple or list with models or states
Kind = str | int  # an int: a functional model, called with so many states before its inputs
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_TRANSFORMS = {
    "vmap": "vmap",
    "grad": "grad",
    "grad_and_value": "value",
    "jacrev": "grad",
    "jacfwd": "grad",
}
_HOMES = ("functorch", "torch.func", "torch", "functorch.experimental", "torch._functorch.apis")
TREE_MAPS = frozenset(("torch.utils._pytree.tree_map", "torch.utils.pytree.tree_map"))
COPIES = frozenset(("copy.deepcopy", "copy.copy"))
_MOST_TRANSFORMS = 16  # around one function
_EXPRESSIONS = (
    ast.Name,
    ast.Attribute,
    ast.Call,
    ast.Subscript,
    ast.IfExp,
    ast.BoolOp,
    ast.NamedExpr,
    ast.Tuple,
    ast.List,
    ast.ListComp,
    ast.Lambda,
)


class Make(Struct, frozen=True):
    """A call of `make_functional` or a related function. states: 1: parameters; 2: buffers too."""

    call: ast.Call
    states: int
    ensemble: bool = False


class Run(Struct, frozen=True):
    """What a call runs in the end, within transforms and `partial`.

    function: of the file, or None. callee: the expression that is called. call: with its arguments.
    bound: how many of the function's parameters are given already (self).
    around: the transforms with the arguments of each.
    """

    function: Function | None
    callee: ast.expr
    call: ast.Call
    bound: int
    around: list[tuple[ast.Call, list[ast.expr]]]


class States(Domain[Kind]):
    """What the expressions of a file are.

    Args:
        makes: the calls that make functional models, by id() of the node.
    """

    def __init__(self, flow: ValueFlow, makes: dict[int, Make]) -> None:
        super().__init__(flow)
        self.makes = makes
        self.wanted: dict[ast.AST, None] = {}  # lists and comprehensions that become the state of a model
        self._want([item for call in self.calls_of_models for item in call.args[: self.model(call.func)]])
        self.forget()

    # ---- questions -------------------------------------------------------------------------------------

    def kinds(self, node: ast.AST) -> frozenset[Kind]:
        """All that an expression may be, as far as that matters."""
        return frozenset(item for item in self.of(node) if not isinstance(item, Sentinel))

    def is_state(self, node: ast.AST) -> bool:
        return self.is_surely(node, STATE)

    def model(self, node: ast.AST) -> int:
        """The number of states that a functional model is called with; 0: it is something else."""
        return next((item for item in self.kinds(node) if isinstance(item, int)), 0)

    def comes_from(self, node: ast.AST, make: Make) -> bool:
        """Whether an expression may be what a call makes, or a part of that."""
        todo = [Step(node)]
        for step in todo:
            todo += [each for each in self.steps(step) if each not in todo]
        return any(step.node is make.call for step in todo)

    def every(self) -> Iterator[ast.expr]:
        """All expressions that are read, in source order."""
        found: list[ast.expr] = []
        for kind in _EXPRESSIONS:
            for node in self.flow.names.nodes(kind):
                read = isinstance(getattr(node, "ctx", None), (ast.Load, type(None)))
                if read or isinstance(self.flow.index.parent(node), ast.AugAssign):
                    found.append(node)
        yield from sorted(found, key=lambda node: (node.lineno, node.col_offset))

    @cached_property
    def calls_of_models(self) -> list[ast.Call]:
        """The calls of functional models, also within transforms."""
        return [
            run.call
            for run in map(self.run, self.flow.names.nodes(ast.Call))
            if run.function is None and self.model(run.callee) and len(self.of(run.callee) - {OPEN}) == 1
        ]

    def qualified(self, node: ast.AST) -> str:
        """The qualified name of a function of a library, or that of a builtin; "" if it is neither."""
        return self.flow.names.qualified(node) or self.flow.imported(node) or self.flow.builtin(node) or ""

    def transform(self, node: ast.AST | None) -> str:
        """What a call makes of a function: vmap, grad, value (grad_and_value), partial; "": nothing."""
        if not isinstance(node, ast.Call) or not node.args:
            return ""
        name = self.qualified(node.func)
        head, _, last = name.rpartition(".")
        return (
            "partial" if name == "functools.partial" else _TRANSFORMS.get(last, "") if head in _HOMES else ""
        )

    def made(self, node: ast.expr) -> ast.AST | None:
        """The function of the file that an expression is, or the call of a transform that makes it."""
        found = here = self._made(node)
        for _ in range(_MOST_TRANSFORMS):
            if not isinstance(here, ast.Call):
                return found
            here = self._made(here.args[0])
        return None  # it may be made of itself

    def _made(self, node: ast.expr) -> ast.AST | None:
        found: ast.AST | None = self.flow.definition(node) if isinstance(node, ast.Attribute) else None
        if found is None:
            steps = [step for step in self.flow.origins(node) if not step.open]
            found = steps[0].node if len(steps) == 1 and not steps[0].path else None
        if isinstance(found, (ast.FunctionDef, ast.AsyncFunctionDef)) and not is_plain(found):
            return None
        return found if isinstance(found, FUNCTIONS) or self.transform(found) else None

    def run(self, call: ast.Call) -> Run:
        """What a call runs."""
        callee, given, keywords = call.func, list(call.args), list(call.keywords)
        around: list[tuple[ast.Call, list[ast.expr]]] = []
        while isinstance(made := self.made(callee), ast.Call):
            if self.transform(made) == "partial":
                given, keywords = [*made.args[1:], *given], [*made.keywords, *keywords]
            else:
                around.append((made, given))
            callee = made.args[0]
        function = made if isinstance(made, FUNCTIONS) else None
        method = isinstance(self.flow.index.parent(function), ast.ClassDef) if function is not None else False
        static = any(
            getattr(mark, "id", "") == "staticmethod" for mark in getattr(made, "decorator_list", ())
        )
        bound = int(method and isinstance(callee, ast.Attribute) and not static)
        inner = ast.Call(callee, given, keywords) if callee is not call.func else call
        return Run(function, callee, inner, bound, around)

    @cached_property
    def runs(self) -> dict[ast.AST, list[Run]]:
        """The calls of each function of the file, within transforms too."""
        found: dict[ast.AST, list[Run]] = {}
        for run in map(self.run, self.flow.names.nodes(ast.Call)):
            if run.function is not None:
                found.setdefault(run.function, []).append(run)
        return found

    def takes(self, function: ast.AST | None, node: ast.AST) -> bool:
        """Whether an expression is given to a parameter of a function."""
        if not isinstance(function, FUNCTIONS):
            return False
        return any(Step(node) in self.steps(Step(argument)) for argument in arguments_of(function))

    def is_tracked(self, function: ast.AST | None) -> bool:
        """Whether a function of the file takes or gives a model or its state."""
        if not isinstance(function, FUNCTIONS):
            return False
        return any(map(self.kinds, [*arguments_of(function), *results(function)]))

    # ---- states of models ------------------------------------------------------------------------------

    def _want(self, nodes: list[ast.expr]) -> None:
        """Make states of the lists and comprehensions that models get as their states."""
        todo = [Step(node) for node in nodes]
        seen = set(todo)
        for step in todo:
            found, made = self.steps(step), step.node
            if isinstance(made, ast.Call) and self.qualified(made.func) in TREE_MAPS:
                found = tuple(map(Step, made.args[1:]))
            elif not found and not step.path and made is not None:
                listed = isinstance(made, ast.Call) and self.is_listed(made)
                empty = isinstance(made, (ast.List, ast.Tuple)) and not made.elts
                if empty or listed or isinstance(made, ast.ListComp):
                    self.wanted[made] = None
                if listed and isinstance(made, ast.Call):
                    found = (Step(made.args[0]),)
            todo += [each for each in dict.fromkeys(found) if each not in seen]
            seen.update(found)

    def is_listed(self, call: ast.Call) -> bool:
        """Whether it is `list(x)` or `tuple(x)`."""
        return self.flow.builtin(call.func) in ("list", "tuple") and len(call.args) == 1

    # ---- the domain ------------------------------------------------------------------------------------

    def start(self, node: ast.AST) -> Kind | None:
        if id(node) in self.makes:
            return BUNDLE
        return STATE if node in self.wanted else None

    def through(self, node: ast.AST) -> Values[Kind]:
        parts: list[ast.expr] = []
        if isinstance(node, (ast.Tuple, ast.List)):
            parts = node.elts
        elif isinstance(node, ast.Call) and self.transform(self.made(node.func)) in ("grad", "value"):
            parts = node.args
        return frozenset([BUNDLE if any(map(self.kinds, parts)) else UNKNOWN])

    def part(self, node: ast.AST, path: Path) -> Values[Kind]:
        make = self.makes.get(id(node))
        if make is None or len(path) > 1 or not isinstance(path[0], int) or not 0 <= path[0] <= make.states:
            return frozenset([UNKNOWN])
        return frozenset([STATE if path[0] else make.states])

    def steps(self, step: Step) -> Steps:
        node = step.node
        if isinstance(node, ast.Name):
            return self._of_name(node, step)
        if isinstance(node, ast.arg):
            return self._given(node, step.path)
        if isinstance(node, ast.Call) and id(node) not in self.makes:
            name = self.qualified(node.func)
            if name in COPIES and node.args:
                return (Step(node.args[0], step.path),)
            if name in TREE_MAPS and len(node.args) > 1:
                return (Step(node.args[1], step.path),)
            made = self.made(node.func)
            if isinstance(made, ast.Call):
                return self._result(made, node.args, step.path)
        return self.flow.steps(step)

    def _of_name(self, name: ast.Name, step: Step) -> Steps:
        """As the flow, but a parameter of a function that is transformed gets what the transform is given."""
        found, scope = self.flow.steps(step), self.flow.index.holder(name)
        first = scope.bindings[name.id][0].node if scope is not None else None  # parameters come first
        if isinstance(first, ast.Lambda):
            return tuple(Step(item, step.path) for item in arguments_of(first) if item.arg == name.id)
        if isinstance(first, ast.arg):
            plain = {_at(each, step.path) for each in self.flow.parameter(first)}
            if plain <= set(found):
                return (*(each for each in found if each not in plain), Step(first, step.path))
        return found

    def _given(self, argument: ast.arg, path: Path) -> Steps:
        """What the calls of a function, within transforms too, give to a parameter."""
        function = self.flow.index.home_of(argument)
        if function not in self.runs or not isinstance(function, FUNCTIONS):
            return tuple(_at(each, path) for each in self.flow.parameter(argument))
        index, default = parameters(function).get(argument.arg), default_of(function, argument.arg)
        found: list[Step] = [OPEN_STEP] if index is not None else [UNKNOWN_STEP]
        for run in self.runs[function] if index is not None else ():
            given = argument_of(run.call, argument.arg, (index or 0) - run.bound)
            if given is not None:
                found.append(Step(given, path))
            elif any(isinstance(item, ast.Starred) for item in run.call.args) and default is None:
                found.append(UNKNOWN_STEP)
        if default is not None:
            found.append(Step(default, path))
        return tuple(dict.fromkeys(found))

    def _result(self, made: ast.AST | None, given: list[ast.expr], path: Path) -> Steps:
        """Where the result of a transformed function comes from: a gradient is like the argument."""
        if isinstance(made, FUNCTIONS):
            return tuple(Step(value, path) for value in results(made)) or (UNKNOWN_STEP,)
        if not isinstance(made, ast.Call):
            return ()
        how, inner = self.transform(made), self.made(made.args[0])
        if how in ("partial", "vmap"):
            return self._result(inner, [*made.args[1:], *given] if how == "partial" else given, path)
        argnums, aux = gradient_of(made)
        if aux or how == "value":
            if not path:
                return ()
            key, path = path[0], path[1:]
            if key == 1:
                return self._result(inner, given, path if how == "value" else (1, *path))
            if key != 0:
                return (UNKNOWN_STEP,)
        if isinstance(argnums, tuple):
            if not path or not isinstance(path[0], int) or not 0 <= path[0] < len(argnums):
                return ()
            argnums, path = argnums[path[0]], path[1:]
        if argnums is None or not -len(given) <= argnums < len(given):
            return (UNKNOWN_STEP,)
        return (Step(given[argnums], path),)


def _at(step: Step, path: Path) -> Step:
    return Step(step.node, step.path + path) if step.node is not None else step


def arguments_of(function: Function) -> list[ast.arg]:
    return [item for item in walk(function.args) if isinstance(item, ast.arg)]


def results(function: Function) -> list[ast.expr]:
    return [function.body] if isinstance(function, ast.Lambda) else returned(function)[0]


def gradient_of(call: ast.Call) -> tuple[int | tuple[int, ...] | None, bool | None]:
    """`argnums` and `has_aux` of a transform; None for what is not a literal."""
    numbers = _literal(argument_of(call, "argnums", 1), 0)
    aux = _literal(argument_of(call, "has_aux", 2), False)
    if isinstance(numbers, (tuple, list)) and all(isinstance(number, int) for number in numbers):
        return tuple(numbers), aux if isinstance(aux, bool) else None
    return numbers if isinstance(numbers, int) else None, aux if isinstance(aux, bool) else None


def _literal(node: ast.expr | None, absent: object) -> object:
    if node is None:
        return absent
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None
