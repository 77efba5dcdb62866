"""Where a function computes attention by hand: products of scores, their softmax, and values.

Names are followed loosely here: through assignments, branches and whatever keeps the shape. Whether a place
can be rewritten is for `_attention_parts` to say.
"""

from __future__ import annotations

import ast
import enum
from bisect import bisect_left
from collections.abc import Iterator

from msgspec import Struct

from torchmigrate.codemods.attention.products import untransposed
from torchmigrate.codemods.base.operations import Operation, Reader, number
from torchmigrate.semantics.model import SemanticModel
from torchmigrate.source.trees import children, walk

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_KEEPS = frozenset("clamp clamp_ sub sub_".split())  # in addition to the known operations


class Stage(enum.Enum):
    """How far a value is."""

    SCORES = "scores"  # a product of queries and keys
    WEIGHTS = "weights"  # their softmax
    TURNED = "turned"  # the same with the last two dimensions transposed


_Known = tuple[Stage, ast.Call | None]


class Site(Struct, frozen=True):
    """One attention.

    softmax: the call.
    product: of the weights and the values; weights: its operand.
    statement: the statement that holds the product; block: the statements that it is one of.
    function, owner: in which it stands, and the class whose method that is.
    """

    softmax: ast.Call
    product: ast.expr
    weights: ast.expr
    statement: ast.stmt
    block: list[ast.stmt]
    function: _Function
    owner: ast.ClassDef | None


def sites(names: SemanticModel, reader: Reader) -> Iterator[Site]:
    """Every attention of a module, in source order."""
    # Most functions have no softmax, nor has their class a layer of it: they are not looked at.
    rows = sorted({*_softmaxes(names)})
    for function, owner in _functions(names.tree.body, None):
        around = owner or function
        first = bisect_left(rows, around.lineno)
        if first < len(rows) and rows[first] <= (around.end_lineno or around.lineno):
            yield from _Walk(function, owner, reader).run()


def _softmaxes(names: SemanticModel) -> Iterator[int]:
    """The rows of what may be a softmax, or a layer of it."""
    for use in names.uses:
        if any(name.endswith(("softmax", "Softmax")) for name in use.candidates):
            yield getattr(use.node, "lineno", 0)
    for node in names.nodes(ast.Attribute):
        if node.attr == "softmax":
            yield node.end_lineno or node.lineno


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
    if isinstance(statement, (_Function, ast.ClassDef)):
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
        self.known: dict[str, _Known] = {}
        self.found: list[tuple[ast.Call, ast.expr, ast.expr]] = []

    def run(self) -> Iterator[Site]:
        yield from self._block(self.function.body)

    def _block(self, block: list[ast.stmt]) -> Iterator[Site]:
        for statement in block:
            if isinstance(statement, (_Function, ast.ClassDef)):
                continue
            self.found = []
            stage = None
            for expression in expressions(statement):
                stage = self._stage(expression)
            for softmax, product, weights in self.found:
                yield Site(softmax, product, weights, statement, block, self.function, self.owner)
            self._bind(statement, stage)
            if isinstance(statement, ast.If):
                yield from self._branches(statement)
                continue
            for inner in blocks(statement):
                yield from self._block(inner)

    def _branches(self, statement: ast.If) -> Iterator[Site]:
        """Behind a condition, a name may be what any of the branches made of it."""
        before = dict(self.known)
        yield from self._block(statement.body)
        after, self.known = self.known, before
        yield from self._block(statement.orelse)
        for name, stage in after.items():
            if self.known.get(name, (Stage.SCORES, None))[0] is Stage.SCORES:
                self.known[name] = stage

    def _bind(self, statement: ast.stmt, stage: tuple[Stage, ast.Call | None] | None) -> None:
        """Note what an assignment gives its name; the value is the last expression of the statement."""
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                for name in walk(target):
                    if isinstance(name, ast.Name):
                        self.known.pop(name.id, None)
                if isinstance(target, ast.Name) and stage is not None:
                    self.known[target.id] = stage

    def _stage(self, node: ast.expr) -> _Known | None:
        """How far the value of an expression is; attentions on the way are noted."""
        if isinstance(node, ast.Name):
            return self.known.get(node.id)
        if isinstance(node, ast.Constant):
            return None
        operation = self.reader.operation(node, self.owner)
        if operation is not None:
            return self._of_operation(node, operation)
        inner = [self._stage(child) for child in _children(node)]
        if isinstance(node, ast.Attribute) and node.attr == "mT":
            return _turned(inner[0])
        if isinstance(node, ast.IfExp) or (isinstance(node, ast.Call) and _keeps_shape(node)):
            return next((stage for stage in inner if stage is not None), None)
        if isinstance(node, ast.Attribute) and node.attr in _KEEPS:
            return inner[0]  # `scores.clamp(...)`
        return None

    def _of_operation(self, node: ast.expr, operation: Operation) -> _Known | None:
        inner = [self._stage(child) for child in (*operation.operands, *operation.keywords.values())]
        first = next((stage for stage in inner if stage is not None), None)
        if operation.kind in ("matmul", "einsum", "baddbmm"):
            factors = len(operation.operands) - (operation.kind != "matmul")
            return self._of_product(node, operation, inner) if factors == 2 else None
        if operation.kind == "softmax":
            scores = inner[0] if inner else None
            if scores is None or scores[0] is not Stage.SCORES or not isinstance(node, ast.Call):
                return None
            return (Stage.WEIGHTS, node) if last_dimension(operation) else None
        if operation.kind in ("transpose", "permute"):
            turns = untransposed(operation, node, bmm=True) is not None
            return _turned(inner[0]) if turns else None
        return first if operation.kind != "logical_not" else None

    def _of_product(self, node: ast.expr, operation: Operation, inner: list[_Known | None]) -> _Known | None:
        """A product of weights is an attention, any other may be scores."""
        wanted: tuple[tuple[Stage, ...], ...] = ((Stage.WEIGHTS,), (Stage.TURNED,))
        if operation.kind != "matmul":
            wanted = ((), (Stage.WEIGHTS,), (Stage.WEIGHTS,) if operation.kind == "einsum" else ())
        for operand, stage, wants in zip(operation.operands, inner, wanted, strict=False):
            if stage is not None and stage[0] in wants and stage[1] is not None:
                self.found.append((stage[1], node, operand))
                return None
        return (Stage.SCORES, None)


def _turned(stage: _Known | None) -> _Known | None:
    """What transposing makes of weights."""
    if stage is None or stage[0] is Stage.SCORES:
        return None
    return (Stage.WEIGHTS if stage[0] is Stage.TURNED else Stage.TURNED), stage[1]


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
    """Whether an unknown call may return its argument with small changes: a layer, a cast."""
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
