"""TM128 and TM133: quotients of integers that are used as integers.

TM128 is about uses that raise an error: an index, a bound of a slice, a size, an embedding, an integer `out`.
TM133 is about quotients that are converted to integers, or computed together with the remainder.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import cached_property

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at, fix_by
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.code import code
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.nodes import has_comment, replaced
from torchmigrate.semantics.facts.dtypes import (
    INT,
    INTEGER,
    INTEGERS,
    PYTHON_INT,
    TENSOR,
    Dtypes,
    ValueFacts,
    is_whole,
)
from torchmigrate.semantics.flow.domain import NOTHING, OPEN, Domain, Sentinel, Values
from torchmigrate.semantics.flow.steps import EACH, Path, Step
from torchmigrate.semantics.flow.values import ValueFlow
from torchmigrate.semantics.values.distinctive import TELLING

_RAISES, _CAST = "raises", "cast"
_CASTS = frozenset("long int short char byte".split())
_INDEXED = frozenset("index_select gather scatter scatter_ index_add_ index_copy_ index_fill_".split())
_OF_TENSORS = TELLING | _INDEXED | {"topk", "kthvalue"}  # methods of no other objects
_SIZES, _INDEX = dict.fromkeys(range(9), "size"), {2: "index"}
# The arguments that have to be integers: of functions of torch, and of methods, whose tensor has number 0.
_INTEGERS: dict[str, dict[int, str]] = {
    **dict.fromkeys("zeros ones empty rand randn view reshape repeat expand".split(), _SIZES),
    **dict.fromkeys("new_zeros new_ones new_empty".split(), _SIZES),
    **dict.fromkeys(_INDEXED, _INDEX),
    "chunk": {1: "chunks"},
    "eye": {0: "n", 1: "m"},
    "full": {0: "size"},
    "kthvalue": {1: "k"},
    "linspace": {2: "steps"},
    "narrow": {2: "start", 3: "length"},
    "new_full": {1: "size"},
    "randperm": {0: "n"},
    "repeat_interleave": {1: "repeats"},
    "select": {2: "index"},
    "take": {1: "index"},
    "topk": {1: "k"},
    "tril": {1: "diagonal"},
    "triu": {1: "diagonal"},
    "unfold": {2: "size", 3: "step"},
}
_FUNCTIONAL: dict[str, dict[int, str]] = {
    "ctc_loss": {2: "input_lengths", 3: "target_lengths"},
    "embedding": {0: "input"},
    "interpolate": {1: "size"},
    "one_hot": {0: "tensor", 1: "num_classes"},
    "pad": {1: "pad"},
}
_LAYERS = {
    "torch.nn.Embedding": _FUNCTIONAL["embedding"],
    "torch.nn.EmbeddingBag": _FUNCTIONAL["embedding"],
    "torch.nn.CTCLoss": _FUNCTIONAL["ctc_loss"],
}
_METHOD = "torch.Tensor."
_KEEP = frozenset(
    "view reshape unsqueeze squeeze expand repeat contiguous clone detach cuda cpu flatten t".split()
)
_OF_ALL = frozenset("max min sum clamp item tolist".split())  # whose results were integers, too
_WHOLE = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod)
_AN_INTEGER, _COUNTS = frozenset([INTEGER]), INTEGERS | {INT}


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every division whose quotient is used as an integer."""
    quotients = file.once(_Quotients, lambda: _Quotients(file))
    wanted = _RAISES if rule.name == "divided-index" else _CAST
    for node, _, fstring in file.names.operations:
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Div) or fstring is not None:
            continue
        if quotients.used_as(node) != wanted:
            continue
        if file.runs_elsewhere(node):
            continue
        fix = None
        if not has_comment(file.source, node):
            new = code("$left // $right", left=node.left, right=node.right)
            fix = fix_by(rule, file, "Replace with `//`", replaced(file.source, node, new))
        span, seen = file.source.span(node), quotients.is_seen(node)
        yield finding_at(rule, file, span, symbol="torch.Tensor.__truediv__", fix=fix, seen=seen)
    for hit in hits:
        if hit.use.call is not None and wanted == _RAISES and quotients.is_given_integers(hit.use.call):
            yield file.fixes.finding(hit, None)


