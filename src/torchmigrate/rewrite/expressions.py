"""Expressions rewritten inside each other: every new text may quote others, which may be rewritten too."""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from torchmigrate.findings import Edit
from torchmigrate.source.text import Source

Span = tuple[int, int]
# Text as it is, an expression of the source (rewritten if it is), or a stretch of the source.
Piece = str | ast.expr | Span

_PRIMARY = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.List, ast.Tuple)


class ExpressionEdits:
    """New text for some expressions of a source; everything else, comments included, stays as it is."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._made: dict[Span, tuple[Piece, ...]] = {}
        self._order: list[tuple[int, int]] = []  # of those, by start and, the widest first, end (negative)

    def put(self, node: ast.expr, *pieces: Piece) -> None:
        """Give an expression a new text; the expression itself among the pieces is its old one."""
        self._made[self.source.span(node)] = pieces
        self._order = []

    def edits(self, without: Sequence[Span] = ()) -> list[Edit]:
        """The changes, except for those inside some stretches."""
        found = []
        for start, end in self._outermost(0, len(self.source.text), None):
            if not any(first <= start and end <= last for first, last in without):
                new = self._filled((start, end))
                if new != self.source.text[start:end]:
                    found.append(Edit(start, end, new))
        return found

    def text(self, start: int, end: int, own: Span | None = None) -> str:
        """A stretch of the source as it will be; own: what is being rewritten itself."""
        parts: list[str] = []
        position = start
        for span in self._outermost(start, end, own):
            parts += (self.source.text[position : span[0]], self._filled(span))
            position = span[1]
        parts.append(self.source.text[position:end])
        return "".join(parts)

    def _filled(self, own: Span) -> str:
        parts = []
        for piece in self._made[own]:
            if isinstance(piece, str):
                parts.append(piece)
            else:
                span = piece if isinstance(piece, tuple) else self.source.span(piece)
                parts.append(self.text(*span, own=own))
        return "".join(parts)

    def _outermost(self, start: int, end: int, own: Span | None) -> Iterator[Span]:
        if len(self._order) != len(self._made):
            self._order = sorted((first, -last) for first, last in self._made)
        position = start
        for index in range(bisect_left(self._order, (start, -end)), len(self._order)):
            first, last = self._order[index][0], -self._order[index][1]
            if first > end:
                break
            if position <= first and last <= end and (first, last) != own:
                yield first, last
                position = last


def as_primary(node: ast.expr) -> tuple[Piece, ...]:
    """An expression in front of `.attribute` or `[index]`: in parentheses where it needs them."""
    return (node,) if isinstance(node, _PRIMARY) else ("(", node, ")")
