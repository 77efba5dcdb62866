"""What annotations promise, and what functions of the file give: what their bodies return, or else that."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchmigrate.semantics.model import (
    ANNOTATION,
    OPAQUE,
    Candidate,
    Const,
    Instance,
    Items,
    Local,
    QualifiedName,
    Value,
)
from torchmigrate.semantics.values import types
from torchmigrate.semantics.values.frames import Deferred
from torchmigrate.semantics.values.slots import UNKNOWN, join_values, stated, unsure
from torchmigrate.semantics.walk.names import Names

if TYPE_CHECKING:
    from torchmigrate.semantics.values.classes import ClassInfo

_SEQUENCES = frozenset(
    "List list Tuple tuple Sequence MutableSequence Iterable Iterator Collection Set set FrozenSet frozenset "
    "Deque deque Generator".split()
)
_MAPPINGS = frozenset(
    ["Dict", "dict", "Mapping", "MutableMapping", "OrderedDict", "defaultdict", "DefaultDict"]
)
_TRANSPARENT = frozenset(["Final", "ClassVar", "Annotated", "Required", "NotRequired"])
_MOST_NESTED = 8  # functions that are walked one within the other: each takes a part of the stack
_NONE = Const(None)
# Decorators that leave alone what a function returns; those of libraries do too.
_HARMLESS = frozenset(
    "staticmethod classmethod abstractmethod property cached_property lazy_property lru_cache cache wraps "
    "override final overload".split()
)


class Results(Names):
    """Evaluates annotations, and calls of the file's own functions."""

    __slots__ = ()

    def annotation(self, node: ast.expr | None) -> Value:
        """The value that a parameter or variable with this annotation holds; records the names in it.

        Nothing of it is sure: callers pass other things too.
        """
        return UNKNOWN if node is None else stated(self._annotation(node))

    def _annotation(self, node: ast.expr) -> Value:
        before, self.role = self.role, ANNOTATION
        try:
            value = self.eval(node)
        finally:
            self.role = before
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
        info = self.classes.get(item.node)
        return (Instance(info.library, info.certain, item),) if info is not None else UNKNOWN

    def promise(self, node: ast.expr) -> Value:
        """What an annotation promises, without recording what it names."""
        if isinstance(node, (ast.Name, ast.Attribute)):
            value = self.peek(node)
            if isinstance(node, ast.Name) and value is UNKNOWN and node.id in ("int", "float", "bool"):
                return (types.NUMBER,)
            return self._instance(value) if len(value) == 1 else UNKNOWN
        if isinstance(node, ast.Constant):
            return (_NONE,) if node.value is None else UNKNOWN
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return join_values(self.promise(node.left), self.promise(node.right))
        if isinstance(node, ast.Subscript):
            return self._generic(node)
        return UNKNOWN

    def _generic(self, node: ast.Subscript) -> Value:
        value = self.peek(node.value)
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
            return join_values(self.promise(inner), (_NONE,))
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

    def result_of(self, node: ast.AST) -> Value:
        """What a call of a function gives: what its body returns where that is known, else what it says.

        A function whose body is still to be walked is walked now, if all that it sees is there.
        """
        if not isinstance(node, ast.FunctionDef):
            return UNKNOWN
        value = self.returns.get(node)
        if value is not None:
            return value
        item = self.waiting.get(node)
        if item is not None and self.depth < _MOST_NESTED and not item.waits:
            if self._sees_all(item):
                self.depth += 1
                place = self.leave()
                self.visit_body(item)
                self.resume(place)
                self.depth -= 1
            elif self.module_done and not self.setups:
                item.waits = True  # not computed again for each of its calls
        if node not in self.returned:
            return self._promised(node)  # its body is under way, or waits
        value = _filled(self._inferred(node), self._promised(node))
        self.returns[node] = value
        return value

    def _sees_all(self, item: Deferred) -> bool:
        """Whether what a function sees is there: the names around it, and for a method those on `self`."""
        if item.owner is not None and self.setups:
            return False
        frame = item.parent
        while frame.parent is not None:
            if frame.scope.kind != "class":
                return False
            frame = frame.parent
        return self.module_done and (item.owner is None or self._reads_what_is_there(item, item.owner))

    def _reads_what_is_there(self, item: Deferred, owner: ClassInfo) -> bool:
        """Whether a method reads no attribute of `self` that others, which are still to be walked, set."""
        node = item.node
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
        text = self.source.text[self.offset(node) : self.end_offset(node)]
        return not any(name in text for name in later)

    def _inferred(self, node: ast.FunctionDef) -> Value:
        value = as_result(self.returned[node])
        if value is not UNKNOWN and not all(map(self._is_harmless, node.decorator_list)):
            return unsure(value)
        return value

    def _promised(self, node: ast.FunctionDef) -> Value:
        if node.returns is None:
            return UNKNOWN
        value = stated(self.promise(node.returns))
        if not all(map(self._is_harmless, node.decorator_list)):
            value = unsure(value)
        return value

    def _is_harmless(self, mark: ast.expr) -> bool:
        func = mark.func if isinstance(mark, ast.Call) else mark
        name = func.id if isinstance(func, ast.Name) else func.attr if isinstance(func, ast.Attribute) else ""
        if name in _HARMLESS:
            return True
        value = self.peek(func)
        return (
            len(value) == 1
            and isinstance(value[0], QualifiedName)
            and value[0].name.partition(".")[0] in self.roots
        )


def _is_dots(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...


def _items(values: list[Value], *, many: bool = False, keyed: bool = False) -> Value:
    """A container with known elements."""
    if all(value is UNKNOWN or value == UNKNOWN for value in values):
        return UNKNOWN
    return (Items(tuple(values), many, keyed),)


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
