"""TM032, TM357, TM912 and TM913: operators on tensors whose dtype the file tells.

Operators are not uses of a name, so these rules walk the file themselves. Each needs the kinds of the
operands; operands of unknown kind are not reported.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from msgspec import Struct

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at, safety
from torchmigrate.findings import Edit, Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.code import code
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.nodes import replaced_around
from torchmigrate.semantics.facts.dtypes import INTEGER, NUMBER, PYTHON_INT, TENSOR

Facts = Callable[[ast.expr, frozenset[str]], frozenset[str]]


class OfKind(Protocol):
    """Which of some kinds an operand surely is."""

    def __call__(self, item: ast.expr, /, *wanted: str) -> frozenset[str]: ...


class Found(Struct, frozen=True):
    """An operator that a rule is about: where, the method that it stands for, and what it becomes."""

    at: ast.expr
    method: str
    edits: tuple[Edit, ...] = ()
    title: str = ""


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every operator that the rule is about, and for the calls of its functions."""
    # `torch.Tensor.__getitem__` by its name says nothing of what it is given.
    yield from file.fixes.findings([hit for hit in hits if not hit.symbol.endswith("__")])
    operators, look = _LOOK[rule.name]
    wanted = [
        item for item in file.names.operations if item.fstring is None and _operator(item.node) in operators
    ]
    if not wanted:
        return
    known = [(file.facts.of, False), *([(file.facts.of_operand, True)] if file.names.seen else ())]
    for node, _, _ in wanted:
        for facts, seen in known:

            def of(item: ast.expr, /, *wanted: str, facts: Facts = facts) -> frozenset[str]:
                return facts(item, frozenset(wanted))

            found = list(look(node, of, file))
            if found:
                if not file.runs_elsewhere(node):
                    yield from (_finding(rule, file, each, seen=seen) for each in found)
                break


def _operator(node: ast.BinOp | ast.UnaryOp | ast.Subscript) -> type[ast.AST]:
    """The class of an operator; a subscript is one itself."""
    return node.__class__ if isinstance(node, ast.Subscript) else node.op.__class__


def _finding(rule: Rule, file: FileContext, found: Found, *, seen: bool) -> Finding:
    fix = None
    if found.edits and rule.cases:
        level, reason = safety(rule, file, seen=seen)
        fix = file.fixes.fix(rule, found.title, level, reason, found.edits)
    span = file.source.span(found.at)
    return finding_at(rule, file, span, symbol=f"torch.Tensor.{found.method}", fix=fix, seen=seen)


# ---- the rules ------------------------------------------------------------------------------------------


def _bool_minus(node: ast.expr, of: OfKind, file: FileContext) -> Iterator[Found]:
    if isinstance(node, ast.UnaryOp):
        if isinstance(node.op, ast.USub) and "bool" in of(node.operand, "bool"):
            yield Found(node, "__neg__")
        return
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Sub):
        return
    left = of(node.left, NUMBER, "bool")
    right = of(node.right, "bool") if left else left
    if "bool" in right and (NUMBER in left or "bool" in left):
        edits: tuple[Edit, ...] = ()
        if NUMBER in left and _is_one(node.left):
            edits = replaced_around(file.source, node, code("~$mask", mask=node.right), node.right)
        yield Found(node, "__rsub__" if NUMBER in left else "__sub__", edits, "Replace with `~`")
    elif "bool" in left and NUMBER in right:
        yield Found(node, "__sub__")


def _is_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.value == 1


def _floor(node: ast.expr, of: OfKind, file: FileContext) -> Iterator[Found]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv):
        left, right = of(node.left, TENSOR), of(node.right, TENSOR)
        if TENSOR in left or (TENSOR in right and NUMBER in left):
            yield Found(node, "__floordiv__" if TENSOR in left else "__rfloordiv__")


def _integers(node: ast.expr, of: OfKind, file: FileContext) -> Iterator[Found]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        number = isinstance(node.right, ast.Constant) and type(node.right.value) is int
        right = of(node.right, INTEGER, *PYTHON_INT)
        if INTEGER in of(node.left, INTEGER) and (number or INTEGER in right or right >= PYTHON_INT):
            yield Found(node, "__truediv__")


def _bfloat16_complex(node: ast.expr, of: OfKind, file: FileContext) -> Iterator[Found]:
    if isinstance(node, ast.BinOp):
        for tensor, number in ((node.left, node.right), (node.right, node.left)):
            if _is_complex(number) and "bfloat16" in of(tensor, "bfloat16"):
                yield Found(node, "__mul__")


def _is_complex(node: ast.expr) -> bool:
    """Whether an expression is surely a complex number of Python: `1j`, `-2j * math.pi`, `complex(0, 1)`."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, complex)
    if isinstance(node, ast.BinOp):
        return _is_complex(node.left) or _is_complex(node.right)
    if isinstance(node, ast.UnaryOp):
        return _is_complex(node.operand)
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "complex"


_Look = Callable[[ast.expr, OfKind, FileContext], Iterator[Found]]
_Operators = tuple[type[ast.AST], ...]
# Rule -> the operators, and what looks at one of them.
_LOOK: dict[str, tuple[_Operators, _Look]] = {
    "bool-minus": ((ast.Sub, ast.USub), _bool_minus),
    "floor-division": ((ast.FloorDiv,), _floor),
    "integer-division": ((ast.Div,), _integers),
    "bfloat16-complex": ((ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow), _bfloat16_complex),
}
