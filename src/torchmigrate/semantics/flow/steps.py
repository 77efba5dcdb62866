"""Steps of the value flow: from an expression to another one that has the same object, or holds it."""

from __future__ import annotations

import ast

from msgspec import Struct


class Each:
    """The key of whichever item it is."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


EACH = Each("EACH")  # what a loop goes over: of a dictionary, the keys
VALUE = Each("VALUE")  # any value of a dictionary
Key = int | str | Each | ast.expr  # the last one: an index that is computed
Path = tuple[Key, ...]


class Step(Struct, frozen=True):
    """A step back. node: None for what is not known. path: the keys of the item of `node` that it leads to.

    open: the unknown step of a function that others may call.
    """

    node: ast.AST | None
    path: Path = ()
    open: bool = False


UNKNOWN_STEP = Step(None)
OPEN_STEP = Step(None, (), True)
Steps = tuple[Step, ...]
