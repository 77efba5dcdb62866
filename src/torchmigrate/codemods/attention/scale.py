"""The scale of hand-written attention: `scaled_dot_product_attention` takes a number, not a tensor."""

from __future__ import annotations

import ast

from torchmigrate.codemods.base.operations import Reader, number, same
from torchmigrate.semantics.flow.domain import UNKNOWN, Domain, Values
from torchmigrate.semantics.flow.steps import OPEN_STEP, Path, Step, Steps

_NUMBERS = ("math.sqrt", "numpy.sqrt", "math.pow", "numpy.power")
_BUILTINS = ("float", "int", "len", "max", "min", "round", "pow")
_ROOTS = ("math.sqrt", "numpy.sqrt")


class Numbers(Domain[bool]):
    """Which expressions surely are Python numbers.

    Arguments of `__init__`, and attributes of its arguments, are taken for numbers.
    """

    def __init__(self, reader: Reader) -> None:
        super().__init__(reader.flow)
        self._reader = reader

    def is_number(self, node: ast.expr) -> bool:
        return self.is_only(node, True)

    def start(self, node: ast.AST) -> bool | None:
        if isinstance(node, ast.Constant):
            return True if type(node.value) in (int, float) else None
        if isinstance(node, ast.arg):
            return True if getattr(node.annotation, "id", "") in ("int", "float") else None
        if not isinstance(node, ast.Call):
            return None
        if isinstance(node.func, ast.Attribute) and node.func.attr == "size" and len(node.args) == 1:
            return True
        name = self.flow.builtin(node.func) or ""
        return True if name in _BUILTINS or function_name(node, self._reader) in _NUMBERS else None

    def steps(self, step: Step) -> Steps:
        found = self.flow.steps(step)
        if OPEN_STEP not in found or not isinstance(step.node, ast.Name):
            return found
        if self._is_made(step.node):
            return ()
        holder = self.flow.index.holder(step.node)
        bindings = holder.bindings[step.node.id] if holder is not None else ()
        return (Step(bindings[0].node),) if len(bindings) == 1 else found

    def through(self, node: ast.AST) -> Values[bool]:
        if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.MatMult):
            return self.join(node.left, node.right)
        if isinstance(node, ast.UnaryOp):
            return self.of(node.operand)
        if isinstance(node, (ast.Name, ast.Attribute)) and self._is_made(node):
            return frozenset([True])
        return frozenset([UNKNOWN])

    def part(self, node: ast.AST, path: Path) -> Values[bool]:
        return frozenset([True if _is_size(node) else UNKNOWN])

    def _is_made(self, node: ast.AST) -> bool:
        """Whether an expression is evaluated where an object is made."""
        return getattr(self.flow.index.home_of(node), "name", "") == "__init__"


def _is_size(node: ast.AST) -> bool:
    return (isinstance(node, ast.Attribute) and node.attr == "shape") or (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "size"
        and not node.args
    )


def function_name(call: ast.Call, reader: Reader) -> str:
    """The qualified name of the function that is called, of any library."""
    return reader.qualified(call.func) or reader.flow.imported(call.func)


def is_positive(scale: ast.expr, reader: Reader) -> bool:
    """Whether a scale is surely positive: a number, a root, or a power of a size."""
    value = number(scale)
    if value is not None:
        return value > 0
    if isinstance(scale, ast.BinOp) and isinstance(scale.op, ast.Div):
        return is_positive(scale.left, reader) and is_positive(scale.right, reader)
    if isinstance(scale, ast.BinOp) and isinstance(scale.op, ast.Pow):
        return number(scale.right) in (0.5, -0.5)
    return isinstance(scale, ast.Call) and function_name(scale, reader) in _ROOTS


def is_default(
    scale: ast.AST | None,
    divided: bool,
    query: ast.expr | None,
    key: ast.expr | None,
    reader: Reader,
) -> bool:
    """Whether a scale is one over the root of the last size of query or key, which is the default.

    Args:
        query, key: the operands of the product, None where their dimensions are moved before.
    """
    power = number(scale.right) if isinstance(scale, ast.BinOp) and isinstance(scale.op, ast.Pow) else None
    if isinstance(scale, ast.BinOp) and power == (0.5 if divided else -0.5):
        return _is_last_size(scale.left, query, key, reader)
    if not divided:
        if isinstance(scale, ast.BinOp) and isinstance(scale.op, ast.Div) and number(scale.left) == 1:
            return is_default(scale.right, True, query, key, reader)
        return False
    if isinstance(scale, ast.Call) and function_name(scale, reader) in _ROOTS and len(scale.args) == 1:
        return _is_last_size(scale.args[0], query, key, reader)
    return False


def _is_last_size(node: ast.expr, query: ast.expr | None, key: ast.expr | None, reader: Reader) -> bool:
    made = reader.flow.only_origin(node) if isinstance(node, ast.Name) else node
    if isinstance(made, ast.Subscript) and isinstance(made.value, ast.Attribute):
        owner, last = made.value.value, made.value.attr == "shape" and number(made.slice) == -1
    elif isinstance(made, ast.Call) and isinstance(made.func, ast.Attribute) and made.func.attr == "size":
        owner, last = made.func.value, len(made.args) == 1 and number(made.args[0]) == -1
    else:
        return False
    return last and any(operand is not None and same(owner, operand) for operand in (query, key))
