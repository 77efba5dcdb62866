"""Whether an expression is a number of Python, and no tensor that would have to be broadcast."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from torchmigrate.codemods.base.operations import number
from torchmigrate.semantics.flow.reaching import Definition, Reaching
from torchmigrate.source.trees import children

Qualified = Callable[[ast.expr], str | None]


def is_scalar(node: ast.expr, found: Reaching, qualified: Qualified) -> bool:
    """Whether an expression surely is a number of Python."""
    if number(node) is not None:
        return True
    if isinstance(node, ast.BinOp):
        return is_scalar(node.left, found, qualified) and is_scalar(node.right, found, qualified)
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("size", "item", "numel"):
            return node.func.attr != "size" or bool(node.args)
        name = qualified(node.func)
        if name is not None and name.startswith("math."):
            return True
        head = node.func
        if isinstance(head, ast.Attribute) and isinstance(head.value, ast.Name) and head.value.id == "math":
            return True
        return isinstance(head, ast.Name) and head.id in ("len", "int", "float")
    if isinstance(node, ast.Name):
        seen = found.of(node)
        return bool(seen) and all(_fixed(item, found, qualified) for item in seen)
    return False


def _fixed(definition: Definition, found: Reaching, qualified: Qualified) -> bool:
    """Whether a variable is given a number that is not computed from other variables."""
    value = definition.value
    if value is None or any(
        isinstance(inner, ast.Name) and inner.id not in _KNOWN for inner in _reads(value)
    ):
        return False
    return is_scalar(value, found, qualified)


_KNOWN = frozenset(["math", "np", "numpy", "torch", "len", "int", "float"])


def _reads(node: ast.expr) -> Iterator[ast.AST]:
    """The names that decide whether an expression is a number: not those of `x.size(0)`, `x.shape[0]`."""
    if isinstance(node, (ast.Subscript, ast.Call)):
        return
    yield node
    for child in children(node):
        if isinstance(child, ast.expr):
            yield from _reads(child)
