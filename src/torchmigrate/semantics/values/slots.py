"""Slots and environments: what names hold at a place of the flow-sensitive walk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from torchmigrate.semantics.model import (
    OPAQUE,
    Binding,
    Candidate,
    Const,
    Instance,
    Items,
    QualifiedName,
    Use,
    Value,
    Via,
)

_MOST = 100  # values and bindings of a name that are kept apart: files of data bind one ten thousand times
_FEW = 8  # of so many one is found as quickly in a tuple as in a set
UNKNOWN: Value = (OPAQUE,)
NOTHING: Value = ()

# What a name may hold at a place, and the bindings that may have put it there.
Slot = tuple[Value, tuple[Binding, ...]]
UNKNOWN_SLOT: Slot = (UNKNOWN, ())
UNBOUND_SLOT: Slot = (NOTHING, ())
Changes = dict[str, Slot | None]  # names that a branch binds or (None) deletes


class Env(dict[str, Slot]):
    """What the names of a scope hold at the place that the walk has reached.

    Branches are walked in it one after the other, and what each changes is taken back at its end: copies
    would take as long as the file has names, for every `if`.
    """

    __slots__ = ("_before",)

    def __init__(self) -> None:
        super().__init__()
        self._before: Changes | None = None  # what the names held that the branch under way has changed

    def __setitem__(self, name: str, slot: Slot) -> None:
        before = self._before
        if before is not None and name not in before:
            before[name] = self.get(name)
        dict.__setitem__(self, name, slot)

    def remove(self, name: str) -> None:
        """Let a name hold nothing."""
        before = self._before
        if before is not None and name not in before:
            before[name] = self.get(name)
        self.pop(name, None)

    def apply(self, changes: Mapping[str, Slot | None]) -> None:
        """Make the changes of a branch, or others, part of this state."""
        before = self._before
        # As `self[name] = slot` and `self.remove(name)`, without the calls.
        for name, slot in changes.items():
            if before is not None and name not in before:
                before[name] = self.get(name)
            if slot is None:
                self.pop(name, None)
            else:
                dict.__setitem__(self, name, slot)

    def open(self) -> Changes | None:
        """Begin a branch; to be given to `close`."""
        outer, self._before = self._before, {}
        return outer

    def close(self, outer: Changes | None) -> Changes:
        """End the branch that was begun last: its changes, which are taken back."""
        before, self._before = self._before, outer
        assert before is not None, "it was opened"
        changes: Changes = {}
        for name, slot in before.items():
            changes[name] = self.get(name)
            if slot is None:
                self.pop(name, None)
            else:
                dict.__setitem__(self, name, slot)
        return changes

    def changed(self) -> Changes:
        """The changes of the branch under way."""
        return {name: self.get(name) for name in self._before or ()}

    def meet(self, ends: Sequence[Changes]) -> None:
        """Be the state after paths meet; a name bound on some of them only keeps what it has there.

        Not being bound on the other paths does not make a name unsure: using it there would raise.
        """
        paths = len(ends)
        slots: dict[str, list[tuple[int, Slot | None]]] = {}
        for number, changes in enumerate(ends):
            for name, slot in changes.items():
                if name in slots:
                    slots[name].append((number, slot))
                else:
                    slots[name] = [(number, slot)]
        for name, given in slots.items():
            held = self.get(name)
            joined: Slot | None = None
            expected = 0
            for number, slot in given:
                if number != expected:  # the paths between leave it alone
                    joined = _joined(joined, held)
                joined = _joined(joined, slot)
                expected = number + 1
            if expected != paths:
                joined = _joined(joined, held)
            if joined is not held:
                if joined is None:
                    self.remove(name)
                else:
                    self[name] = joined


def _joined(left: Slot | None, right: Slot | None) -> Slot | None:
    if left is None or right is None or left is right:
        return left or right
    return join_slots(left, right)


def join_values(left: Value, right: Value) -> Value:
    """Every candidate of both, in order, each once; past the first hundred only that there are more."""
    if left is right:
        return left
    for item in left:
        if item.__class__ is QualifiedName and item.taken:
            left = tuple(_met(each, right) for each in left)
            break
    if left == right:
        return left
    if len(left) >= _MOST:
        return left if OPAQUE in left else (*left, OPAQUE)
    return left + tuple([item for item in right if item not in left])


def met(one: tuple[Use, ...], other: tuple[Use, ...]) -> tuple[Use, ...]:
    """The uses that a name was taken from on either of two paths; nothing if those of one are unknown."""
    if one == other:
        return one
    if not one or not other or len(one) >= _MOST:
        return ()
    return one + tuple(use for use in other if use not in one)


def _met(item: Candidate, others: Value) -> Candidate:
    """A candidate that may be one of another path as well."""
    if not isinstance(item, QualifiedName) or not item.taken or item not in others:
        return item
    same = next(other for other in others if other == item)
    assert isinstance(same, QualifiedName), "they are equal"
    return replace(item, taken=met(item.taken, same.taken))


def join_slots(left: Slot, right: Slot) -> Slot:
    """The slot after two paths meet."""
    if left is right:
        return left
    value = join_values(left[0], right[0])
    if left[1] == right[1]:
        return value, left[1]
    held, more = left[1], right[1]
    if len(held) > 1 and len(more) == 1:
        # Whether there are two or ten thousand bindings of no interest (`x = x + 1`) makes no difference.
        (added,) = more
        if added.target is None and (added.value == UNKNOWN or len(value) > _MOST):
            return value, held
    if len(more) > len(held) and len(more) >= _MOST:
        held, more = more, held
    if len(held) >= _MOST:  # those of imports are all counted, since each is used
        more = tuple(binding for binding in more if binding.target is not None)
    known = frozenset(held) if len(held) > _FEW else held
    return value, held + tuple(binding for binding in more if binding not in known)


def weaken(slot: Slot) -> Slot:
    """The slot of a name that a loop rebinds: what it holds may be something else on a later round."""
    value = slot[0]
    if value == UNKNOWN or not value:
        return slot
    weak = unsure(tuple(item for item in value if not isinstance(item, Const)))
    return (weak if OPAQUE in weak else (*weak, OPAQUE)), slot[1]


def unsure(value: Value, via: Via | None = None) -> Value:
    """The same candidates, none of them sure."""
    if value is UNKNOWN:
        return value
    return tuple(
        Instance(item.cls, False, item.local, item.gives)
        if isinstance(item, Instance)
        else QualifiedName(item.name, False, via or item.via, item.receiver, taken=item.taken)
        if isinstance(item, QualifiedName)
        else Items(tuple(unsure(each) for each in item.values), item.many, item.keyed)
        if isinstance(item, Items)
        else item
        for item in value
    )


def stated(value: Value) -> Value:
    """The same candidates, marked as known from an annotation only."""
    return value if value is UNKNOWN else tuple(map(as_stated, value))


def as_stated(item: Candidate) -> Candidate:
    """A candidate, marked as known from an annotation only; one that is not sure stays so."""
    if isinstance(item, Instance):
        return Instance(item.cls, False, item.local, item.gives, True) if item.sure else item
    if isinstance(item, QualifiedName):
        return (
            QualifiedName(item.name, False, item.via, item.receiver, True, item.taken) if item.sure else item
        )
    if isinstance(item, Items):
        return Items(tuple(map(stated, item.values)), item.many, item.keyed)
    return item


def believed(item: Instance) -> Instance:
    """The same object, as if its annotation were sure."""
    return Instance(item.cls, True, item.local, item.gives) if item.stated else item
