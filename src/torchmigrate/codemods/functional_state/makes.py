"""What takes the place of a statement that makes a functional model."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from torchmigrate.codemods.base.unclear import Unclear
from torchmigrate.codemods.functional_state.states import Make, States
from torchmigrate.codemods.functional_state.writer import StateWriter
from torchmigrate.rewrite.code import Code, Part, code, several
from torchmigrate.rewrite.lines import is_alone
from torchmigrate.rewrite.nodes import has_comment
from torchmigrate.rewrite.statements import NewFunction, NewStatement
from torchmigrate.source.trees import walk

Spell = Callable[[str], str]
_KEEPING = frozenset(
    ("to", "cuda", "cpu", "eval", "train", "double", "half", "float", "requires_grad_", "apply")
)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


class MakeWriter:
    """Writes the statements.

    Args:
        wrapped: the models are functions of the file, since they are used as such.
    """

    def __init__(self, writer: StateWriter, states: States, *, wrapped: bool) -> None:
        self.source = writer.source
        self.writer = writer
        self.states = states
        self.index = states.flow.index
        self.wrapped = wrapped

    def write(self, make: Make, spell: Spell) -> None:
        """Rewrite the statement of a call.

        Raises:
            Unclear: it is written in a way that does not allow it.
            Crowded: as Rewriting says.
        """
        statement = self.index.parent(make.call)
        if not isinstance(statement, (ast.Assign, ast.Return)):
            raise Unclear("the result is not assigned", make.call)
        if isinstance(self.index.function_of(statement), ast.ClassDef):
            raise Unclear("it is created in a class body, whose names a function in it cannot see", make.call)
        block = self.index.block_of(statement)
        if block is None:
            raise Unclear("the statement cannot be rewritten", make.call)
        if not is_alone(self.source, block, statement):
            raise Unclear("several statements are on one line", make.call)
        if has_comment(self.source, statement):
            raise Unclear("the fix would remove a comment in the statement", make.call)
        self.writer.rewriting.replace_statement(statement, self._statements(make, statement, spell))

    def _statements(self, make: Make, statement: ast.stmt, spell: Spell) -> list[NewStatement]:
        targets, whole = self._targets(make, statement)
        kept = not targets or self._is_read(targets[0])
        if kept and self.wrapped:
            self._check_loop(make, statement, targets)
        wanted = [self._is_read(item) for item in targets[1:]] or [True] * make.states
        base: str | ast.expr = "" if self.wrapped or not targets or not kept else targets[0]
        if make.ensemble:
            made, base, states = self._ensemble(make, statement, targets, base, spell, kept=kept)
        elif not kept and wanted.count(True) == 1:
            made, states = [], self._states_of(self._copied(make, spell), make.states)
        else:
            base = base or self.writer.unique("base_model", statement)
            made, states = [assigned(base, self._copied(make, spell))], self._states_of(base, make.states)
        names = self._names(make, statement, base) if kept else []
        made += [assigned(name, value) for name, value in names]
        for target, value, used in zip(targets[1:], states, wanted, strict=False):
            if used and target is not value:
                made.append(assigned(target, value))
        model: str | ast.expr = base
        if kept and self.wrapped:
            plain = isinstance(targets[0], ast.Name) if targets else False
            model = targets[0].id if plain else self.writer.unique("functional_model", statement)  # type: ignore[attr-defined]
            made.append(self._function(make, model, base, [name for name, _ in names], spell))
            if targets and not plain:
                made.append(assigned(targets[0], model))
        if not targets:
            values = several([model, *states])
            made.append(code("return $x", x=values) if whole is None else assigned(whole, values))
        return made

    def _states_of(self, model: Part, number: int) -> list[Part]:
        """The states of a model."""
        methods = ("named_parameters", "named_buffers")[:number]
        return [code("dict($x.$method())", x=model, method=method) for method in methods]

    def _names(self, make: Make, statement: ast.stmt, base: Part) -> list[tuple[str, Code]]:
        """Variables with the keys of the states, where they are not in the states."""
        return []

    def _stacked(self, statement: ast.stmt, targets: Sequence[ast.expr]) -> tuple[list[Part], list[Part]]:
        """The variables for the dicts of an ensemble, and its states."""
        return [*targets], [*targets]

    def _body(
        self, make: Make, base: Part, given: list[str], names: list[str]
    ) -> tuple[list[Code], list[Part]]:
        """Statements of the function that calls a model, and the dicts for the model."""
        return [], [*given]

    def _targets(self, make: Make, statement: ast.stmt) -> tuple[list[ast.expr], ast.expr | None]:
        """What the result is taken apart into; else what it is assigned to (None: it is returned)."""
        if isinstance(statement, ast.Return):
            return [], None
        if not isinstance(statement, ast.Assign) or len(statement.targets) > 1:
            raise Unclear("the result is not assigned", make.call)
        target = statement.targets[0]
        if not isinstance(target, (ast.Tuple, ast.List)):
            return [], target
        if len(target.elts) != 1 + make.states or any(isinstance(item, ast.Starred) for item in target.elts):
            shown = self.source.shown(target)
            raise Unclear(f"`{shown}` is not a function and {make.states} of its states", target)
        return list(target.elts), None

    def _check_loop(self, make: Make, statement: ast.stmt, targets: list[ast.expr]) -> None:
        """Refuse a function that outlives a turn of a loop: it would call the model of the last turn."""
        function = self.index.function_of(statement)
        loop = None
        for outer in self.index.around(statement):
            if outer is function:
                break
            if isinstance(outer, _LOOPS):
                loop = outer
        if loop is None:
            return
        if not targets or not isinstance(targets[0], ast.Name):
            raise Unclear("it is created in a loop, and kept", make.call)
        inside = {id(node) for node in walk(loop)}
        for mention in self.index.named(targets[0].id):
            if not isinstance(mention.ctx, ast.Load) or id(mention) not in inside:
                continue
            call = self.index.parent(mention)
            if isinstance(call, ast.Call) and call.func is not mention:
                call = self.index.parent(call)  # `vmap(fmodel)(params, x)`
                if isinstance(call, ast.Assign) and isinstance(call.targets[0], ast.Name):
                    continue
            if not isinstance(call, ast.Call):
                raise Unclear("it is created in a loop, and kept", make.call)

    def _ensemble(
        self,
        make: Make,
        statement: ast.stmt,
        targets: list[ast.expr],
        base: str | ast.expr,
        spell: Spell,
        *,
        kept: bool,
    ) -> tuple[list[NewStatement], str | ast.expr, list[Part]]:
        """The statements that stack the models, the model that is called, and its states."""
        if not targets:
            raise Unclear("the result is not unpacked where it is created", make.call)
        if make.call.keywords or len(make.call.args) != 1 or isinstance(make.call.args[0], ast.Starred):
            raise Unclear("the models are not passed as one list", make.call)
        models: str | ast.expr = make.call.args[0]
        made: list[NewStatement] = []
        if kept and not isinstance(models, (ast.Name, ast.Attribute)):
            name = self.writer.fresh("models", "members", "ensemble_members")
            name = self.writer.unique(name, statement)
            made.append(assigned(name, models))
            models = name
        stacked, states = self._stacked(statement, targets[1:])
        stack = code("$f($models)", f=spell("torch.func.stack_module_state"), models=models)
        made.append(assigned(several(stacked), stack))
        if kept:  # a model without tensors of its own, in which those of all others are put
            base = base or self.writer.unique("base_model", statement)
            copied = code('$f($models[0]).to("meta")', f=spell("copy.deepcopy"), models=models)
            made.append(assigned(base, copied))
        return made, base, states

    def _function(
        self, make: Make, name: str | ast.expr, base: Part, names: list[str], spell: Spell
    ) -> NewFunction:
        """A function in the place of the functional model."""
        given = ["params", "buffers"][: make.states]
        before, states = self._body(make, base, given, names)
        call = code(
            "return $f($base, $state, args, kwargs)",
            f=spell("torch.func.functional_call"),
            base=base,
            state=several(states),
        )
        return NewFunction(str(name), (*given, "*args", "**kwargs"), (*before, call))

    def _is_read(self, target: ast.expr) -> bool:
        if not isinstance(target, ast.Name):
            return True
        return target.id != "_" and any(
            isinstance(item.ctx, ast.Load) for item in self.index.named(target.id)
        )

    def _copied(self, make: Make, spell: Spell) -> Code:
        """A model of its own, as `make_functional` made one."""
        call = make.call
        values = {item.arg: item.value for item in call.keywords}
        if None in values or any(isinstance(item, ast.Starred) for item in call.args) or len(call.args) > 2:
            raise Unclear("cannot analyze its arguments", call)
        model = call.args[0] if call.args else values.pop("model", None)
        frozen = call.args[1] if len(call.args) > 1 else values.pop("disable_autograd_tracking", None)
        if model is None or values:
            raise Unclear("cannot analyze its arguments", call)
        if frozen is not None and not (isinstance(frozen, ast.Constant) and isinstance(frozen.value, bool)):
            raise Unclear("`disable_autograd_tracking` is not a literal", call)
        made = code("$x", x=model)
        if not self._is_new(model):
            made = code("$f($x)", f=spell("copy.deepcopy"), x=model)
        return code("$x.requires_grad_(False)", x=made) if frozen is not None and frozen.value else made

    def _is_new(self, node: ast.expr) -> bool:
        """Whether no other code holds the object: a copy, or created in this expression."""
        while (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _KEEPING
        ):
            node = node.func.value
        if not isinstance(node, ast.Call):
            return False
        name = self.states.qualified(node.func)
        if name == "copy.deepcopy" or name.startswith(("torch.nn.", "torchvision.models.")):
            return True
        return isinstance(self.states.flow.definition(node.func), ast.ClassDef)


def assigned(target: Part, value: Part) -> Code:
    return code("$target = $value", target=target, value=value)
