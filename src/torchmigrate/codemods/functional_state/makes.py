"""What takes the place of a statement that makes a functional model."""

from __future__ import annotations

import ast
from collections.abc import Callable

from torchmigrate.codemods.base.unclear import Unclear
from torchmigrate.codemods.functional_state.flow import Flow
from torchmigrate.codemods.functional_state.kinds import Make
from torchmigrate.codemods.functional_state.text import StateText
from torchmigrate.rewrite.lines import logical_line
from torchmigrate.source.text import Source

_KEEPING = frozenset(
    ("to", "cuda", "cpu", "eval", "train", "double", "half", "float", "requires_grad_", "apply")
)
STEP = "    "
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


class MakeText:
    """Writes the statements.

    Args:
        wrapped: the models are functions of the file, since they are used as such.
    """

    def __init__(self, source: Source, text: StateText, flow: Flow, *, wrapped: bool) -> None:
        self.source = source
        self.text = text
        self.flow = flow
        self.wrapped = wrapped

    def write(self, make: Make, statement: ast.stmt, spell: Callable[[str], str]) -> None:
        """Rewrite one statement.

        Raises:
            Unclear: it is written in a way that does not allow it.
        """
        source = self.source
        block = self.flow.local.block_of(statement)
        if block is None:
            raise Unclear("the statement cannot be rewritten", make.call)
        line = logical_line(source, block, statement)
        start, end = source.span(statement)
        if line.indent is None or len(line.statements) > 1:
            raise Unclear("statements share a line", make.call)
        if "#" in source.text[start:end]:
            raise Unclear("a comment in the statement would be lost", make.call)
        lines = self._lines(make, statement, spell)
        newline = source.newline
        defines = any(item.startswith("def ") for item in lines)
        code = newline.join(
            item and (item if not number else f"{line.indent}{item}") for number, item in enumerate(lines)
        )
        if defines and lines[-1].startswith(STEP):
            if line.comment:  # it stays with the first line
                first, rest = code[: len(lines[0])], code[len(lines[0]) :]
                code, end = f"{first}  {line.comment}{rest}", line.end
            following = source.text[line.after :]
            if following.strip() and not following.startswith(("\n", "\r\n")):
                code += newline
        self.text.add(start, end, code)

    def _lines(self, make: Make, statement: ast.stmt, spell: Callable[[str], str]) -> list[str]:
        source = self.source
        targets, head = self._targets(make, statement)
        names = [source.segment(item) if self._is_read(item) else "" for item in targets]
        if self.wrapped:
            self._check_loop(make, statement, targets)
        if make.ensemble:
            return self._ensemble(make, statement, targets, names, spell)
        copied = self._copied(make, spell)
        if not targets:
            base = self.text.unique("base_model", statement)
            if self.wrapped:
                function = self.text.unique("functional_model", statement)
                made = self._function(function, base, make.states, spell)
                return [
                    f"{base} = {copied}",
                    *made,
                    f"{head}{', '.join([function, *_states(base, make.states)])}",
                ]
            return [f"{base} = {copied}", f"{head}{', '.join([base, *_states(base, make.states)])}"]
        states = list(zip(names[1:], ("named_parameters", "named_buffers"), strict=False))
        wanted = [(name, method) for name, method in states if name]
        if not names[0] and len(wanted) == 1:
            name, method = wanted[0]
            return [f"{name} = dict({copied}.{method}())"]
        base = names[0] if names[0] and not self.wrapped else self.text.unique("base_model", statement)
        lines = [f"{base} = {copied}", *(f"{name} = dict({base}.{method}())" for name, method in wanted)]
        if self.wrapped and names[0]:
            if not isinstance(targets[0], ast.Name):
                raise Unclear("an attribute holds a functional model that is used as a function", targets[0])
            lines += self._function(names[0], base, make.states, spell)
        return lines

    def _targets(self, make: Make, statement: ast.stmt) -> tuple[list[ast.expr], str]:
        """What the result is taken apart into; the text before a result that is not taken apart."""
        if isinstance(statement, ast.Return):
            return [], "return "
        if not isinstance(statement, ast.Assign) or len(statement.targets) > 1:
            raise Unclear("the result is not assigned", make.call)
        target = statement.targets[0]
        if not isinstance(target, ast.Tuple | ast.List):
            return [], f"{self.source.segment(target)} = "
        if len(target.elts) != 1 + make.states or any(isinstance(item, ast.Starred) for item in target.elts):
            shown = self.source.segment(target)
            raise Unclear(f"`{shown}` is not a function and {make.states} of its states", target)
        return list(target.elts), ""

    def _check_loop(self, make: Make, statement: ast.stmt, targets: list[ast.expr]) -> None:
        """Refuse a function that outlives a turn of a loop: it would call the model of the last turn."""
        local = self.flow.local
        function = local.function_of(statement)
        loop = None
        for outer in local.around(statement):
            if outer is function:
                break
            if isinstance(outer, _LOOPS):
                loop = outer
        if loop is None or (targets and not self._is_read(targets[0])):
            return
        inside = {id(node) for node in ast.walk(loop)}
        if not targets or not isinstance(targets[0], ast.Name):
            raise Unclear("it is made in a loop, and kept", make.call)
        for mention in local.named(targets[0].id):
            if not isinstance(mention.ctx, ast.Load) or id(mention) not in inside:
                continue
            call = local.parent(mention)
            if isinstance(call, ast.Call) and call.func is not mention:
                call = local.parent(call)  # `vmap(fmodel)(params, x)`
                if isinstance(call, ast.Assign) and isinstance(call.targets[0], ast.Name):
                    continue
            if not isinstance(call, ast.Call):
                raise Unclear("it is made in a loop, and kept", make.call)

    def _ensemble(
        self,
        make: Make,
        statement: ast.stmt,
        targets: list[ast.expr],
        names: list[str],
        spell: Callable[[str], str],
    ) -> list[str]:
        if not targets:
            raise Unclear("the result is not taken apart where it is made", make.call)
        lines, models = self._members(make, statement, kept=bool(names[0]))
        shown = [self.source.segment(item) for item in targets]
        lines.append(f"{', '.join(shown[1:])} = {spell('torch.func.stack_module_state')}({models})")
        if not names[0]:
            return lines
        base = names[0] if not self.wrapped else self.text.unique("base_model", statement)
        lines.append(f'{base} = {spell("copy.deepcopy")}({models}[0]).to("meta")')
        if self.wrapped:
            if not isinstance(targets[0], ast.Name):
                raise Unclear("an attribute holds a functional model that is used as a function", targets[0])
            lines += self._function(names[0], base, make.states, spell)
        return lines

    def _members(self, make: Make, statement: ast.stmt, *, kept: bool) -> tuple[list[str], str]:
        """The models of an ensemble as an expression that may stand twice, after the lines that it needs.

        kept: it will stand twice.
        """
        if make.call.keywords or len(make.call.args) != 1 or isinstance(make.call.args[0], ast.Starred):
            raise Unclear("the models are not given as one list", make.call)
        models = self.source.segment(make.call.args[0])
        if not kept or isinstance(make.call.args[0], ast.Name | ast.Attribute):
            return [], models
        name = self.text.unique(self.text.fresh("models", "members", "ensemble_members"), statement)
        return [f"{name} = {models}"], name

    def _function(self, name: str, base: str, states: int, spell: Callable[[str], str]) -> list[str]:
        """A function in the place of the functional model."""
        given = "params" if states == 1 else "params, buffers"
        state = "params" if states == 1 else "(params, buffers)"
        call = spell("torch.func.functional_call")
        return [
            "",
            f"def {name}({given}, *args, **kwargs):",
            f"{STEP}return {call}({base}, {state}, args, kwargs)",
        ]

    def _is_read(self, target: ast.expr) -> bool:
        if not isinstance(target, ast.Name):
            return True
        return target.id != "_" and any(
            isinstance(item.ctx, ast.Load) for item in self.flow.local.named(target.id)
        )

    def _module(self, make: Make) -> tuple[ast.expr, bool]:
        """The model that a call is given, and whether its parameters take no gradients."""
        call = make.call
        values = {item.arg: item.value for item in call.keywords}
        if None in values or any(isinstance(item, ast.Starred) for item in call.args) or len(call.args) > 2:
            raise Unclear("its arguments are not understood", call)
        model = call.args[0] if call.args else values.pop("model", None)
        frozen = call.args[1] if len(call.args) > 1 else values.pop("disable_autograd_tracking", None)
        if model is None or values:
            raise Unclear("its arguments are not understood", call)
        if frozen is not None and not (isinstance(frozen, ast.Constant) and isinstance(frozen.value, bool)):
            raise Unclear("`disable_autograd_tracking` is no literal", call)
        return model, frozen is not None and bool(frozen.value)

    def _copied(self, make: Make, spell: Callable[[str], str]) -> str:
        """A model of its own, as `make_functional` made one."""
        model, frozen = self._module(make)
        text = self.source.segment(model)
        made = text if self._is_new(model) else f"{spell('copy.deepcopy')}({text})"
        return made + (".requires_grad_(False)" if frozen else "")

    def _is_new(self, node: ast.expr) -> bool:
        """Whether nobody else has the object: a copy, or made on the spot."""
        while (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _KEEPING
        ):
            node = node.func.value
        if not isinstance(node, ast.Call):
            return False
        name = self.flow.qualified(node.func)
        if name in ("copy.deepcopy",) or name.startswith(("torch.nn.", "torchvision.models.")):
            return True
        if isinstance(node.func, ast.Name):
            if node.func.id == "deepcopy":
                return True
            binders = self.flow.local.bindings(node.func.id)
            return len(binders) == 1 and isinstance(binders[0].node, ast.ClassDef)
        return False


def _states(base: str, count: int) -> list[str]:
    return [f"dict({base}.{method}())" for method in ("named_parameters", "named_buffers")[:count]]
