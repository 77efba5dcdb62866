"""Complex multiplication by hand: `stack((a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re), -1)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import reduce

from msgspec import Struct, field

from torchmigrate.codemods.fft.layouts import Layouts
from torchmigrate.rewrite.code import Code, code
from torchmigrate.semantics.flow.reaching import Seen
from torchmigrate.semantics.flow.steps import UNKNOWN_STEP, Step

_MOST_NAMES = 8  # for one part
_Key = tuple[str, Seen]  # a variable, and where its value comes from


class Product(Struct, frozen=True):
    """A product of two variables that hold pairs, or one of them alone.

    factors: their names; conjugated: which of them is conjugated.
    read: the reads of parts (`re`, `im`) that the product does without.
    pairs: a read of each of the factors.
    """

    factors: tuple[str, ...]
    conjugated: tuple[bool, ...]
    read: tuple[ast.Name, ...]
    pairs: tuple[ast.Name, ...]

    def expression(self) -> Code:
        """As an expression of complex tensors."""
        factors = [
            code("$x.conj()" if conjugated else "$x", x=name)
            for name, conjugated in zip(self.factors, self.conjugated, strict=True)
        ]
        return reduce(times, factors)


def times(one: Code, other: Code) -> Code:
    """A product."""
    return code("$one * $other", one=one, other=other)


class _Atom(Struct, frozen=True):
    """One part of a variable: 0 real, 1 imaginary."""

    key: _Key
    index: int


_Term = tuple[_Atom, _Atom, int]  # the factors, and the sign


# Of a product x * y (with conjugated ones): the sign of every term of the real part, then of the imaginary
# part, by the parts of x and of y.
_PATTERNS = {
    ((0, 0, 1), (1, 1, -1), (0, 1, 1), (1, 0, 1)): (False, False),
    ((0, 0, 1), (1, 1, 1), (0, 1, -1), (1, 0, 1)): (False, True),
    ((0, 0, 1), (1, 1, 1), (0, 1, 1), (1, 0, -1)): (True, False),
    ((0, 0, 1), (1, 1, -1), (0, 1, -1), (1, 0, -1)): (True, True),
}


class _Reader(Struct):
    layouts: Layouts
    statement: ast.stmt
    read: list[ast.Name] = field(default_factory=list)
    order: dict[_Key, ast.Name] = field(default_factory=dict)

    def atom(self, node: ast.expr) -> _Atom | None:
        """The part that an expression is, of a variable that still has the same value at the statement."""
        made = Step(node)
        for _ in range(_MOST_NAMES):
            if isinstance(made.node, (ast.Name, ast.Tuple, ast.List)):
                steps = self.layouts.flow.steps(made)
                made = steps[0] if len(steps) == 1 else UNKNOWN_STEP
        if not isinstance(made.node, ast.expr):
            return None
        part = self.layouts.part_of(made.node) if not made.path else None
        pair, index = (part.pair, part.index) if part and _whole(made.node) else (None, 0)
        if made.path in ((0,), (1,)):
            pair, index = self.layouts.unbound(made.node), int(made.path == (1,))
        if not isinstance(pair, ast.Name) or not self.layouts.flow.index.is_kept(pair, self.statement):
            return None
        if isinstance(node, ast.Name):
            self.read.append(node)
        key = (pair.id, self.layouts.reaching(pair).of(pair))
        self.order.setdefault(key, pair)
        return _Atom(key, index)

    def terms(self, node: ast.expr, sign: int = 1) -> Iterator[tuple[int, ast.expr, ast.expr]]:
        """The products that are added up, with their signs. Raises ValueError for anything else."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
            yield from self.terms(node.left, sign)
            yield from self.terms(node.right, sign if isinstance(node.op, ast.Add) else -sign)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            yield from self.terms(node.operand, -sign)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            left, right = node.left, node.right
            if isinstance(left, ast.UnaryOp) and isinstance(left.op, ast.USub):
                left, sign = left.operand, -sign
            yield sign, left, right
        else:
            yield from self.terms(self._named(node), sign)

    def _named(self, node: ast.expr) -> ast.expr:
        """What a variable is given that nothing else reads. Raises ValueError if there is none."""
        found = self.layouts.reaching(node)
        seen = found.of(node) if isinstance(node, ast.Name) else frozenset()
        definition = next(iter(seen), None)
        if definition is None or len(seen) != 1 or definition.value is None or definition.statement is None:
            raise ValueError
        parents = self.layouts.parents
        same_block = parents.get(definition.statement) is parents.get(self.statement)
        if not same_block or definition.name in found.captured or len(found.reads(seen)) != 1:
            raise ValueError
        if not isinstance(definition.value, ast.BinOp):
            raise ValueError
        assert isinstance(node, ast.Name), "it has definitions"
        self.read.append(node)
        return definition.value


def product(real: ast.expr, imaginary: ast.expr, statement: ast.stmt, layouts: Layouts) -> Product | None:
    """The product whose parts are computed; also `x` and its conjugate, put together from its parts."""
    reader = _Reader(layouts, statement)
    alone = _alone(real, imaginary, reader)
    if alone is not None:
        return alone
    reader = _Reader(layouts, statement)
    found: list[set[_Term]] = []
    try:
        for side in (real, imaginary):
            terms = []
            for sign, left, right in reader.terms(side):
                one, other = reader.atom(left), reader.atom(right)
                if one is None or other is None:
                    return None
                terms.append((one, other, sign))
            if len(terms) != 2:
                return None
            found.append(set(terms))
    except ValueError:
        return None
    keys = list(reader.order)
    if len(keys) == 1:
        keys *= 2
    if len(keys) != 2:
        return None
    for pattern, conjugated in _PATTERNS.items():
        sides = (pattern[:2], pattern[2:])
        if all(_fits(side, terms, keys) for side, terms in zip(sides, found, strict=True)):
            return Product(
                (keys[0][0], keys[1][0]), conjugated, tuple(reader.read), tuple(reader.order.values())
            )
    return None


def _alone(real: ast.expr, imaginary: ast.expr, reader: _Reader) -> Product | None:
    negative = isinstance(imaginary, ast.UnaryOp) and isinstance(imaginary.op, ast.USub)
    one = reader.atom(real)
    other = reader.atom(imaginary.operand if isinstance(imaginary, ast.UnaryOp) else imaginary)
    if one is None or other is None or one.key != other.key or (one.index, other.index) != (0, 1):
        return None
    if isinstance(imaginary, ast.UnaryOp) and not negative:
        return None
    return Product((one.key[0],), (negative,), tuple(reader.read), tuple(reader.order.values()))


def _fits(side: tuple[tuple[int, int, int], ...], terms: set[_Term], keys: list[_Key]) -> bool:
    """Whether the terms of one part are these, whichever factor is written first."""
    x, y = keys
    rest = list(terms)
    for first, second, sign in side:
        wanted = (_Atom(x, first), _Atom(y, second))
        match = next((item for item in rest if item[2] == sign and wanted in (item[:2], item[1::-1])), None)
        if match is None:
            return False
        rest.remove(match)
    return not rest


def _whole(node: ast.expr) -> bool:
    """Whether a part is taken from the variable itself, without indexing it first."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
        return all(
            (isinstance(item, ast.Constant) and item.value is ...)
            or (isinstance(item, ast.Slice) and not (item.lower or item.upper or item.step))
            for item in node.slice.elts[:-1]
        )
    return isinstance(node, ast.Call) or (
        isinstance(node, ast.Subscript) and isinstance(node.value, ast.Call)
    )
