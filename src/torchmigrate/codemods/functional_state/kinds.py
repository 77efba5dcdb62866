"""What an expression holds, as far as functional models are concerned."""

from __future__ import annotations

import ast

from msgspec import Struct

from torchmigrate.codemods.base.unclear import Unclear


class State(Struct, frozen=True):
    """Parameters, buffers or gradients of a model: a tuple so far, a dict from now on."""


class Model(Struct, frozen=True):
    """A functional model, called with one state or two before its inputs."""

    states: int


class Many(Struct, frozen=True):
    """A tuple or list whose elements are all known."""

    items: tuple[Kind, ...]


class Def(Struct, frozen=True):
    """A function of the file; `bound` of its parameters are given already (self)."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    bound: int = 0


class Wrap(Struct, frozen=True):
    """A transformed function.

    how: "vmap" | "grad" | "value" (grad_and_value) | "jac".
    argnums: None if they are not literals.
    aux: None if it is not a literal.
    """

    how: str
    inner: Kind
    argnums: int | tuple[int, ...] | None = 0
    aux: bool | None = False
    dims: ast.expr | None = None


class Partial(Struct, frozen=True):
    """`functools.partial(inner, ...)` with what its first arguments hold."""

    inner: Kind
    given: tuple[Kind, ...]


Kind = State | Model | Many | Def | Wrap | Partial | None  # None: nothing of interest
STATE = State()


def merged(one: Kind, other: Kind) -> Kind:
    """Combine two kinds of one value.

    Raises:
        Unclear: they contradict each other.
    """
    if one is None or one == other:
        return other
    if other is None:
        return one
    if isinstance(one, Many) and isinstance(other, Many) and len(one.items) == len(other.items):
        return Many(tuple(map(merged, one.items, other.items)))
    raise Unclear("a variable holds different objects")


class Make(Struct, frozen=True):
    """A call of `make_functional` or a related function, and the uses of its result."""

    call: ast.Call
    states: int  # 1: parameters; 2: buffers too
    ensemble: bool = False

    @property
    def kind(self) -> Many:
        return Many((Model(self.states), *(STATE for _ in range(self.states))))
