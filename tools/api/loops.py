"""Loops and calls in the body of a module or class that set names."""

from __future__ import annotations

import ast

from api import literals
from api.assignments import assign, export
from api.bound import alias, value
from api.scope import Patch, Run, Scope
from api.values import bound_of

_SETTERS = {"globals", "setattr", "vars", "locals"}


def run_loop(node: ast.For, scope: Scope, run: Run) -> None:
    """The body for every element that is written out, if it sets names; else once."""
    if not _sets_names(node):
        assign(scope, node.target, None)
        run(scope, node.body)
        run(scope, node.orelse)
        return
    source = _dir_of(node.iter, scope)
    if source:
        found, whole = scope.reader.star(source + ".*")
        left_out = _left_out(node, scope)
        found = [(name, bound) for name, bound in found if name not in left_out]
        for name, bound in found:
            scope.bind(name, bound)
        scope.open = scope.open or not whole
        return
    elements = literals.items(node.iter, scope.known())
    if elements is None:
        assign(scope, node.target, None)
        _forget(node.target, scope)
        run(scope, node.body)
        return
    for element in elements:
        _take(node.target, element, scope)
        run(scope, node.body)
    _forget(node.target, scope)


def _sets_names(node: ast.For) -> bool:
    return any(isinstance(part, ast.Name) and part.id in _SETTERS for part in ast.walk(node))


def _dir_of(node: ast.expr, scope: Scope) -> str:
    """The module of a loop over `dir(module)`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dir" and node.args:
        return scope.qualify(node.args[0])
    return ""


def _left_out(node: ast.For, scope: Scope) -> set[str]:
    """The names of `if name in PRIVATE: continue`."""
    found: set[str] = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Compare) and isinstance(part.ops[0], ast.In):
            found.update(literals.strings(part.comparators[0], scope.known()) or ())
    return found


def _take(target: ast.expr, element: ast.expr, scope: Scope) -> None:
    if isinstance(target, ast.Name):
        scope.bind(target.id, value())
        scope.constants[target.id] = element
    elif isinstance(target, ast.Tuple):
        parts = element.elts if isinstance(element, (ast.Tuple, ast.List)) else []
        for index, name in enumerate(target.elts):
            if index < len(parts):
                _take(name, parts[index], scope)
            else:
                assign(scope, name, None)
                _forget(name, scope)


def _forget(target: ast.expr, scope: Scope) -> None:
    for part in ast.walk(target):
        if isinstance(part, ast.Name):
            scope.constants.pop(part.id, None)


def run_call(call: ast.Call, scope: Scope) -> None:
    """`__all__.extend(...)`, `setattr(...)`, `globals().update(...)`."""
    function = call.func
    if isinstance(function, ast.Attribute):
        on = function.value
        if isinstance(on, ast.Name) and on.id == "__all__" and call.args:
            if function.attr == "append":
                export(scope, ast.List([call.args[0]], ast.Load()))
            elif function.attr == "extend":
                export(scope, call.args[0])
            elif function.attr == "remove" and scope.exported is not None:
                name = literals.text(call.args[0], scope.known())
                scope.exported = [one for one in scope.exported if one != name]
        elif (
            isinstance(on, ast.Call)
            and isinstance(on.func, ast.Name)
            and on.func.id in ("globals", "vars")
            and function.attr in ("update", "setdefault")
            and not on.args
        ):
            names = literals.strings(call.args[0], scope.known()) if call.args else None
            if names is None:
                scope.open = True
            for name in names or ():
                scope.bind(name, value())
    elif isinstance(function, ast.Name) and function.id == "setattr" and len(call.args) == 3:
        _set(call, scope)
    elif scope.qualify(function).endswith(".install_config_module"):
        scope.made_into = f"{scope.qualify(function).rpartition('.')[0]}.ConfigModule"


def _set(call: ast.Call, scope: Scope) -> None:
    owner, name, node = call.args
    key = literals.text(name, scope.known())
    if scope.is_own_module(owner):
        if key is None:
            scope.open = True
        else:
            scope.bind(key, bound_of(node, scope))
        return
    target = scope.qualify(owner)
    if target:
        bound = bound_of(node, scope) if key else alias("")
        scope.patches.append(Patch(target, key or "", bound))
