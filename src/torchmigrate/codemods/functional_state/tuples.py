"""Functional models whose state stays a tuple, since not all that is done with it is understood.

The call of the model makes the dict, so that nothing else in this file or another one has to change.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from torchmigrate.codemods.base.unclear import Unclear
from torchmigrate.codemods.functional_state.cells import Cell
from torchmigrate.codemods.functional_state.flow import Flow
from torchmigrate.codemods.functional_state.kinds import Make
from torchmigrate.codemods.functional_state.makes import (
    MakeWriter,
    assigned,
    result,
    skeleton,
    stacked_models,
)
from torchmigrate.codemods.functional_state.writer import StateWriter
from torchmigrate.rewrite.code import Code, code, several
from torchmigrate.rewrite.statements import NewFunction, NewStatement
from torchmigrate.source.text import Source
from torchmigrate.source.trees import walk

_MODULE_PARTS = frozenset(("stateless_model", "param_names", "buffer_names", "names_map", "all_names_map"))
_METHODS = (("named_parameters", "parameters"), ("named_buffers", "buffers"))
_MODES = frozenset(("eval", "train"))  # done to a module in place


class TupleWriter(MakeWriter):
    """Writes the statements.

    Raises:
        Unclear: something is done with the models that needs an object of functorch, or a module.
    """

    def __init__(self, source: Source, writer: StateWriter, flow: Flow) -> None:
        super().__init__(source, writer, flow, wrapped=True)
        self.mentions = flow.models()
        self.submodules = False  # whether one was a submodule
        for name in sorted(_MODULE_PARTS):
            of_file = any(isinstance(item.ctx, ast.Store) for item in flow.local.attributes(name))
            for part in [] if of_file else flow.local.attributes(name):
                raise Unclear(f"`.{name}` of a functional model has no equivalent", part)
        for mention in self.mentions:
            kept = flow.local.parent(mention)
            target = kept.targets[0] if isinstance(kept, ast.Assign) else None
            if isinstance(target, ast.Attribute) and self.writer.is_submodule(target):
                made = [flow.local.statement_of(make.call) for make in flow.makes.values()]
                if not any(target is self._submodule_of(item) for item in made):
                    shown = self.source.shown(target)
                    raise Unclear(f"`{shown}` is a submodule that is set elsewhere", target)
            for call in flow.local.around(mention):
                if isinstance(call, (ast.stmt, ast.Lambda)):
                    break
                name = flow.qualified(call.func) if isinstance(call, ast.Call) else ""
                given = isinstance(call, ast.Call) and any(_holds(item, mention) for item in call.args)
                if given and name.startswith("torch.nn.") and "a" <= name[9:10] <= "z":
                    continue  # a function
                if given and name.startswith("torch.nn."):
                    raise Unclear(f"`{name}` takes a module, but the model would become a function", mention)

    def _statements(self, make: Make, statement: ast.stmt, spell: Callable[[str], str]) -> list[NewStatement]:
        targets, whole = self._targets(make, statement)
        if isinstance(self.flow.local.function_of(statement), ast.ClassDef):
            raise Unclear("it is created in a class body, whose names a function in it cannot see", make.call)
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
            self._keyed_function(function, base, names, self._mode(make, statement), spell),
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
            self._modes(model, statement, base)
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

    def _modes(self, model: ast.expr, statement: ast.stmt, base: str) -> None:
        """`fmodel.eval()` becomes `base_model.eval()` where both names are in reach.

        Raises:
            Unclear: more is done with the functional model as a module.
        """
        local, source = self.flow.local, self.source
        end = source.span(statement)[1]
        for mention in self.mentions:
            part = local.parent(mention)
            if not isinstance(part, ast.Attribute) or ast.unparse(mention) != ast.unparse(model):
                continue
            if isinstance(model, ast.Name) and self._cell(mention) != self._cell(model):
                continue
            here = isinstance(model, ast.Name) and local.function_of(mention) is local.function_of(statement)
            if here and source.span(mention)[0] < end:
                continue  # the model that it is made of had the same name
            made = [
                item
                for item in local.named(ast.unparse(model))
                if isinstance(item.ctx, ast.Store) and self._cell(item) == self._cell(model)
            ]
            called = isinstance(local.parent(part), ast.Call)
            if not here or len(made) > 1 or not called or part.attr not in _MODES:
                shown = source.shown(part)
                raise Unclear(f"`{shown}` needs a module, but the model would become a function", part)
            self.writer.replace(mention, code("$base", base=base), True)

    def _submodule_of(self, statement: ast.stmt | None) -> ast.Attribute | None:
        """The attribute of a module, `self.f`, that the model of a statement is given to in its function."""
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        if not isinstance(target, (ast.Tuple, ast.List)):
            return None
        local, model = self.flow.local, target.elts[0]
        kept: list[ast.expr] = [model]
        for mention in self.mentions:
            outer = local.parent(mention)
            if isinstance(outer, ast.Assign) and self._cell(mention) == self._cell(model):
                same = local.function_of(mention) is local.function_of(model)
                kept += outer.targets if same else []
        return next((item for item in kept if self.writer.is_submodule(item)), None)  # type: ignore[return-value]

    def _mode(self, make: Make, statement: ast.stmt) -> Code | None:
        """`self.training` for a functional model that is a submodule, whose mode `train()` would change.

        Raises:
            Unclear: the mode may be another one.
        """
        submodule = self._submodule_of(statement)
        if submodule is None:
            return None
        if any(isinstance(node, ast.Attribute) and node.attr in _MODES for node in walk(make.call)):
            shown = self.source.shown(submodule)
            raise Unclear(f"`{shown}` has a mode of its own until `train()` is called", submodule)
        self.submodules = True
        return code("$owner.training", owner=submodule.value)

    def _cell(self, node: ast.expr) -> Cell:
        return self.flow.cell(ast.unparse(node), self.flow.scope_of(node))


def _holds(argument: ast.expr, mention: ast.expr) -> bool:
    """Whether a mention is an argument, or in a list that is one."""
    if isinstance(argument, (ast.List, ast.Tuple)):
        return any(item is mention for item in argument.elts)
    return argument is mention
