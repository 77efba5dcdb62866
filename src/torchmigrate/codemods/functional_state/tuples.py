"""Functional models whose state stays a tuple, since not all that is done with it is understood.

The call of the model makes the dict, so that nothing else in this file or another one has to change.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from torchmigrate.codemods.base.unclear import Unclear
from torchmigrate.codemods.functional_state.makes import (
    MakeWriter,
    assigned,
    result,
    skeleton,
    stacked_models,
)
from torchmigrate.codemods.functional_state.states import Make, States
from torchmigrate.codemods.functional_state.writer import StateWriter
from torchmigrate.rewrite.code import Code, code, several
from torchmigrate.rewrite.statements import NewFunction, NewStatement
from torchmigrate.source.trees import walk

_MODULE_PARTS = frozenset(("stateless_model", "param_names", "buffer_names", "names_map", "all_names_map"))
_METHODS = (("named_parameters", "parameters"), ("named_buffers", "buffers"))
_MODES = frozenset(("eval", "train"))  # done to a module in place


class TupleWriter(MakeWriter):
    """Writes the statements.

    Raises:
        Unclear: something is done with the models that needs an object of functorch, or a module.
    """

    def __init__(self, writer: StateWriter, states: States) -> None:
        super().__init__(writer, states, wrapped=True)
        mentions = [node for node in states.every() if isinstance(node, (ast.Name, ast.Attribute))]
        self.mentions = [node for node in mentions if states.model(node)]
        self.submodules = False  # whether one was a submodule
        for name in sorted(_MODULE_PARTS):
            of_file = any(isinstance(item.ctx, ast.Store) for item in self.index.attributes(name))
            for part in [] if of_file else self.index.attributes(name):
                raise Unclear(f"`.{name}` of a functional model has no equivalent", part)
        kept = [self._submodule_of(make) for make in states.makes.values()]
        for mention in self.mentions:
            for target in getattr(self.index.parent(mention), "targets", ()):
                if self.writer.is_submodule(target) and target not in kept:
                    shown = self.source.shown(target)
                    raise Unclear(f"`{shown}` is a submodule that is set elsewhere", target)
            for call in self.index.around(mention):
                if isinstance(call, (ast.stmt, ast.Lambda)):
                    break
                name = states.qualified(call.func) if isinstance(call, ast.Call) else ""
                given = isinstance(call, ast.Call) and any(_holds(item, mention) for item in call.args)
                if given and name.startswith("torch.nn.") and "a" <= name[9:10] <= "z":
                    continue  # a function
                if given and name.startswith("torch.nn."):
                    raise Unclear(f"`{name}` takes a module, but the model would become a function", mention)

    def _statements(self, make: Make, statement: ast.stmt, spell: Callable[[str], str]) -> list[NewStatement]:
        targets, whole = self._targets(make, statement)
        model = targets[0] if targets else None
        if model is not None and not self._is_read(model):
            return self._states_only(make, statement, targets, spell)
        self._check_loop(make, statement, targets)
        base = self.writer.unique("base_model", statement)
        before, states = self._state(make, statement, base, spell)
        wanted = ["param_names", "buffer_names"][: make.states]
        names = [self.writer.unique(name, statement) for name in wanted]
        function = (
            model.id if isinstance(model, ast.Name) else self.writer.unique("functional_model", statement)
        )
        made = [
            *before,
            *(assigned(name, listed) for name, (listed, _) in zip(names, states, strict=True)),
            self._keyed_function(function, base, names, self._mode(make), spell),
        ]
        values = [code("tuple($x)", x=tensors) for _, tensors in states]
        if not targets:
            return [*made, result(whole, [function, *values])]
        if model is not None and not isinstance(model, ast.Name):
            made.append(assigned(model, function))
        for target, value in zip(targets[1:], values, strict=True):
            if self._is_read(target):
                made.append(assigned(target, value))
        if model is not None:
            self._modes(make, base)
        return made

    def _keyed_function(
        self, name: str, base: str, names: Sequence[str], mode: Code | None, spell: Callable[[str], str]
    ) -> NewFunction:
        """The function that is called with tuples.

        Args:
            names: the variables with the keys of each.
            mode: whether the model is trained, if that changes.
        """
        given = ["params", "buffers"][: len(names)]
        pairs = [code("dict(zip($x, $y))", x=keys, y=state) for keys, state in zip(names, given, strict=True)]
        made = [] if len(pairs) == 1 else [code("state = ($x)", x=several(pairs))]
        if mode is not None:
            made.append(code("$base.train($mode)", base=base, mode=mode))
        call = code(
            "return $f($base, $state, args, kwargs)",
            f=spell("torch.func.functional_call"),
            base=base,
            state="state" if len(pairs) > 1 else pairs[0],
        )
        return NewFunction(name, (*given, "*args", "**kwargs"), (*made, call))

    def _states_only(
        self, make: Make, statement: ast.stmt, targets: list[ast.expr], spell: Callable[[str], str]
    ) -> list[NewStatement]:
        """The statements for code that never calls the model."""
        states = list(zip(targets[1:], ("parameters", "buffers"), strict=False))
        wanted = [(target, method) for target, method in states if self._is_read(target)]
        if make.ensemble:
            return self._stacked_only(make, statement, targets, spell)
        base: str | Code = self._copied(make, spell)
        made: list[NewStatement] = []
        if len(wanted) != 1:
            name = self.writer.unique("base_model", statement)
            made.append(assigned(name, base))
            base = name
        for target, method in wanted:
            made.append(assigned(target, code("tuple($base.$method())", base=base, method=method)))
        return made

    def _stacked_only(
        self, make: Make, statement: ast.stmt, targets: list[ast.expr], spell: Callable[[str], str]
    ) -> list[NewStatement]:
        """The statements for code that never calls the model of an ensemble."""
        made, models = self._members(make, statement, kept=False)
        stacked = stacked_models(models, spell)
        wanted = [(number, target) for number, target in enumerate(targets[1:]) if self._is_read(target)]
        if len(wanted) != 1:
            names = [self.writer.unique(f"stacked_{name}", statement) for name in ("params", "buffers")]
            made.append(assigned(several(names), stacked))
            values = [(target, code("$x.values()", x=names[number])) for number, target in wanted]
        else:
            values = [
                (target, code("$x[$number].values()", x=stacked, number=str(number)))
                for number, target in wanted
            ]
        return [*made, *(assigned(target, code("tuple($x)", x=value)) for target, value in values)]

    def _state(
        self, make: Make, statement: ast.stmt, base: str, spell: Callable[[str], str]
    ) -> tuple[list[NewStatement], list[tuple[Code, Code]]]:
        """The statements that make the model, and how to get names and tensors of each state."""
        if not make.ensemble:
            states = [
                (
                    code("[name for name, _ in $base.$named()]", base=base, named=named),
                    code("$base.$method()", base=base, method=method),
                )
                for named, method in _METHODS[: make.states]
            ]
            return [assigned(base, self._copied(make, spell))], states
        made, models = self._members(make, statement, kept=True)
        stacked = [self.writer.unique(f"stacked_{name}", statement) for name in ("params", "buffers")]
        made.append(assigned(several(stacked), stacked_models(models, spell)))
        made.append(assigned(base, skeleton(models, spell)))
        return made, [(code("list($x)", x=name), code("$x.values()", x=name)) for name in stacked]

    def _modes(self, make: Make, base: str) -> None:
        """`fmodel.eval()` becomes `base_model.eval()` where both names are in reach.

        Raises:
            Unclear: more is done with the functional model as a module.
        """
        for mention in self.mentions:
            part = self.index.parent(mention)
            if not isinstance(part, ast.Attribute) or not self.states.comes_from(mention, make):
                continue
            here = self.index.function_of(mention) is self.index.function_of(make.call)
            only = sum(self.states.comes_from(mention, other) for other in self.states.makes.values()) == 1
            called = isinstance(self.index.parent(part), ast.Call) and isinstance(mention, ast.Name)
            if not here or not only or not called or part.attr not in _MODES:
                shown = self.source.shown(part)
                raise Unclear(f"`{shown}` needs a module, but the model would become a function", part)
            self.writer.replace(mention, code("$base", base=base))

    def _submodule_of(self, make: Make) -> ast.Attribute | None:
        """The attribute of a module, `self.f`, that a model is given to in the function that makes it."""
        statement = self.index.statement_of(make.call)
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        kept: list[ast.expr] = target.elts[:1] if isinstance(target, (ast.Tuple, ast.List)) else []
        for mention in self.mentions:
            outer = self.index.parent(mention)
            same = self.index.function_of(mention) is self.index.function_of(make.call)
            if isinstance(outer, ast.Assign) and same and self.states.comes_from(mention, make):
                kept += outer.targets
        return next((item for item in kept if self.writer.is_submodule(item)), None)  # type: ignore[return-value]

    def _mode(self, make: Make) -> Code | None:
        """`self.training` for a functional model that is a submodule, whose mode `train()` would change.

        Raises:
            Unclear: the mode may be another one.
        """
        submodule = self._submodule_of(make)
        if submodule is None:
            return None
        if any(isinstance(node, ast.Attribute) and node.attr in _MODES for node in walk(make.call)):
            shown = self.source.shown(submodule)
            raise Unclear(f"`{shown}` has a mode of its own until `train()` is called", submodule)
        self.submodules = True
        return code("$owner.training", owner=submodule.value)


def _holds(argument: ast.expr, mention: ast.expr) -> bool:
    """Whether a mention is an argument, or in a list that is one."""
    if isinstance(argument, (ast.List, ast.Tuple)):
        return any(item is mention for item in argument.elts)
    return argument is mention
