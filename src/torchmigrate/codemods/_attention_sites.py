"""Where a function computes attention by hand: products of scores, their softmax, and values.

Names are followed loosely here: through assignments, branches and whatever keeps the shape. Whether a place
can be rewritten is for `_attention_parts` to say.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterator
from dataclasses import dataclass

from torchmigrate.codemods._operations import Operation, Reader, number
from torchmigrate.trees import children

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_KEEPS = frozenset(
    "masked_fill masked_fill_ to float half bfloat16 double type type_as clamp clamp_ contiguous mul mul_ "
    "div div_ add add_ sub sub_ view reshape unflatten flatten unsqueeze squeeze".split()
)


class Stage(enum.Enum):
    """How far a value is."""

    SCORES = "scores"  # a product of queries and keys
    WEIGHTS = "weights"  # their softmax


@dataclass(frozen=True, slots=True)
class Site:
    """One attention.

    softmax: the call.
    product: of the weights and the values.
    statement: the statement that holds the product; block: the statements that it is one of.
    function, owner: in which it stands, and the class whose method that is.
    """

    softmax: ast.Call
    product: ast.expr
    statement: ast.stmt
    block: list[ast.stmt]
    function: _Function
    owner: ast.ClassDef | None


def sites(tree: ast.Module, reader: Reader) -> Iterator[Site]:
    """Every attention of a module, in source order."""
    for function, owner in _functions(tree.body, None):
        yield from _Walk(function, owner, reader).run()


def _functions(
    block: list[ast.stmt], owner: ast.ClassDef | None
) -> Iterator[tuple[_Function, ast.ClassDef | None]]:
    for statement in block:
        if isinstance(statement, _Function):
            yield statement, owner
            yield from _functions(statement.body, owner)
        elif isinstance(statement, ast.ClassDef):
            yield from _functions(statement.body, statement)
        else:
            for inner in blocks(statement):
                yield from _functions(inner, owner)


def blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The statement lists directly inside a compound statement that run in the same scope."""
    if isinstance(statement, _Function | ast.ClassDef):
        return
    for name in ("body", "orelse", "finalbody"):
        found = getattr(statement, name, None)
        if isinstance(found, list) and found:
            yield found
    for handler in getattr(statement, "handlers", ()):
        yield handler.body
    for case in getattr(statement, "cases", ()):
        yield case.body


def expressions(statement: ast.stmt) -> Iterator[ast.expr]:
    """The expressions of a statement itself, not those of statements inside it."""
    for child in children(statement):
        if isinstance(child, ast.expr):
            yield child
        elif isinstance(child, ast.withitem):
            yield child.context_expr


class _Walk:
    """Follows the names of one function."""

    def __init__(self, function: _Function, owner: ast.ClassDef | None, reader: Reader) -> None:
        self.function = function
        self.owner = owner
        self.reader = reader
        self.known: dict[str, tuple[Stage, ast.Call | None]] = {}
        self.found: list[tuple[ast.Call, ast.expr]] = []

    def run(self) -> Iterator[Site]:
        yield from self._block(self.function.body)

    def _block(self, block: list[ast.stmt]) -> Iterator[Site]:
        for statement in block:
            if isinstance(statement, _Function | ast.ClassDef):
                continue
            self.found = []
            stage = None
            for expression in expressions(statement):
                stage = self._stage(expression)
            for softmax, product in self.found:
                yield Site(softmax, product, statement, block, self.function, self.owner)
            self._bind(statement, stage)
            for inner in blocks(statement):
                yield from self._block(inner)

    def _bind(self, statement: ast.stmt, stage: tuple[Stage, ast.Call | None] | None) -> None:
        """Note what an assignment gives its name; the value is the last expression of the statement."""
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                for name in ast.walk(target):
                    if isinstance(name, ast.Name):
                        self.known.pop(name.id, None)
                if isinstance(target, ast.Name) and stage is not None:
                    self.known[target.id] = stage

    def _stage(self, node: ast.expr) -> tuple[Stage, ast.Call | None] | None:
        """How far the value of an expression is; attentions on the way are noted."""
        if isinstance(node, ast.Name):
            return self.known.get(node.id)
        operation = self.reader.operation(node, self.owner)
        if operation is not None:
            return self._of_operation(node, operation)
        inner = [self._stage(child) for child in _children(node)]
        if isinstance(node, ast.IfExp):
            return next((stage for stage in inner if stage is not None), None)
        if isinstance(node, ast.Call) and inner and _keeps_shape(node):
            return next((stage for stage in inner if stage is not None), None)
        return None

    def _of_operation(self, node: ast.expr, operation: Operation) -> tuple[Stage, ast.Call | None] | None:
        inner = [self._stage(child) for child in (*operation.operands, *operation.keywords.values())]
        first = next((stage for stage in inner if stage is not None), None)
        if operation.kind in ("matmul", "einsum"):
            weights = inner[:1] if operation.kind == "matmul" else inner[1:]
            for stage in weights:
                if stage is not None and stage[0] is Stage.WEIGHTS and stage[1] is not None:
                    self.found.append((stage[1], node))
                    return None
            operands = operation.operands[1:] if operation.kind == "einsum" else operation.operands
            return (Stage.SCORES, None) if len(operands) == 2 else None
        if operation.kind == "softmax":
            scores = inner[0] if inner else None
            if scores is None or scores[0] is not Stage.SCORES or not isinstance(node, ast.Call):
                return None
            return (Stage.WEIGHTS, node) if last_dimension(operation) else None
        if operation.kind in ("transpose", "permute", "logical_not"):
            return None
        return first


def last_dimension(operation: Operation) -> int | None:
    """The literal dimension of a softmax, if it can be the last one."""
    if operation.layer is not None:
        given = operation.layer.args[:1] or [
            item.value for item in operation.layer.keywords if item.arg == "dim"
        ]
        dim = number(given[0]) if given else None
    else:
        dim = number(operation.argument(1, "dim"))
    return int(dim) if dim in (-1, 2, 3) else None


def _keeps_shape(call: ast.Call) -> bool:
    """Whether a call that nobody knows may give its argument, changed a little: a layer, a cast."""
    function = call.func
    if isinstance(function, ast.Attribute):
        if isinstance(function.value, ast.Name) and function.value.id == "self":
            return len(call.args) == 1  # `self.dropout(attention)`
        return function.attr in _KEEPS
    return isinstance(function, ast.Name) and len(call.args) == 1


def _children(node: ast.expr) -> Iterator[ast.expr]:
    for child in children(node):
        if isinstance(child, ast.expr):
            yield child
        elif isinstance(child, ast.keyword):
            yield child.value
