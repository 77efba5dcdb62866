"""What operators, comparisons, subscripts and unpacking give."""

from __future__ import annotations

import ast

from torchmigrate.semantics.model import Const, Instance, Items, Value
from torchmigrate.semantics.values.objects import TENSOR
from torchmigrate.semantics.values.slots import NOTHING, UNKNOWN, join_values
from torchmigrate.semantics.values.types import (
    GROUP,
    MAYBE,
    MAYBE_TENSOR,
    STATED,
    SURE,
    TENSORS,
    element,
    elements,
    is_number,
    level,
)

_TENSOR: Value = (Instance(TENSOR),)
_MAYBE: Value = (MAYBE_TENSOR,)
_OF_LEVEL: dict[int, Value] = {
    0: UNKNOWN,
    MAYBE: _MAYBE,
    STATED: (Instance(TENSOR, False, stated=True),),
    SURE: _TENSOR,
}


def binary(left: Value, operator: ast.operator, right: Value) -> Value:
    """`left + right`: a tensor if one side is, unless the left side may make something else of it.

    `"%d" % x` is a string, and an object of a class of the file plus a tensor is what that class says.
    """
    if left is UNKNOWN and right is UNKNOWN:
        return UNKNOWN
    first = level(left)
    if first == SURE:
        return _TENSOR
    second = level(right)
    if second == 0:
        return _OF_LEVEL[first]
    if first == 0 and not is_number(left) and (left != UNKNOWN or isinstance(operator, ast.Mod)):
        return UNKNOWN if _is_text(left) else _MAYBE
    return _OF_LEVEL[max(first, second)]


def augmented(held: Value, operator: ast.operator, value: Value) -> Value:
    """What a name holds after `held += value`: an object changes itself, a number is replaced."""
    if held is UNKNOWN:
        return _MAYBE if level(value) else UNKNOWN
    if level(held) >= STATED or any(isinstance(item, Items) for item in held):
        return held
    return binary(held, operator, value)


def _is_text(value: Value) -> bool:
    return len(value) == 1 and isinstance(value[0], Const) and isinstance(value[0].value, (str, bytes))


def compared(left: Value, operator: ast.cmpop, right: Value) -> Value:
    """`left < right`: elementwise for tensors."""
    if (left is UNKNOWN and right is UNKNOWN) or isinstance(operator, (ast.Is, ast.IsNot, ast.In, ast.NotIn)):
        return UNKNOWN
    first, second = level(left), level(right)
    known = max(first, second if is_number(left) else min(second, MAYBE))
    return _OF_LEVEL[known]


def item_of(value: Value, index: ast.expr) -> Value:
    """`value[index]`."""
    found: Value = NOTHING
    for item in value:
        if isinstance(item, Const) and item.value is None:
            continue  # or this would raise
        if isinstance(item, Items):
            part = _part(item, index)
        elif isinstance(item, Instance) and item.cls == GROUP:
            named = _constant(index) == "params"
            part = (Instance(TENSORS, item.sure, stated=item.stated),) if named else UNKNOWN
        elif isinstance(item, Instance) and isinstance(index, ast.Slice) and item.cls.startswith("tuple["):
            part = (item,)
        else:
            part = element(item)
        found = join_values(found, part)
    return UNKNOWN if found == UNKNOWN else found or UNKNOWN


def _part(item: Items, index: ast.expr) -> Value:
    if item.many or item.keyed:
        return (item,) if isinstance(index, ast.Slice) else elements((Items(item.values, True),))
    number = _constant(index)
    if isinstance(number, int) and -len(item.values) <= number < len(item.values):
        return item.values[number]
    return UNKNOWN if isinstance(index, ast.Slice) else elements((item,))


def _constant(index: ast.expr) -> object:
    if isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub):
        inner = _constant(index.operand)
        return -inner if isinstance(inner, int) else None
    return index.value if isinstance(index, ast.Constant) else None


def unpacked(value: Value, count: int) -> list[Value]:
    """What the names of `a, b = value` hold."""
    if len(value) == 1:
        item = value[0]
        if isinstance(item, Items) and not item.many and len(item.values) == count:
            return list(item.values)
    return [elements(value)] * count
