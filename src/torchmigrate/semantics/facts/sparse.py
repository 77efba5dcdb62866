"""What is visibly a sparse tensor: many functions that replace old ones take dense tensors only.

Unlike a dtype this asks for a chance: one binding of a name to a sparse tensor is enough.
"""

from __future__ import annotations

import ast

from torchmigrate.semantics.facts.file_facts import FileFacts
from torchmigrate.semantics.model import Scope

# Methods that only sparse tensors have, or that make them; and functions that do.
_MAKES = frozenset(
    "to_sparse to_sparse_coo to_sparse_csr to_sparse_csc to_sparse_bsr to_sparse_bsc coalesce sparse_mask "
    "sparse_resize_ sparse_resize_and_clear_ hspmm".split()
)
_FACTORIES = frozenset(
    "sparse_coo_tensor sparse_csr_tensor sparse_csc_tensor sparse_bsr_tensor sparse_bsc_tensor "
    "sparse_compressed_tensor spdiags".split()
)
# Methods after which a sparse tensor still is one.
_KEEP = frozenset(
    "t transpose cpu cuda to float double half clone detach requires_grad_ mul mul_ div div_ add add_ sub "
    "sub_ neg abs pow index_select narrow unsqueeze type contiguous".split()
)


Variables = dict[tuple[Scope, str], bool]  # names in the scopes that bind them -> whether one may be sparse


def is_sparse(node: ast.expr, scope: Scope, around: FileFacts, known: Variables) -> bool:
    """Whether an expression of a file may be a sparse tensor, by what makes it.

    known: what was found of the file's variables, so that each is followed once; gets more.
    """
    seen: set[tuple[Scope, str]] = set()
    found = _reaches_sparse(node, scope, around, known, seen)
    if not found:
        known.update(dict.fromkeys(seen, False))  # all that they follow from was looked at
    elif isinstance(node, ast.Name) and (held := _holder(node.id, scope)) is not None:
        known[held, node.id] = True
    return found


def _holder(name: str, scope: Scope) -> Scope | None:
    held: Scope | None = scope
    while held is not None and name not in held.bindings:
        held = held.parent
    return held


def _reaches_sparse(
    node: ast.expr, scope: Scope, around: FileFacts, known: Variables, seen: set[tuple[Scope, str]]
) -> bool:
    todo = [(node, scope)]
    while todo:
        node, scope = todo.pop()
        if isinstance(node, ast.Name):
            held = _holder(node.id, scope)
            if held is None or (held, node.id) in seen:
                continue
            if (held, node.id) in known:
                if known[held, node.id]:
                    return True
                continue
            seen.add((held, node.id))
            for binding in held.bindings[node.id]:
                if isinstance(binding.statement, (ast.Assign, ast.AnnAssign)) and binding.statement.value:
                    todo.append((binding.statement.value, held))
        elif isinstance(node, ast.Call):
            function = node.func
            name = around.qualified(function) or ""
            last = function.attr if isinstance(function, ast.Attribute) else name.rpartition(".")[2]
            if last in _FACTORIES or name.startswith("torch.sparse.") or "cuda.sparse." in name:
                return True
            if isinstance(function, ast.Attribute) and (not name or name.startswith("torch.Tensor.")):
                if last in _MAKES:
                    return True
                if last in _KEEP:
                    todo.append((function.value, scope))
        elif isinstance(node, ast.BinOp):
            todo += [(node.left, scope), (node.right, scope)]
        elif isinstance(node, ast.UnaryOp):
            todo.append((node.operand, scope))
        elif isinstance(node, ast.IfExp):
            todo += [(node.body, scope), (node.orelse, scope)]
    return False
