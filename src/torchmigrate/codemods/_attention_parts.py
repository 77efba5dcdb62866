"""What a hand-written attention is made of: query, key, value, scale, mask, dropout; or what is unclear."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from torchmigrate.codemods._attention_masks import Mask, negated
from torchmigrate.codemods._attention_products import (
    batched_product,
    is_bmm,
    is_minus_infinity,
    untransposed,
)
from torchmigrate.codemods._attention_scale import is_number
from torchmigrate.codemods._attention_sites import Site, last_dimension
from torchmigrate.codemods._operations import Operation, Reader, names_in


class Unclear(Exception):
    """Why an attention cannot be rewritten."""


@dataclass(slots=True)
class Parts:
    """The parts, as expressions of the source.

    transposed: whether `key` is already transposed, so that it has to be turned back.
    divided: whether the scores are divided by `scale`.
    dropout: the probability; training: the expression that says whether it is applied, None: always.
    module: the dropout layer instead.
    gone: the statements that compute nothing else.
    """

    query: ast.expr
    key: ast.expr
    value: ast.expr
    transposed: bool
    scale: ast.expr | None = None
    divided: bool = False
    mask: Mask | None = None
    dropout: ast.expr | None = None
    training: ast.expr | None = None
    module: ast.Attribute | None = None
    gone: list[ast.stmt] = field(default_factory=list)

    def expressions(self) -> list[ast.expr]:
        """Everything that the new call computes."""
        found = [self.query, self.key, self.value]
        if self.mask is not None:
            found += [self.mask.value] if self.mask.test is None else [self.mask.value, self.mask.test]
        return found + [
            item for item in (self.scale, self.dropout, self.training, self.module) if item is not None
        ]


class PartsReader:
    """Takes one site apart."""

    def __init__(self, site: Site, reader: Reader) -> None:
        self.site = site
        self.reader = reader
        self.reads: list[ast.Name] = []  # of the names that hold scores and weights
        self.gone: list[ast.stmt] = []
        self.names: set[str] = set()
        self.index = next(number for number, item in enumerate(site.block) if item is site.statement)

    def parts(self) -> Parts:
        """The parts of the site.

        Raises:
            Unclear: something in it is not understood, or used elsewhere.
        """
        if isinstance(self.site.statement, ast.If | ast.While | ast.For | ast.With | ast.Match | ast.Try):
            raise Unclear("the product stands in the head of another statement")
        product = self._operation(self.site.product)
        operands = product.operands
        if product.kind == "einsum":
            weights, value = self._einsum(operands, weights=True)
        elif len(operands) == 2 and not product.keywords:
            weights, value = operands
        else:
            raise Unclear("the product has other arguments")
        self.found = Parts(weights, weights, value, transposed=False)
        self._weights(weights, self.index)
        self.found.gone = self.gone
        self._check_reads()
        self._check_captured()
        return self.found

    # ---- from the product back to the scores -----------------------------------------------------------

    def _weights(self, node: ast.expr, before: int) -> None:
        if isinstance(node, ast.Name):
            value, where = self._definition(node, before)
            return self._weights(value, where)
        operation = self._operation(node)
        if operation.kind == "dropout":
            if self.found.dropout is not None or self.found.module is not None:
                raise Unclear("the weights go through dropout twice")
            self._dropout(operation)
            return self._weights(operation.operands[0], before)
        if operation.kind != "softmax":
            raise Unclear("something else is done to the weights")
        self._softmax(operation)
        return self._scores(operation.operands[0], before)

    def _softmax(self, operation: Operation) -> None:
        extra = set(operation.keywords) - {"dim", "_stacklevel"}
        if extra or len(operation.operands) > 2:
            raise Unclear("the softmax computes in another dtype")
        self.dim = last_dimension(operation)

    def _dropout(self, operation: Operation) -> None:
        if operation.layer is not None:
            if len(operation.operands) != 1 or operation.keywords:
                raise Unclear("the dropout layer is called with other arguments")
            self.found.module = operation.owner
            return
        self.found.dropout = operation.argument(1, "p") or ast.Constant(0.5)
        self.found.training = operation.argument(2, "training", "train")
        if isinstance(self.found.training, ast.Constant) and self.found.training.value is True:
            self.found.training = None

    def _scores(self, node: ast.expr, before: int) -> None:
        if isinstance(node, ast.Name):
            return self._named_scores(node, before)
        operation = self._operation(node)
        if operation.kind in ("matmul", "einsum"):
            return self._product(node, operation)
        if operation.kind in ("mul", "div"):
            return self._scaled(operation, before)
        if operation.kind in ("add", "sub", "masked_fill", "where"):
            inner, mask = self._masked(operation)
            self._add_mask(mask)
            return self._scores(inner, before)
        raise Unclear("something else is done to the scores")

    def _named_scores(self, node: ast.Name, before: int) -> None:
        for where in range(before - 1, -1, -1):
            statement = self.site.block[where]
            if (change := _in_place(statement, node.id)) is not None:
                self._note(node, statement)
                return self._scores(change, where)
            if not _binds(statement, node.id):
                continue
            if isinstance(statement, ast.AugAssign):
                self._note(node, statement)
                return self._augmented(statement, where)
            if isinstance(statement, ast.If):
                self._note(node, statement)
                return self._conditional(node.id, statement, where)
            break
        value, where = self._definition(node, before)
        return self._scores(value, where)

    def _augmented(self, statement: ast.AugAssign, where: int) -> None:
        """`scores *= scale`, `scores += mask`: as if written out."""
        assert isinstance(statement.target, ast.Name), "it binds the name"
        earlier = ast.copy_location(ast.Name(statement.target.id, ast.Load()), statement.target)
        written_out = ast.copy_location(ast.BinOp(earlier, statement.op, statement.value), statement)
        self._scores(written_out, where)

    def _conditional(self, name: str, statement: ast.If, where: int) -> None:
        """`if mask is not None: scores = scores + mask`."""
        inner = statement.body[0]
        if statement.orelse or len(statement.body) != 1:
            raise Unclear("the mask is applied in a branch")
        value: ast.expr | None = None
        if (
            isinstance(inner, ast.Assign)
            and len(inner.targets) == 1
            and isinstance(inner.targets[0], ast.Name)
        ):
            value = inner.value
        elif isinstance(inner, ast.AugAssign):
            assert isinstance(inner.target, ast.Name), "it binds the name"
            earlier = ast.copy_location(ast.Name(name, ast.Load()), inner.target)
            value = ast.BinOp(earlier, inner.op, inner.value)
        operation = self._operation(value) if value is not None else None
        if operation is None or operation.kind not in ("add", "sub", "masked_fill", "where"):
            raise Unclear("the scores change in a branch")
        scores, mask = self._masked(operation)
        if not isinstance(scores, ast.Name) or scores.id != name:
            raise Unclear("the scores change in a branch")
        self._add_mask(mask._replace(test=statement.test))
        self._scores(scores, where)

    def _product(self, node: ast.expr, operation: Operation) -> None:
        if operation.kind == "einsum":
            self.found.query, self.found.key = self._einsum(operation.operands, weights=False)
            self.found.transposed = False
        elif len(operation.operands) == 2 and not operation.keywords:
            self.found.query, key = operation.operands
            plain = untransposed(self.reader.operation(key, self.site.owner), key, is_bmm(node))
            self.found.key, self.found.transposed = plain or key, plain is None
        else:
            raise Unclear("the product has other arguments")
        if self.dim == 2 and not is_bmm(node):
            raise Unclear("the softmax may not be over the keys")

    def _scaled(self, operation: Operation, before: int) -> None:
        if len(operation.operands) != 2 or operation.keywords:
            raise Unclear("the scores are scaled in another way")
        if self.found.scale is not None:
            raise Unclear("the scores are scaled twice")
        scores, scale = operation.operands
        if operation.kind == "mul" and self._number(scores):
            scores, scale = scale, scores
        if not self._number(scale):
            raise Unclear("the scale may be a tensor")
        self.found.scale, self.found.divided = scale, operation.kind == "div"
        self._scores(scores, before)

    def _number(self, node: ast.expr) -> bool:
        return is_number(node, self.site, self.reader)

    def _masked(self, operation: Operation) -> tuple[ast.expr, Mask]:
        """The scores before a mask, and the mask."""
        operands = operation.operands
        if operation.kind == "add" and len(operands) == 2 and not operation.keywords:
            scores, mask = operands
            if not self._leads_to_product(scores, self.index):
                scores, mask = mask, scores
            return scores, Mask(mask)
        if operation.kind == "masked_fill":
            fill, mask_ = operation.argument(2, "value"), operation.argument(1, "mask")
            if fill is None or mask_ is None or not is_minus_infinity(fill, self.reader):
                raise Unclear("the scores are filled with another value")
            return operands[0], negated(mask_, self.site, self.reader)
        if operation.kind == "where" and len(operands) == 3 and not operation.keywords:
            if is_minus_infinity(operands[2], self.reader):
                return operands[1], Mask(operands[0])
            if is_minus_infinity(operands[1], self.reader):
                return operands[2], negated(operands[0], self.site, self.reader)
        raise Unclear("the mask is not understood")

    def _leads_to_product(self, node: ast.expr, before: int) -> bool:
        """Whether a summand is the scores: a product itself, or a name that was given one."""
        if isinstance(node, ast.Name):
            for where in range(before - 1, -1, -1):
                statement = self.site.block[where]
                if isinstance(statement, ast.Assign) and _binds(statement, node.id):
                    return self._leads_to_product(statement.value, where)
            return False
        operation = self.reader.operation(node, self.site.owner)
        if operation is None:
            return False
        if operation.kind in ("matmul", "einsum"):
            return True
        if operation.kind in ("mul", "div", "add", "sub", "masked_fill"):
            return any(self._leads_to_product(operand, before) for operand in operation.operands)
        return False

    def _add_mask(self, mask: Mask) -> None:
        if self.found.mask is not None:
            raise Unclear("there are several masks")
        if self.found.scale is not None:
            raise Unclear("the mask is added before the scores are scaled")
        self.found.mask = mask

    def _einsum(self, operands: tuple[ast.expr, ...], *, weights: bool) -> tuple[ast.expr, ast.expr]:
        """The operands of an einsum that multiplies the last two dimensions and nothing else."""
        equation = operands[0].value if operands and isinstance(operands[0], ast.Constant) else None
        if len(operands) != 3 or not isinstance(equation, str):
            raise Unclear("the einsum is not understood")
        fits = batched_product(equation, transposed=not weights)
        if fits == "swapped":
            return operands[2], operands[1]
        if fits == "":
            raise Unclear("the einsum moves dimensions")
        return operands[1], operands[2]

    def _operation(self, node: ast.expr) -> Operation:
        found = self.reader.operation(node, self.site.owner)
        if found is None or not found.operands:
            raise Unclear("a call on the way is not understood")
        return found

    # ---- names -----------------------------------------------------------------------------------------

    def _definition(self, node: ast.Name, before: int) -> tuple[ast.expr, int]:
        """What a name was given in the same block, and where."""
        for where in range(before - 1, -1, -1):
            statement = self.site.block[where]
            if not _binds(statement, node.id):
                continue
            if (
                isinstance(statement, ast.Assign)
                and len(statement.targets) == 1
                and isinstance(statement.targets[0], ast.Name)
            ):
                self._note(node, statement)
                return statement.value, where
            break
        raise Unclear(f"`{node.id}` is not assigned on the way")

    def _note(self, node: ast.Name, statement: ast.stmt) -> None:
        self.reads.append(node)
        self.names.add(node.id)
        self.gone.append(statement)

    def _check_reads(self) -> None:
        """Nobody else reads what the removed statements assign.

        Raises:
            Unclear: somebody does.
        """
        ours = [*self.gone, self.site.statement]
        allowed = {id(name) for name in self.reads}
        inside: set[int] = set()
        for item in ours:
            for inner in ast.walk(item):
                inside.add(id(inner))
                if isinstance(inner, ast.Attribute) and inner.attr == "dtype":
                    allowed.add(id(inner.value))  # `torch.finfo(scores.dtype).min`
        begin = min(item.lineno for item in ours)
        for name in self.names:
            end = next(
                (
                    item.end_lineno or item.lineno
                    for item in self.site.block[self.index :]
                    if isinstance(item, ast.Assign) and _binds(item, name)
                ),
                None,
            )
            for node in ast.walk(self.site.function):
                if not isinstance(node, ast.Name) or node.id != name or not isinstance(node.ctx, ast.Load):
                    continue
                if id(node) in allowed:
                    continue
                later = end is not None and node.lineno > end
                if id(node) in inside or not (node.lineno < begin or later):
                    raise Unclear(f"`{name}` is used elsewhere")

    def _check_captured(self) -> None:
        """What the new call computes has not changed between its old place and the new one."""
        captured: set[str] = set()
        for expression in self.found.expressions():
            captured |= names_in(expression)
        if captured & self.names:
            raise Unclear("a part is computed from the scores or the weights")
        block = self.site.block
        first = min((block.index(item) for item in self.gone), default=self.index)
        for statement in block[first : self.index]:
            if any(statement is item for item in self.gone):
                continue
            if any(_binds(statement, name) for name in captured):
                raise Unclear("a part is assigned again before the product")


def _in_place(statement: ast.stmt, name: str) -> ast.Call | None:
    """The call that changes a tensor in a statement of its own: `scores.masked_fill_(mask, value)`."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        function = statement.value.func
        if (
            isinstance(function, ast.Attribute)
            and function.attr.endswith("_")
            and isinstance(function.value, ast.Name)
            and function.value.id == name
        ):
            return statement.value
    return None


def _binds(statement: ast.stmt, name: str) -> bool:
    """Whether a statement, or one inside it, assigns a name (or `self.x`)."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load):
            return True
        if (
            isinstance(node, ast.Attribute)
            and not isinstance(node.ctx, ast.Load)
            and isinstance(node.value, ast.Name)
            and f"{node.value.id}.{node.attr}" == name
        ):
            return True
    return False
