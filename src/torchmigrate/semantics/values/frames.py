"""Frames: the scopes that the flow-sensitive walk is in, and the functions that it has yet to visit."""

from __future__ import annotations

import ast

from msgspec import Struct, field

from torchmigrate.semantics.model import Scope, Value
from torchmigrate.semantics.values.classes import ClassInfo
from torchmigrate.semantics.values.slots import NOTHING, Env, Slot


class Frame(Struct, eq=False):
    """One scope while it is walked."""

    scope: Scope
    env: Env
    parent: Frame | None
    local: frozenset[str]  # names that the scope binds anywhere (functions only)
    live: bool  # runs where it stands (class body), so that it sees its parent's state at that moment
    every: dict[str, Slot] = field(
        default_factory=dict
    )  # all that each name ever held; what nested functions see
    owner: ClassInfo | None = None  # the class whose body or method this is
    self_name: str | None = None  # the name of the first parameter of a method
    stored: frozenset[str] = frozenset()  # attributes of `self` that it sets; `env` holds them as "self.NAME"
    returned: Value = NOTHING  # what the statements of a function that were walked return
    yields: bool = False  # it is a generator


class Deferred(Struct):
    """A function body that is walked after the scope around it."""

    node: ast.FunctionDef | ast.AsyncFunctionDef
    parent: Frame
    owner: ClassInfo | None
    conditional: bool
    local: set[str]  # names that the body binds, and `name.attribute` for attributes that it sets
    tests: dict[str, Value]  # parameters whose default is a test of versions or names: what that says
    waits: bool = False  # for its turn: it cannot be walked when it is called