class _OldDtypes(Dtypes):
    """The dtypes of tensors before torch 1.5, when quotients of integers were integers.

    An integer of Python is INT. recorded: what was recorded of the file counts, too.
    """

    def __init__(self, flow: ValueFlow, facts: ValueFacts, *, recorded: bool) -> None:
        super().__init__(flow)
        self._facts = facts
        self._recorded = recorded

    def is_integer(self, node: ast.expr) -> bool:
        """Whether an expression is a tensor of integers, in all calls of the file."""
        found = self.of(node) - {OPEN} if self._recorded or self.can_be(_AN_INTEGER) else NOTHING
        return bool(found) and found <= INTEGERS

    def counts(self, node: ast.expr) -> bool:
        """Whether it is an integer, also one of Python."""
        found = self.of(node) - {OPEN}
        return is_whole(node) or (bool(found) and found <= _COUNTS)

    def start(self, node: ast.AST) -> str | None:
        found = super().start(node)
        if found is not None or not isinstance(node, ast.expr):
            return found
        if self._recorded:
            seen = self._facts.of_operand(node, PYTHON_INT | _AN_INTEGER)
            found = "int64" if INTEGER in seen else INT if seen >= PYTHON_INT else None
        is_number = isinstance(node, ast.Constant) and type(node.value) is int
        return INT if found is None and (is_number or self._facts.is_size(node)) else found

    def through(self, node: ast.AST) -> Values[str]:
        if isinstance(node, ast.BinOp) and isinstance(node.op, _WHOLE):
            for one, other in ((node.left, node.right), (node.right, node.left)):
                if self.is_integer(one) and self.counts(other):
                    return self.of(one)
        return super().through(node)


def _sides(node: ast.BinOp) -> tuple[str, str]:
    return ast.dump(node.left), ast.dump(node.right)


