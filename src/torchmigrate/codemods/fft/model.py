"""How tensors hold complex numbers, and what is read of them.

A "pair" is a real tensor whose last dimension of 2 holds real and imaginary part; a "column" one whose last
dimension is 1, to be multiplied with pairs.
"""

from __future__ import annotations

import ast
import enum

from msgspec import Struct

from torchmigrate.codemods.base.unclear import Unclear
from torchmigrate.semantics.flow.reaching import Definition


class Layout(enum.Enum):
    """How a tensor holds complex numbers; NUMBER: it is a number of Python."""

    PAIR = "pair"
    COLUMN = "column"
    NUMBER = "number"


class PairPart(Struct, frozen=True):
    """The real (0) or imaginary (1) part of a pair, or one that is indexed before; `pair` may be sliced."""

    pair: ast.expr
    index: int


class Length(Struct, frozen=True):
    """The absolute values of a pair; squared: their squares; keepdim: as a column."""

    pair: ast.expr
    squared: bool
    keepdim: bool


class Helper(Struct, frozen=True):
    """What a function of the file computes of pairs: the product of its arguments.

    factors: their places, in the order in which they are written; conjugated: which of them are.
    count: how many there are. in_place: it changes its argument, too.
    """

    factors: tuple[int, ...]
    conjugated: tuple[bool, ...]
    count: int
    in_place: bool = False


class Escapes(Unclear):
    """A pair is used in a way that is not understood.

    definitions: those of the variable, if it is one.
    """

    def __init__(self, node: ast.expr, definitions: frozenset[Definition]) -> None:
        super().__init__(f"line {node.lineno} uses the real layout in another way")
        self.definitions = definitions
