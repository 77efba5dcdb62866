"""Chains of a file that was recorded: an object that the text does not describe is what it was in every run.

A walk without evidence has nothing of this.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from torchmigrate.evidence.evidence import RECEIVER, SHAPES, SeenPlaces, Slots
from torchmigrate.evidence.kinds import OBJECT, TENSOR, Seen
from torchmigrate.semantics.model import REFERENCE, Instance, Role, Value
from torchmigrate.semantics.public_names import public_name
from torchmigrate.semantics.values import objects, types
from torchmigrate.semantics.values.slots import UNKNOWN
from torchmigrate.semantics.walk.blocks import Blocks
from torchmigrate.semantics.walk.chains import Chain
from torchmigrate.semantics.walk.state import SourceLike


class SeenWalk(Blocks):
    """A walk that asks what was seen where the names of chains are looked up."""

    __slots__ = ("places",)

    def __init__(
        self,
        source: SourceLike,
        roots: frozenset[str],
        given: Mapping[str, Value] | None,
        places: SeenPlaces,
    ) -> None:
        super().__init__(source, roots, given)
        self.places = places

    def chain(self, node: ast.expr, role: Role = REFERENCE, call: ast.Call | None = None) -> Value:
        """The value of a chain, as `Chains.chain`; what only runs say of an object is not sure."""
        slots = self.places.at(node) if self.string_base is None else None
        if slots is None:
            return super().chain(node, role, call)
        self._note(node, slots, call)
        held = _class_of(slots)
        if held is None or not isinstance(node, ast.Attribute):
            return super().chain(node, role, call)
        # The object is a chain, or another expression, of its own.
        before, self.role = self.role, REFERENCE
        value = self.eval(node.value)
        self.role = before
        told = types.level(value) >= types.STATED if held == objects.TENSOR else value is not UNKNOWN
        if not told:
            value = (Instance(held, False, stated=True),)
        first = len(self.uses)
        result = self.chain_of(Chain(node, role, call), node.value, value, [node.attr])
        for use in self.uses[first:]:
            if use.node is node and not use.sure:
                use.seen = True
        return result

    def _note(self, node: ast.expr, slots: Slots, call: ast.Call | None) -> None:
        """Remember what was seen of the receiver and the arguments of a place."""
        known = self.seen
        if isinstance(node, ast.Attribute) and slots.get(RECEIVER):
            known[id(node.value)] = slots[RECEIVER]
        if call is None:
            return
        if node is call.func and slots.get(SHAPES):
            known[id(node)] = slots[SHAPES]
        for number, argument in enumerate(call.args):
            if isinstance(argument, ast.Starred):
                break
            if str(number) in slots:
                known[id(argument)] = slots[str(number)]
        for keyword in call.keywords:
            if keyword.arg is not None and keyword.arg in slots:
                known[id(keyword.value)] = slots[keyword.arg]


def _class_of(slots: Slots) -> str | None:
    """The class that an object had in every run, under its public name."""
    found: str | None = None
    for seen in slots.get(RECEIVER, ()):
        if seen.is_none:
            continue  # which lacks the attribute
        name = _class_name(seen)
        if name is None:
            return None
        found = name if found is None else objects.common_class(found, name)
        if found is None:
            return None
    return found


def _class_name(seen: Seen) -> str | None:
    if seen.what == TENSOR:
        return objects.TENSOR
    return public_name(seen.base) if seen.what == OBJECT and seen.base else None
