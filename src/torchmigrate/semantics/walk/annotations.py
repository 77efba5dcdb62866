"""What annotations promise: of parameters, variables and results."""

from __future__ import annotations

import ast

from torchmigrate.semantics.model import ANNOTATION, Const, Instance, Items, Local, QualifiedName, Value
from torchmigrate.semantics.values import types
from torchmigrate.semantics.values.slots import UNKNOWN, join_values, stated
from torchmigrate.semantics.walk.lookups import Lookups
from torchmigrate.semantics.walk.state import State

_NONE: Value = (Const(None),)
_SEQUENCES = frozenset(
    "List list Tuple tuple Sequence MutableSequence Iterable Iterator Collection Set set FrozenSet frozenset "
    "Deque deque Generator".split()
)
_MAPPINGS = frozenset(
    ["Dict", "dict", "Mapping", "MutableMapping", "OrderedDict", "defaultdict", "DefaultDict"]
)
_TRANSPARENT = frozenset(["Final", "ClassVar", "Annotated", "Required", "NotRequired"])


class Annotations:
    """Reads annotations in the current frame."""

    __slots__ = ("lookups", "state")

    def __init__(self, state: State, lookups: Lookups) -> None:
        self.state = state
        self.lookups = lookups

    def annotation(self, node: ast.expr | None) -> Value:
        """The value that a parameter or variable with this annotation holds; records the names in it.

        Nothing of it is sure: callers pass other things too.
        """
        return UNKNOWN if node is None else stated(self._annotation(node))

    def _annotation(self, node: ast.expr) -> Value:
        state = self.state
        before, state.role = state.role, ANNOTATION
        try:
            value = state.eval(node)
        finally:
            state.role = before
        if value is not UNKNOWN and len(value) == 1 and not isinstance(node, ast.Subscript):
            return self._instance(value)
        if isinstance(node, (ast.Subscript, ast.BinOp)):
            return self.promise(node)
        return UNKNOWN

    def _instance(self, value: Value) -> Value:
        """What is annotated with a class."""
        (item,) = value
        if isinstance(item, QualifiedName):
            return (types.of_annotation(item.name),)
        if isinstance(item, Local) and isinstance(item.node, ast.ClassDef):
            return self.made(item)
        return UNKNOWN

    def made(self, item: Local) -> Value:
        """An object of a class of this file."""
        info = self.state.classes.get(item.node)
        return (Instance(info.library, info.certain, item),) if info is not None else UNKNOWN

    def promise(self, node: ast.expr) -> Value:
        """What an annotation promises, without recording what it names."""
        if isinstance(node, (ast.Name, ast.Attribute)):
            value = self.lookups.peek(node)
            if isinstance(node, ast.Name) and value is UNKNOWN and node.id in ("int", "float", "bool"):
                return (types.NUMBER,)
            return self._instance(value) if len(value) == 1 else UNKNOWN
        if isinstance(node, ast.Constant):
            return _NONE if node.value is None else UNKNOWN
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return join_values(self.promise(node.left), self.promise(node.right))
        if isinstance(node, ast.Subscript):
            return self._generic(node)
        return UNKNOWN

    def _generic(self, node: ast.Subscript) -> Value:
        value = self.lookups.peek(node.value)
        name = ""
        if len(value) == 1 and isinstance(value[0], QualifiedName):
            name = value[0].name
            if name.startswith("torch"):
                return self._instance(value)  # DataLoader[int]
        elif isinstance(node.value, ast.Name):
            name = node.value.id
        last = name.rpartition(".")[2]
        inner = node.slice
        parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
        if not parts:
            return UNKNOWN
        if last == "Optional":
            return join_values(self.promise(inner), _NONE)
        if last == "Union":
            joined = self.promise(parts[0])
            for part in parts[1:]:
                joined = join_values(joined, self.promise(part))
            return joined
        if last in _TRANSPARENT:
            return self.promise(parts[0])
        if last in _MAPPINGS and len(parts) == 2:
            return _items([self.promise(parts[1])], many=True, keyed=True)
        if last in _SEQUENCES:
            if last in ("Tuple", "tuple") and not (len(parts) == 2 and _is_dots(parts[1])):
                return _items([self.promise(part) for part in parts])
            return _items([self.promise(parts[0])], many=True)
        return UNKNOWN


def _is_dots(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...


def _items(values: list[Value], *, many: bool = False, keyed: bool = False) -> Value:
    """A container with known elements."""
    if all(value is UNKNOWN or value == UNKNOWN for value in values):
        return UNKNOWN
    return (Items(tuple(values), many, keyed),)
