"""What names hold in the current frame, and the records of bindings and uses."""

from __future__ import annotations

import ast
import builtins
from typing import TYPE_CHECKING

from torchmigrate.semantics.model import (
    REFERENCE,
    VIA_METHOD,
    Binding,
    BindingKind,
    Local,
    QualifiedName,
    Role,
    Use,
    Value,
    Via,
)
from torchmigrate.semantics.values.frames import Frame
from torchmigrate.semantics.values.slots import UNBOUND_SLOT, UNKNOWN_SLOT, Slot, join_slots
from torchmigrate.semantics.walk.state import FSTRINGS_HAVE_PLACES, State

if TYPE_CHECKING:
    pass

_BUILTINS = frozenset(dir(builtins))


class Names(State):
    """Looks names up, binds them, and records the uses of library names."""

    __slots__ = ()

    def lookup(self, name: str) -> Slot:
        """What a name holds here, by Python's rules for scopes."""
        frame: Frame | None = self.frame
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
        if self.other_star and name in self.roots:
            # A module that passes on all of its names passes on its `torch`, which is nothing else.
            return (QualifiedName(name, False, Via.STAR),), ()
        if not self.stars or self.unknown_star or name in _BUILTINS:
            return UNKNOWN_SLOT
        return tuple(QualifiedName(f"{module}.{name}", False, Via.STAR) for module, _ in self.stars), ()

    def name(self, node: ast.Name) -> Value:
        return self.lookup(node.id)[0]

    def own(self, node: ast.Attribute) -> Value | None:
        frame = self.frame
        if node.attr not in frame.stored:
            return None
        name = node.value.id if isinstance(node.value, ast.Name) else ""
        return frame.env[f"{name}.{node.attr}"][0] if name == frame.self_name else None

    def new_binding(self, name: str, kind: BindingKind, node: ast.AST) -> Binding:
        scope = self.frame.scope
        bindings = self.bindings
        # By position, in the order of the class: there are as many as names in a file.
        binding = Binding(
            len(bindings), name, kind, scope, node, self.statement, self.block, None, None,
            self.conditional > 0, self.type_checking > 0, self.guarded,
        )  # fmt: skip
        bindings.append(binding)
        held = scope.bindings.get(name)
        if held is None:
            scope.bindings[name] = [binding]
        else:
            held.append(binding)
        return binding

    def bind(self, name: str, value: Value, kind: BindingKind, node: ast.AST) -> Binding:
        frame = self.frame
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

    def record(
        self,
        node: ast.AST,
        names: tuple[str, ...],
        sure: bool,
        role: Role,
        call: ast.Call | None,
        binding: Binding | None,
        rest: str,
        via: Via,
        origins: tuple[Binding, ...] = (),
        stated: bool = False,
    ) -> None:
        place = node
        in_fstring = self.fstring is not None and not FSTRINGS_HAVE_PLACES
        if in_fstring and self.fstring is not None:
            place = self.fstring
        if role is REFERENCE:
            role = self.role
        # By position, in the order of the class: there are many of them.
        self.uses.append(
            Use(
                node, names, sure, role, self.offset(place), self.end_offset(place), self.statement,
                self.block, self.frame.scope, self.guarded, call, binding, origins, rest,
                via is VIA_METHOD, self.string_base is not None, in_fstring, via, stated,
            )
        )  # fmt: skip

    def mention(self, node: ast.AST, value: Value) -> None:
        """Remember where a function of this file is read."""
        if len(value) == 1 and isinstance(value[0], Local):
            self.walked.mentions.setdefault(value[0].node, []).append(
                node if self.string_base is None else self.statement
            )
