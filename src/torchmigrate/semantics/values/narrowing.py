"""What tests such as `isinstance(x, torch.Tensor)` say of the names in them."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Protocol

from torchmigrate.semantics.model import Instance, Local, QualifiedName, Value
from torchmigrate.semantics.values import types
from torchmigrate.semantics.values.frames import Frame
from torchmigrate.semantics.values.objects import TENSOR, is_a
from torchmigrate.semantics.values.slots import NOTHING, UNKNOWN, Slot, join_values

Narrowed = dict[str, Slot]  # names, and what they hold where the test came out one way
_NOTHING: tuple[Narrowed, Narrowed] = ({}, {})


class Walk(Protocol):
    """The part of the walk that narrowing needs."""

    @property
    def frame(self) -> Frame: ...
    def peek(self, node: ast.expr) -> Value: ...
    def made(self, item: Local) -> Value: ...


def narrowed(test: ast.expr, walk: Walk) -> tuple[Narrowed, Narrowed]:
    """What names of the current scope hold where a test is true, and where it is false."""
    handler = _HANDLERS.get(test.__class__)
    return handler(test, walk) if handler is not None else _NOTHING


def _call(test: ast.Call, walk: Walk) -> tuple[Narrowed, Narrowed]:
    func = test.func
    name = func.id if isinstance(func, ast.Name) else func.attr if isinstance(func, ast.Attribute) else ""
    if name not in ("isinstance", "is_tensor") or not test.args:
        return _NOTHING
    subject = test.args[0]
    if not isinstance(subject, ast.Name) or test.keywords:
        return _NOTHING
    slot = walk.frame.env.get(subject.id)
    if slot is None:
        return _NOTHING
    if name == "isinstance" and len(test.args) == 2:
        promised = _instances(test.args[1], walk)
    elif name == "is_tensor" and len(test.args) == 1:
        promised = (Instance(TENSOR),)
    else:
        return _NOTHING
    return _both(subject.id, slot, promised)


def _both(name: str, slot: Slot, promised: Value) -> tuple[Narrowed, Narrowed]:
    value, bindings = slot
    if promised == UNKNOWN:  # some other class, or a list: all but a tensor may still be that
        left = tuple(item for item in value if not (isinstance(item, Instance) and item.cls == TENSOR))
        return {name: (left or UNKNOWN, bindings)}, {}
    held = tuple(item for item in value if isinstance(item, Instance) and _fits(item, promised))
    yes = held if held and len(held) == len(value) and all(item.sure for item in held) else promised
    rest = tuple(item for item in value if not (isinstance(item, Instance) and _fits(item, promised)))
    return {name: (yes, bindings)}, {name: (rest or UNKNOWN, bindings)}


def _fits(item: Instance, promised: Value) -> bool:
    """Whether an object is of one of the classes."""
    return any(
        isinstance(other, Instance)
        and bool(other.cls)
        and (item.cls == other.cls or _derives(item.cls, other.cls))
        for other in promised
    )


def _derives(cls: str, base: str) -> bool:
    return cls.startswith("torch.") and is_a(cls, base)


def _instances(node: ast.expr, walk: Walk) -> Value:
    """The objects of the second argument of `isinstance`."""
    if isinstance(node, ast.Tuple):
        joined: Value = NOTHING
        for element in node.elts:
            joined = join_values(joined, _instances(element, walk))
        return joined or UNKNOWN
    if isinstance(node, ast.BinOp):  # int | float
        return join_values(_instances(node.left, walk), _instances(node.right, walk))
    if isinstance(node, ast.Name) and node.id in ("int", "float", "bool"):
        return (types.NUMBER,)
    value = walk.peek(node)
    if len(value) == 1:
        item = value[0]
        if isinstance(item, QualifiedName):
            return (types.of_annotation(item.name),)
        if isinstance(item, Local) and isinstance(item.node, ast.ClassDef):
            return walk.made(item)
    return UNKNOWN


def _not(test: ast.UnaryOp, walk: Walk) -> tuple[Narrowed, Narrowed]:
    if not isinstance(test.op, ast.Not):
        return _NOTHING
    yes, no = narrowed(test.operand, walk)
    return no, yes


def _bool_op(test: ast.BoolOp, walk: Walk) -> tuple[Narrowed, Narrowed]:
    both = isinstance(test.op, ast.And)
    side = 0 if both else 1
    sure: Narrowed = {}
    parts = []
    for operand in test.values:
        part = narrowed(operand, walk)
        parts.append(part)
        sure.update(part[side])
    other: Narrowed = {}
    if not both:  # `isinstance(x, A) or isinstance(x, B)`
        for name in set(parts[0][0]).intersection(*(part[0] for part in parts[1:])):
            joined: Value = NOTHING
            for part in parts:
                joined = join_values(joined, part[0][name][0])
            other[name] = (joined, parts[0][0][name][1])
    return (sure, other) if both else (other, sure)


def _compare(test: ast.Compare, walk: Walk) -> tuple[Narrowed, Narrowed]:
    """`type(x) is torch.Tensor`."""
    left = test.left
    if (
        len(test.ops) != 1
        or not isinstance(left, ast.Call)
        or not (isinstance(left.func, ast.Name) and left.func.id == "type" and len(left.args) == 1)
        or not isinstance(left.args[0], ast.Name)
    ):
        return _NOTHING
    name = left.args[0].id
    slot = walk.frame.env.get(name)
    if slot is None:
        return _NOTHING
    yes = {name: (_instances(test.comparators[0], walk), slot[1])}
    if isinstance(test.ops[0], (ast.Is, ast.Eq)):
        return yes, {}
    return ({}, yes) if isinstance(test.ops[0], (ast.IsNot, ast.NotEq)) else _NOTHING


_HANDLERS: dict[type, Callable[..., tuple[Narrowed, Narrowed]]] = {
    ast.Call: _call,
    ast.UnaryOp: _not,
    ast.BoolOp: _bool_op,
    ast.Compare: _compare,
}
