"""Python in pieces of a file, such as the cells of a notebook: one program, with one text.

The pieces are joined, with two newlines after each: what is inserted after the last line of one is before
the second of them, what is inserted before the first line of the next is after both. In the text, everything
but Python is masked; `original` has it as it is.
"""

from __future__ import annotations

import ast
import codecs
import re
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from torchmigrate.findings import Edit
from torchmigrate.source.text import Positioned, Source, SourceError, SourcePart, SourcePlace

_BETWEEN = "\n\n"


class Piece(Struct, frozen=True):
    """One piece of Python.

    number: which piece of the file it is, 1-based, as messages name it.
    text: as the program sees it. original: as it is in the file, as long.
    masks: offsets in it of what is masked.
    """

    number: int
    text: str
    original: str
    masks: tuple[tuple[int, int], ...] = ()


class PiecesSource(Source):
    """A file that holds Python in pieces; never changes.

    pieces: in the order in which they run.
    original: the text without masks; offsets are the same.
    taken: names that are used by what is masked.
    broken: why pieces do not parse, each with its number and line; they are masked whole.
    """

    in_pieces = True

    __slots__ = ("_rows", "broken", "original", "pieces", "starts", "taken")

    def __init__(
        self,
        path: Path,
        pieces: Sequence[Piece],
        data: bytes,
        *,
        bom: bool,
        taken: frozenset[str],
        broken: tuple[SourceError, ...] = (),
    ) -> None:
        super().__init__(path, "".join(piece.text + _BETWEEN for piece in pieces), data, "utf-8", bom)
        self.pieces = tuple(pieces)
        self.original = "".join(piece.original + _BETWEEN for piece in pieces)
        self.taken = taken
        self.broken = broken
        self.starts: list[int] = []
        place = 0
        for piece in pieces:
            self.starts.append(place)
            place += len(piece.text) + len(_BETWEEN)
        self._rows: list[int] | None = None

    # ---- the file -----------------------------------------------------------------------------------

    @staticmethod
    def decoded(data: bytes, what: str) -> tuple[bool, str]:
        """Whether a file has a byte order mark, and its text. what: to say of one that is not UTF-8."""
        bom = data.startswith(codecs.BOM_UTF8)
        try:
            return bom, data[3 if bom else 0 :].decode()
        except UnicodeDecodeError as error:
            raise SourceError(what, data.count(b"\n", 0, error.start) + 1) from None

    def written(self) -> str:
        """The whole file with these pieces."""
        raise NotImplementedError("each kind of file knows what is between its pieces")

    def content(self) -> bytes:
        data = self.written().encode()
        return codecs.BOM_UTF8 + data if self.bom else data

    # ---- places -------------------------------------------------------------------------------------

    def _first_rows(self) -> list[int]:
        if self._rows is None:
            self._rows = [self.position(start)[0] for start in self.starts]
        return self._rows

    def _index(self, row: int) -> int:
        return max(0, bisect_right(self._first_rows(), row) - 1)

    def rows_around(self, row: int) -> tuple[int, int]:
        if not self.pieces:
            return super().rows_around(row)
        index = self._index(row)
        first = self._first_rows()[index]
        return first, max(first, self._last_row(index))

    def shown_row(self, row: int) -> int:
        return row - self._first_rows()[self._index(row)] + 1 if self.pieces else row

    def _last_row(self, index: int) -> int:
        rows = self._first_rows()
        after = rows[index + 1] if index + 1 < len(rows) else self.line_count + 1
        return after - (1 if self.pieces[index].text.endswith(("\n", "\r")) else 0) - 2

    def place(self, offset: int) -> SourcePlace:
        row, column = self.position(offset)
        if not self.pieces:
            return SourcePlace(None, row, column)
        # What begins after the last piece is reported at its end.
        return SourcePlace(self.pieces[self._index(row)].number, self.shown_row(row), column)

    def said_row(self, row: int) -> str:
        if not self.pieces:
            return super().said_row(row)
        return f"line {self.shown_row(row)} of cell {self.pieces[self._index(row)].number}"

    def shows(self, statement: Positioned) -> bool:
        end = self.span(statement)[1]
        index = bisect_right(self.starts, end) - 1
        after = self.starts[index] + len(self.pieces[index].text)
        return not re.sub(r"#[^\r\n]*", "", self.text[end:after]).strip()

    def shown_line(self, row: int) -> str:
        try:
            start = self.line_start(row)
        except IndexError:
            return ""
        return self.original[start : start + len(self.line_text(row))]

    # ---- other texts --------------------------------------------------------------------------------

    def parts(self) -> list[SourcePart]:
        ends = (
            "" if piece.original.endswith(("\n", "\r")) or not piece.original else "\n"
            for piece in self.pieces
        )
        return [
            SourcePart(f":cell {piece.number}", piece.original + end)
            for piece, end in zip(self.pieces, ends, strict=True)
        ]

    def with_text(self, text: str) -> Source:
        raise NotImplementedError("which piece a text belongs to is known from edits only")

    def with_pieces(self, pieces: Sequence[Piece]) -> PiecesSource:
        """The same file with other pieces, of the same numbers."""
        raise NotImplementedError("each kind of file knows what else it has")

    def edited(self, text: str, edits: Sequence[Edit]) -> Source:
        """The same file after edits, which are sorted and do not overlap; `text` is what they give.

        Raises SourceError where an edit changes what is masked, or goes from one piece into the next.
        """
        pieces = list(self.pieces)
        of_piece: dict[int, list[Edit]] = {}
        for edit in edits:
            index = max(0, bisect_right(self.starts, edit.start) - 1)
            after = self.starts[index + 1] if index + 1 < len(self.starts) else len(self.text)
            if after < edit.end and edit.start >= after - len(_BETWEEN):
                # It takes what is between them with it: a cell with nothing but an import.
                edit = edit._replace(start=after)
                index += 1
                after = self.starts[index + 1] if index + 1 < len(self.starts) else len(self.text)
            if edit.end > after:
                if self.text[after : edit.end].strip():
                    raise SourceError("the fix would merge cells")
                edit = edit._replace(end=after)
            of_piece.setdefault(index, []).append(edit)
        for index, some in of_piece.items():
            pieces[index] = _edited(pieces[index], some, self.starts[index])
        return self.with_pieces(pieces)

    # ---- syntax -------------------------------------------------------------------------------------

    def _parse(self) -> ast.Module:
        try:
            return super()._parse()
        except SourceError as error:
            raise self.at_piece(error) from None

    def at_piece(self, error: SourceError) -> SourceError:
        """An error that names a line of the text, with the piece and the line in that."""
        if error.line is None or not self.pieces:
            return error
        number = self.pieces[self._index(error.line)].number
        return SourceError(error.reason, self.shown_row(error.line), error.kind, number)


