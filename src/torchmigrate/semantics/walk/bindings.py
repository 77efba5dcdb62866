"""Binding names in the current frame."""

from __future__ import annotations

import ast

from torchmigrate.semantics.model import (
    Binding,
    BindingKind,
    Value,
)
from torchmigrate.semantics.values.slots import Slot, join_slots
from torchmigrate.semantics.walk.state import State


class Bindings:
    """Binds names."""

    __slots__ = ("state",)

    def __init__(self, state: State) -> None:
        self.state = state

    def new_binding(self, name: str, kind: BindingKind, node: ast.AST) -> Binding:
        state = self.state
        scope = state.frame.scope
        bindings = state.bindings
        # By position, in the order of the class: there are as many as names in a file.
        binding = Binding(
            len(bindings), name, kind, scope, node, state.statement, state.block, None, None,
            state.conditional > 0, state.type_checking > 0, state.guarded,
        )  # fmt: skip
        bindings.append(binding)
        held = scope.bindings.get(name)
        if held is None:
            scope.bindings[name] = [binding]
        else:
            held.append(binding)
        return binding

    def bind(self, name: str, value: Value, kind: BindingKind, node: ast.AST) -> Binding:
        frame = self.state.frame
        binding = self.new_binding(name, kind, node)
        binding.value = value
        slot: Slot = (value, (binding,))
        scope = frame.scope
        if (scope.globals and name in scope.globals) or (scope.nonlocals and name in scope.nonlocals):
            outer = frame.parent
            while outer is not None and (
                outer.scope.kind == "class"
                or (name in frame.scope.globals and outer.parent is not None)
                or (name in frame.scope.nonlocals and name not in outer.local)
            ):
                outer = outer.parent
            if outer is not None:
                outer.scope.bindings.setdefault(name, []).append(binding)
                old = outer.every.get(name)
                outer.every[name] = slot if old is None else join_slots(old, slot)
        frame.env[name] = slot
        every = frame.every
        old = every.get(name)
        every[name] = slot if old is None else join_slots(old, slot)
        return binding
