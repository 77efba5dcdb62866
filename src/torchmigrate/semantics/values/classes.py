"""Classes of the file: what is known of their attributes, and what they inherit."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from msgspec import Struct, field

from torchmigrate.semantics.model import QualifiedName, Value, Via
from torchmigrate.semantics.values.objects import is_a, library_base
from torchmigrate.semantics.values.slots import UNKNOWN, join_values, unsure

# Methods that run before the others, so that what they put on `self` is there.
SETUP = ("__init__", "setUp", "setup", "__post_init__", "setup_method", "setUpClass", "setup_class")
# Those without which there is no object.
MAKES_OBJECTS = ("__init__", "__new__", "__post_init__")
_MOST = 64  # classes of the file that one inherits from, as far as they are searched
# Bases that add no attributes of interest.
_PLAIN = frozenset(["abc", "typing", "typing_extensions", "enum", "unittest", "object"])


def as_attribute(value: Value) -> Value:
    """A value once it is an attribute of an object: other code may set it to another function."""
    if value is not UNKNOWN and any(item.__class__ is QualifiedName for item in value):
        return tuple(
            QualifiedName(item.name, False, Via.SELF, taken=item.taken)
            if isinstance(item, QualifiedName)
            else item
            for item in value
        )
    return value


class ClassInfo(Struct, eq=False):
    """What is known of a class of this file.

    parents: its bases, in order.
    attributes: what its body binds, and what those methods assign to `self.NAME` that have been walked.
    pending: how many functions that assign `self.NAME` have not been walked to their end.
    library: the first base from a library, also through other classes of the file; "" if there is none.
    certain: no unknown class comes before it, which might override something.
    calls_base: those of its methods that call what they override.
    above: the classes of the file that it inherits from, in the order in which they are searched. (Were the
        class itself one of them, only the garbage collector could free it, with its part of the tree.)
    far: there are more of them.
    """

    name: str
    node: ast.ClassDef
    parents: tuple[ClassInfo | str | None, ...] = ()
    attributes: dict[str, Value] = field(default_factory=dict)
    pending: dict[str, int] = field(default_factory=dict)
    library: str = ""
    certain: bool = True
    calls_base: set[str] = field(default_factory=set)
    above: list[ClassInfo] = field(default_factory=list)
    far: bool = False

    def derive(self, roots: frozenset[str]) -> None:
        """Set `library`, `certain` and `above` from the parents."""
        parents = [parent for parent in self.parents if isinstance(parent, ClassInfo)]
        above = list(dict.fromkeys(item for parent in parents for item in (parent, *parent.above)))
        self.above = above[: _MOST - 1]
        self.far = len(above) >= _MOST or any(parent.far for parent in parents)
        for parent in self.parents:
            if isinstance(parent, ClassInfo):
                self.certain = self.certain and parent.certain
                self.library = parent.library
            elif parent is None:
                self.certain = False
            else:
                name = library_base(parent)
                root = name.partition(".")[0]
                if root in roots:
                    self.library = name
                elif root not in _PLAIN:
                    self.certain = False
            if self.library:
                return

    def is_a(self, *names: str) -> bool:
        """Whether it derives from one of these library classes."""
        return bool(self.library) and any(is_a(self.library, name) for name in names)

    def find(self, name: str) -> Value | None:
        """What an attribute may hold; None if no class of the file sets it."""
        for item in (self, *self.above):
            held = item.attributes.get(name)
            if held is not None:
                return unsure(held) if item.pending.get(name) else held
            if item.pending.get(name):
                return UNKNOWN
        return UNKNOWN if self.far else None

    def keeps(self, methods: Iterable[str]) -> bool:
        """Whether those of some methods that are overridden call what they override."""
        return all(name in self.calls_base or name not in self.attributes for name in methods)

    def store(self, name: str, value: Value) -> None:
        """Note that an attribute is set to a value."""
        held = self.attributes.get(name)
        self.attributes[name] = value if held is None else join_values(held, value)
