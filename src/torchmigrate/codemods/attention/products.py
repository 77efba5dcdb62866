"""The products of hand-written attention, in their usual spellings."""

from __future__ import annotations

import ast

from msgspec import Struct

from torchmigrate.codemods.base.operations import Operation, Reader, number
from torchmigrate.rewrite.code import Code, Part, code

ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"  # one character, as all other dimensions have


class Turn(Struct, frozen=True):
    """The method call that brings dimensions into another order; without a method there is nothing to do."""

    method: str = ""
    dimensions: tuple[int, ...] = ()

    def of(self, tensor: Part) -> Code:
        """A tensor so turned."""
        if not self.method:
            return code("$x", x=tensor)
        return code("$x.$turn(*$dims)", x=tensor, turn=self.method, dims=[*map(str, self.dimensions)])


STAY = Turn()
TURN = Turn("transpose", (-2, -1))


def is_bmm(node: ast.expr) -> bool:
    """Whether a product is one of matrices in batches, so that its operands have three dimensions."""
    name = getattr(node.func, "attr", getattr(node.func, "id", "")) if isinstance(node, ast.Call) else ""
    return name in ("bmm", "baddbmm")


def untransposed(operation: Operation | None, key: ast.expr, bmm: bool) -> ast.expr | None:
    """The keys, where an expression turns their last two dimensions; None where that is not sure."""
    if isinstance(key, ast.Attribute) and key.attr == "mT":
        return key.value
    if operation is None or operation.keywords:
        return None
    dims = tuple(number(item) for item in operation.operands[1:])
    if operation.kind == "permute" and len(operation.operands) == 2:  # a tuple
        inner = operation.operands[1]
        dims = tuple(map(number, inner.elts)) if isinstance(inner, (ast.Tuple, ast.List)) else ()
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


class Aligned(Struct, frozen=True):
    """How the operands of an einsum have to be turned to become those of attention.

    rows: of the query, or of the values.
    columns: of the key; for the product with values, of what comes out.
    swapped: whether the second operand is the query.
    """

    rows: Turn
    columns: Turn
    swapped: bool = False


def dimensions(pattern: str, words: bool) -> tuple[list[str], list[str], list[str]] | None:
    """The dimensions of two operands and of the result; words: separated by blanks, as einops has them."""
    inputs, arrow, output = pattern.partition("->")
    one, comma, other = inputs.partition(",")
    if not arrow or not comma or "," in other:
        return None
    parts = []
    for part in (one, other, output):
        names = part.split() if words else list(part.replace(" ", "").replace("...", ELLIPSIS))
        names = [ELLIPSIS if name == "..." else name for name in names]
        if len(set(names)) != len(names) or ELLIPSIS in names[1:]:
            return None
        if not all(
            name == ELLIPSIS or (name.isalpha() if not words else name.isidentifier()) for name in names
        ):
            return None
        parts.append(names)
    return parts[0], parts[1], parts[2]


def scores_of(one: list[str], other: list[str], scores: list[str]) -> Aligned | None:
    """How an einsum of queries and keys is `query @ key.transpose(-2, -1)`; None if it is something else."""
    if len(scores) < 2 or ELLIPSIS in scores[-2:]:
        return None
    batch, row, column = scores[:-2], scores[-2], scores[-1]
    for query, key, swapped in ((one, other, False), (other, one, True)):
        inner = [name for name in query if name not in scores]
        if len(inner) != 1:
            continue
        rows = _turn(query, [*batch, row, *inner])
        columns = _turn(key, [*batch, column, *inner])
        if rows is not None and columns is not None:
            return Aligned(rows, columns, swapped)
    return None


def values_of(weights: list[str], values: list[str], result: list[str]) -> Aligned | None:
    """How an einsum of weights and values is `weights @ values`, and its result is turned."""
    if len(weights) < 2 or ELLIPSIS in weights[-2:]:
        return None
    batch, row, column = weights[:-2], weights[-2], weights[-1]
    outer = [name for name in values if name not in weights]
    if len(outer) != 1 or column in result:
        return None
    rows = _turn(values, [*batch, column, *outer])
    columns = _turn([*batch, row, *outer], result)
    return Aligned(rows, columns) if rows is not None and columns is not None else None


def _turn(have: list[str], want: list[str]) -> Turn | None:
    """The method call that brings dimensions into another order; None if they are not the same ones."""
    if sorted(have) != sorted(want):
        return None
    moved = [index for index in range(len(have)) if have[index] != want[index]]
    if not moved:
        return STAY
    if moved == [len(have) - 2, len(have) - 1]:
        return TURN
    if ELLIPSIS in have:
        if have[0] != want[0]:
            return None
        moved = [index - len(have) for index in moved]
    if len(moved) == 2:
        return Turn("transpose", (moved[0], moved[1]))
    if ELLIPSIS in have:
        return None
    return Turn("permute", tuple(map(have.index, want)))


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
