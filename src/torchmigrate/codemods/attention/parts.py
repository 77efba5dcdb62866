"""What a hand-written attention is made of: query, key, value, scale, mask, dropout; or what is unclear."""

from __future__ import annotations

import ast

from msgspec import Struct
from msgspec.structs import replace

from torchmigrate.codemods.attention.casts import Casts
from torchmigrate.codemods.attention.masks import Mask, fill_of, negated
from torchmigrate.codemods.attention.products import (
    STAY,
    TURN,
    Turn,
    dimensions,
    is_bmm,
    scores_of,
    untransposed,
    values_of,
)
from torchmigrate.codemods.attention.scale import Numbers, is_positive
from torchmigrate.codemods.attention.sites import Site, Stages, last_dimension
from torchmigrate.codemods.attention.trail import (
    RemovedStatements,
    binds,
    changed_in_place,
    is_plain,
    still_holds,
    written_out,
)
from torchmigrate.codemods.base.operations import Operation, Reader
from torchmigrate.codemods.base.unclear import Unclear

_IN_A_BRANCH = "the scores change in a branch: build an `attn_mask` from the values that are added there"


class Turned(Struct):
    """An operand, and what brings its dimensions into the order of attention."""

    node: ast.expr
    turn: Turn = STAY


class Parts(Struct):
    """The parts, as expressions of the source.

    result: what brings the dimensions of the result back.
    divided: whether the scores are divided by `scale`.
    dropout: the probability; training: the expression that says whether it is applied, None: always.
    module: the dropout layer instead; number: which one of the `nn.Sequential` it is part of.
    trail: the statements that compute nothing else.
    """

    query: Turned
    key: Turned
    value: Turned
    trail: RemovedStatements
    result: Turn = STAY
    scale: ast.expr | None = None
    divided: bool = False
    mask: Mask | None = None
    dropout: ast.expr | None = None
    training: ast.expr | None = None
    module: ast.Attribute | None = None
    number: int | None = None


