"""How many dimensions a tensor has, read from the call that makes it."""

from __future__ import annotations

import ast

from torchmigrate.semantics.facts.file_facts import FileFacts
from torchmigrate.semantics.model import BindingKind, Scope

_FACTORIES = frozenset("zeros ones empty rand randn".split())
_SHAPED = frozenset("view reshape permute".split())
_MATRICES = frozenset("eye mm addmm vander cov".split())
_DEEPEST = 20  # calls and variables on the way
# Of all elements, if no dimension is given.
_REDUCTIONS = frozenset("sum mean prod max min std var norm argmax argmin all any median logsumexp".split())
_SAME = frozenset("contiguous clone detach float double half long int bool byte cuda cpu".split())


def plain_rank(node: ast.expr, scope: Scope, around: FileFacts, depth: int = 0) -> int | None:
    """The number of dimensions of a tensor, if it is plain to see."""
    if depth > _DEEPEST:
        return None  # or a variable that is computed from itself
    if isinstance(node, ast.Name):
        bindings = scope.bindings.get(node.id, [])
        if len(bindings) != 1 or bindings[0].kind is not BindingKind.ASSIGNMENT:
            return None
        statement = bindings[0].statement
        if not isinstance(statement, ast.Assign) or bindings[0].node not in statement.targets:
            return None
        return (
            plain_rank(statement.value, scope, around, depth + 1)
            if isinstance(statement.value, ast.Call)
            else None
        )
    if not isinstance(node, ast.Call):
        return None
    owner, _, last = (around.qualified(node.func) or "").rpartition(".")
    if not owner and isinstance(node.func, ast.Attribute) and node.func.attr in ("mm", "addmm"):
        return 2  # of whatever is a tensor
    if owner == "torch" and last in _FACTORIES:
        return sizes_given(node)
    if owner == "torch" and last == "arange":
        return 1
    if last in _MATRICES and owner in ("torch", "torch.Tensor"):
        return 2
    if owner == "torch" and last == "tensor" and node.args:
        return _nesting(node.args[0])
    if owner != "torch.Tensor" or not isinstance(node.func, ast.Attribute):
        return None
    if last in _SHAPED:
        return sizes_given(node)
    if last in _REDUCTIONS and not node.args and not node.keywords:
        return 0
    if last in _SAME and not node.args:
        return plain_rank(node.func.value, scope, around, depth + 1)
    return None


def same_shape(node: ast.expr) -> ast.expr:
    """What a tensor is made of that has its shape: `x` of `x.data.cpu()`, `-x` and `x / 2`."""
    while True:
        if isinstance(node, ast.Attribute) and node.attr == "data":
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr not in _SAME and node.func.attr not in ("to", "type"):
                return node
            node = node.func.value
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            node = node.operand
        elif isinstance(node, ast.BinOp) and isinstance(node.right, ast.Constant):
            node = node.left
        elif isinstance(node, ast.BinOp) and isinstance(node.left, ast.Constant):
            node = node.right
        else:
            return node


def _nesting(node: ast.expr) -> int | None:
    """How deep the lists are in which a number stands."""
    if isinstance(node, ast.UnaryOp):
        node = node.operand
    if isinstance(node, ast.Constant):
        return 0 if isinstance(node.value, (int, float, complex)) else None
    if not isinstance(node, (ast.List, ast.Tuple)) or not node.elts:
        return None
    inner = _nesting(node.elts[0])
    return None if inner is None else inner + 1


def sizes_given(node: ast.Call) -> int | None:
    """How many sizes are given; a single argument that is not a number may hold any number of them."""
    sizes = node.args
    if len(sizes) == 1 and isinstance(sizes[0], (ast.Tuple, ast.List)):
        sizes = sizes[0].elts
    elif len(sizes) == 1 and not _is_number(sizes[0]):
        return None
    if not sizes or any(isinstance(item, ast.Starred) for item in sizes):
        return None
    return len(sizes)


def _is_number(node: ast.expr) -> bool:
    return isinstance(node.operand if isinstance(node, ast.UnaryOp) else node, ast.Constant)
