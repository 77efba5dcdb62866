"""Slots, environments and frames: the state of the flow-sensitive walk."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from torchmigrate.names.model import OPAQUE, Binding, Const, Guards, Instance, Items, Qual, Scope, Value

if TYPE_CHECKING:
    from torchmigrate.names.classes import ClassInfo
    from torchmigrate.names.guards import Formula

_MOST = 100  # candidates of a name that are kept apart: files of data bind one name ten thousand times
UNKNOWN: Value = (OPAQUE,)
NOTHING: Value = ()

# What a name may hold at a place, and the bindings that may have put it there.
Slot = tuple[Value, tuple[Binding, ...]]
UNKNOWN_SLOT: Slot = (UNKNOWN, ())
UNBOUND_SLOT: Slot = (NOTHING, ())
Env = dict[str, Slot]


def join_values(left: Value, right: Value) -> Value:
    """Every candidate of both, in order, each once; past the first hundred only that there are more."""
    if left == right:
        return left
    if len(left) >= _MOST:
        return left if OPAQUE in left else (*left, OPAQUE)
    return left + tuple(item for item in right if item not in left)


def join_slots(left: Slot, right: Slot) -> Slot:
    """The slot after two paths meet."""
    if left is right:
        return left
    value = join_values(left[0], right[0])
    if left[1] == right[1]:
        return value, left[1]
    if len(left[1]) > 1 and len(right[1]) == 1:
        # Whether there are two or ten thousand bindings of no interest (`x = x + 1`) makes no difference.
        (added,) = right[1]
        if added.target is None and (added.value == UNKNOWN or len(value) > _MOST):
            return value, left[1]
    return value, left[1] + tuple(binding for binding in right[1] if binding not in left[1])


def join_envs(left: Env, right: Env) -> Env:
    """The environment after two paths meet; a name bound on one path only keeps what it has there.

    Not being bound on the other path does not make a name unsure: using it there would raise.
    """
    if left is right:
        return left
    joined = dict(left)
    for name, slot in right.items():
        other = joined.get(name)
        if other is None:
            joined[name] = slot
        elif other is not slot:
            joined[name] = join_slots(other, slot)
    return joined


def weaken(slot: Slot) -> Slot:
    """The slot of a name that a loop rebinds: what it holds may be something else on a later round."""
    value = slot[0]
    if value == UNKNOWN or not value:
        return slot
    weak = unsure(tuple(item for item in value if not isinstance(item, Const)))
    return (weak if OPAQUE in weak else (*weak, OPAQUE)), slot[1]


def unsure(value: Value, via: str | None = None) -> Value:
    """The same candidates, none of them sure."""
    if value is UNKNOWN:
        return value
    return tuple(
        Instance(item.cls, False, item.local, item.gives)
        if isinstance(item, Instance)
        else Qual(item.name, False, via or item.via, item.receiver)
        if isinstance(item, Qual)
        else Items(tuple(unsure(each) for each in item.values), item.many, item.keyed)
        if isinstance(item, Items)
        else item
        for item in value
    )


@dataclass(eq=False, slots=True)
class Frame:
    """One scope while it is walked."""

    scope: Scope
    env: Env
    parent: Frame | None
    local: frozenset[str]  # names that the scope binds anywhere (functions only)
    live: bool  # runs where it stands (class body), so that it sees its parent's state at that moment
    every: Env = field(default_factory=dict)  # all that each name ever held; what nested functions see
    owner: ClassInfo | None = None  # the class whose body or method this is
    self_name: str | None = None  # the name of the first parameter of a method
    marks: tuple[Formula, ...] = ()  # under which tests the functions run that are defined here
    stored: frozenset[str] = frozenset()  # attributes of `self` that it sets; `env` holds them as "self.NAME"


@dataclass(slots=True)
class Deferred:
    """A function body that is walked after the scope around it."""

    node: ast.FunctionDef | ast.AsyncFunctionDef
    parent: Frame
    guards: Guards
    around: Guards  # those of the definition, without what its decorators say
    owner: ClassInfo | None
    conditional: bool
    local: set[str]  # names that the body binds, and `name.attribute` for attributes that it sets
    tests: dict[str, Value]  # parameters whose default is a test of versions or names: what that says
