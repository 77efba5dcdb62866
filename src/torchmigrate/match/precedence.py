"""When an expression needs parentheses: how tightly it binds, against what a place asks for."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import libcst as cst
from msgspec import Struct

from torchmigrate.patterns import pattern

# From loose to tight, after Python's grammar.
(YIELD, TUPLE, NAMED, EXPRESSION, OR, AND, NOT, COMPARE, BIT_OR, BIT_XOR, BIT_AND, SHIFT, SUM, TERM,
 FACTOR, POWER, AWAIT, PRIMARY, ATOM) = range(19)  # fmt: skip

_OPERATORS: dict[type, int] = {
    cst.BitOr: BIT_OR, cst.BitXor: BIT_XOR, cst.BitAnd: BIT_AND, cst.LeftShift: SHIFT, cst.RightShift: SHIFT,
    cst.Add: SUM, cst.Subtract: SUM, cst.Multiply: TERM, cst.MatrixMultiply: TERM, cst.Divide: TERM,
    cst.Modulo: TERM, cst.FloorDivide: TERM, cst.Power: POWER, cst.And: AND, cst.Or: OR,
    ast.BitOr: BIT_OR, ast.BitXor: BIT_XOR, ast.BitAnd: BIT_AND, ast.LShift: SHIFT, ast.RShift: SHIFT,
    ast.Add: SUM, ast.Sub: SUM, ast.Mult: TERM, ast.MatMult: TERM, ast.Div: TERM,
    ast.Mod: TERM, ast.FloorDiv: TERM, ast.Pow: POWER, ast.And: AND, ast.Or: OR,
}  # fmt: skip
_KINDS: dict[type, int] = {
    cst.Yield: YIELD, cst.GeneratorExp: YIELD, cst.NamedExpr: NAMED, cst.Lambda: EXPRESSION,
    cst.IfExp: EXPRESSION, cst.Comparison: COMPARE, cst.Await: AWAIT,
    # `1.real` is not an attribute, and people misread `"a" "b".upper()`.
    cst.Integer: AWAIT, cst.Float: AWAIT, cst.Imaginary: AWAIT, cst.ConcatenatedString: AWAIT,
}  # fmt: skip


def tightness(node: cst.BaseExpression) -> int:
    """How tightly an expression binds; ATOM if it has parentheses of its own."""
    if node.lpar:
        return ATOM
    if isinstance(node, cst.Tuple):
        return TUPLE
    if isinstance(node, (cst.BinaryOperation, cst.BooleanOperation)):
        return _OPERATORS[type(node.operator)]
    if isinstance(node, cst.UnaryOperation):
        return NOT if isinstance(node.operator, cst.Not) else FACTOR
    return _KINDS.get(type(node), PRIMARY)


_SYNTAX: dict[type, int] = {
    ast.Yield: YIELD, ast.YieldFrom: YIELD, ast.NamedExpr: NAMED, ast.Lambda: EXPRESSION,
    ast.IfExp: EXPRESSION, ast.Compare: COMPARE, ast.Await: AWAIT, ast.Starred: TUPLE,
}  # fmt: skip


def tightness_in(node: ast.expr, code: str) -> int:
    """How tightly an expression of a file binds without the parentheses around it; code: its source."""
    if isinstance(node, ast.Tuple):
        return ATOM if _is_closed(code) else TUPLE
    if isinstance(node, (ast.BinOp, ast.BoolOp)):
        return _OPERATORS[type(node.op)]
    if isinstance(node, ast.UnaryOp):
        return NOT if isinstance(node.op, ast.Not) else FACTOR
    if isinstance(node, ast.Constant):
        return AWAIT if _is_number_or_several(node.value, code) else PRIMARY
    return _SYNTAX.get(type(node), PRIMARY)


def _is_number_or_several(value: object, code: str) -> bool:
    """Whether a literal needs parentheses before a dot, as in `_KINDS`: a number, or strings in a row."""
    if isinstance(value, (str, bytes)):
        return len({code.find(code[-1]), code.rfind(code[-1], 0, -1)}) > 1
    return type(value) in (int, float, complex)


def _is_closed(code: str) -> bool:
    """Whether the source of a tuple begins and ends with its own parentheses, unlike `(a), (b)`."""
    if not code.startswith("("):
        return False
    try:
        ast.parse(f"[{code[1:-1]}]", mode="eval")
    except SyntaxError:
        return False
    return True


class Hole(Struct, frozen=True):
    """A place for an expression in a template.

    needs: how tightly what is put there must bind.
    delimited: brackets, commas or `=` on both sides, so that a change of the content stays inside.
    bracketed: inside of brackets, so that it may have newlines.
    """

    needs: int
    delimited: bool = False
    bracketed: bool = False


_STATEMENTS = (
    cst.SimpleStatementLine, cst.Expr, cst.Assign, cst.AssignTarget, cst.AugAssign, cst.Return,
    cst.ImportFrom, cst.ImportAlias, cst.AsName,
)  # fmt: skip


def holes(root: cst.CSTNode, *, bracketed: bool = False) -> dict[int, Hole]:
    """The place of every name in a template, by the `id` of its node; bracketed: whether the template is
    bracketed."""
    found: dict[int, Hole] = {}
    stack: list[tuple[cst.CSTNode, Hole]] = [(root, Hole(YIELD, bracketed=bracketed))]
    while stack:
        node, hole = stack.pop()
        if isinstance(node, cst.BaseExpression) and node.lpar:
            hole = Hole(YIELD, True, True)
        if isinstance(node, cst.Name):
            found[id(node)] = hole
        else:
            stack.extend(_parts(node, hole.bracketed))
    return found


def _parts(node: cst.CSTNode, bracketed: bool) -> Iterator[tuple[cst.CSTNode, Hole]]:
    """The expressions directly inside of a node, with what their places ask for."""
    inside = Hole(EXPRESSION, True, True)
    if isinstance(node, cst.Attribute):
        yield node.value, Hole(PRIMARY, False, bracketed)
        yield node.attr, Hole(PRIMARY, False, bracketed)
    elif isinstance(node, cst.Call):
        yield node.func, Hole(PRIMARY, False, bracketed)
        for arg in node.args:
            yield arg.value, inside
            if arg.keyword is not None:
                yield arg.keyword, Hole(PRIMARY, False, True)
    elif isinstance(node, cst.Subscript):
        yield node.value, Hole(PRIMARY, False, bracketed)
        for element in node.slice:
            if isinstance(element.slice, cst.Index):
                yield element.slice.value, inside
            elif isinstance(element.slice, cst.Slice):
                bounds = (element.slice.lower, element.slice.upper, element.slice.step)
                yield from ((bound, inside) for bound in bounds if bound is not None)
    elif isinstance(node, (cst.List, cst.Tuple, cst.Set)):
        for item in node.elements:
            yield item.value, inside if isinstance(item, cst.Element) else Hole(BIT_OR, True, True)
    elif isinstance(node, cst.BinaryOperation):
        level = _OPERATORS[type(node.operator)]
        if level == POWER:
            yield node.left, Hole(AWAIT, False, bracketed)
            yield node.right, Hole(FACTOR, False, bracketed)
        else:
            yield node.left, Hole(level, False, bracketed)
            yield node.right, Hole(level + 1, False, bracketed)
    elif isinstance(node, cst.BooleanOperation):
        level = _OPERATORS[type(node.operator)]
        yield node.left, Hole(level, False, bracketed)
        yield node.right, Hole(level + 1, False, bracketed)
    elif isinstance(node, cst.UnaryOperation):
        yield node.expression, Hole(NOT if isinstance(node.operator, cst.Not) else FACTOR, False, bracketed)
    elif isinstance(node, cst.Comparison):
        yield node.left, Hole(BIT_OR, False, bracketed)
        for target in node.comparisons:
            yield target.comparator, Hole(BIT_OR, False, bracketed)
    elif isinstance(node, cst.IfExp):
        yield node.body, Hole(OR, False, bracketed)
        yield node.test, Hole(OR, False, bracketed)
        yield node.orelse, Hole(EXPRESSION, False, bracketed)
    elif isinstance(node, cst.Lambda):
        yield node.body, Hole(EXPRESSION, False, bracketed)
    elif isinstance(node, cst.Dict):
        for entry in node.elements:
            if isinstance(entry, cst.DictElement):
                yield entry.key, inside
                yield entry.value, inside
            else:
                yield entry.value, Hole(BIT_OR, True, True)
    elif isinstance(node, (cst.ListComp, cst.SetComp, cst.GeneratorExp)):
        yield node.elt, inside
        yield from _parts(node.for_in, True)
    elif isinstance(node, cst.CompFor):
        yield node.iter, Hole(OR, False, True)
        yield from ((condition.test, Hole(OR, False, True)) for condition in node.ifs)
        if node.inner_for_in is not None:
            yield from _parts(node.inner_for_in, True)
    elif isinstance(node, _STATEMENTS):
        for child in node.children:
            if isinstance(child, cst.BaseExpression):
                yield child, Hole(YIELD)
            else:
                yield from _parts(child, False)
    else:  # dict comprehensions, f-strings, await: rare in templates, parentheses do no harm
        for child in node.children:
            if isinstance(child, cst.BaseExpression):
                yield child, Hole(ATOM, False, bracketed)
            elif not isinstance(child, cst.BaseParenthesizableWhitespace):
                yield from ((part, Hole(ATOM, False, bracketed)) for part, _ in _parts(child, bracketed))


def outer_needs(node: ast.AST, parent: ast.AST | None, text: str, start: int, end: int) -> int:
    """How tightly something must bind that takes the place of `node`, which is at `text[start:end]`."""
    if has_parentheses(node, parent, text, start, end):
        return YIELD
    if isinstance(parent, (ast.Attribute, ast.Await)):
        return PRIMARY
    if isinstance(parent, ast.Subscript):
        return PRIMARY if parent.value is node else EXPRESSION
    if isinstance(parent, ast.Call):
        return PRIMARY if parent.func is node else EXPRESSION
    if isinstance(parent, ast.BinOp):
        level = _OPERATORS[type(parent.op)]
        if level == POWER:
            return AWAIT if parent.left is node else FACTOR
        return level if parent.left is node else level + 1
    if isinstance(parent, ast.BoolOp):
        return _OPERATORS[type(parent.op)] + 1
    if isinstance(parent, ast.UnaryOp):
        return NOT if isinstance(parent.op, ast.Not) else FACTOR
    if isinstance(parent, ast.IfExp):
        return EXPRESSION if parent.orelse is node else OR
    if isinstance(parent, (ast.Compare, ast.Starred, ast.Dict)):
        return BIT_OR
    if isinstance(parent, (ast.comprehension, ast.FormattedValue)):
        return BIT_OR
    known = (
        ast.stmt, ast.keyword, ast.List, ast.Tuple, ast.Set, ast.Lambda, ast.arguments, ast.arg, ast.Slice,
        ast.withitem, ast.NamedExpr, ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp, ast.Yield,
        ast.YieldFrom,
    )  # fmt: skip
    return EXPRESSION if isinstance(parent, known) else PRIMARY


def has_parentheses(node: ast.AST, parent: ast.AST | None, text: str, start: int, end: int) -> bool:
    """Whether the expression at `text[start:end]` surely stands in parentheses of its own."""
    if isinstance(parent, ast.ClassDef) or (isinstance(parent, ast.Call) and parent.func is not node):
        return False
    while start and text[start - 1].isspace():
        start -= 1
    return text.endswith("(", 0, start) and _CLOSED.match(text, end) is not None


_CLOSED = pattern(r"\s*\)")
