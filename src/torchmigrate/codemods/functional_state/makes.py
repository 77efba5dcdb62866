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

_KEEPING = frozenset(
    ("to", "cuda", "cpu", "eval", "train", "double", "half", "float", "requires_grad_", "apply")
)
_STATES = ("named_parameters", "named_buffers")
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

    def write(self, make: Make, spell: Callable[[str], str]) -> None:
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

    def _statements(self, make: Make, statement: ast.stmt, spell: Callable[[str], str]) -> list[NewStatement]:
        targets, whole = self._targets(make, statement)
        if self.wrapped:
            self._check_loop(make, statement, targets)
        if make.ensemble:
            return self._ensemble(make, statement, targets, spell)
        copied = self._copied(make, spell)
        if not targets:
            base = self.writer.unique("base_model", statement)
            made: list[NewStatement] = [assigned(base, copied)]
            model = base
            if self.wrapped:
                model = self.writer.unique("functional_model", statement)
                made.append(self._function(model, base, make.states, spell))
            return [
                *made,
                result(whole, [model, *(_state(base, method) for method in _STATES[: make.states])]),
            ]
        model_target, *rest = targets
        kept = self._is_read(model_target)
        wanted = [item for item in zip(rest, _STATES, strict=False) if self._is_read(item[0])]
        if not kept and len(wanted) == 1:
            return [assigned(target, _state(copied, method)) for target, method in wanted]
        named = kept and not self.wrapped
        base_model = model_target if named else self.writer.unique("base_model", statement)
        return [
            assigned(base_model, copied),
            *(assigned(target, _state(base_model, method)) for target, method in wanted),
            *self._functions(model_target, base_model, make.states, spell),
        ]

    def _functions(
        self, target: ast.expr, base: str | ast.expr, states: int, spell: Callable[[str], str]
    ) -> list[NewStatement]:
        """The function in the place of the functional model, if there is one."""
        if not self.wrapped or not self._is_read(target):
            return []
        if not isinstance(target, ast.Name):
            raise Unclear("an attribute holds a functional model that is used as a function", target)
        return [self._function(target.id, base, states, spell)]

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
        local = self.index
        function = local.function_of(statement)
        loop = None
        for outer in local.around(statement):
            if outer is function:
                break
            if isinstance(outer, _LOOPS):
                loop = outer
        if loop is None or (targets and not self._is_read(targets[0])):
            return
        inside = {id(node) for node in walk(loop)}
        if not targets or not isinstance(targets[0], ast.Name):
            raise Unclear("it is created in a loop, and kept", make.call)
        for mention in local.named(targets[0].id):
            if not isinstance(mention.ctx, ast.Load) or id(mention) not in inside:
                continue
            call = local.parent(mention)
            if isinstance(call, ast.Call) and call.func is not mention:
                call = local.parent(call)  # `vmap(fmodel)(params, x)`
                if isinstance(call, ast.Assign) and isinstance(call.targets[0], ast.Name):
                    continue
            if not isinstance(call, ast.Call):
                raise Unclear("it is created in a loop, and kept", make.call)

    def _ensemble(
        self, make: Make, statement: ast.stmt, targets: list[ast.expr], spell: Callable[[str], str]
    ) -> list[NewStatement]:
        if not targets:
            raise Unclear("the result is not unpacked where it is created", make.call)
        kept = self._is_read(targets[0])
        made, models = self._members(make, statement, kept=kept)
        made.append(assigned(several(targets[1:]), stacked_models(models, spell)))
        if not kept:
            return made
        base = targets[0] if not self.wrapped else self.writer.unique("base_model", statement)
        made.append(assigned(base, skeleton(models, spell)))
        return [*made, *self._functions(targets[0], base, make.states, spell)]

    def _members(
        self, make: Make, statement: ast.stmt, *, kept: bool
    ) -> tuple[list[NewStatement], str | ast.expr]:
        """The models of an ensemble as an expression that may stand twice, after what that needs.

        kept: it will stand twice.
        """
        if make.call.keywords or len(make.call.args) != 1 or isinstance(make.call.args[0], ast.Starred):
            raise Unclear("the models are not passed as one list", make.call)
        models = make.call.args[0]
        if not kept or isinstance(models, (ast.Name, ast.Attribute)):
            return [], models
        name = self.writer.unique(self.writer.fresh("models", "members", "ensemble_members"), statement)
        return [assigned(name, models)], name

    def _function(
        self, name: str, base: str | ast.expr, states: int, spell: Callable[[str], str]
    ) -> NewFunction:
        """A function in the place of the functional model."""
        given = ["params", "buffers"][:states]
        call = code(
            "return $f($base, $state, args, kwargs)",
            f=spell("torch.func.functional_call"),
            base=base,
            state=several(given),
        )
        return NewFunction(name, (*given, "*args", "**kwargs"), (call,))

    def _is_read(self, target: ast.expr) -> bool:
        if not isinstance(target, ast.Name):
            return True
        return target.id != "_" and any(
            isinstance(item.ctx, ast.Load) for item in self.index.named(target.id)
        )

    def _module(self, make: Make) -> tuple[ast.expr, bool]:
        """The model that a call is given, and whether its parameters take no gradients."""
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
        return model, frozen is not None and bool(frozen.value)

    def _copied(self, make: Make, spell: Callable[[str], str]) -> Code:
        """A model of its own, as `make_functional` made one."""
        model, frozen = self._module(make)
        made = code("$x", x=model)
        if not self._is_new(model):
            made = code("$f($x)", f=spell("copy.deepcopy"), x=model)
        return code("$x.requires_grad_(False)", x=made) if frozen else made

    def _is_new(self, node: ast.expr) -> bool:
        """Whether no other code holds the object: a copy, or created in this expression."""
        while (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _KEEPING
        ):
            node = node.func.value
        if not isinstance(node, ast.Call):
            return False
        name = self.states.qualified(node.func)
        if name in ("copy.deepcopy",) or name.startswith(("torch.nn.", "torchvision.models.")):
            return True
        if isinstance(node.func, ast.Name):
            if node.func.id == "deepcopy":
                return True
            binders = self.index.bindings(node.func.id)
            return len(binders) == 1 and isinstance(binders[0].node, ast.ClassDef)
        return False


def assigned(target: Part, value: Part) -> Code:
    return code("$target = $value", target=target, value=value)


def _state(model: Part, method: str) -> Code:
    return code("dict($model.$method())", model=model, method=method)


def result(target: ast.expr | None, values: Sequence[Part]) -> Code:
    """Values assigned to a target; None: returned."""
    if target is None:
        return code("return $values", values=several(values))
    return assigned(target, several(values))


def stacked_models(models: Part, spell: Callable[[str], str]) -> Code:
    return code("$f($models)", f=spell("torch.func.stack_module_state"), models=models)


def skeleton(models: Part, spell: Callable[[str], str]) -> Code:
    """A model without tensors of its own, in which those of all others are put."""
    return code('$f($models[0]).to("meta")', f=spell("copy.deepcopy"), models=models)
