"""Assignments, `__all__`, and modules that put something in their own place."""

from __future__ import annotations

import ast

from api import literals
from api.bound import value
from api.scope import Patch, Scope, is_module_item
from api.values import bound_of


def assign(scope: Scope, target: ast.expr, node: ast.expr | None) -> None:
    match target:
        case ast.Name(id="__all__"):
            scope.exported = []
            if node is not None:
                export(scope, node)
        case ast.Name():
            if node is not None and not (isinstance(node, ast.Name) and node.id == target.id):
                scope.bind(target.id, bound_of(node, scope))
                scope.constants[target.id] = node
            else:
                scope.names.setdefault(target.id, value())
        case ast.Tuple() | ast.List():
            same = isinstance(node, (ast.Tuple, ast.List)) and len(node.elts) == len(target.elts)
            for index, element in enumerate(target.elts):
                part = node.elts[index] if same and isinstance(node, (ast.Tuple, ast.List)) else None
                assign(scope, element, part)
        case ast.Starred():
            assign(scope, target.value, None)
        case ast.Subscript():
            _assign_item(scope, target, node)
        case ast.Attribute():
            if target.attr == "__class__" and scope.is_own_module(target.value) and node is not None:
                scope.replaced_by, scope.keeps_names = scope.qualify(node), True
                return
            owner = scope.qualify(target.value)
            if owner and not target.attr.startswith("__"):
                bound = bound_of(node, scope) if node is not None else value()
                scope.patches.append(Patch(owner, target.attr, bound))


def _assign_item(scope: Scope, target: ast.Subscript, node: ast.expr | None) -> None:
    """`globals()[name] = ...`, `sys.modules[__name__] = ...`."""
    if is_module_item(target, scope.name):
        if isinstance(node, (ast.Name, ast.Attribute)) and scope.qualify(node) in scope.reader:
            _replace(scope, scope.qualify(node))
            return
        called = node.func if isinstance(node, ast.Call) else node
        scope.replaced_by = scope.qualify(called) if called is not None else ""
        scope.open = scope.open or not scope.replaced_by
    elif (
        isinstance(target.value, ast.Call)
        and isinstance(target.value.func, ast.Name)
        and target.value.func.id in ("globals", "vars", "locals")
        and not target.value.args
    ):
        name = literals.text(target.slice, scope.known())
        if name is None:
            scope.open = True
        else:
            scope.bind(name, bound_of(node, scope) if node is not None else value())


def _replace(scope: Scope, module: str) -> None:
    """The module puts another one in its place."""
    found, _ = scope.reader.star(module + ".*")
    scope.names.clear()
    scope.names.update(found)
    scope.open = True  # the submodules of the other one are there too


def export(scope: Scope, node: ast.expr) -> None:
    """Adds to `__all__`; what cannot be read there is found by its name, or leaves the module open."""
    if scope.exported is None:
        scope.exported = []
    found = literals.strings(node, scope.known())
    if found is not None:
        scope.exported += found
    elif isinstance(node, ast.BinOp):
        export(scope, node.left)
        export(scope, node.right)
    elif isinstance(node, ast.Attribute) and node.attr == "__all__":
        names, whole = scope.reader.star(scope.qualify(node.value))
        scope.exported += [name for name, _ in names]
        scope.open = scope.open or not whole
    elif isinstance(node, (ast.List, ast.Tuple)):
        for element in node.elts:
            if isinstance(element, ast.Starred):
                export(scope, element.value)
            else:
                one = literals.text(element, scope.known())
                name = scope.qualify(element.value) if isinstance(element, ast.Attribute) else ""
                scope.exported += [one or name.rpartition(".")[2]] if one or name else []
    else:
        scope.exported += [name for name in scope.names if not name.startswith("_")]
