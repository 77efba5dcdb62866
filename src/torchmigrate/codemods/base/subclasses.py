"""Classes of the file that derive from a class of a library: what they define."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator

from msgspec import Struct

from torchmigrate.project.one_project import Project
from torchmigrate.rewrite.context import FileContext
from torchmigrate.semantics.model import Role, Use
from torchmigrate.source.trees import names_attribute, walk

Method = ast.FunctionDef | ast.AsyncFunctionDef


class Subclass(Struct, frozen=True):
    """A class with a base of a library.

    base: the use of the library's class among its bases; None: it is the base of a class of another file.
    sole: nothing else that it derives from may define something, as a mixin does.
    """

    node: ast.ClassDef
    base: Use | None
    sole: bool

    def method(self, name: str) -> Method | None:
        """The method of this name that counts, the last one."""
        found = [item for item in self.node.body if isinstance(item, Method) and item.name == name]
        return found[-1] if found else None

    def defines(self, name: str) -> bool:
        """Whether the class, or anything in it, sets an attribute of this name."""
        return names_attribute(self.node, name)

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
    """The class that has a use as one of its bases; None if it is something else, or may be another class.

    With a star import the base is not sure, but may be no other one that is known of.
    """
    owner = use.statement
    if use.role is not Role.BASE or not isinstance(owner, ast.ClassDef) or len(use.candidates) > 1:
        return None
    if not any(base is use.node for base in owner.bases):
        return None  # within one: `Generic[nn.Module]`
    return Subclass(owner, use, all(base is use.node or _is_plain(base) for base in owner.bases))


def subclasses_elsewhere(
    symbols: Container[str], attribute: str, without: str, file: FileContext
) -> Iterator[tuple[Subclass, str]]:
    """Classes derived from a class of another file of the project that derives from one of a library.

    With the name of the library's class. attribute: what the class names. without: attributes (words) that no
    class between the two names.
    """
    for node in file.names.nodes(ast.ClassDef):
        bases = [base for base in node.bases if not _is_plain(base)]
        if len(bases) != 1 or not names_attribute(node, attribute):
            continue
        base = file.project.imported(file.path, file.names, bases[0])
        if base is None:
            continue
        found = file.project.ask(Project.library_bases, file.path, base, without)
        for symbol in sorted(name for name in found if name in symbols)[:1]:
            yield Subclass(node, None, sole=True), symbol


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
