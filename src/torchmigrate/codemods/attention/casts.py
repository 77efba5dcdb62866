"""Casts on the way through hand-written attention: the softmax of half floats computed in single precision.

The new function computes its softmax in single precision anyway, and gives the dtype of its operands.
"""

from __future__ import annotations

import ast

from torchmigrate.codemods.attention.sites import Site
from torchmigrate.codemods.attention.trail import RemovedStatements, binds
from torchmigrate.codemods.base.operations import Operation, Reader
from torchmigrate.codemods.base.unclear import Unclear
from torchmigrate.semantics.flow.answers import Answers
from torchmigrate.source.trees import walk

_SINGLE = ("torch.float32", "torch.float")
_OTHER = "the softmax uses another dtype"
_NOT_BACK = "the softmax uses another dtype, and its result is not cast back"
_OWN = "the weights are cast to another dtype"
_OPERANDS = "query and key are cast: also cast the values, and cast the result back"


class Casts:
    """Whether the casts of one site leave the dtype of the result what it is."""

    def __init__(self, site: Site, reader: Reader) -> None:
        self.site = site
        self.reader = reader
        self._cast_variables = Answers(self._is_cast_variable, False)
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

    def _is_cast(self, node: ast.expr) -> bool:
        """Whether an operand is cast, in itself or where its variable is assigned."""
        while not isinstance(node, ast.Name):
            operation = self.reader.operation(node, self.site.owner)
            if operation is None or not operation.operands:
                return False
            if operation.kind == "cast":
                return operation.method == "float" or self._is_single(operation)
            if operation.kind not in ("mul", "div", "transpose", "permute", "reshape", "same"):
                return False
            node = operation.operands[0]
        return self._cast_variables(node.id)

    def _is_cast_variable(self, name: str) -> bool:
        given = self.reader.assigned(self.site.function).get(name, [])
        return True in [self._is_cast(value) for value in given if not isinstance(value, ast.Name)]

    def _of_tensor(self, operation: Operation) -> bool:
        """Whether a cast is to the dtype of a tensor: `x.to(y.dtype)`, `x.type_as(y)`."""
        given = (*operation.operands[1:], *operation.keywords.values())
        if len(given) != 1:
            return False
        if operation.method == "type_as":
            return True
        dtype = given[0]
        if isinstance(dtype, ast.Name):  # dtype = query.dtype
            values = [
                statement.value
                for statement in walk(self.site.function)
                if isinstance(statement, ast.Assign) and binds(statement, dtype.id)
            ]
            if len(values) != 1:
                return False
            dtype = values[0]
        return isinstance(dtype, ast.Attribute) and dtype.attr == "dtype"
