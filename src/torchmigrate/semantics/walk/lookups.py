"""What names hold in the current frame."""

from __future__ import annotations

import ast
import builtins

from torchmigrate.semantics.guards.flags import only_flags
from torchmigrate.semantics.model import (
    OPAQUE,
    Candidate,
    Const,
    Flag,
    Foreign,
    Instance,
    Local,
    Mark,
    QualifiedName,
    Value,
    VersionOf,
    Via,
)
from torchmigrate.semantics.values.frames import Frame
from torchmigrate.semantics.values.slots import UNBOUND_SLOT, UNKNOWN, UNKNOWN_SLOT, Slot
from torchmigrate.semantics.walk.state import State

_BUILTINS = frozenset(dir(builtins))


class Lookups:
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

    def peek(self, node: ast.expr) -> Value:
        """The value of a simple expression, without recording a use: what guards ask for."""
        kind = node.__class__
        if kind is ast.Name:
            value = self.lookup(node.id)[0]  # type: ignore[attr-defined]
            return value if len(value) < 2 else only_flags(value)
        if kind is ast.Attribute:
            out: list[Candidate] = []
            held = self._own_attribute(node)  # type: ignore[arg-type]
            if held is not None:
                return held
            around = self.peek(node.value)  # type: ignore[attr-defined]
            if around is UNKNOWN:  # most are
                return UNKNOWN
            for item in around:
                if isinstance(item, QualifiedName):
                    out.append(QualifiedName(f"{item.name}.{node.attr}", item.sure, item.via))  # type: ignore[attr-defined]
                elif isinstance(item, Instance):
                    out.extend(self._peek_member(item, node.attr))  # type: ignore[attr-defined]
                elif isinstance(item, Local):
                    info = self.state.classes.get(item.node)
                    out.extend(_about_versions(info.find(node.attr) or UNKNOWN) if info else UNKNOWN)  # type: ignore[attr-defined]
                elif isinstance(item, Foreign):
                    out.extend(_about_versions(item.evaluate(ast.Name(node.attr, ast.Load()))))  # type: ignore[attr-defined]
                elif item is OPAQUE:
                    out.append(OPAQUE)
            return (tuple(out) if len(out) < 2 else only_flags(tuple(out))) or UNKNOWN
        if kind is ast.Constant:
            return (Const(node.value),)  # type: ignore[attr-defined]
        if kind is ast.Tuple or kind is ast.List:
            parts: list[object] = []
            for element in node.elts:  # type: ignore[attr-defined]
                value = self.peek(element)
                if len(value) != 1 or not isinstance(value[0], Const):
                    return UNKNOWN
                parts.append(value[0].value)
            return (Const(tuple(parts)),)
        return UNKNOWN

    def _peek_member(self, item: Instance, attr: str) -> Value:
        """What an attribute of an object of this file's classes says about versions: a flag or a method."""
        info = self.state.classes.get(item.local.node) if item.local is not None else None
        if info is None or info.pending.get(attr):
            return UNKNOWN
        return _about_versions(info.find(attr) or UNKNOWN)

    def _own_attribute(self, node: ast.Attribute) -> Value | None:
        """What an attribute of `self` says that this method sets, at this place."""
        state = self.state
        frame = state.frame
        if node.attr not in frame.stored:
            return None
        name = node.value.id if isinstance(node.value, ast.Name) else ""
        if name != frame.self_name:
            return None
        return only_flags(_about_versions(state.frame.env[f"{name}.{node.attr}"][0]))


def _about_versions(held: Value) -> Value:
    """The value of an attribute as far as guards are concerned."""
    known = (Flag, VersionOf, Const, Local, Foreign, Mark)
    return held if all(isinstance(item, known) for item in held) else UNKNOWN
