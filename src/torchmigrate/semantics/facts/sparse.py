"""What is visibly a sparse tensor: many functions that replace old ones take dense tensors only.

Unlike a dtype this looks for a chance: one way from a sparse tensor is enough.
"""

from __future__ import annotations

import ast

from torchmigrate.semantics.flow.domain import NOTHING, Domain, Values
from torchmigrate.semantics.flow.steps import Path

SPARSE = "sparse"
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


class Sparse(Domain[str]):
    """What may be a sparse tensor."""

    def start(self, node: ast.AST) -> str | None:
        if not isinstance(node, ast.Call):
            return None
        name = self.flow.names.qualified(node.func) or ""
        last = node.func.attr if isinstance(node.func, ast.Attribute) else name.rpartition(".")[2]
        if last in _FACTORIES or name.startswith("torch.sparse.") or "cuda.sparse." in name:
            return SPARSE
        return SPARSE if last in _MAKES and _is_method(node.func, name) else None

    def through(self, node: ast.AST) -> Values[str]:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _KEEP:
            kept = _is_method(node.func, self.flow.names.qualified(node.func) or "")
            return self.of(node.func.value) if kept else NOTHING
        if isinstance(node, ast.BinOp):
            return self.join(node.left, node.right)
        return self.of(node.operand) if isinstance(node, ast.UnaryOp) else NOTHING

    def part(self, node: ast.AST, path: Path) -> Values[str]:
        return NOTHING


def _is_method(function: ast.expr, name: str) -> bool:
    return isinstance(function, ast.Attribute) and (not name or name.startswith("torch.Tensor."))
