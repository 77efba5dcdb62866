"""Name and attribute chains: what they mean in the current frame, and the uses that they are."""

from __future__ import annotations

import ast

from torchmigrate.semantics.model import (
    OPAQUE,
    REFERENCE,
    VIA_IMPORT,
    VIA_METHOD,
    Binding,
    Const,
    Instance,
    Items,
    QualifiedName,
    Role,
    Value,
    Via,
)
from torchmigrate.semantics.values import by_arguments, distinctive, types
from torchmigrate.semantics.values.objects import TENSOR
from torchmigrate.semantics.values.slots import NOTHING, UNKNOWN, stated
from torchmigrate.semantics.walk.lookups import Lookups
from torchmigrate.semantics.walk.members import Members
from torchmigrate.semantics.walk.state import State
from torchmigrate.semantics.walk.uses import Uses

_NONE = Const(None)


def _is_open(value: Value) -> bool:
    """Whether a value may be a tensor, and nothing else that is known."""
    if value is UNKNOWN:
        return True
    return all(
        item is OPAQUE or (item.__class__ is Instance and item.cls == TENSOR and not item.sure)
        for item in value
    )


class Chains:
    """Follows chains from the current frame."""

    __slots__ = ("lookups", "members", "state", "uses")

    def __init__(self, state: State, uses: Uses, lookups: Lookups, members: Members) -> None:
        self.state = state
        self.uses = uses
        self.lookups = lookups
        self.members = members

    def chain(
        self,
        node: ast.expr,
        role: Role = REFERENCE,
        call: ast.Call | None = None,
        decorates: ast.AST | None = None,
    ) -> Value:
        """The value of a name or attribute chain; records its use where it is a library's."""
        state = self.state
        attrs: list[str] = []
        base: ast.expr = node
        while base.__class__ is ast.Attribute:
            attrs.append(base.attr)
            base = base.value
        bindings: tuple[Binding, ...] = ()
        if base.__class__ is ast.Name:
            name: str = base.id
            frame = state.frame
            value, bindings = frame.env.get(name) or self.lookups.lookup(name)
            if attrs and name == frame.self_name and attrs[-1] in frame.stored:
                value, bindings = frame.env[f"{name}.{attrs.pop()}"]
                if not attrs:
                    state.bases[id(node)] = value
            elif value is not UNKNOWN:
                state.bases[id(base)] = value
        else:
            value = state.eval(base)
        if value is UNKNOWN and not (attrs and attrs[0] in distinctive.NAMED):  # most are
            return UNKNOWN
        return self.chain_of(node, base, value, bindings, attrs, role, call, decorates)

    def chain_of(
        self,
        node: ast.expr,
        base: ast.expr,
        value: Value,
        bindings: tuple[Binding, ...],
        attrs: list[str],
        role: Role,
        call: ast.Call | None,
        decorates: ast.AST | None,
    ) -> Value:
        """The value of a chain whose first part, `base`, holds `value`; the last of `attrs` comes first."""
        state = self.state
        if len(attrs) == 1 and attrs[0] in distinctive.TELLING and call is not None and _is_open(value):
            value = self._infer_tensor(base, value, bindings)
        if value is UNKNOWN:
            if attrs and state.imports_torch:
                return self._of_unknown(node, attrs, role, call, decorates, bindings)
            return UNKNOWN
        for binding in bindings:
            if binding.target is not None:
                binding.uses.append(state.offset(base))
                if state.string_base is not None:
                    binding.in_string = True
        if len(value) == 1:
            item = value[0]
            if isinstance(item, QualifiedName):
                if item.via is not VIA_METHOD:
                    return self._library_chain(node, item, attrs, role, call, decorates, bindings)
            elif not isinstance(item, Instance) and item != _NONE:
                if isinstance(item, Items) and len(attrs) == 1:
                    return (QualifiedName(f"items.{attrs[0]}", True, VIA_METHOD, item),)
                if attrs:
                    return UNKNOWN
                self.uses.mention(node, value)
                return value
        if not value:
            return NOTHING
        if not attrs:
            if len(value) > 1:
                self.members.record_names(node, value, attrs, role, call, decorates, bindings)
            return value
        attrs.reverse()
        value = self.members.follow(node, value, attrs, role, call, decorates, bindings)
        self.uses.mention(node, value)
        return value

    def _of_unknown(
        self,
        node: ast.expr,
        attrs: list[str],
        role: Role,
        call: ast.Call | None,
        decorates: ast.AST | None,
        bindings: tuple[Binding, ...],
    ) -> Value:
        """What the name of the last attribute tells about an unknown object."""
        last = attrs[0]
        if last in distinctive.ONLY or last in by_arguments.NAMES:
            self.members.record_only(node, last, role, call, decorates, bindings)
        elif len(attrs) == 1 and last in distinctive.OF_STORAGES:
            self.members.record_storage(node)
        cls = distinctive.GIVING.get(last)
        if cls is None or self.state.lookalikes or (call is None) != (last in distinctive.GIVING_ATTRIBUTES):
            return UNKNOWN
        return stated((types.attribute(cls, last, True),))

    def _infer_tensor(self, base: ast.expr, value: Value, bindings: tuple[Binding, ...]) -> Value:
        """What a name holds, one of whose methods only tensors have; it holds that from here on.

        Not where the call may be the one that a test has let through, of several kinds of objects.
        """
        state = self.state
        if (
            not isinstance(base, ast.Name)
            or not state.imports_torch
            or state.uncertain
            or state.lookalikes
            or state.lazy
            or any(binding.is_import for binding in bindings)
        ):
            return value
        name = base.id
        frame = state.frame
        if name in frame.env and name != frame.self_name:
            value = (Instance(TENSOR),)
            frame.env[name] = (value, bindings)
        return value

    def _library_chain(
        self,
        node: ast.expr,
        item: QualifiedName,
        attrs: list[str],
        role: Role,
        call: ast.Call | None,
        decorates: ast.AST | None,
        bindings: tuple[Binding, ...],
    ) -> Value:
        """The value where the one candidate is of a library; the last of `attrs` comes first."""
        state = self.state
        rest = ""
        name = item.name
        value: Value = (item,)
        if attrs:
            attrs.reverse()
            rest = ".".join(attrs)
            name = f"{name}.{rest}"
            value = (QualifiedName(name, item.sure, item.via, taken=item.taken),)
        if name.partition(".")[0] in state.roots and "." in name:
            sole = bindings[0] if len(bindings) == 1 and bindings[0].target is not None else None
            via = item.via
            if via is VIA_IMPORT and bindings and all(binding.target is None for binding in bindings):
                via = Via.ALIAS
            self.uses.record(node, (name,), item.sure, role, call, decorates, sole, rest, via, bindings)
            if item.taken:
                state.uses[-1].taken = {name: item.taken}
        return value
