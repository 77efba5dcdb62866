"""What tests say of the names in them."""

from __future__ import annotations

import ast

from torchmigrate.semantics.model import Local, Value
from torchmigrate.semantics.values.frames import Frame
from torchmigrate.semantics.values.narrowing import Narrowed, narrowed
from torchmigrate.semantics.walk.annotations import Annotations
from torchmigrate.semantics.walk.lookups import Lookups
from torchmigrate.semantics.walk.state import State


class Tests:
    """Reads tests in the current frame."""

    __slots__ = ("annotations", "lookups", "state")

    def __init__(self, state: State, lookups: Lookups, annotations: Annotations) -> None:
        self.state = state
        self.lookups = lookups
        self.annotations = annotations

    @property
    def frame(self) -> Frame:
        """The frame of the names in a test."""
        return self.state.frame

    def peek(self, node: ast.expr) -> Value:
        """The value of a simple expression, without recording a use."""
        return self.lookups.peek(node)

    def made(self, item: Local) -> Value:
        """An object of a class of this file."""
        return self.annotations.made(item)

    def narrowed(self, test: ast.expr) -> tuple[Narrowed, Narrowed]:
        """What names of the current scope hold where a test is true, and where it is false."""
        return narrowed(test, self)

    def narrow(self, known: Narrowed) -> Narrowed:
        """Hold names to what a test says of them; what they held before."""
        if not known:
            return known
        env = self.state.frame.env
        kept = {name: env[name] for name in known}
        env.apply(known)
        return kept
