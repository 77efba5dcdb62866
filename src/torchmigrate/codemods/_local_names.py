"""Names that a file binds itself: where each is mentioned, and what stands around a node."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchmigrate.names.model import Binding, Names, Scope
from torchmigrate.trees import children, walk


class LocalNames:
    """Mentions of plain names and attributes in one file, with the nodes around each."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.parents: dict[ast.AST, ast.AST] = {}
        self._names: dict[str, list[ast.Name]] = {}
        self._attributes: dict[str, list[ast.Attribute]] = {}
        self._bindings: dict[str, list[Binding]] = {}
        for scope in names.scopes:
            for name, bindings in scope.bindings.items():
                self._bindings.setdefault(name, []).extend(bindings)
        for node in walk(names.tree):
            for child in children(node):
                self.parents[child] = node
            if isinstance(node, ast.Name):
                self._names.setdefault(node.id, []).append(node)
            elif isinstance(node, ast.Attribute):
                self._attributes.setdefault(node.attr, []).append(node)

    def named(self, name: str) -> list[ast.Name]:
        """Every mention of a name, whatever it means there."""
        return self._names.get(name, [])

    def attributes(self, name: str) -> list[ast.Attribute]:
        """Every `x.name`, of whatever object."""
        return self._attributes.get(name, [])

    def parent(self, node: ast.AST) -> ast.AST | None:
        return self.parents.get(node)

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node, the nearest first."""
        outer = self.parents.get(node)
        while outer is not None:
            yield outer
            outer = self.parents.get(outer)

    def function_of(self, node: ast.AST) -> ast.AST | None:
        """The innermost function, lambda or class around a node; None: it is at module level."""
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
        return next((outer for outer in self.around(node) if isinstance(outer, kinds)), None)

    def statement_of(self, node: ast.AST) -> ast.stmt | None:
        if isinstance(node, ast.stmt):
            return node
        return next((outer for outer in self.around(node) if isinstance(outer, ast.stmt)), None)

    def block_of(self, statement: ast.stmt) -> list[ast.stmt] | None:
        """The statement list that a statement stands in."""
        outer = self.parents.get(statement)
        for name in ("body", "orelse", "finalbody"):
            block = getattr(outer, name, None)
            if isinstance(block, list) and any(item is statement for item in block):
                return block
        return None

    def bindings(self, name: str) -> list[Binding]:
        """Every place of the file that binds a name, in whatever scope."""
        return self._bindings.get(name, [])

    def binders(self, name: str) -> list[Scope]:
        """The scopes that bind a name, one entry for each place."""
        return [binding.scope for binding in self.bindings(name)]

    def in_fstring(self, node: ast.AST) -> bool:
        """Whether a node stands in an f-string, where positions cannot be relied on."""
        return any(isinstance(outer, ast.JoinedStr) for outer in self.around(node))
