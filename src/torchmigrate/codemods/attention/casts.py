"""Casts on the way through hand-written attention: the softmax of half floats computed in single precision.

The new function computes its softmax in single precision anyway, and gives the dtype of its operands.
"""

from __future__ import annotations

import ast

from torchmigrate.codemods.attention.trail import RemovedStatements
from torchmigrate.codemods.base.operations import Operation, Reader
from torchmigrate.codemods.base.unclear import Unclear

_SINGLE = ("torch.float32", "torch.float")
_KEEP_DTYPE = ("mul", "div", "transpose", "permute", "reshape", "same")
_OTHER = "the softmax uses another dtype"
_NOT_BACK = "the softmax uses another dtype, and its result is not cast back"
_OWN = "the weights are cast to another dtype"
_OPERANDS = "query and key are cast: also cast the values, and cast the result back"


class Casts:
    """Whether the casts of one site leave the dtype of the result what it is."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.up = False  # to single precision, at or before the softmax
        self.back = False  # to the dtype of a tensor, after it

    def of_softmax(self, operation: Operation) -> None:
        """Note `softmax(scores, dim=-1, dtype=torch.float32)`.

        Raises:
            Unclear: it is computed in another dtype.
        """
        dtype = operation.argument(2, "dtype")
        if set(operation.keywords) - {"dim", "dtype", "_stacklevel"} or len(operation.operands) > 3:
            raise Unclear(_OTHER)
        if dtype is None or (isinstance(dtype, ast.Constant) and dtype.value is None):
            return
        if self.reader.qualified(dtype) not in _SINGLE:
            raise Unclear(_OTHER)
        self.up = True

    def of_scores(self, operation: Operation, trail: RemovedStatements) -> None:
        """Note a cast of the scores.

        Raises:
            Unclear: it is to something but single precision, or the dtype of another tensor.
        """
        if operation.method == "float" or self._is_single(operation):
            self.up = True
        elif not self._of_tensor(operation):
            raise Unclear(_OTHER)
        for item in operation.operands[1:]:
            trail.allow(item)

    def of_weights(self, operation: Operation, trail: RemovedStatements) -> None:
        """Note a cast of the weights.

        Raises:
            Unclear: it is not to the dtype of a tensor.
        """
        if not self._of_tensor(operation):
            raise Unclear(_OWN)
        self.back = True
        for item in (*operation.operands[1:], *operation.keywords.values()):
            trail.allow(item)

    def check(self, query: ast.expr, key: ast.expr) -> None:
        """What comes out has the dtype that query, key and values have.

        Raises:
            Unclear: it may not.
        """
        if self.up and not self.back:
            raise Unclear(_NOT_BACK)
        if self.back and (self._is_cast(query) or self._is_cast(key)):
            raise Unclear(_OPERANDS)

    def _is_single(self, operation: Operation) -> bool:
        given = (*operation.operands[1:], *operation.keywords.values())
        return len(given) == 1 and self.reader.qualified(given[0]) in _SINGLE

    def _is_cast(self, node: ast.AST | None) -> bool:
        """Whether an operand is cast, in itself or where its variable is assigned."""
        for step in self.reader.flow.origins(node) if node is not None else ():
            operation = self.reader.operation(step.node) if step.node is not None else None
            if operation is None or not operation.operands:
                continue
            if operation.kind == "cast" and (operation.method == "float" or self._is_single(operation)):
                return True
            if operation.kind in _KEEP_DTYPE and self._is_cast(operation.operands[0]):
                return True
        return False

    def _of_tensor(self, operation: Operation) -> bool:
        """Whether a cast is to the dtype of a tensor: `x.to(y.dtype)`, `x.type_as(y)`."""
        given = (*operation.operands[1:], *operation.keywords.values())
        if len(given) != 1:
            return False
        dtype = self.reader.flow.only_origin(given[0])  # dtype = query.dtype
        return operation.method == "type_as" or (isinstance(dtype, ast.Attribute) and dtype.attr == "dtype")
