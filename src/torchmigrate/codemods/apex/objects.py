"""What is what in a file that trains with apex: its models, its optimizers, apex.amp itself, loss scalers.

Two expressions are the same object if their values come from the same place, as the value flow tells: a call
that makes it, a parameter, or an attribute of an object that is not followed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import cached_property

from torchmigrate.codemods.base.functions import functions_of
from torchmigrate.patterns import pattern
from torchmigrate.rewrite.context import FileContext
from torchmigrate.semantics.flow.calls import argument_of
from torchmigrate.semantics.flow.domain import UNKNOWN, Domain, Sentinel, Values
from torchmigrate.semantics.flow.functions import Function, Functions, own
from torchmigrate.semantics.flow.steps import Path, Step, Steps
from torchmigrate.semantics.flow.values import ValueFlow
from torchmigrate.semantics.model import Role, Use

MODEL = "model"
OPTIMIZER = "optimizer"  # one whose loss is scaled here, and that is initialized elsewhere
WRAPPER = "FP16_Optimizer"
AMP = "apex.amp"
LOSS_SCALER = "loss scaler"
Kind = str | int  # an int: which of the optimizers that are initialized here

_WRAPS = pattern(r"parallel|ddp|compile|convert_|sync|auto_model|wrap", re.IGNORECASE)
_NO_OBJECTS = (ast.Constant, ast.List, ast.Tuple, ast.Dict)
_SAME = frozenset("cuda to cpu train eval requires_grad_ float half".split())
SCALERS = pattern(r"apex\.amp\.(?:_amp_state\.)?_amp_state\.loss_scalers")


class Objects(Domain[Kind]):
    """The objects of one file.

    Args:
        uses: of apex in the file.

    calls: those of functions of the file: the caller, the statement, the call, the called.
    """

    def __init__(self, flow: ValueFlow, functions: Functions, uses: Sequence[Use]) -> None:
        super().__init__(flow)
        self.functions = functions
        self._known: dict[Hashable, Kind] = {}
        self._initialized: dict[ast.AST, list[ast.expr]] = {}
        self.number = 0
        every = [(use, use.candidates[0]) for use in uses]
        for use, name in every:
            if name == AMP or (isinstance(use.node, ast.alias) and name.startswith(AMP)):
                self._known[use.node] = AMP
            elif SCALERS.fullmatch(name):
                self._known[flow.names.parents.get(use.node)] = LOSS_SCALER
        calls = [(use.call, name.rpartition(".")[2]) for use, name in every if use.role is Role.CALL]
        for call, name in calls:
            if call is not None and name == "initialize":
                self._initialize(call)
            elif call is not None and name == WRAPPER:
                self._known[call] = WRAPPER
        for call, name in calls:
            for item in _argument(call, "optimizers", 1) if call and name == "scale_loss" else ():
                self.forget()
                for one in self.each(item):
                    if not self.kinds(one):
                        self.note(one, OPTIMIZER)
        self.forget()

    # ---- questions -------------------------------------------------------------------------------------

    def kinds(self, node: ast.AST | None) -> frozenset[Kind]:
        """All that an expression may be, as far as that is known."""
        found = self.of(node) if node is not None else frozenset()
        return frozenset(item for item in found if not isinstance(item, Sentinel))

    def is_model(self, node: ast.AST) -> bool:
        return MODEL in self.kinds(node)

    def optimizers(self, node: ast.AST | None) -> frozenset[int]:
        """Which of the optimizers that are initialized here an expression may be."""
        return frozenset(item for item in self.kinds(node) if isinstance(item, int))

    def called(self, call: ast.Call) -> Function | None:
        """The function of the file that a call calls; that of a class is its `__init__`."""
        return self.functions.by_node.get(self.flow.entered(call))

    @cached_property
    def calls(self) -> list[tuple[Function, ast.stmt, ast.Call, Function]]:
        """The calls between functions of the file: the caller, the statement, the call, the called."""
        return [
            (caller, statement, call, called)
            for caller in self.functions.every
            for statement, call in caller.calls
            if (called := self.called(call)) is not None
        ]

    @cached_property
    def _calls_to(self) -> dict[Function, list[tuple[Function, ast.stmt, ast.Call]]]:
        found: dict[Function, list[tuple[Function, ast.stmt, ast.Call]]] = {}
        for caller, statement, call, called in self.calls:
            found.setdefault(called, []).append((caller, statement, call))
        return found

    def calls_to(self, function: Function) -> list[tuple[Function, ast.stmt, ast.Call]]:
        """The calls of a function of the file."""
        return self._calls_to.get(function, [])

    def reached(
        self, first: Iterable[Function], leads_on: Callable[[Function, ast.stmt], bool]
    ) -> set[Function]:
        """The functions that run: some, those that nothing here calls, and those that these call.

        Args:
            leads_on: whether the calls in a statement of a function that runs count.
        """
        inside: dict[Function, list[tuple[ast.stmt, Function]]] = {}
        for caller, statement, _, called in self.calls:
            inside.setdefault(caller, []).append((statement, called))
        todo = [*first]
        for function in self.functions.every:
            if all(caller is function for caller, _, _ in self.calls_to(function)):
                todo.append(function)
        found = {*todo}
        while todo:
            here = todo.pop()
            new = {called for statement, called in inside.get(here, ()) if leads_on(here, statement)} - found
            found |= new
            todo += new
        return found

    def attributes(self, *names: str) -> Iterator[tuple[ast.Attribute, ast.Call | None, ast.stmt, Function]]:
        """The attributes of some names, each with its call, if it is a method, and its place."""
        for function in self.functions.every:
            for statement in function.statements:
                for node in own(statement, ast.Attribute):
                    if node.attr in names:
                        call = self.functions.around.get(id(node))
                        called = call if isinstance(call, ast.Call) and call.func is node else None
                        yield node, called, statement, function

    # ---- what is known ---------------------------------------------------------------------------------

    def note(self, node: ast.AST, kind: Kind) -> None:
        """Say what an expression is, and so all that comes from the same place."""
        todo = [Step(node)]
        for step in todo:
            if step.node is None or (not step.path and isinstance(step.node, _NO_OBJECTS)):
                continue
            steps = self.steps(step)
            if not steps and getattr(getattr(step.node, "func", None), "attr", "") in _SAME and not step.path:
                steps = tuple(map(Step, _inside(step.node)))
            identity = self._identity(step, bool(steps))
            if not steps or isinstance(identity, ast.arg):
                self._known.setdefault(identity, kind)
            todo += [each for each in steps if each not in todo]

    def _initialize(self, call: ast.Call) -> None:
        models, optimizers = _argument(call, "models", 0), _argument(call, "optimizers", 1)
        noted: list[tuple[ast.expr, Kind]] = [(one, MODEL) for item in models for one in self.each(item)]
        for one in (one for item in optimizers for one in self.each(item)):
            noted.append((one, self.number))
            self.number += 1
        for one, kind in noted:
            self.note(one, kind)
        given = [item for item in optimizers if getattr(item, "value", item) is not None]
        self._initialized[call] = [*models, *given]
        self.forget()
        for one, kind in noted:
            if not self.kinds(one):  # what is given is only known as what comes back
                self._known[one] = kind

    def each(self, node: ast.expr) -> list[ast.expr]:
        """The items of a list that is written out, or the one that is given."""
        made = node if isinstance(node, (ast.List, ast.Tuple)) else self.flow.only_origin(node)
        return list(made.elts) if isinstance(made, (ast.List, ast.Tuple)) else [node]

    def _identity(self, step: Step, followed: bool) -> Hashable:
        """What tells an object from others."""
        node = step.node
        if isinstance(node, ast.Name):
            argument = self.parameter(node)
            return (argument or node, step.path) if step.path else argument or node
        if isinstance(node, (ast.Attribute, ast.Subscript)) and not followed:
            root: ast.AST = node
            while isinstance(root, (ast.Attribute, ast.Subscript)):
                root = root.value
            if isinstance(root, ast.Name):
                owner = self.flow.classes.owner_of(root) or self.parameter(root)
                return (owner or self.flow.index.holder(root), ast.unparse(node), step.path)
        return (node, step.path) if step.path else node

    def parameter(self, node: ast.Name) -> ast.arg | None:
        """The parameter that a name is, wherever it is read."""
        holder = self.flow.index.holder(node)
        bindings = holder.bindings.get(node.id, ()) if holder is not None else ()
        if len(bindings) != 1:
            seen = self.flow.index.reaching_around(node).of(node)
            made = [item.node for item in seen]
        else:
            made = [item.node for item in bindings]
        return made[0] if len(made) == 1 and isinstance(made[0], ast.arg) else None

    # ---- the domain ------------------------------------------------------------------------------------

    def start(self, node: ast.AST) -> Kind | None:
        if not isinstance(node, (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.alias)):
            return self._known.get(node)
        found = self._known.get(node)
        if found is None and not isinstance(node, (ast.Call, ast.alias)):
            found = self._known.get(self._identity(Step(node), bool(self.flow.sources(node))))
        return found

    def steps(self, step: Step) -> Steps:
        given = self._initialized.get(step.node) if step.node is not None else None
        if given is None:
            node = self.parameter(step.node) if isinstance(step.node, ast.Name) else step.node
            if step.path and node in self._known:
                return ()
            return self.flow.steps(step)
        if len(given) == 1:
            return (Step(given[0], step.path),)
        key = step.path[0] if step.path else None
        return (Step(given[key], step.path[1:]),) if isinstance(key, int) and key < len(given) else ()

    def through(self, node: ast.AST) -> Values[Kind]:
        parts = _inside(node)
        found = self.join(*parts) if parts else frozenset([UNKNOWN])
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") not in _SAME:
            return found & {MODEL} or frozenset([UNKNOWN])
        return found

    def part(self, node: ast.AST, path: Path) -> Values[Kind]:
        found = self._known.get(self._identity(Step(node, path), True))
        if found is None:
            return self.kinds(node) or frozenset([UNKNOWN])
        return frozenset([found])


def objects_of(file: FileContext) -> Objects:
    """The objects of a file, which are looked up once."""
    uses = [use for use in file.names.uses if any(name.startswith("apex.") for name in use.candidates)]
    return file.once(Objects, lambda: Objects(file.flow, functions_of(file), uses))


def _argument(call: ast.Call, name: str, index: int) -> list[ast.expr]:
    found = argument_of(call, name, index)
    return [found] if found is not None else []


def _inside(node: ast.AST) -> list[ast.expr]:
    """What an expression is at the core: `model` of `model.cuda()`, `DDP(model)` and `model.module`."""
    if isinstance(node, ast.Attribute):
        return [node.value] if node.attr == "module" else []
    if not isinstance(node, ast.Call):
        return []
    if isinstance(node.func, ast.Attribute) and node.func.attr in _SAME:
        return [node.func.value]
    if _WRAPS.search(getattr(node.func, "attr", getattr(node.func, "id", ""))):
        return [*node.args, *(item.value for item in node.keywords)]
    return []