class PartsReader:
    """Takes one site apart."""

    def __init__(self, site: Site, reader: Reader, stages: Stages) -> None:
        self.site = site
        self.reader = reader
        self.stages = stages
        self.numbers = Numbers(reader)
        self.trail = RemovedStatements(site, reader.flow.index)
        self.casts = Casts(reader)
        self.turned = False  # whether the weights are transposed where they meet the values
        self.dim: int | None = None  # of the softmax

    def parts(self) -> Parts:
        """The parts of the site.

        Raises:
            Unclear: something in it is not understood, or used elsewhere.
        """
        if isinstance(self.site.statement, (ast.If, ast.While, ast.For, ast.With, ast.Match, ast.Try)):
            raise Unclear("the product is in the header of another statement")
        weights = self.site.weights
        values, result = self._values()
        self.found = Parts(Turned(weights), Turned(weights), values, self.trail, result)
        self._weights(weights, self.trail.index)
        self.casts.check(self.found.query.node, self.found.key.node)
        self.trail.check_reads()
        self.trail.check_captured()
        return self.found

    # ---- from the product back to the scores -----------------------------------------------------------

    def _values(self) -> tuple[Turned, Turn]:
        """The values, as the product has them, and what turns its result."""
        product = self._operation(self.site.product)
        operands = product.operands
        if product.kind == "einsum":
            one, two, out = self._dimensions(self.site.product, operands)
            if self.site.weights is operands[2]:
                operands, one, two = (operands[0], operands[2], operands[1]), two, one
            aligned = values_of(one, two, out)
            if aligned is None:
                raise Unclear("the einsum of the weights is not a product over the keys")
            return self._turned(operands[2], aligned.rows), aligned.columns
        if product.kind != "matmul" or len(operands) != 2 or product.keywords:
            raise Unclear("the product has other arguments")
        if self.site.weights is operands[0]:
            return Turned(operands[1]), STAY
        self.turned = True
        return self._transposed(operands[0], self.site.product), TURN

    def _weights(self, node: ast.expr, before: int, turns: int = 0) -> None:
        if isinstance(node, ast.Name):
            value, where = self.trail.definition(node, before)
            return self._weights(value, where, turns)
        if isinstance(node, ast.Attribute) and node.attr == "mT":
            return self._weights(node.value, before, turns + 1)
        operation = self._operation(node)
        inner = operation.operands[0]
        if operation.kind in ("transpose", "permute"):
            plain = untransposed(operation, node, is_bmm(self.site.product))
            if plain is None:
                raise Unclear("the dimensions of the weights are permuted")
            return self._weights(plain, before, turns + 1)
        if operation.kind == "cast":
            self.casts.of_weights(operation, self.trail)
            return self._weights(inner, before, turns)
        if operation.kind == "same":
            return self._weights(inner, before, turns)
        if operation.kind == "reshape":
            raise Unclear("the weights are reshaped in between: reshape query, key and value instead")
        if operation.kind == "dropout":
            self._dropout(operation, before)
            return self._weights(inner, before, turns)
        if operation.kind != "softmax":
            raise Unclear("the weights are used in another operation")
        if turns % 2 != self.turned:
            raise Unclear("the dimensions of the weights are permuted")
        self._softmax(operation, before)
        return self._scores(inner, before)

    def _softmax(self, operation: Operation, before: int) -> None:
        self.casts.of_softmax(operation)
        self.dim = last_dimension(operation)
        if operation.then is not None:
            dropout = Operation("dropout", operation.operands, {}, operation.then, operation.owner)
            self._dropout(dropout, before)
            self.found.number = 1

    def _dropout(self, operation: Operation, before: int) -> None:
        if self.found.dropout is not None or self.found.module is not None:
            raise Unclear("dropout is applied to the weights twice")
        if operation.layer is not None:
            if len(operation.operands) != 1 or operation.keywords:
                raise Unclear("the dropout layer is called with other arguments")
            if operation.owner is None:
                raise Unclear("the dropout layer is created in place, so it is always in training mode")
            self.found.module = operation.owner
            self.trail.capture(before, operation.owner)
            return
        self.found.dropout = operation.argument(1, "p") or ast.Constant(0.5)
        self.found.training = operation.argument(2, "training", "train")
        if isinstance(self.found.training, ast.Constant) and self.found.training.value is True:
            self.found.training = None
        self.trail.capture(before, self.found.dropout, self.found.training)

    def _scores(self, node: ast.expr, before: int) -> None:
        if isinstance(node, ast.Name):
            return self._named_scores(node, before)
        operation = self._operation(node)
        if operation.kind in ("matmul", "einsum"):
            return self._product(node, operation, before)
        if operation.kind in ("mul", "div"):
            return self._scaled(operation, before)
        if operation.kind in ("add", "sub", "masked_fill", "where"):
            inner, mask = self._masked(operation, before, self.site.block)
            self._add_mask(mask, before)
            return self._scores(inner, before)
        if operation.kind == "cast":
            self.casts.of_scores(operation, self.trail)
            return self._scores(operation.operands[0], before)
        if operation.kind == "same":
            return self._scores(operation.operands[0], before)
        if operation.kind == "reshape":
            raise Unclear("the scores are reshaped in between: reshape query, key and mask instead")
        raise Unclear("the scores are used in another operation")

    def _named_scores(self, node: ast.Name, before: int) -> None:
        for where in range(before - 1, -1, -1):
            statement = self.site.block[where]
            if (change := changed_in_place(statement, node.id)) is not None:
                self.trail.note(node, statement)
                return self._scores(change, where)
            if not binds(statement, node.id):
                if isinstance(statement, ast.If) and any(
                    changed_in_place(inner, node.id) for inner in statement.body
                ):
                    return self._conditional(node, statement, where)
                continue
            if isinstance(statement, ast.AugAssign):
                self.trail.note(node, statement)
                return self._scores(written_out(statement), where)
            if isinstance(statement, ast.If):
                return self._conditional(node, statement, where)
            break
        value, where = self.trail.definition(node, before)
        return self._scores(value, where)

    def _conditional(self, node: ast.Name, statement: ast.If, where: int) -> None:
        """`if mask is not None: scores = scores + mask`, perhaps after what prepares the mask."""
        last = statement.body[-1]
        value: ast.expr | None = changed_in_place(last, node.id)
        if is_plain(last) and binds(last, node.id):
            value = last.value
        elif isinstance(last, ast.AugAssign) and binds(last, node.id):
            value = written_out(last)
        operation = self.reader.operation(value) if value is not None else None
        before = statement.body[:-1]
        if statement.orelse or any(binds(item, node.id) for item in before):
            raise Unclear(
                "the scores change in several branches: build one `attn_mask` from the values that are "
                "added in each"
            )
        if operation is None or operation.kind not in ("add", "sub", "masked_fill", "where"):
            raise Unclear(_IN_A_BRANCH)
        scores, mask = self._masked(operation, where, statement.body)
        if not isinstance(scores, ast.Name) or scores.id != node.id:
            raise Unclear(_IN_A_BRANCH)
        gone = {id(last), *(id(item) for item, _ in self.trail.inner)}
        if all(id(item) in gone for item in statement.body):
            self.trail.inner = [item for item in self.trail.inner if item[1] is not statement.body]
            self.trail.note(node, statement)
        else:
            if not still_holds(statement):
                raise Unclear("the condition of the mask may have changed after the branch")
            self.trail.reads.append(node)
            self.trail.inner.append((last, statement.body))
        self.trail.reads.append(scores)
        self._add_mask(replace(mask, test=statement.test), where)
        self._scores(scores, where)

    def _product(self, node: ast.expr, operation: Operation, before: int) -> None:
        operands = operation.operands
        if operation.kind == "einsum":
            one, two, scores = self._dimensions(node, operands)
            aligned = scores_of(one, two, scores)
            if aligned is None:
                raise Unclear("the einsum of the scores is not a product of each query with each key")
            query, key = (operands[2], operands[1]) if aligned.swapped else (operands[1], operands[2])
            self._operands(self._turned(query, aligned.rows), self._turned(key, aligned.columns), before)
            known = "..." in self._pattern(operands) or self.dim in (-1, len(scores) - 1)
        elif len(operands) == 2 and not operation.keywords:
            self._operands(Turned(operands[0]), self._transposed(operands[1], node), before)
            known = self.dim != 2 or is_bmm(node)
        else:
            raise Unclear("the product has other arguments")
        if not known:
            raise Unclear("the softmax may not be over the keys")

    def _operands(self, query: Turned, key: Turned, before: int) -> None:
        self.found.query, self.found.key = query, key
        self.trail.capture(before, query.node, key.node)

    def _transposed(self, node: ast.expr, product: ast.expr) -> Turned:
        """An operand whose last two dimensions have to be exchanged."""
        plain = untransposed(self.reader.operation(node), node, is_bmm(product))
        return Turned(plain) if plain is not None else Turned(node, TURN)

    def _turned(self, node: ast.expr, turn: Turn) -> Turned:
        """An operand of an einsum."""
        return self._transposed(node, self.site.product) if turn == TURN else Turned(node, turn)

    def _scaled(self, operation: Operation, before: int) -> None:
        if len(operation.operands) != 2 or operation.keywords:
            raise Unclear("the scores are scaled in an unsupported way")
        scores, scale = operation.operands
        if operation.kind == "mul" and self.numbers.is_number(scores):
            scores, scale = scale, scores
        self._set_scale(scale, before, divided=operation.kind == "div")
        self._scores(scores, before)

    def _set_scale(self, scale: ast.expr, before: int, *, divided: bool) -> None:
        if self.found.scale is not None:
            raise Unclear("the scores are scaled twice")
        if not self.numbers.is_number(scale):
            raise Unclear("the scale may be a tensor: multiply the query by it, and pass `scale=1.0`")
        self.found.scale, self.found.divided = scale, divided
        self.trail.capture(before, scale)

    def _masked(self, operation: Operation, before: int, block: list[ast.stmt]) -> tuple[ast.expr, Mask]:
        """The scores before a mask, and the mask; block: where the operation stands."""
        operands = operation.operands
        if operation.kind == "add" and len(operands) == 2 and not operation.keywords:
            scores, mask = operands
            if not self.stages.are_scores(scores):
                scores, mask = mask, scores
            return scores, Mask(mask)
        if operation.kind == "masked_fill":
            fill, mask_ = operation.argument(2, "value"), operation.argument(1, "mask")
            if fill is None or mask_ is None or not self._hides(fill, block):
                raise Unclear("the scores are filled with another value")
            return operands[0], negated(mask_, self.reader)
        if operation.kind == "where" and len(operands) == 3 and not operation.keywords:
            if self._hides(operands[2], block):
                return operands[1], Mask(operands[0], boolean=True)
            if self._hides(operands[1], block):
                return operands[2], negated(operands[0], self.reader)
        raise Unclear("cannot analyze the mask")

    def _hides(self, fill: ast.expr, block: list[ast.stmt]) -> bool:
        """Whether a value that is filled in is minus infinity, perhaps by a variable."""
        return fill_of(fill, self.reader, lambda name: self.trail.take_constant(name, block))

    def _add_mask(self, mask: Mask, before: int) -> None:
        self.trail.capture(before, mask.value, mask.test)
        if self.found.scale is not None and not mask.boolean:
            raise Unclear("the mask is added before the scores are scaled: scale it as well")
        if self.found.scale is not None and not is_positive(self.found.scale, self.reader):
            raise Unclear("the mask is applied before the scores are scaled by a value that may be negative")
        if self.found.mask is not None:
            raise Unclear("there are several masks: combine them into one")
        self.found.mask = mask

    def _pattern(self, operands: tuple[ast.expr, ...]) -> str:
        pattern = operands[0].value if operands and isinstance(operands[0], ast.Constant) else None
        if len(operands) != 3 or not isinstance(pattern, str):
            raise Unclear("cannot analyze the einsum")
        return pattern

    def _dimensions(
        self, node: ast.expr, operands: tuple[ast.expr, ...]
    ) -> tuple[list[str], list[str], list[str]]:
        words = isinstance(node, ast.Call) and self.reader.is_einops(node.func)
        found = dimensions(self._pattern(operands), words)
        if found is None:
            raise Unclear("cannot analyze the einsum")
        return found

    def _operation(self, node: ast.expr) -> Operation:
        found = self.reader.operation(node)
        if found is None or not found.operands:
            what = f"`{ast.unparse(node.func)}`" if isinstance(node, ast.Call) else "an operation"
            raise Unclear(f"cannot analyze {what} in between")
        return found
