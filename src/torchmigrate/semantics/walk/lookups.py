"""What names hold in the current frame."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Mapping
from typing import TYPE_CHECKING

from torchmigrate.semantics.guards.peeking import Peeking
from torchmigrate.semantics.model import QualifiedName, Value, Via
from torchmigrate.semantics.values.frames import Frame
from torchmigrate.semantics.values.slots import UNBOUND_SLOT, UNKNOWN_SLOT, Slot
from torchmigrate.semantics.walk.state import State

if TYPE_CHECKING:
    from torchmigrate.semantics.values.classes import ClassInfo

_BUILTINS = frozenset(dir(builtins))


class Lookups(Peeking):
    """Looks names up."""

    __slots__ = ("state",)

    def __init__(self, state: State) -> None:
        self.state = state

    def lookup(self, name: str) -> Slot:
        """What a name holds here, by Python's rules for scopes."""
        frame: Frame | None = self.state.frame
        assert frame is not None
        slot = frame.env.get(name)
        if slot is not None:
            return slot
        if name in frame.local and name not in frame.scope.globals and name not in frame.scope.nonlocals:
            return UNBOUND_SLOT
        live = frame.live
        to_module = name in frame.scope.globals
        frame = frame.parent
        while frame is not None:
            outer = frame.parent
            if not (to_module and outer is not None) and frame.scope.kind != "class":
                slot = (frame.env if live else frame.every).get(name)
                if slot is not None:
                    return slot
                if name in frame.local and outer is not None:
                    return UNBOUND_SLOT
            live = live and frame.live
            frame = outer
        return self._star(name)

    def _star(self, name: str) -> Slot:
        state = self.state
        if state.other_star and name in state.roots:
            # A module that passes on all of its names passes on its `torch`, which is nothing else.
            return (QualifiedName(name, False, Via.STAR),), ()
        if not state.stars or state.unknown_star or name in _BUILTINS:
            return UNKNOWN_SLOT
        return tuple(QualifiedName(f"{module}.{name}", False, Via.STAR) for module, _ in state.stars), ()

    @property
    def classes(self) -> Mapping[ast.AST, ClassInfo]:
        return self.state.classes

    def name(self, node: ast.Name) -> Value:
        return self.lookup(node.id)[0]

    def own(self, node: ast.Attribute) -> Value | None:
        frame = self.state.frame
        if node.attr not in frame.stored:
            return None
        name = node.value.id if isinstance(node.value, ast.Name) else ""
        return frame.env[f"{name}.{node.attr}"][0] if name == frame.self_name else None
