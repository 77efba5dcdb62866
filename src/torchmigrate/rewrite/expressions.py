"""Expressions rewritten inside each other: every new code may quote others, which may be rewritten too."""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

from torchmigrate.findings import Edit
from torchmigrate.match.context import CannotFix
from torchmigrate.rewrite.code import Code, Quotes
from torchmigrate.rewrite.written import written
from torchmigrate.source.text import Source

Span = tuple[int, int]


class ExpressionEdits:
    """New code for some expressions of a source; everything else, comments included, stays as it is."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._made: dict[Span, Code | str] = {}
        self._whole: set[Span] = set()  # of those that are text: replaced as a whole
        # Of those, by start: what is only added there, then the widest first (the negative end).
        self._order: list[tuple[int, bool, int]] = []

    def put(self, node: ast.expr | ast.stmt, new: Code) -> None:
        """Give an expression new code; where that quotes the expression itself, the old one is meant.

        The code around it is not considered: it needs its own parentheses where its place requires them.
        """
        self._made[self.source.span(node)] = new

    def put_text(self, start: int, end: int, text: str, *, whole: bool = False) -> None:
        """Give a part of the source new text.

        Args:
            whole: whether other changes in there do not count.
        """
        self._made[start, end] = text
        if whole:
            self._whole.add((start, end))

    def record(self, edits: Iterable[Edit]) -> None:
        """Changes that are made already; several additions at one place stand in their order."""
        for start, end, text, _ in edits:
            before = self._made.get((start, end)) if start == end else None
            self.put_text(start, end, f"{before}{text}" if isinstance(before, str) else text)

    def edits(self, first: int = 0, last: int | None = None, without: Sequence[Span] = ()) -> list[Edit]:
        """The changes, except for those inside some stretches; text may overlap with others.

        Args:
            first, last: between which they are; None: the end of the file.
            without: the stretches.

        Raises CannotFix if new code cannot be written.
        """
        found = []
        last = len(self.source.text) if last is None else last
        for start, end in self._outermost(first, last, None):
            if not any(begin <= start and end <= stop for begin, stop in without):
                made, old = self._made[start, end], self.source.text[start:end]
                quotes = _Rewritten(self, (start, end))
                new = made if isinstance(made, str) else written(made, quotes, instead_of=old)
                if new != old:
                    found.append(Edit(start, end, new))
        return found

    def text(self, start: int, end: int, own: Span | None = None) -> str:
        """A stretch of the source as it will be; own: what is being rewritten itself.

        Raises CannotFix if two changes overlap.
        """
        parts: list[str] = []
        position = start
        for span in self._outermost(start, end, own):
            if span[0] < position:
                raise CannotFix("two changes overlap")
            parts += (self.source.text[position : span[0]], self._text_at(span))
            position = span[1]
        parts.append(self.source.text[position:end])
        return "".join(parts)

    def text_of(self, new: Code) -> str:
        """New code for another place, which quotes expressions as they will be. Raises CannotFix."""
        return written(new, _Rewritten(self, None))

    def is_put(self, span: Span) -> bool:
        """Whether an expression has new code."""
        return isinstance(self._made.get(span), Code)

    def filled(self, own: Span) -> tuple[str, int]:
        """The new text of an expression that has new code, and how tightly it binds."""
        from torchmigrate.rewrite.filling import filled_in  # with LibCST

        new = self._made[own]
        assert isinstance(new, Code), "only called for that"
        return filled_in(new, _Rewritten(self, own))

    def _text_at(self, span: Span) -> str:
        made = self._made[span]
        return made if isinstance(made, str) else self.filled(span)[0]

    def _outermost(self, start: int, end: int, own: Span | None) -> Iterator[Span]:
        """What is rewritten in a stretch, but for what is inside of other new code: that may quote it."""
        if len(self._order) != len(self._made):
            self._order = sorted((first, last > first, -last) for first, last in self._made)
        position = start
        for index in range(bisect_left(self._order, (start, False, -end)), len(self._order)):
            first, last = self._order[index][0], -self._order[index][2]
            if first > end:
                break
            span = first, last
            if position <= first and last <= end and span != own:
                yield span
                if not isinstance(self._made[span], str) or span in self._whole:
                    position = last


class _Rewritten(Quotes):
    """Quotes expressions as they will be; own: the one that is being rewritten, as it was."""

    def __init__(self, edits: ExpressionEdits, own: Span | None) -> None:
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
