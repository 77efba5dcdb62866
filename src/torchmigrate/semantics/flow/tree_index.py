"""Names that a file binds itself: where each is mentioned, and the parents of each node."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchmigrate.semantics.model import Binding, Scope, SemanticModel


class TreeIndex:
    """Mentions of plain names and attributes in one file, with the nodes around each."""

    def __init__(self, names: SemanticModel) -> None:
        self.names = names
        self.parents = names.parents
        self._names: dict[str, list[ast.Name]] = {}
        self._attributes: dict[str, list[ast.Attribute]] = {}
        self._bindings: dict[str, list[Binding]] = {}
        for scope in names.scopes:
            for bound, bindings in scope.bindings.items():
                self._bindings.setdefault(bound, []).extend(bindings)
        for name in names.nodes(ast.Name):
            self._names.setdefault(name.id, []).append(name)
        for attribute in names.nodes(ast.Attribute):
            self._attributes.setdefault(attribute.attr, []).append(attribute)

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
