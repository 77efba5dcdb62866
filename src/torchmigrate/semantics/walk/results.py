"""What functions of the file give: what their bodies return, or else what they promise."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchmigrate.semantics.model import OPAQUE, Candidate, Const, Instance, Items, QualifiedName, Value
from torchmigrate.semantics.values.frames import Deferred
from torchmigrate.semantics.values.slots import UNKNOWN, join_values, stated, unsure
from torchmigrate.semantics.walk.annotations import Annotations
from torchmigrate.semantics.walk.lookups import Lookups
from torchmigrate.semantics.walk.state import State

if TYPE_CHECKING:
    from torchmigrate.semantics.values.classes import ClassInfo

_MOST_NESTED = 8  # functions that are walked one within the other: each takes a part of the stack
_NONE = Const(None)
# Decorators that leave alone what a function returns; those of libraries do too.
_HARMLESS = frozenset(
    "staticmethod classmethod abstractmethod property cached_property lazy_property lru_cache cache wraps "
    "override final overload".split()
)


class Results:
    """Evaluates what calls of the file's own functions give."""

    __slots__ = ("_depth", "annotations", "lookups", "state")

    def __init__(self, state: State, lookups: Lookups, annotations: Annotations) -> None:
        self.state = state
        self.lookups = lookups
        self.annotations = annotations
        self._depth = 0

    def returned(self, node: ast.AST) -> Value:
        """What a call of a function gives: what its body returns where that is known, else what it says.

        A function whose body is still to be walked is walked now, if all that it sees is there.
        """
        state = self.state
        if not isinstance(node, ast.FunctionDef):
            return UNKNOWN
        value = state.returns.get(node)
        if value is not None:
            return value
        item = state.waiting.get(node)
        if item is not None and self._depth < _MOST_NESTED and not item.waits:
            if self._sees_all(item):
                self._depth += 1
                place = state.leave()
                state.visit_body(item)
                state.resume(place)
                self._depth -= 1
            elif state.module_done and not state.setups:
                item.waits = True  # not computed again for each of its calls
        if node not in state.returned:
            return self._promised(node)  # its body is under way, or waits
        value = _filled(self._inferred(node), self._promised(node))
        state.returns[node] = value
        return value

    def _sees_all(self, item: Deferred) -> bool:
        """Whether what a function sees is there: the names around it, and for a method those on `self`."""
        if item.owner is not None and self.state.setups:
            return False
        frame = item.parent
        while frame.parent is not None:
            if frame.scope.kind != "class":
                return False
            frame = frame.parent
        return self.state.module_done and (item.owner is None or self._reads_what_is_there(item, item.owner))

    def _reads_what_is_there(self, item: Deferred, owner: ClassInfo) -> bool:
        """Whether a method reads no attribute of `self` that others, which are still to be walked, set."""
        state, node = self.state, item.node
        arguments = node.args.posonlyargs or node.args.args
        if not arguments:
            return True
        prefix = f"{arguments[0].arg}."
        later = [
            prefix + name
            for name, count in owner.pending.items()
            if count > (1 if prefix + name in item.local else 0)
        ]
        if not later:
            return True
        text = state.source.text[state.offset(node) : state.end_offset(node)]
        return not any(name in text for name in later)

    def _inferred(self, node: ast.FunctionDef) -> Value:
        value = as_result(self.state.returned[node])
        if value is not UNKNOWN and not all(map(self._is_harmless, node.decorator_list)):
            return unsure(value)
        return value

    def _promised(self, node: ast.FunctionDef) -> Value:
        if node.returns is None:
            return UNKNOWN
        value = stated(self.annotations.promise(node.returns))
        if not all(map(self._is_harmless, node.decorator_list)):
            value = unsure(value)
        return value

    def _is_harmless(self, mark: ast.expr) -> bool:
        func = mark.func if isinstance(mark, ast.Call) else mark
        name = func.id if isinstance(func, ast.Name) else func.attr if isinstance(func, ast.Attribute) else ""
        if name in _HARMLESS:
            return True
        value = self.lookups.peek(func)
        return (
            len(value) == 1
            and isinstance(value[0], QualifiedName)
            and value[0].name.partition(".")[0] in self.state.roots
        )


def _filled(known: Value, promised: Value) -> Value:
    """What the body of a function says it returns; where it says nothing, what the annotation does."""
    if promised is UNKNOWN or known is UNKNOWN:
        return promised if known is UNKNOWN else known
    if len(known) == len(promised) == 1:
        one, other = known[0], promised[0]
        if isinstance(one, Items) and isinstance(other, Items):
            if one.many or other.many or len(one.values) != len(other.values):
                return known
            parts = tuple(map(_filled, one.values, other.values))
            return (Items(parts, one.many, one.keyed),)
    sure = all(item == _NONE or (isinstance(item, Instance) and item.sure) for item in known)
    return known if sure else promised


def as_result(value: Value) -> Value:
    """What is known of the objects that a function returns.

    Names of libraries and flags that it hands out are followed by what looks for guards, not here.
    """
    out: Value = ()
    for item in value:
        out = join_values(out, (_result(item),))
    return out if any(isinstance(item, (Instance, Items)) for item in out) else UNKNOWN


def _result(item: Candidate) -> Candidate:
    if isinstance(item, Items):
        parts = tuple(map(as_result, item.values))
        known = any(part is not UNKNOWN for part in parts)
        return Items(parts, item.many, item.keyed) if known else OPAQUE
    return item if isinstance(item, Instance) or item == _NONE else OPAQUE
