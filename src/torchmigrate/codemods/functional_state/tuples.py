"""Functional models whose state stays a tuple, since not all that is done with it is understood.

The call of the model makes the dict, so that nothing else in this file or another one has to change.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from torchmigrate.codemods.base.unclear import Unclear
from torchmigrate.codemods.functional_state.makes import MakeWriter
from torchmigrate.codemods.functional_state.states import Make, States
from torchmigrate.codemods.functional_state.writer import StateWriter
from torchmigrate.rewrite.code import Code, Part, code, several
from torchmigrate.source.trees import walk

_MODULE_PARTS = ("all_names_map", "buffer_names", "names_map", "param_names", "stateless_model")


class TupleWriter(MakeWriter):
    """Writes the statements.

    submodules: whether one of the models was a submodule.

    Raises:
        Unclear: something is done with the models that needs an object of functorch, or a module.
    """

    def __init__(self, writer: StateWriter, states: States) -> None:
        super().__init__(writer, states, wrapped=True)
        mentions = [node for node in states.every() if isinstance(node, (ast.Name, ast.Attribute))]
        self.mentions = [node for node in mentions if states.model(node)]
        self.submodules = False
        for name in _MODULE_PARTS:
            parts = self.index.attributes(name)
            if parts and not any(isinstance(item.ctx, ast.Store) for item in parts):
                raise Unclear(f"`.{name}` of a functional model has no equivalent", parts[0])
        kept = [self._submodule_of(make) for make in states.makes.values()]
        for mention in self.mentions:
            outer = self.index.parent(mention)
            if isinstance(outer, ast.Attribute):
                shown = self.source.shown(outer)
                raise Unclear(f"`{shown}` needs a module, but the model would become a function", outer)
            for target in getattr(outer, "targets", ()):
                if self.writer.is_submodule(target) and target not in kept:
                    shown = self.source.shown(target)
                    raise Unclear(f"`{shown}` is a submodule that is set elsewhere", target)
            call = self.index.parent(outer) if isinstance(outer, (ast.List, ast.Tuple)) else outer
            name = (
                states.qualified(call.func) if isinstance(call, ast.Call) and call.func is not mention else ""
            )
            if name.startswith("torch.nn.") and not "a" <= name[9:10] <= "z":  # not a function
                raise Unclear(f"`{name}` takes a module, but the model would become a function", mention)

    def _states_of(self, model: Part, number: int) -> list[Part]:
        methods = ("parameters", "buffers")[:number]
        return [code("tuple($x.$method())", x=model, method=method) for method in methods]

    def _stacked(self, statement: ast.stmt, targets: Sequence[ast.expr]) -> tuple[list[Part], list[Part]]:
        names: list[Part] = [
            self.writer.unique(f"stacked_{name}", statement) for name in ("params", "buffers")
        ]
        return names, [code("tuple($x.values())", x=name) for name in names]

    def _names(self, make: Make, statement: ast.stmt, base: Part) -> list[tuple[str, Code]]:
        found: list[tuple[str, Code]] = []
        for name, method in (("param_names", "named_parameters"), ("buffer_names", "named_buffers")):
            if len(found) < make.states:
                listed = code("[name for name, _ in $x.$method()]", x=base, method=method)
                found.append((self.writer.unique(name, statement), listed))
        return found

    def _body(
        self, make: Make, base: Part, given: list[str], names: list[str]
    ) -> tuple[list[Code], list[Part]]:
        pairs: list[Part] = [
            code("dict(zip($x, $y))", x=keys, y=state) for keys, state in zip(names, given, strict=True)
        ]
        submodule, made = self._submodule_of(make), []
        if submodule is not None:
            if any(
                isinstance(node, ast.Attribute) and node.attr in ("eval", "train") for node in walk(make.call)
            ):
                shown = self.source.shown(submodule)
                raise Unclear(f"`{shown}` has a mode of its own until `train()` is called", submodule)
            self.submodules = True
            made.append(code("$x.train($owner.training)", x=base, owner=submodule.value))
        if len(pairs) == 1:
            return made, pairs
        return [*made, code("state = ($x)", x=several(pairs))], ["state"]

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
        found = (item for item in kept if isinstance(item, ast.Attribute) and self.writer.is_submodule(item))
        return next(found, None)