def _edited(piece: Piece, edits: list[Edit], offset: int) -> Piece:
    """A piece after edits, whose places are those of the whole text; it begins at `offset`."""
    text, original = piece.text + _BETWEEN, piece.original + _BETWEEN
    parts: tuple[list[str], list[str]] = ([], [])
    masks: list[tuple[int, int]] = []
    waiting = list(piece.masks)
    place = shift = 0
    for edit in edits:
        start, end = edit.start - offset, edit.end - offset
        if start == end and (head := _head(piece, start)):
            start = end = head  # nothing may come before the magic of a cell
        while waiting and waiting[0][1] <= start:
            masks.append((waiting[0][0] + shift, waiting[0][1] + shift))
            del waiting[0]
        if waiting and waiting[0][0] < (end if end > start else start):
            raise SourceError("the fix would change text that is not Python")
        for some, whole in zip(parts, (text, original), strict=True):
            some += (whole[place:start], edit.text)
        place = end
        shift += len(edit.text) - (end - start)
    masks += [(start + shift, end + shift) for start, end in waiting]
    for some, whole in zip(parts, (text, original), strict=True):
        some.append(whole[place:])
    new, shown = "".join(parts[0]), "".join(parts[1])
    for _ in _BETWEEN:
        if new.endswith("\n"):
            cut = 2 if new.endswith("\r\n") and not piece.text.endswith("\r") else 1
            new, shown = new[:-cut], shown[:-cut]
    return Piece(piece.number, new, shown, tuple(masks))


def _head(piece: Piece, place: int) -> int:
    """Where the line after the magic of a cell begins, if a place is before or at that magic; else 0."""
    if not piece.masks:
        return 0
    start, end = piece.masks[0]
    if place > start or not piece.original.startswith("%%", start) or piece.original[:start].strip():
        return 0
    rest = piece.original[end:]
    return end + len(rest) - len(rest.lstrip("\r\n")) if rest[:1] in ("\r", "\n") else 0
