"""Names that a file binds itself: where each is mentioned, and what is around each node."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from torchmigrate.semantics.flow.reaching import Reaching, reaching
from torchmigrate.semantics.model import Binding, Scope, SemanticModel
from torchmigrate.source.trees import block_of, walk

_Def = (ast.FunctionDef, ast.AsyncFunctionDef)
_Comprehension = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)


class TreeIndex:
    """Mentions of plain names and attributes in one file, with the nodes around each."""

    def __init__(self, names: SemanticModel) -> None:
        self.names = names
        self._reachings: dict[ast.AST, Reaching] = {}
        self._homes: dict[ast.AST, ast.AST | None] = {}  # of statements, handlers and cases

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """Node -> the one around it, for the whole file."""
        return self.names.parents

    @cached_property
    def _names(self) -> dict[str, list[ast.Name]]:
        found: dict[str, list[ast.Name]] = {}
        for name in self.names.nodes(ast.Name):
            found.setdefault(name.id, []).append(name)
        return found

    @cached_property
    def _attributes(self) -> dict[str, list[ast.Attribute]]:
        found: dict[str, list[ast.Attribute]] = {}
        for attribute in self.names.nodes(ast.Attribute):
            found.setdefault(attribute.attr, []).append(attribute)
        return found

    @cached_property
    def _bindings(self) -> dict[str, list[Binding]]:
        found: dict[str, list[Binding]] = {}
        for scope in self.names.scopes:
            for bound, bindings in scope.bindings.items():
                found.setdefault(bound, []).extend(bindings)
        return found

    @cached_property
    def _scopes(self) -> dict[ast.AST, Scope]:
        return {scope.node: scope for scope in self.names.scopes}

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
        return block_of(self.parents.get(statement), statement) or None

    def bindings(self, name: str) -> list[Binding]:
        """Every place of the file that binds a name, in whatever scope."""
        return self._bindings.get(name, [])

    def binders(self, name: str) -> list[Scope]:
        """The scopes that bind a name, one entry for each place."""
        return [binding.scope for binding in self.bindings(name)]

    def in_fstring(self, node: ast.AST) -> bool:
        """Whether a node stands in an f-string, where positions cannot be relied on."""
        return any(isinstance(outer, ast.JoinedStr) for outer in self.around(node))

    def home_of(self, node: ast.AST) -> ast.AST | None:
        """The function, lambda or class in whose body a node is evaluated; None: the module."""
        parents = self.parents
        inner, outer = node, parents.get(node)
        while outer is not None and not isinstance(inner, ast.stmt):
            # Decorators, bases, defaults and annotations are evaluated outside.
            if isinstance(outer, ast.Lambda) and inner is outer.body:
                return outer
            if isinstance(inner, ast.arguments) and isinstance(node, ast.arg):
                return outer
            inner, outer = outer, parents.get(outer)
        homes = self._homes
        path: list[ast.AST] = []
        while outer is not None and inner not in homes:
            if isinstance(outer, (*_Def, ast.ClassDef)):
                homes[inner] = outer
                break
            path.append(inner)
            inner, outer = outer, parents.get(outer)
        home = homes.get(inner)
        homes.update(dict.fromkeys(path, home))
        return home

    def scope_of(self, node: ast.AST) -> Scope:
        """The scope of the function, or of the module, around a node."""
        return self._scopes[self.home_of(node) or self.names.tree]

    def scope_at(self, home: ast.AST | None) -> Scope:
        """The scope of a function, lambda or class, or of the module (None)."""
        return self._scopes[home or self.names.tree]

    def binds(self, name: ast.Name, home: ast.AST | None) -> bool:
        """Whether a name is a variable of a function, or of the module (None)."""
        here = self.home_of(name)
        while here is not home and here is not None:
            if not isinstance(here, ast.ClassDef) and name.id in self.scope_at(here).bindings:
                return False
            here = self.home_of(here)
        return here is home

    def holder(self, name: ast.Name) -> Scope | None:
        """The scope of a variable, seen from a mention of it; None: of a comprehension, or a builtin."""
        first = here = self.home_of(name)
        while here is not None and (
            name.id not in self.scope_at(here).bindings
            or (isinstance(here, ast.ClassDef) and here is not first)
        ):
            here = self.home_of(here)
        scope = self.scope_at(here)
        return scope if name.id in scope.bindings and self.comprehension_target(name) is None else None

    def reaching(self, home: ast.AST | None) -> Reaching:
        """The definitions of a function, or of the module (None)."""
        key = home or self.names.tree
        found = self._reachings.get(key)
        if found is None:
            assert isinstance(key, (*_Def, ast.ClassDef, ast.Module)), "lambdas have no statements"
            arguments = key.args if isinstance(key, _Def) else None
            found = self._reachings[key] = reaching(key.body, arguments)
        return found

    def reaching_around(self, node: ast.AST) -> Reaching:
        """The definitions of the function, class or module whose statement a node is part of."""
        home = self.home_of(node)
        while isinstance(home, ast.Lambda):
            home = self.home_of(home)
        return self.reaching(home)

    def is_kept(self, name: ast.Name, statement: ast.stmt) -> bool:
        """Whether a variable surely still has the value of an earlier read when a statement begins, which
        runs after the read."""
        first = self.statement_of(name)
        if first is None or first is statement or self.home_of(name) is not self.home_of(statement):
            return first is statement
        block, end = self.block_of(first), _start(statement)
        for outer in (statement, *self.around(statement)):
            if isinstance(outer, (ast.For, ast.AsyncFor, ast.While)):
                end = outer.end_lineno or 0, outer.end_col_offset or 0
            if block is not None and outer in block:
                break
        else:
            return False
        given = [item.node for item in self.reaching_around(name).every if item.name == name.id]
        return not any(node and _start(first) <= _start(node) < end for node in given)

    def comprehension_target(self, node: ast.Name) -> ast.Name | None:
        """The target of the comprehension around a name that gives it its value."""
        inner: ast.AST = node
        outer = self.parents.get(node)
        while outer is not None and not isinstance(outer, (ast.stmt, ast.Lambda)):
            if isinstance(outer, _Comprehension) and inner is not outer.generators[0].iter:
                for generator in outer.generators:
                    for target in walk(generator.target):
                        if isinstance(target, ast.Name) and target.id == node.id and target is not node:
                            return target
            inner, outer = outer, self.parents.get(outer)
        return None


def _start(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
