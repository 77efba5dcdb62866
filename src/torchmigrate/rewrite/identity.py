"""Whether code asks if something is this very function: then another function is not the same answer."""

from __future__ import annotations

import ast
from collections.abc import Callable

from torchmigrate.findings import because
from torchmigrate.semantics.model import Role, Use
from torchmigrate.versions.surface import surface_of
from torchmigrate.versions.surface_model import EntryKind

REASON = because(
    "the file compares this object, and the new name is a different object: the other operand may be "
    "the old one"
)

_COMPARES = (ast.Is, ast.IsNot, ast.Eq, ast.NotEq, ast.In, ast.NotIn)
_LOOKS_UP = frozenset(["get", "pop", "setdefault", "index", "count", "remove", "discard", "__contains__"])


def is_compared(use: Use, parent: Callable[[ast.AST], ast.AST | None]) -> bool:
    """Whether a name is compared, or is a key: `act is F.tanh`, `act in (F.sigmoid, F.tanh)`, `{F.tanh: 1}`.

    parent: the node around a node within its statement.
    """
    if use.call is not None or use.role is Role.ANNOTATION:
        return False
    node: ast.AST = use.node
    outer = parent(node)
    while isinstance(outer, (ast.Tuple, ast.List, ast.Starred)):
        node, outer = outer, parent(outer)
    if isinstance(outer, ast.Compare):
        return any(isinstance(op, _COMPARES) for op in outer.ops)
    if isinstance(outer, ast.Dict):
        return any(node is key for key in outer.keys)
    if isinstance(outer, ast.Subscript):
        return node is outer.slice
    if isinstance(outer, ast.Call) and isinstance(outer.func, ast.Attribute) and node in outer.args:
        return outer.func.attr.startswith("assert") or (
            outer.func.attr in _LOOKS_UP and node is outer.args[0] and node is use.node
        )
    return isinstance(outer, (ast.Set, ast.MatchValue))


def are_other_objects(old: str, new: str | None, version: Callable[[str], tuple[int, ...]]) -> bool:
    """Whether two names are two functions or classes where both exist, as far as the API data tell.

    version: the release of a library that is looked at.
    """
    surface, library = surface_of(old), old.partition(".")[0]
    if surface is None:
        return False
    entry = surface.entry(old, version(library))
    if entry is None or entry.gone or entry.kind not in (EntryKind.FUNCTION, EntryKind.CLASS):
        return False  # removed, so that comparing with it fails; or a constant
    if new is None or new.partition(".")[0] != library:
        return True
    defined = surface.definition(old, version(library))
    return defined is None or defined != surface.definition(new, version(library))
