"""What changes a tensor in place: methods with an underscore at the end, and statements such as `x += y`."""

from __future__ import annotations

import ast
import re

_IN_PLACE = re.compile(r"[a-z]\w*[^_]_")
_HARMLESS = frozenset(["requires_grad_", "detach_", "retain_grad_", "share_memory_"])
# `x @= y` gives `x` another tensor, and so did `x **= y` before torch 1.11.
_NOT_IN_PLACE = (ast.MatMult, ast.Pow)


def changed_by_call(node: ast.AST) -> ast.expr | None:
    """The object of a call such as `x.mul_(2)`, if it is a tensor; None: it is another call."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    name = node.func.attr
    return node.func.value if _IN_PLACE.fullmatch(name) and name not in _HARMLESS else None


def is_augmented(node: ast.AST) -> bool:
    """Whether a statement is one such as `x += y`, which changes a tensor in place."""
    return isinstance(node, ast.AugAssign) and not isinstance(node.op, _NOT_IN_PLACE)
