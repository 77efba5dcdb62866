"""What takes the place of a statement that makes a functional model."""

from __future__ import annotations

import ast
from collections.abc import Callable

from torchmigrate.codemods._functional_flow import Flow
from torchmigrate.codemods._functional_kinds import Make, Unclear
from torchmigrate.codemods._functional_text import StateText
from torchmigrate.import_edits import logical_line
from torchmigrate.source import Source

_KEEPING = frozenset(
    ("to", "cuda", "cpu", "eval", "train", "double", "half", "float", "requires_grad_", "apply")
)
_STEP = "    "


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
        if defines:
            if line.comment:
                raise Unclear("a comment would move", make.call)
            following = source.text[line.after :]
            if following.strip() and not following.startswith(("\n", "\r\n")):
                code += newline
        self.text.add(start, end, code)

    def _lines(self, make: Make, statement: ast.stmt, spell: Callable[[str], str]) -> list[str]:
        source = self.source
        module, frozen = self._module(make)
        head: str
        targets: list[ast.expr] = []
        if isinstance(statement, ast.Return):
            head = "return "
        else:
            assert isinstance(statement, ast.Assign), "nothing else is recorded"
            target = statement.targets[0]
            head = f"{source.segment(target)} = "
            if isinstance(target, ast.Tuple | ast.List):
                targets = list(target.elts)
                if len(targets) != 1 + make.states:
                    raise Unclear("the result is taken apart in a way that is not understood", target)
        names = [source.segment(item) if self._is_read(item) else "" for item in targets]
        if make.ensemble:
            return self._ensemble(make, head, targets, names, spell)
        copied = self._copied(module, spell) + (".requires_grad_(False)" if frozen else "")
        if not targets:
            base = self.text.fresh("base_model")
            if self.wrapped:
                function = self.text.fresh("functional_model")
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
        base = names[0] if names[0] and not self.wrapped else self.text.fresh("base_model")
        lines = [f"{base} = {copied}", *(f"{name} = dict({base}.{method}())" for name, method in wanted)]
        if self.wrapped and names[0]:
            if not isinstance(targets[0], ast.Name):
                raise Unclear("an attribute holds a functional model that is used as a function", targets[0])
            lines += self._function(names[0], base, make.states, spell)
        return lines

    def _ensemble(
        self, make: Make, head: str, targets: list[ast.expr], names: list[str], spell: Callable[[str], str]
    ) -> list[str]:
        if not targets:
            raise Unclear("the result is not taken apart where it is made", make.call)
        if make.call.keywords or len(make.call.args) != 1:
            raise Unclear("the models are not given as one list", make.call)
        models = self.source.segment(make.call.args[0])
        lines: list[str] = []
        if names[0] and not isinstance(make.call.args[0], ast.Name | ast.Attribute):
            kept = self.text.fresh("models", "members", "ensemble_members")
            lines.append(f"{kept} = {models}")
            models = kept
        shown = [self.source.segment(item) for item in targets]
        lines.append(f"{', '.join(shown[1:])} = {spell('torch.func.stack_module_state')}({models})")
        if not names[0]:
            return lines
        base = names[0] if not self.wrapped else self.text.fresh("base_model")
        lines.append(f'{base} = {spell("copy.deepcopy")}({models}[0]).to("meta")')
        if self.wrapped:
            if not isinstance(targets[0], ast.Name):
                raise Unclear("an attribute holds a functional model that is used as a function", targets[0])
            lines += self._function(names[0], base, make.states, spell)
        return lines

    def _function(self, name: str, base: str, states: int, spell: Callable[[str], str]) -> list[str]:
        """A function in the place of the functional model."""
        given = "params" if states == 1 else "params, buffers"
        state = "params" if states == 1 else "(params, buffers)"
        call = spell("torch.func.functional_call")
        return [
            "",
            f"def {name}({given}, *args, **kwargs):",
            f"{_STEP}return {call}({base}, {state}, args, kwargs)",
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
        if make.ensemble:
            return call, False
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

    def _copied(self, model: ast.expr, spell: Callable[[str], str]) -> str:
        """A model of its own, as `make_functional` made one."""
        text = self.source.segment(model)
        return text if self._is_new(model) else f"{spell('copy.deepcopy')}({text})"

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
