"""Classes of the file that derive from a class of a library: what they define."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from msgspec import Struct

from torchmigrate.semantics.model import Role, Use
from torchmigrate.source.trees import walk

Method = ast.FunctionDef | ast.AsyncFunctionDef


class Subclass(Struct, frozen=True):
    """A class with a base of a library.

    base: the use of the library's class among its bases.
    sole: nothing else that it derives from may define something, as a mixin does.
    """

    node: ast.ClassDef
    base: Use
    sole: bool

    def method(self, name: str) -> Method | None:
        """The method of this name that counts, the last one."""
        found = [item for item in self.node.body if isinstance(item, Method) and item.name == name]
        return found[-1] if found else None

    def defines(self, name: str) -> bool:
        """Whether the class, or anything in it, sets an attribute of this name."""
        return any(_sets(item, name) for item in walk(self.node))

    def stores(self, name: str) -> Iterator[ast.Attribute]:
        """The places where a method sets `self.NAME`."""
        for method in self.node.body:
            if not isinstance(method, Method):
                continue
            own = self_of(method)
            for item in walk(method):
                if (
                    isinstance(item, ast.Attribute)
                    and isinstance(item.ctx, ast.Store)
                    and item.attr == name
                    and isinstance(item.value, ast.Name)
                    and item.value.id == own
                ):
                    yield item


def subclass_of(use: Use) -> Subclass | None:
    """The class of which a use is one of the bases; None if it is something else, or may be another class.

    With a star import the base is not sure, but may be no other one that is known of.
    """
    owner = use.statement
    if use.role is not Role.BASE or not isinstance(owner, ast.ClassDef) or len(use.candidates) > 1:
        return None
    if not any(base is use.node for base in owner.bases):
        return None  # within one: `Generic[nn.Module]`
    return Subclass(owner, use, all(base is use.node or _is_plain(base) for base in owner.bases))


def self_of(method: Method) -> str | None:
    """The name of a method's first parameter; None for one that gets no object."""
    plain = [*method.args.posonlyargs, *method.args.args]
    static = any(
        isinstance(mark, ast.Name) and mark.id in ("staticmethod", "classmethod")
        for mark in method.decorator_list
    )
    return plain[0].arg if plain and not static else None


def takes(method: Method, keyword: str) -> bool:
    """Whether a method can be given an argument by this name."""
    arguments = method.args
    named = {item.arg for item in (*arguments.args, *arguments.kwonlyargs)}
    return arguments.kwarg is not None or keyword in named


def _is_plain(base: ast.expr) -> bool:
    """`object`, `ABC` and `Generic[T]` add nothing."""
    if isinstance(base, ast.Subscript):
        base = base.value
    last = base.id if isinstance(base, ast.Name) else base.attr if isinstance(base, ast.Attribute) else ""
    return last in ("object", "ABC", "Generic", "Protocol")


def _sets(item: ast.AST, name: str) -> bool:
    if isinstance(item, (Method, ast.ClassDef)):
        return item.name == name
    if isinstance(item, ast.Attribute):
        return item.attr == name and not isinstance(item.ctx, ast.Load)
    if isinstance(item, ast.Name):
        return item.id == name and not isinstance(item.ctx, ast.Load)
    return isinstance(item, ast.Constant) and item.value == name  # setattr(self, "domain", ...)
