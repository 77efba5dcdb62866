"""Where a function computes attention by hand: products of scores, their softmax, and values.

What is found here may still not be possible to rewrite: see `parts`.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterator

from msgspec import Struct

from torchmigrate.codemods.attention.products import untransposed
from torchmigrate.codemods.base.operations import Operation, Reader, is_self, number
from torchmigrate.semantics.flow.domain import UNKNOWN, Domain, Sentinel, Values
from torchmigrate.semantics.flow.steps import Step, Steps
from torchmigrate.source.trees import last_name

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_KEEPS = frozenset("clamp clamp_ sub sub_".split())  # in addition to the known operations
_PRODUCTS = ("matmul", "einsum", "baddbmm")


class Stage(enum.Enum):
    """How far a value is."""

    SCORES = "scores"  # a product of queries and keys
    WEIGHTS = "weights"  # their softmax
    TURNED = "turned"  # the same with the last two dimensions transposed


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


def sites(reader: Reader, stages: Stages) -> list[Site]:
    """Every attention of a module, in source order."""
    index = reader.flow.index
    names = reader.flow.names
    found = []
    for product in [*names.nodes(ast.BinOp), *names.nodes(ast.Call)]:
        if isinstance(product, ast.Call) and not last_name(product.func).endswith((*_PRODUCTS, "bmm")):
            continue
        operation = reader.operation(product)
        home, statement = index.home_of(product), index.statement_of(product)
        if operation is None or operation.kind not in _PRODUCTS or not isinstance(home, _Function):
            continue
        assert statement is not None, "expressions stand in statements"
        owner = names.parents[home]
        for operand, softmax in stages.weighed(operation):
            if index.home_of(softmax) is home:
                block = index.block_of(statement) or []
                around = owner if isinstance(owner, ast.ClassDef) else None
                found.append(Site(softmax, product, operand, statement, block, home, around))
                break
    return sorted(found, key=lambda site: (site.product.lineno, site.product.col_offset))


class Stages(Domain[tuple[Stage, ast.Call | None]]):
    """How far values are on the way through attention; a layer may return its argument."""

    def __init__(self, reader: Reader) -> None:
        super().__init__(reader.flow)
        self._reader = reader

    def are_scores(self, node: ast.expr) -> bool:
        return (Stage.SCORES, None) in self.of(node)

    def weighed(self, operation: Operation) -> Iterator[tuple[ast.expr, ast.Call]]:
        """The operands of a product that are weights, each with its softmax."""
        factors = operation.operands[operation.kind != "matmul" :]
        second = {"matmul": Stage.TURNED, "einsum": Stage.WEIGHTS}.get(operation.kind)
        for operand, wanted in (
            zip(factors, (Stage.WEIGHTS, second), strict=False) if len(factors) == 2 else ()
        ):
            found = [value for value in self.of(operand) if not isinstance(value, Sentinel)]
            weights = [softmax for stage, softmax in found if softmax is not None and stage is wanted]
            if weights:
                yield operand, max(weights, key=lambda call: call.lineno)

    def steps(self, step: Step) -> Steps:
        """Those in one function: what another one computes may be scores of another kind."""
        home = self.flow.index.home_of(step.node) if step.node is not None else None
        return tuple(
            each
            for each in self.flow.steps(step)
            if each.node is None or self.flow.index.home_of(each.node) is home
        )

    def through(self, node: ast.AST) -> Values[tuple[Stage, ast.Call | None]]:
        operation = self._reader.operation(node)
        if operation is not None:
            return self._of_operation(node, operation)
        if isinstance(node, ast.AugAssign):
            return self.join(node.target, node.value)
        if isinstance(node, ast.Attribute) and node.attr == "mT":
            return self._turned(node.value)
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr in _KEEPS:
                return self.of(node.func.value)
            if len(node.args) == 1 and (isinstance(node.func, ast.Name) or is_self(_owner(node.func))):
                return self.of(node.args[0])  # `self.dropout(attention)`
        return frozenset([UNKNOWN])

    def _of_operation(self, node: ast.AST, operation: Operation) -> Values[tuple[Stage, ast.Call | None]]:
        operands = operation.operands
        if operation.kind in _PRODUCTS:
            return frozenset([(Stage.SCORES, None) if not [*self.weighed(operation)] else UNKNOWN])
        if operation.kind == "softmax" and operands:
            if self.are_scores(operands[0]) and last_dimension(operation) and isinstance(node, ast.Call):
                return frozenset([(Stage.WEIGHTS, node)])
        elif operation.kind in ("transpose", "permute"):
            assert isinstance(node, ast.Call), "a call"
            if untransposed(operation, node, bmm=True) is not None:
                return self._turned(operands[0])
        elif operation.kind != "logical_not":
            return self.join(*operands)
        return frozenset([UNKNOWN])

    def _turned(self, node: ast.expr) -> Values[tuple[Stage, ast.Call | None]]:
        """What transposing makes of weights."""
        found = [value for value in self.of(node) if not isinstance(value, Sentinel)]
        turned = {Stage.WEIGHTS: Stage.TURNED, Stage.TURNED: Stage.WEIGHTS}
        return frozenset((turned[stage], call) for stage, call in found if stage in turned)


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


def _owner(function: ast.expr) -> ast.expr:
    return function.value if isinstance(function, ast.Attribute) else function
