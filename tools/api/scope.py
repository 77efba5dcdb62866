"""The names of a module or class while its body is read."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from api.bound import Bound
from torchmigrate.versions.surface_model import EntryKind

_BUILTINS = frozenset(dir(builtins))


Run = Callable[["Scope", Iterable[ast.stmt]], None]  # reads the statements of a body


class Reader(Protocol):
    """What a body asks about other modules."""

    def star(self, source: str) -> tuple[list[tuple[str, Bound]], bool]:
        """What `from source import *` binds, and whether that is all; of "source.*", what `dir()` lists."""

    def __contains__(self, name: str) -> bool:
        """Whether the library has a module of this name."""

    def constant(self, name: str) -> ast.expr | None:
        """What a module of the library assigns to a name in capitals; None: nothing that was read."""


@dataclass(slots=True)
class Patch:
    """A name set on a class or module from outside its body; name "": some name that is not known."""

    owner: str
    name: str
    bound: Bound


@dataclass(slots=True)
class Scope:
    """The names of one module or class while its body is read.

    name: qualified name of the module or class.
    package: what relative imports start from.
    stub: of a `.pyi` file, where an import is private unless it says `as`.
    overloads: signatures of the overloads so far, of functions that are not yet defined.
    sets_globals: a function in it may have a `global` statement.
    made_into: the class of which the module becomes an instance, as those of settings do.
    replaced_by: the class whose instance the module puts in its own place; keeps_names: it is the
        module's own class that is changed.
    """

    name: str
    package: str
    reader: Reader
    outer: Scope | None = None
    stub: bool = False
    names: dict[str, Bound] = field(default_factory=dict)
    constants: dict[str, ast.expr] = field(default_factory=dict)
    exported: list[str] | None = None
    open: bool = False
    sets_globals: bool = True
    made_into: str = ""
    replaced_by: str = ""
    keeps_names: bool = False
    patches: list[Patch] = field(default_factory=list)
    overloads: dict[str, list[str]] = field(default_factory=dict)

    def bind(self, name: str, bound: Bound) -> None:
        self.names[name] = bound

    def qualify(self, node: ast.expr) -> str:
        """The dotted name that an expression stands for, through the imports; "" if it is something else."""
        if isinstance(node, ast.Attribute):
            head = self.qualify(node.value)
            return f"{head}.{node.attr}" if head else ""
        if isinstance(node, ast.Subscript):
            return self.qualify(node.value)
        if not isinstance(node, ast.Name):
            return ""
        scope: Scope | None = self
        while scope is not None:
            bound = scope.names.get(node.id)
            if bound is not None:
                return bound.target if bound.kind is EntryKind.ALIAS else f"{scope.name}.{node.id}"
            if scope.outer is None and f"{scope.name}.{node.id}" in self.reader:
                return f"{scope.name}.{node.id}"  # a submodule is there once anything has imported it
            scope = scope.outer
        return "builtins." + node.id if node.id in _BUILTINS else ""

    def outer_module(self) -> str:
        """The module whose body this is in."""
        return self.name if self.outer is None else self.outer.outer_module()

    def is_own_module(self, node: ast.expr) -> bool:
        """`sys.modules[__name__]`, or a name for it."""
        if isinstance(node, ast.Name) and node.id in self.constants:
            node = self.constants[node.id]
        return is_module_item(node, self.name)

    def known(self) -> dict[str, ast.expr]:
        return {**self.outer.known(), **self.constants} if self.outer is not None else self.constants

    def texts_for(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> dict[str, ast.expr]:
        """The constants that are known here, with those imported from elsewhere that decorators use."""
        found = dict(self.known())
        for decorator in node.decorator_list:
            for part in ast.walk(decorator):
                if isinstance(part, ast.Name) and part.id.isupper() and part.id not in found:
                    constant = self.reader.constant(self.qualify(part))
                    if constant is not None:
                        found[part.id] = constant
        return found

    def source(self, node: ast.ImportFrom) -> str:
        """The module that a from-import takes names from."""
        if not node.level:
            return node.module or ""
        parts = self.package.split(".")
        parts = parts[: len(parts) - (node.level - 1)]
        return ".".join([*parts, *([node.module] if node.module else [])])


def is_module_item(node: ast.expr, name: str) -> bool:
    """`sys.modules[__name__]`, or with the name of the module written out."""
    return (
        isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Attribute)
        and node.value.attr == "modules"
        and (
            (isinstance(node.slice, ast.Name) and node.slice.id == "__name__")
            or (isinstance(node.slice, ast.Constant) and node.slice.value == name)
        )
    )