class _Quotients(Domain[tuple[ast.BinOp, bool]]):
    """The quotients of integers in one file.

    A value is the division, and whether it is still of each element: not after a sum or a maximum.
    """

    most = 64

    def __init__(self, file: FileContext) -> None:
        super().__init__(file.flow)
        self._file = file
        self._kinds = file.facts
        self._told = self._old = _OldDtypes(file.flow, file.facts, recorded=False)
        if file.names.seen:
            self._old = _OldDtypes(file.flow, file.facts, recorded=True)

    def used_as(self, node: ast.BinOp) -> str:
        """How the quotient of integers is used; empty for other quotients, and other uses."""
        if not self._divides_integers(node):
            return ""
        if not self._needed.isdisjoint([(node, True), (node, False)]):
            return _RAISES
        if self._has_remainder(node):
            return _CAST
        return _CAST if (node, True) in self._cast and self._old.counts(node.right) else ""

    @cached_property
    def _needed(self) -> Values[tuple[ast.BinOp, bool]]:
        """All that comes to places that take nothing but integers."""
        return NOTHING.union(*map(self.of, self._integers()))

    @cached_property
    def _cast(self) -> Values[tuple[ast.BinOp, bool]]:
        calls = [call for call in self._file.names.nodes(ast.Call) if self._is_cast(call)]
        return NOTHING.union(
            *[self.of(call.func.value) for call in calls if isinstance(call.func, ast.Attribute)]
        )

    # ---- the way of a quotient -----------------------------------------------------------------------------

    def start(self, node: ast.AST) -> tuple[ast.BinOp, bool] | None:
        return (node, True) if isinstance(node, ast.BinOp) and self._divides_integers(node) else None

    def through(self, node: ast.AST) -> Values[tuple[ast.BinOp, bool]]:
        if isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(node.op, (ast.Add, ast.Sub, ast.Mult)):
            one, two = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.target, node.value)
            pairs = (one, two), (two, one)
            return self.join(*[side for side, other in pairs if self._old.counts(other)])
        if isinstance(node, ast.Subscript):
            return self.of(node.value)
        if not isinstance(node, ast.Call):
            return NOTHING
        name = self.flow.names.qualified(node.func) or ""
        if isinstance(node.func, ast.Attribute) and (name[:6] != "torch." or name.startswith(_METHOD)):
            found = self.of(node.func.value) if node.func.attr in _KEEP | _OF_ALL else NOTHING
            return found if node.func.attr in _KEEP else _together(found)
        called = self.flow.builtin(node.func) or name.removeprefix("torch.")
        if called not in _OF_ALL:
            return NOTHING
        return _together(
            NOTHING.union(*[self.of(given, path) for given in node.args for path in ((), (EACH,))])
        )

    def part(self, node: ast.AST, path: Path) -> Values[tuple[ast.BinOp, bool]]:
        if isinstance(node, ast.Call) and path[0] == 1:
            return NOTHING  # the places of a maximum
        return self.of(node)

    # ---- the integers --------------------------------------------------------------------------------------

    def _divides_integers(self, node: ast.BinOp) -> bool:
        """Whether it divides a tensor of integers."""
        is_number = isinstance(node.left, ast.Constant)
        return isinstance(node.op, ast.Div) and not is_number and self._old.is_integer(node.left)

    def _has_remainder(self, node: ast.BinOp) -> bool:
        """Whether the function computes the remainder of the same division, as for a row and a column."""
        sides = _sides(node)
        return any(
            isinstance(other.op, ast.Mod) and _sides(other) == sides
            for other in self._file.names.nodes(ast.BinOp)
        )

    def is_given_integers(self, call: ast.Call) -> bool:
        """Whether a call of `div` writes the quotient of integers to a tensor of integers."""
        given = {item.arg: item.value for item in call.keywords}
        out = given.get("out")
        if out is None or None in given or "rounding_mode" in given:
            return False
        first = call.args[0] if call.args else given.get("input")
        if first is None or isinstance(first, ast.Starred):
            return False
        return self._old.is_integer(first) and self._old.is_integer(out)

    def is_seen(self, node: ast.BinOp) -> bool:
        """Whether only a recording shows that the operands are integers."""
        by_right = self.used_as(node) == _CAST and not self._has_remainder(node)
        return not self._told.is_integer(node.left) or (by_right and not self._told.counts(node.right))

    def _is_cast(self, call: ast.Call) -> bool:
        """Whether it is `.long()`, `.to(torch.int32)`."""
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if name in _CASTS:
            return not call.args and not call.keywords
        return name in ("to", "type") and self._kinds.made(call) in INTEGERS

    def _integers(self) -> Iterator[ast.expr]:
        """The expressions of the file that have to be integers."""
        for node in self._file.names.nodes(ast.Subscript):
            if not any(map(self._is_dict, self.flow.origins(node.value))):
                yield from _items(node.slice)
        for call in self._file.names.nodes(ast.Call):
            if any(isinstance(item, ast.Starred) for item in call.args):
                continue
            if self.flow.builtin(call.func) == "range":
                yield from call.args
                continue
            numbers, first = self._parameters(call)
            given = [item for number, item in enumerate(call.args, first) if number in numbers]
            given += [item.value for item in call.keywords if item.arg in numbers.values()]
            for item in given:
                yield from _items(item)

    def _parameters(self, call: ast.Call) -> tuple[dict[int, str], int]:
        """The parameters of a call that are integers, and the number of its first argument."""
        owner, _, last = (self._file.names.qualified(call.func) or "").rpartition(".")
        if owner in ("torch", "torch.nn.functional"):
            return (_INTEGERS if owner == "torch" else _FUNCTIONAL).get(last, {}), 0
        if isinstance(call.func, ast.Attribute) and (numbers := _INTEGERS.get(call.func.attr)):
            is_tensor = call.func.attr in _OF_TENSORS or TENSOR in self._kinds.of_operand(
                call.func.value, frozenset([TENSOR])
            )
            return numbers if is_tensor else {}, 1
        made = {
            self._file.names.qualified(step.node.func)
            if isinstance(step.node, ast.Call) and not step.path
            else ""
            for step in self.flow.origins(call.func)
        }
        layer = made.pop() if len(made) == 1 else None
        return _LAYERS.get(layer or "", {}), 0

    def _is_dict(self, step: Step) -> bool:
        """Whether an origin is a dictionary, which may have any keys."""
        made = step.node
        if isinstance(made, ast.Call):
            name = getattr(made.func, "attr", getattr(made.func, "id", "")).lower()
            return "dict" in name or name == "counter"
        return isinstance(made, (ast.Dict, ast.DictComp))


def _together(values: Values[tuple[ast.BinOp, bool]]) -> Values[tuple[ast.BinOp, bool]]:
    return frozenset(value if isinstance(value, Sentinel) else (value[0], False) for value in values)


def _items(node: ast.expr | None) -> Iterator[ast.expr]:
    """What is in a subscript, a tuple or a list."""
    if isinstance(node, (ast.Tuple, ast.List)):
        for item in node.elts:
            yield from _items(item)
    elif isinstance(node, ast.Slice):
        for bound in (node.lower, node.upper, node.step):
            yield from _items(bound)
    elif node is not None:
        yield node
