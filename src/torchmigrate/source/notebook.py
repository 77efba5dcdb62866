"""Jupyter notebooks: their code cells are one program."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

from msgspec.structs import replace

from torchmigrate.files.reading import NOTEBOOK
from torchmigrate.source import magics
from torchmigrate.source.notebook_file import NotebookFile, changed, read_notebook
from torchmigrate.source.pieces import Piece, PiecesSource
from torchmigrate.source.text import Source, SourceError

_NEVER = "the cells do not parse as one module"


class Notebook(PiecesSource):
    """A notebook; never changes. Whatever is not Python, in cells or whole cells, is not part of the text.

    file: what was read.
    """

    most = NOTEBOOK

    __slots__ = ("_file_rows", "file")

    file: NotebookFile
    _file_rows: dict[int, list[int]] | None

    @classmethod
    def from_bytes(cls, data: bytes, path: Path) -> Source:
        bom, text = cls.decoded(data, "not a notebook: it is not UTF-8 text")
        file = read_notebook(text)
        pieces, taken = _pieces(file)
        made = cls._made(path, pieces, data, bom=bom, taken=taken, file=file)
        try:
            made.parse()
        except SourceError:
            pieces, broken = _without_broken(pieces, path)
            if not broken:
                raise
            made = cls._made(path, pieces, data, bom=bom, taken=taken, file=file, broken=broken)
        return made

    @classmethod
    def from_text(cls, text: str, path: Path) -> Source:
        return cls.from_bytes(text.encode("utf-8", "surrogatepass"), path)

    @classmethod
    def _made(
        cls,
        path: Path,
        pieces: Sequence[Piece],
        data: bytes,
        *,
        bom: bool,
        taken: frozenset[str],
        file: NotebookFile,
        broken: tuple[SourceError, ...] = (),
    ) -> Notebook:
        made = cls(path, pieces, data, bom=bom, taken=taken, broken=broken)
        made.file = file
        made._file_rows = None
        return made

    def with_pieces(self, pieces: Sequence[Piece]) -> Notebook:
        return self._made(
            self.path,
            pieces,
            self.data,
            bom=self.bom,
            taken=self.taken,
            file=self.file,
            broken=self.broken,
        )

    def written(self) -> str:
        cells = {cell.number: cell.source for cell in self.file.cells}
        return changed(self.file, [(cells[piece.number], piece.original) for piece in self.pieces])

    def file_row(self, offset: int) -> int:
        if self._file_rows is None:
            self._file_rows = _rows_of_cells(self.written())
        number, row, _ = self.place(offset)
        rows = self._file_rows.get(number or 0, [1])
        return rows[min(row, len(rows)) - 1]


def _rows_of_cells(text: str) -> dict[int, list[int]]:
    """For each cell of a file, the line of the file that each of its lines begins in."""
    starts = list(accumulate((len(line) + 1 for line in text.split("\n")), initial=0))
    found: dict[int, list[int]] = {}
    for cell in read_notebook(text).cells:
        rows = found[cell.number] = [bisect_right(starts, cell.source.start)]
        ended = True
        for literal in cell.source.literals:
            here = bisect_right(starts, literal.start)
            if ended:
                rows[-1] = here
            rows += [here] * literal.text.count("\n")
            ended = literal.text.endswith("\n")
    return found


def _pieces(file: NotebookFile) -> tuple[list[Piece], frozenset[str]]:
    """The cells that are Python, and the names that are used by what is none."""
    pieces: list[Piece] = []
    taken: set[str] = set()
    for cell in file.cells:
        language = cell.language or file.language or "python"
        if language != "ipython" and not language.startswith("python"):
            continue
        text = cell.source.text
        masked = magics.masked(text)
        if masked is None:
            taken.update(magics.names_in_other(text))
            continue
        taken.update(masked.taken)
        pieces.append(Piece(cell.number, masked.text, text, masked.spans))
    return pieces, frozenset(taken)


def _without_broken(pieces: list[Piece], path: Path) -> tuple[list[Piece], tuple[SourceError, ...]]:
    """The cells with those masked that do not parse, and why they do not."""
    left: list[Piece] = []
    broken: list[SourceError] = []
    for piece in pieces:
        alone = PiecesSource(path, [piece], b"", bom=False, taken=frozenset())
        try:
            alone.parse()
        except SourceError as error:
            broken.append(SourceError(error.reason, error.line, error.kind, piece.number))
            span = (0, len(piece.text))
            left.append(replace(piece, text=magics.blank(piece.text), masks=(span,)))
        else:
            left.append(piece)
    return left, tuple(broken)
