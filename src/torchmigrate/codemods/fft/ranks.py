"""How many dimensions a variable has, as the function takes its sizes apart: `b, c, h, w = x.shape`."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from torchmigrate.semantics.flow.reaching import Reaching
from torchmigrate.source.trees import walk

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def sizes_unpacked(name: ast.Name, found: Reaching, parents: Mapping[ast.AST, ast.AST]) -> int | None:
    """The number of sizes of a variable, with the value that it has where it is read."""
    seen = found.of(name)
    for definition in found.every:
        if definition.unpacked is None or definition.statement is None:
            continue
        value, _, count = definition.unpacked
        owner = _owner(value)
        if owner is None or owner.id != name.id or not seen or found.of(owner) != seen:
            continue
        statement = definition.statement
        starred = any(isinstance(item, ast.Starred) for item in walk(statement))
        if not starred and _is_reached(statement, name, parents):
            return count
    return None


def _owner(node: ast.expr) -> ast.Name | None:
    """`x` of `x.shape` and `x.size()`."""
    if isinstance(node, ast.Call) and not node.args and not node.keywords:
        node = node.func
        if not isinstance(node, ast.Attribute) or node.attr != "size":
            return None
    elif not isinstance(node, ast.Attribute) or node.attr != "shape":
        return None
    return node.value if isinstance(node.value, ast.Name) else None


def _is_reached(statement: ast.stmt, name: ast.Name, parents: Mapping[ast.AST, ast.AST]) -> bool:
    """Whether a statement runs in every call in which a name is read."""
    function = parents.get(statement)
    if not isinstance(function, _FUNCTIONS):
        return False  # in a branch, which may be about this number
    if statement.lineno < name.lineno:
        return True
    leaves = (ast.Return, ast.Raise)
    return not any(
        isinstance(inner, leaves) and parents.get(inner) is not function for inner in walk(function)
    )
