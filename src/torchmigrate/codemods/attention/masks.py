"""Masks of hand-written attention, as the mask that `scaled_dot_product_attention` wants.

There, True means that a key takes part; in `masked_fill` it means the contrary.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Callable

from msgspec import Struct

from torchmigrate.codemods.attention.products import is_minus_infinity
from torchmigrate.codemods.base.operations import Reader, is_self, number, same
from torchmigrate.rewrite.code import Argument, Code, code
from torchmigrate.source.trees import walk

_FLIPPED: dict[type[ast.cmpop], str] = {
    ast.Eq: "$left != $right",
    ast.NotEq: "$left == $right",
    ast.Lt: "$left >= $right",
    ast.LtE: "$left > $right",
    ast.Gt: "$left <= $right",
    ast.GtE: "$left < $right",
}
_FLIPPED_METHODS = {"eq": "ne", "ne": "eq", "lt": "ge", "le": "gt", "gt": "le", "ge": "lt"}


class How(enum.Enum):
    """How the expression of a mask is rewritten."""

    PLAIN = "plain"  # as it is: floats that are added, or a mask of what is kept
    INVERTED = "inverted"
    FLIPPED = "flipped"  # a comparison
    CAUSAL = "causal"  # the lower triangle: no mask at all


class Mask(Struct, frozen=True):
    """A mask.

    test: the condition under which it is applied.
    boolean: whether it says which keys take part; else it is added.
    """

    value: ast.expr
    how: How = How.PLAIN
    test: ast.expr | None = None
    boolean: bool = False

    def argument(self) -> Argument:
        """The argument of the new call."""
        if self.how is How.CAUSAL and self.test is None:
            return Argument("True", "is_causal")
        mask = self._code()
        if self.test is None or self._is_asked_for(self.test):
            return Argument(mask, "attn_mask")
        return Argument(code("$mask if $test else None", mask=mask, test=self.test), "attn_mask")

    def _is_asked_for(self, test: ast.expr) -> bool:
        """Whether a test only asks whether there is a mask."""
        return self.how is How.PLAIN and ast.unparse(test) == f"{ast.unparse(self.value)} is not None"

    def _code(self) -> Code:
        value = self.value
        if self.how is How.PLAIN:
            return code("$mask", mask=value)
        if isinstance(value, ast.Compare) and self.how is not How.INVERTED:
            return code(_FLIPPED[type(value.ops[0])], left=value.left, right=value.comparators[0])
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and self.how is How.FLIPPED:
            name = _FLIPPED_METHODS[value.func.attr]
            return code("$x.$name(*$given)", x=value.func.value, name=name, given=value.args)
        inner = _inverted(value)
        return code("$mask", mask=inner) if inner is not None else code("~$mask", mask=value)


def negated(node: ast.expr, reader: Reader) -> Mask:
    """What is kept, where `node` says what is filled with minus infinity."""
    if _is_causal(node, reader):
        return Mask(node, How.CAUSAL, boolean=True)
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _FLIPPED:
        return Mask(node, How.FLIPPED, boolean=True)
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _FLIPPED_METHODS
        and len(node.args) == 1
        and not node.keywords
    ):
        return Mask(node, How.FLIPPED, boolean=True)
    inner = _inverted(node)
    return Mask(inner, boolean=True) if inner is not None else Mask(node, How.INVERTED, boolean=True)


def fill_of(node: ast.expr, reader: Reader, value_of: Callable[[ast.Name], ast.expr | None]) -> bool:
    """Whether a value is minus infinity, directly or through a variable; value_of: returns the value of a
    variable."""
    if isinstance(node, ast.Name):
        value = value_of(node)
        return value is not None and is_minus_infinity(value, reader)
    return is_minus_infinity(node, reader)


def _inverted(node: ast.expr) -> ast.expr | None:
    """The mask that `~mask` or `mask.logical_not()` inverts."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
        return node.operand
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "logical_not"
        and not node.keywords
        and not node.args
    ):
        return node.func.value
    return None


def _is_causal(node: ast.expr, reader: Reader) -> bool:
    """Whether a mask fills all but the lower triangle: `self.bias[:, :, :T, :T] == 0` of a `tril` buffer."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq):
        right = node.comparators[0]
        zero = isinstance(right, ast.Constant) and right.value is False
        triangle = node.left if zero or number(right) == 0 else None
    else:
        triangle = _inverted(node)
    if not isinstance(triangle, ast.Subscript):
        return False
    buffer, index = triangle.value, triangle.slice
    if not (isinstance(buffer, ast.Attribute) and is_self(buffer.value) and isinstance(index, ast.Tuple)):
        return False
    rows, columns = index.elts[-2:]
    if not (isinstance(rows, ast.Slice) and rows.lower is None and rows.step is None and rows.upper):
        return False
    made = reader.flow.only_origin(buffer)
    return same(rows, columns) and made is not None and _is_triangle(made, reader)


def _is_triangle(node: ast.AST, reader: Reader) -> bool:
    """Whether a value is `torch.tril(torch.ones(n, n))`, whatever its shape."""
    trils = [
        inner
        for inner in walk(node)
        if isinstance(inner, ast.Call) and reader.qualified(inner.func) == "torch.tril"
    ]
    if len(trils) != 1 or len(trils[0].args) != 1 or trils[0].keywords:
        return False
    ones = trils[0].args[0]
    return isinstance(ones, ast.Call) and reader.qualified(ones.func) == "torch.ones"
