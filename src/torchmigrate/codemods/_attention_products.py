"""The products of hand-written attention, in their usual spellings."""

from __future__ import annotations

import ast

from torchmigrate.codemods._operations import Operation, Reader, number


def is_bmm(node: ast.expr) -> bool:
    """Whether a product is one of matrices in batches, so that its operands have three dimensions."""
    return isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) == "bmm"


def untransposed(operation: Operation | None, key: ast.expr, bmm: bool) -> ast.expr | None:
    """The keys, where an expression turns their last two dimensions; None where that is not sure."""
    if isinstance(key, ast.Attribute) and key.attr == "mT":
        return key.value
    if operation is None or operation.keywords:
        return None
    dims = tuple(number(item) for item in operation.operands[1:])
    if operation.kind == "transpose":
        pairs = [{-1, -2}, {2, 3}] + ([{1, 2}] if bmm else [])
        return operation.operands[0] if set(dims) in pairs and len(dims) == 2 else None
    if operation.kind == "permute" and dims in ((0, 1, 3, 2), (0, 2, 1)):
        return operation.operands[0]
    return None


def _is_finfo(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) == "finfo"


def _float_of(call: ast.Call) -> str:
    """The text that `float("-inf")` is made of."""
    if isinstance(call.func, ast.Name) and call.func.id == "float" and len(call.args) == 1:
        value = call.args[0]
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            return value.value.lower().replace("infinity", "inf")
    return ""


def batched_product(equation: str, *, transposed: bool) -> str:
    """Whether an einsum is a product of the last two dimensions: "plain", "swapped" operands, or ""."""
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    one, comma, other = inputs.partition(",")
    if not arrow or not comma or "," in other:
        return ""
    for first, second, answer in ((one, other, "plain"), (other, one, "swapped")):
        if len(first) < 2 or len(second) < 2 or first[:-2] != second[:-2] or output[:-2] != first[:-2]:
            continue
        row, inner = first[-2], first[-1]
        wanted = (second[-1], second[-2]) if transposed else (second[-2], second[-1])
        if inner == wanted[0] and output[-2:] == row + wanted[1] and len({row, inner, wanted[1]}) == 3:
            return answer
    return ""


def is_minus_infinity(node: ast.expr, reader: Reader) -> bool:
    """Whether a value is minus infinity, or what is commonly taken for it."""
    value = number(node)
    if value is not None:
        return value <= -1e4
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = node.operand
        if reader.qualified(inner) in ("torch.inf", "math.inf"):
            return True
        if isinstance(inner, ast.Attribute) and inner.attr in ("inf", "max"):
            return inner.attr == "inf" or _is_finfo(inner.value)
        if isinstance(inner, ast.Call):
            return _float_of(inner) == "inf"
        return False
    if isinstance(node, ast.Attribute) and node.attr == "min":
        return _is_finfo(node.value)
    return isinstance(node, ast.Call) and _float_of(node) == "-inf"
