"""On which device a tensor is, where the code names it: `.cuda()`, `.to("cuda:0")`, `device=device`."""

from __future__ import annotations

import ast
from functools import cached_property

from torchmigrate.semantics.flow.domain import UNKNOWN, Domain, Values
from torchmigrate.semantics.flow.steps import EACH, Path, Step

CUDA, CPU = "cuda", "cpu"
_MOVED = "moved"  # a buffer or parameter of a module, which `module.to(...)` moves

# What these make is on the CPU, unless `device` is given or the default device was changed.
_FACTORIES = frozenset(
    "zeros ones empty full rand randn randint randperm arange linspace tensor from_numpy eye".split()
)
# Methods and functions whose result is on the device of their first tensor, or holds such.
KEPT = frozenset(
    "view reshape unsqueeze squeeze t transpose permute expand expand_as repeat contiguous clone detach "
    "flatten index_select narrow masked_select flip roll sort topk long int float bool byte half double sum "
    "max min add sub mul clamp eq ne gt lt ge le gather chunk split unbind zeros_like ones_like new_zeros "
    "new_ones new_tensor cumsum cumprod argsort unique nonzero sqrt exp log abs round floor ceil tril triu "
    "remainder fmod where".split()
)
_UNKNOWN: Values[str] = frozenset([UNKNOWN])


class Devices(Domain[str]):
    """The devices of tensors, and what device an expression such as `"cuda:0"` names."""

    def start(self, node: ast.AST) -> str | None:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            kind = node.value.partition(":")[0]
            return kind if kind in (CUDA, CPU) else None
        if isinstance(node, ast.Attribute) and self._is_buffer(node):
            return _MOVED
        if not isinstance(node, ast.Call):
            return None
        function = node.func
        name = self.flow.names.qualified(function) or ""
        if (
            isinstance(function, ast.Attribute)
            and function.attr in (CUDA, CPU)
            and _is_method(function, name)
        ):
            return function.attr
        if name.startswith("torch.cuda.") and name.endswith("Tensor"):
            return CUDA
        return None

    def through(self, node: ast.AST) -> Values[str]:
        if isinstance(node, ast.Subscript):
            return self.of(node.value)
        if isinstance(node, ast.UnaryOp):
            return self.of(node.operand)
        if isinstance(node, ast.Attribute) and node.attr in ("data", "T", "mT", "device"):
            return self.of(node.value)
        if isinstance(node, ast.BinOp):
            return self._together(node.left, node.right)
        if isinstance(node, ast.Compare):
            return self._together(node.left, *node.comparators)
        if not isinstance(node, ast.Call):
            return _UNKNOWN
        function = node.func
        name = self.flow.names.qualified(function) or ""
        given = next((item.value for item in node.keywords if item.arg == "device"), None)
        if name == "torch.device" and node.args:
            return self.of(node.args[0])
        if given is not None:
            return self.of(given) if name.startswith("torch.") or _is_method(function, name) else _UNKNOWN
        if _is_method(function, name) and isinstance(function, ast.Attribute):
            if function.attr == "to" and node.args:
                return self.of(node.args[0])
            return self.of(function.value) if function.attr in KEPT else _UNKNOWN
        last = name.rpartition(".")[2]
        if name in ("torch.cat", "torch.stack") and node.args:
            return self.of(node.args[0], (EACH,))
        if name == f"torch.{last}" and last in _FACTORIES:
            return _UNKNOWN if self._is_default_changed else frozenset([CPU])
        return self.of(node.args[0]) if name == f"torch.{last}" and last in KEPT and node.args else _UNKNOWN

    def part(self, node: ast.AST, path: Path) -> Values[str]:
        return self.of(node)

    def _together(self, *nodes: ast.expr) -> Values[str]:
        """The device of what an operator makes: all operands but numbers are on the same one.

        A tensor of one number on the CPU may be combined with any other.
        """
        found = [self.of(node) for node in nodes if not self._is_number(node)]
        if frozenset([CUDA]) in found:
            return frozenset([CUDA])
        return found[0] if found and len(found[0]) == 1 and len(set(found)) == 1 else _UNKNOWN

    def _is_number(self, node: ast.expr) -> bool:
        if isinstance(node, ast.UnaryOp):
            return self._is_number(node.operand)
        return isinstance(node, ast.Constant) or (
            isinstance(node, ast.Name)
            and all(
                isinstance(step.node, (ast.Constant, ast.Call)) and self._makes_number(step)
                for step in self.flow.origins(node)
            )
        )

    def _makes_number(self, step: Step) -> bool:
        """Whether an origin is a number that is written out, or the variable of a loop over a range."""
        if not isinstance(step.node, ast.Call):
            return isinstance(step.node, ast.Constant) and not step.path
        name, path = self.flow.builtin(step.node.func), step.path
        return (name == "range" and path == (EACH,)) or (name == "enumerate" and path == (EACH, 0))

    def _is_buffer(self, node: ast.Attribute) -> bool:
        """Whether an attribute of `self` is registered as a buffer, or as a parameter."""
        classes = self.flow.classes
        owner = classes.owner_of(node.value)
        return owner is not None and any(
            value is not None
            for each in (*classes.lineage(owner), *classes.below[owner])
            for _, value in classes.members.get((each, node.attr), ())
        )

    @cached_property
    def _is_default_changed(self) -> bool:
        """Whether the file changes the default device."""
        for statement in self.flow.names.nodes(ast.With):
            for item in statement.items:
                if not isinstance(item.context_expr, ast.Call) or (
                    self.flow.names.qualified(item.context_expr.func) == "torch.device"
                ):
                    return True
        return any("set_default" in name for use in self.flow.names.uses for name in use.candidates)


def _is_method(function: ast.expr, name: str) -> bool:
    return isinstance(function, ast.Attribute) and (not name or name.startswith("torch.Tensor."))
