"""Functional models whose state stays a tuple, since not all that is done with it is understood.

The call of the model makes the dict, so that nothing else in this file or another one has to change.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from torchmigrate.codemods.base.unclear import Unclear
from torchmigrate.codemods.functional_state.cells import Cell
from torchmigrate.codemods.functional_state.flow import Flow
from torchmigrate.codemods.functional_state.kinds import Make
from torchmigrate.codemods.functional_state.makes import STEP, MakeText
from torchmigrate.codemods.functional_state.text import StateText
from torchmigrate.source.text import Source

_MODULE_PARTS = frozenset(("stateless_model", "param_names", "buffer_names", "names_map", "all_names_map"))
_DEEPEST = 8  # classes may inherit from themselves, in a file that nobody can run
_MODES = frozenset(("eval", "train"))  # done to a module in place


class TupleText(MakeText):
    """Writes the statements.

    Raises:
        Unclear: something is done with the models that needs an object of functorch, or a module.
    """

    def __init__(self, source: Source, text: StateText, flow: Flow) -> None:
        super().__init__(source, text, flow, wrapped=True)
        self.mentions = flow.models()
        for name in sorted(_MODULE_PARTS):
            of_file = any(isinstance(item.ctx, ast.Store) for item in flow.local.attributes(name))
            for part in [] if of_file else flow.local.attributes(name):
                raise Unclear(f"`.{name}` of a functional model has no counterpart", part)
        for mention in self.mentions:
            kept = flow.local.parent(mention)
            if isinstance(kept, ast.Assign) and isinstance(kept.targets[0], ast.Attribute):
                self._check_submodule(kept.targets[0], kept)
            for call in flow.local.around(mention):
                if isinstance(call, ast.stmt | ast.Lambda):
                    break
                name = flow.qualified(call.func) if isinstance(call, ast.Call) else ""
                given = isinstance(call, ast.Call) and any(_holds(item, mention) for item in call.args)
                if given and name.startswith("torch.nn.") and "a" <= name[9:10] <= "z":
                    continue  # a function
                if given and name.startswith("torch.nn."):
                    raise Unclear(f"`{name}` takes a module, and the model would be a function", mention)

    def _lines(self, make: Make, statement: ast.stmt, spell: Callable[[str], str]) -> list[str]:
        targets, head = self._targets(make, statement)
        if isinstance(self.flow.local.function_of(statement), ast.ClassDef):
            raise Unclear("it is made in a class, whose names a function in it cannot see", make.call)
        model = targets[0] if targets else None
        if isinstance(model, ast.Attribute):
            self._check_submodule(model, statement)
        if model is not None and not self._is_read(model):
            return self._states_only(make, statement, targets, spell)
        self._check_loop(make, statement, targets)
        base = self.text.unique("base_model", statement)
        before, states = self._state(make, statement, base, spell)
        wanted = ["param_names", "buffer_names"][: make.states]
        names = [self.text.unique(name, statement) for name in wanted]
        given = ["params", "buffers"][: make.states]
        function = (
            model.id if isinstance(model, ast.Name) else self.text.unique("functional_model", statement)
        )
        pairs = [f"dict(zip({name}, {state}))" for name, state in zip(names, given, strict=True)]
        state = pairs[0] if len(pairs) == 1 else "state"
        lines = [
            *before,
            *(f"{name} = {text}" for name, (text, _) in zip(names, states, strict=True)),
            "",
            f"def {function}({', '.join(given)}, *args, **kwargs):",
            *([f"{STEP}state = ({', '.join(pairs)})"] if len(pairs) > 1 else []),
            f"{STEP}return {spell('torch.func.functional_call')}({base}, {state}, args, kwargs)",
            "",
        ]
        values = [f"tuple({text})" for _, text in states]
        if not targets:
            return [*lines, f"{head}{', '.join([function, *values])}"]
        if model is not None and not isinstance(model, ast.Name):
            lines.append(f"{self.source.segment(model)} = {function}")
        for target, value in zip(targets[1:], values, strict=True):
            if self._is_read(target):
                lines.append(f"{self.source.segment(target)} = {value}")
        if not lines[-1]:
            lines.pop()
        if model is not None:
            self._modes(model, statement, base)
        return lines

    def _states_only(
        self, make: Make, statement: ast.stmt, targets: list[ast.expr], spell: Callable[[str], str]
    ) -> list[str]:
        """The lines where nobody calls the model."""
        states = list(zip(targets[1:], ("parameters", "buffers"), strict=False))
        wanted = [(target, method) for target, method in states if self._is_read(target)]
        if make.ensemble:
            return self._stacked_only(make, statement, targets, spell)
        copied = self._copied(make, spell)
        if len(wanted) == 1:
            return [f"{self.source.segment(wanted[0][0])} = tuple({copied}.{wanted[0][1]}())"]
        base = self.text.unique("base_model", statement)
        rest = [f"{self.source.segment(target)} = tuple({base}.{method}())" for target, method in wanted]
        return [f"{base} = {copied}", *rest]

    def _stacked_only(
        self, make: Make, statement: ast.stmt, targets: list[ast.expr], spell: Callable[[str], str]
    ) -> list[str]:
        """The lines where nobody calls the model of an ensemble."""
        lines, models = self._members(make, statement, kept=False)
        stacked = f"{spell('torch.func.stack_module_state')}({models})"
        wanted = [(number, target) for number, target in enumerate(targets[1:]) if self._is_read(target)]
        if len(wanted) != 1:
            names = [self.text.unique(f"stacked_{name}", statement) for name in ("params", "buffers")]
            lines.append(f"{', '.join(names)} = {stacked}")
            values = [(target, f"{names[number]}.values()") for number, target in wanted]
        else:
            values = [(target, f"{stacked}[{number}].values()") for number, target in wanted]
        return [*lines, *(f"{self.source.segment(target)} = tuple({value})" for target, value in values)]

    def _state(
        self, make: Make, statement: ast.stmt, base: str, spell: Callable[[str], str]
    ) -> tuple[list[str], list[tuple[str, str]]]:
        """The lines that make the model, and how to get names and tensors of each state."""
        if not make.ensemble:
            methods = ("parameters", "buffers")[: make.states]
            return [f"{base} = {self._copied(make, spell)}"], [
                (f"[name for name, _ in {base}.named_{method}()]", f"{base}.{method}()") for method in methods
            ]
        lines, models = self._members(make, statement, kept=True)
        stacked = [self.text.unique(f"stacked_{name}", statement) for name in ("params", "buffers")]
        lines.append(f"{', '.join(stacked)} = {spell('torch.func.stack_module_state')}({models})")
        lines.append(f'{base} = {spell("copy.deepcopy")}({models}[0]).to("meta")')
        return lines, [(f"list({name})", f"{name}.values()") for name in stacked]

    def _modes(self, model: ast.expr, statement: ast.stmt, base: str) -> None:
        """`fmodel.eval()` becomes `base_model.eval()` where both names are in reach.

        Raises:
            Unclear: more is done with the functional model as a module.
        """
        local, source = self.flow.local, self.source
        end = source.span(statement)[1]
        for mention in self.mentions:
            part = local.parent(mention)
            if not isinstance(part, ast.Attribute) or source.segment(mention) != source.segment(model):
                continue
            if isinstance(model, ast.Name) and self._cell(mention) != self._cell(model):
                continue
            here = isinstance(model, ast.Name) and local.function_of(mention) is local.function_of(statement)
            if here and source.span(mention)[0] < end:
                continue  # the model that it is made of had the same name
            made = [
                item
                for item in local.named(source.segment(model))
                if isinstance(item.ctx, ast.Store) and self._cell(item) == self._cell(model)
            ]
            called = isinstance(local.parent(part), ast.Call)
            if not here or len(made) > 1 or not called or part.attr not in _MODES:
                shown = source.segment(part)
                raise Unclear(f"`{shown}` needs a module, and the model would be a function", part)
            self.text.replace(mention, base, True)

    def _check_submodule(self, target: ast.Attribute, statement: ast.stmt) -> None:
        if self._in_module(statement):
            shown = self.source.segment(target)
            raise Unclear(f"`{shown}` is a submodule, and follows `train()`; a function would not", target)

    def _in_module(self, statement: ast.stmt) -> bool:
        """Whether a statement belongs to a class that is a module."""
        classes = [outer for outer in self.flow.local.around(statement) if isinstance(outer, ast.ClassDef)]
        for number, outer in enumerate(classes):
            for base in outer.bases:
                name = self.flow.qualified(base)
                if name.startswith("torch.nn.") or name.rpartition(".")[2].endswith("Module"):
                    return True
                if number < _DEEPEST and isinstance(base, ast.Name):
                    classes += [
                        item.node
                        for item in self.flow.local.bindings(base.id)
                        if isinstance(item.node, ast.ClassDef)
                    ]
        return False

    def _cell(self, node: ast.expr) -> Cell:
        return self.flow.cell(self.source.segment(node), self.flow.scope_of(node))


def _holds(argument: ast.expr, mention: ast.expr) -> bool:
    """Whether a mention is an argument, or in a list that is one."""
    if isinstance(argument, ast.List | ast.Tuple):
        return any(item is mention for item in argument.elts)
    return argument is mention
