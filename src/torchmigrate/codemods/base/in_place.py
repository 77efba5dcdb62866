"""Methods that change a tensor in place: those with an underscore at the end."""

from __future__ import annotations

import ast

from torchmigrate.patterns import pattern

_IN_PLACE = pattern(r"[a-z]\w*[^_]_")
_HARMLESS = frozenset(["requires_grad_", "detach_", "retain_grad_", "share_memory_"])


def changed_by_call(node: ast.AST) -> ast.expr | None:
    """The object of a call such as `x.mul_(2)`, if it is a tensor; None: it is another call."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    name = node.func.attr
    return node.func.value if _IN_PLACE.fullmatch(name) and name not in _HARMLESS else None
