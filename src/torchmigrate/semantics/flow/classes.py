"""The classes of a file: their methods, their bases in the file, and the attributes of their objects."""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cached_property

from torchmigrate.semantics.flow.calls import constant_key, first_parameter
from torchmigrate.semantics.flow.tree_index import TreeIndex

_Def = (ast.FunctionDef, ast.AsyncFunctionDef)
_MOST_BASES = 32


class Classes:
    """The classes of one file."""

    def __init__(self, index: TreeIndex) -> None:
        self._index = index
        self._names = index.names

    def owner_of(self, node: ast.AST, *, of_class: bool = False) -> ast.ClassDef | None:
        """The class of the file of whose methods an expression is the object: `self`; or the class: `cls`."""
        if not isinstance(node, ast.Name):
            return None
        home = self._index.home_of(node)
        while home is not None and node.id not in first_parameter(home):
            if not isinstance(home, ast.Lambda) and (
                isinstance(home, ast.ClassDef) or node.id in self._index.scope_at(home).bindings
            ):
                return None
            home = self._index.home_of(home)
        if not isinstance(home, _Def):
            return None
        owner = self._index.parents.get(home)
        marks = {getattr(mark, "id", "") for mark in home.decorator_list}
        if (
            not isinstance(owner, ast.ClassDef)
            or "staticmethod" in marks
            or ("classmethod" in marks) is not of_class
        ):
            return None
        return owner if len(self._index.scope_at(home).bindings.get(node.id, ())) == 1 else None

    def method(self, owner: ast.ClassDef, *names: str) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """The first of some methods that a class, or else its bases, define."""
        for each in self.lineage(owner):
            for name in names:
                if name in self.methods[each]:
                    return self.methods[each][name]
        return None

    def lineage(self, owner: ast.ClassDef) -> list[ast.ClassDef]:
        """A class and its bases in the file, the nearest first."""
        found = [owner]
        for each in found:
            for base in each.bases:
                bound = self._index.bindings(base.id) if isinstance(base, ast.Name) else []
                made = bound[0].node if len(bound) == 1 else None
                if isinstance(made, ast.ClassDef) and made not in found and len(found) < _MOST_BASES:
                    found.append(made)
        return found

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of all classes."""
        return frozenset(owner.name for owner in self._names.nodes(ast.ClassDef))

    @cached_property
    def method_names(self) -> frozenset[str]:
        """The names of the methods of all classes."""
        return frozenset().union(*self.methods.values())

    @cached_property
    def below(self) -> dict[ast.ClassDef, list[ast.ClassDef]]:
        """The classes of the file that inherit from each."""
        found: dict[ast.ClassDef, list[ast.ClassDef]] = defaultdict(list)
        for owner in self._names.nodes(ast.ClassDef):
            for base in self.lineage(owner)[1:]:
                found[base].append(owner)
        return found

    @cached_property
    def methods(self) -> dict[ast.ClassDef, dict[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
        """The methods of each class, by name."""
        return {
            owner: {item.name: item for item in owner.body if isinstance(item, _Def)}
            for owner in self._names.nodes(ast.ClassDef)
        }

    @cached_property
    def members(self) -> dict[tuple[ast.ClassDef, str], list[tuple[ast.AST, ast.expr | None]]]:
        """What each class gives to an attribute of its objects: the target, or the value itself."""
        found: dict[tuple[ast.ClassDef, str], list[tuple[ast.AST, ast.expr | None]]] = defaultdict(list)
        for attribute in self._names.nodes(ast.Attribute):
            if isinstance(attribute.ctx, ast.Store):
                owner = self.owner_of(attribute.value)
                if owner is not None:
                    found[owner, attribute.attr].append((attribute, None))
        for call in self._names.nodes(ast.Call):
            name = getattr(call.func, "attr", getattr(call.func, "id", ""))
            arguments = call.args
            if name in ("register_buffer", "register_parameter") and isinstance(call.func, ast.Attribute):
                owner = self.owner_of(call.func.value)
            elif name == "setattr" and len(call.args) == 3:
                owner, arguments = self.owner_of(call.args[0]), call.args[1:]
            else:
                continue
            values = [
                *arguments[1:2],
                *(item.value for item in call.keywords if item.arg in ("tensor", "param")),
            ]
            key = constant_key(arguments[0]) if arguments else None
            if owner is None or not values:
                continue
            if isinstance(key, str):
                found[owner, key].append((call, values[0]))
            else:
                self.dynamic.add(owner)
        for owner in self._names.nodes(ast.ClassDef):
            for statement in owner.body:
                if isinstance(statement, ast.Assign):
                    for target in statement.targets:
                        if isinstance(target, ast.Name):
                            found[owner, target.id].append((target, None))
        return found

    @cached_property
    def dynamic(self) -> set[ast.ClassDef]:
        """Classes that set attributes whose names are computed; filled with `members`."""
        return set()

    @cached_property
    def outside(self) -> dict[str, list[ast.Attribute]]:
        """Where the file sets an attribute on any object but `self`, by its name."""
        found: dict[str, list[ast.Attribute]] = {}
        for attribute in self._names.nodes(ast.Attribute):
            if isinstance(attribute.ctx, ast.Store) and self.owner_of(attribute.value) is None:
                found.setdefault(attribute.attr, []).append(attribute)
        return found
