"""Names that functions set on modules when they are called, as torchaudio does when it chooses a backend."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from api import literals
from api.bound import value
from api.scope import Patch, Scope


def patches(tree: ast.Module, scope: Scope) -> Iterator[Patch]:
    """`torchaudio.load = ...` and `setattr(torchaudio, "load", ...)` in the functions of a module.

    Only what is set on a module counts: what is set on classes and objects may be anything's.
    """
    for function in ast.walk(tree):
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            own = _local(function)
            for target, names in _set(function, scope):
                root = target
                while isinstance(root, ast.Attribute):
                    root = root.value
                owner = scope.qualify(target)
                if owner in scope.reader and not (isinstance(root, ast.Name) and root.id in own):
                    yield from (Patch(owner, name, value()) for name in names if not name.startswith("_"))


def _set(function: ast.AST, scope: Scope) -> Iterator[tuple[ast.expr, list[str]]]:
    """On what, and which names; a name that a loop takes from a list is each of them."""
    lists = {
        part.target.id: literals.strings(part.iter, scope.known()) or []
        for part in ast.walk(function)
        if isinstance(part, ast.For) and isinstance(part.target, ast.Name)
    }
    for part in ast.walk(function):
        if isinstance(part, ast.Assign):
            for target in part.targets:
                if isinstance(target, ast.Attribute):
                    yield target.value, [target.attr]
        elif isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id == "setattr":
            owner, name = part.args[:2]
            if isinstance(name, ast.Name) and name.id in lists:
                yield owner, lists[name.id]
            elif isinstance(name, ast.Constant) and isinstance(name.value, str):
                yield owner, [name.value]


def _local(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """Parameters and variables of a function: not the modules that the file imports."""
    arguments = function.args
    every = [
        *arguments.posonlyargs,
        *arguments.args,
        *arguments.kwonlyargs,
        arguments.vararg,
        arguments.kwarg,
    ]
    found = {argument.arg for argument in every if argument is not None}
    stored = (part for part in ast.walk(function) if isinstance(part, ast.Name))
    return found | {part.id for part in stored if isinstance(part.ctx, ast.Store)}
