"""Expressions rewritten inside each other: every new code may quote others, which may be rewritten too."""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from torchmigrate.findings import Edit
from torchmigrate.rewrite.code import Code, Quotes
from torchmigrate.source.text import Source

Span = tuple[int, int]


class ExpressionEdits:
    """New code for some expressions of a source; everything else, comments included, stays as it is."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._made: dict[Span, Code] = {}
        self._order: list[tuple[int, int]] = []  # of those, by start and, the widest first, end (negative)

    def put(self, node: ast.expr, new: Code) -> None:
        """Give an expression new code; where that quotes the expression itself, the old one is meant.

        Nobody looks at what is around it: it needs parentheses of its own where its place needs them.
        """
        self._made[self.source.span(node)] = new
        self._order = []

    def edits(self, without: Sequence[Span] = ()) -> list[Edit]:
        """The changes, except for those inside some stretches.

        Raises CannotFix if new code cannot be written.
        """
        found = []
        for start, end in self._outermost(0, len(self.source.text), None):
            if not any(first <= start and end <= last for first, last in without):
                new, _ = self.filled((start, end))
                if new != self.source.text[start:end]:
                    found.append(Edit(start, end, new))
        return found

    def text(self, start: int, end: int, own: Span | None = None) -> str:
        """A stretch of the source as it will be; own: what is being rewritten itself."""
        parts: list[str] = []
        position = start
        for span in self._outermost(start, end, own):
            parts += (self.source.text[position : span[0]], self.filled(span)[0])
            position = span[1]
        parts.append(self.source.text[position:end])
        return "".join(parts)

    def is_put(self, span: Span) -> bool:
        """Whether an expression has new code."""
        return span in self._made

    def filled(self, own: Span) -> tuple[str, int]:
        """The new text of an expression that has some, and how tightly it binds."""
        from torchmigrate.rewrite.filling import filled_in  # with LibCST

        return filled_in(self._made[own], _Rewritten(self, own))

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


class _Rewritten(Quotes):
    """Quotes expressions as they will be; own: the one that is being rewritten, as it was."""

    def __init__(self, edits: ExpressionEdits, own: Span) -> None:
        super().__init__(edits.source)
        self.edits = edits
        self.own = own

    def quoted(self, node: ast.expr) -> tuple[str, int]:
        span = self.source.span(node)
        if span != self.own and self.edits.is_put(span):
            return self.edits.filled(span)
        return super().quoted(node)

    def stretch(self, start: int, end: int) -> str:
        return self.edits.text(start, end, self.own)
