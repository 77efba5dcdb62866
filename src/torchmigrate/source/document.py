"""Python in documentation: fenced blocks of Markdown, code blocks of reStructuredText, and doctests.

The blocks of a document are one program, as a reader takes them: what one imports, the next ones know.
A block that does not parse (an elision, a template) is left out. A docstring is a document of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from torchmigrate.patterns import pattern
from torchmigrate.source import magics
from torchmigrate.source.changes import changes
from torchmigrate.source.pieces import Piece, PiecesSource
from torchmigrate.source.text import Source, SourceError, SourcePart, SourcePlace

_PYTHON = frozenset(
    ["python", "py", "python3", "py3", "ipython", "ipython3", "pycon", "python-repl", "doctest"]
)
_FENCE = pattern(r"([ \t]*)(`{3,}|~{3,})[ \t]*([^`\r\n]*)")
_INFO = pattern(r"\{?\.?(?:code-cell\}?[ \t]+)?([\w+-]*)")
_DIRECTIVE = pattern(
    r"([ \t]*)\.\.[ \t]+(?:code-block|code|sourcecode|testcode|testsetup)::[ \t]*(\S*)[ \t]*"
)
_TESTED = pattern(r"[ \t]*\.\.[ \t]+(?:testcode|testsetup)::")
_OPTION = pattern(r"[ \t]+:[\w-]+:")
_PROMPT = pattern(r"([ \t]*)(?:>>>|\.\.\.)(?:[ \t]|$)")
_FIRST_PROMPT = pattern(r"[ \t]*>>>(?:[ \t]|$)")
_WORD = pattern(r"[^\W\d]\w*")


class _Line(Struct, frozen=True):
    """A line of a block: its 1-based row in the file, and how much before the code is none."""

    row: int
    prefix: str
    code: str


class Whole(Struct, frozen=True):
    """Where a document is in the file around it.

    span: of its lines, as offsets in the text of that file. row: how many lines are before them.
    hides: whether a comment there hides a rule (code and name) in a row of that file.
    """

    span: tuple[int, int]
    row: int
    hides: Callable[[str, str, int], bool] = lambda code, name, row: False


class Document(PiecesSource):
    """A file of Markdown or reStructuredText, or what is such within another file; never changes.

    file: its lines, with their ends. lines: those of each block, as they were read.
    whole: where it is in another file; None: it is a file.
    borrowed: how many of the pieces, the first ones, are what the file around it imports.
    """

    is_documentation = True

    __slots__ = ("_written", "borrowed", "file", "lines", "whole")

    file: list[str]
    lines: tuple[tuple[_Line, ...], ...]
    whole: Whole | None
    borrowed: int
    _written: tuple[list[str], list[list[tuple[int, str]]]] | None

    @classmethod
    def from_bytes(cls, data: bytes, path: Path) -> Source:
        bom, text = cls.decoded(data, "not UTF-8 text")
        file = lines_of(text)
        find = rest_blocks if path.suffix == ".rst" else markdown_blocks
        return cls.of(path, file, find(without_ends(file)), data=data, bom=bom)

    @classmethod
    def of(
        cls,
        path: Path,
        file: list[str],
        blocks: Iterable[Block],
        *,
        data: bytes = b"",
        bom: bool = False,
        whole: Whole | None = None,
        may_be: Callable[[str], bool] = lambda code: True,
    ) -> Document:
        """The document with these lines, some blocks are Python.

        may_be: whether code, as it is written, may be taken for what it says.
        """
        pieces: list[Piece] = []
        places: list[tuple[_Line, ...]] = []
        taken: set[str] = set()
        for block in blocks:
            for lines in _programs(block):
                code = "\n".join(line.code for line in lines)
                masked = magics.masked(code) if may_be(code) else None
                if masked is None or not _parses(masked.text, path):
                    taken.update(_WORD.findall(code))
                    continue
                taken.update(masked.taken)
                pieces.append(Piece(len(pieces) + 1, masked.text, code, masked.spans))
                places.append(lines)
        made = cls(path, pieces, data, bom=bom, taken=frozenset(taken))
        made.file, made.lines, made.whole, made.borrowed, made._written = file, tuple(places), whole, 0, None
        return made

    def with_pieces(self, pieces: Sequence[Piece]) -> Document:
        return self._like(pieces, self.taken, self.whole)

    def borrowing(self, code: str, names: Iterable[str]) -> Document:
        """The same document after imports of the file around it, which give some names."""
        piece = Piece(0, code, code)
        made = self._like([piece, *self.pieces], self.taken.union(names), self.whole)
        made.borrowed = 1
        return made

    def hidden_by(self, hides: Callable[[str, str, int], bool]) -> Document:
        """The same document in a file whose comments hide rules, see `Whole`."""
        assert self.whole is not None, "it is within a file"
        return self._like(self.pieces, self.taken, replace(self.whole, hides=hides))

    def _like(self, pieces: Sequence[Piece], taken: frozenset[str], whole: Whole | None) -> Document:
        made = type(self)(self.path, pieces, self.data, bom=self.bom, taken=taken)
        made.file, made.lines, made.whole = self.file, self.lines, whole
        made.borrowed, made._written = self.borrowed, None
        return made

    @property
    def own_start(self) -> int:
        """Where its own text begins, after what is borrowed."""
        return self.starts[self.borrowed] if self.borrowed else 0

    def is_hidden(self, code: str, name: str, row: int) -> bool:
        return self.whole is not None and self.whole.hides(code, name, self.shown_row(row))

    # ---- places -------------------------------------------------------------------------------------

    def place(self, offset: int) -> SourcePlace:
        row, column = self.position(offset)
        return SourcePlace(None, self.shown_row(row), column + len(self._at(row)[1]))

    def shown_row(self, row: int) -> int:
        return self._at(row)[0]

    def lead(self, row: int) -> str:
        return self._at(row)[1]

    def said_row(self, row: int) -> str:
        return f"line {self.shown_row(row)}"

    def file_row(self, offset: int) -> int:
        return self.place(offset).row

    def shows(self, statement: object) -> bool:
        return False

    def _at(self, row: int) -> tuple[int, str]:
        """The row of the file, as it is now, and what is before the code, of a row of the text."""
        if not self.pieces:
            return 1, ""
        index = self._index(row)
        rows = self._changed()[1][index]
        at, prefix = rows[min(row - self._first_rows()[index], len(rows) - 1)]
        return at + (self.whole.row if self.whole is not None else 0), prefix

    # ---- the file -----------------------------------------------------------------------------------

    def parts(self) -> list[SourcePart]:
        return [SourcePart("", self.written())]

    def written(self) -> str:
        return "".join(self._changed()[0])

    def _changed(self) -> tuple[list[str], list[list[tuple[int, str]]]]:
        """The lines of the file with the blocks as they are now; and of each line of a block, where it is."""
        if self._written is None:
            self._written = self._write()
        return self._written

    def _write(self) -> tuple[list[str], list[list[tuple[int, str]]]]:
        out: list[str] = []
        where: list[list[tuple[int, str]]] = [[] for _ in range(self.borrowed)]
        done = 0  # lines of the file
        for lines, piece in zip(self.lines, self.pieces[self.borrowed :], strict=True):
            rows: list[tuple[int, str]] = []
            where.append(rows)
            old, new = [line.code for line in lines], piece.original.split("\n")
            for same, i1, i2, j1, j2 in _ranges(old, new):
                if i1 == i2 < len(lines) and j1 < j2:  # before a line, and after what is printed before it
                    out += self.file[done : lines[i2].row - 1]
                    done = lines[i2].row - 1
                for index in range(j1, max(j2, j1 + i2 - i1)):
                    number = i1 + index - j1
                    line = lines[number] if number < i2 else None
                    if line is not None:
                        out += self.file[done : line.row - 1]
                        done = line.row
                    if index >= j2:
                        continue  # the line was removed
                    near = line or lines[min(max(number - 1, 0), len(lines) - 1)]
                    whole = self.file[near.row - 1]
                    prefix = near.prefix if line is not None else _prefix(near.prefix, new[index])
                    rows.append((len(out) + 1, prefix))
                    if same and line is not None:
                        out.append(whole)
                    else:
                        ending = whole[len(whole.rstrip("\r\n")) :]
                        if line is None and not ending:  # after the last line, which has no end
                            out[-1] += "\n"
                        out.append((prefix + new[index] if new[index] else prefix.rstrip()) + ending)
        out += self.file[done:]
        return out, [rows or [(1, "")] for rows in where]


def _ranges(old: list[str], new: list[str]) -> Iterator[tuple[bool, int, int, int, int]]:
    """All lines in ranges of old and new ones, and whether they are the same."""
    at, to = 0, 0
    for i1, i2, j1, j2 in changes(old, new):
        yield True, at, i1, to, j1
        yield False, i1, i2, j1, j2
        at, to = i2, j2
    yield True, at, len(old), to, len(new)


def _prefix(near: str, code: str) -> str:
    """The prefix of a new line next to another one."""
    if ">>>" not in near and "..." not in near:
        return near
    return near.replace(">>>", "...") if code[:1] in " \t)]}" else near.replace("...", ">>>")


def _parses(text: str, path: Path) -> bool:
    try:
        Source.from_text(text, path).parse()
    except SourceError:
        return False
    return True


# ---- blocks -----------------------------------------------------------------------------------------


def lines_of(text: str) -> list[str]:
    """The lines of a text, with their ends."""
    return re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z", text)


def without_ends(lines: Iterable[str]) -> list[str]:
    """Lines without their ends."""
    return [line.rstrip("\r\n") for line in lines]


Block = list[tuple[int, str, str]]  # of each line the 1-based row, indentation, the rest


def markdown_blocks(file: list[str]) -> Iterator[Block]:
    """The fenced blocks of Python; those without a language, if they begin with a prompt."""
    number = 0
    while number < len(file):
        fence = _FENCE.fullmatch(file[number])
        number += 1
        if fence is None:
            continue
        indent, marks, info = fence.groups()
        first = number
        while number < len(file):
            line = file[number].strip()
            if line.startswith(marks) and not line.strip(marks[0]):
                break
            number += 1
        block = _dedented(file, first, number, len(indent.expandtabs()))
        number += 1
        named = _INFO.match(info.lower())
        language = named[1] if named else ""
        starts = next((text for _, _, text in block if text.strip()), "")
        if language in _PYTHON or (not info and _FIRST_PROMPT.match(starts)):
            yield block


def _dedented(file: list[str], first: int, last: int, indent: int) -> Block:
    block: Block = []
    for number in range(first, last):
        line = file[number]
        size = min(len(line) - len(line.lstrip(" \t")), indent)
        block.append((number + 1, line[:size], line[size:]))
    return block


def rest_blocks(file: list[str]) -> Iterator[Block]:
    """The blocks under directives for Python, and doctests, which need none."""
    number = 0
    while number < len(file):
        directive = _DIRECTIVE.fullmatch(file[number])
        if directive is not None:
            number += 1
            python = directive[2].lower() in _PYTHON or _TESTED.match(file[number - 1])
            while number < len(file) and _OPTION.match(file[number]):
                number += 1
            first, indent = number, len(directive[1])
            while number < len(file) and (not file[number].strip() or _indent(file[number]) > indent):
                number += 1
            filled = [_indent(line) for line in file[first:number] if line.strip()]
            if python and filled:
                yield _dedented(file, first, number, min(filled))
        elif _FIRST_PROMPT.match(file[number]):
            first, indent = number, _indent(file[number])
            while number < len(file) and file[number].strip() and _indent(file[number]) >= indent:
                number += 1
            yield _dedented(file, first, number, indent)
        else:
            number += 1


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _programs(block: Block) -> Iterator[tuple[_Line, ...]]:
    """The lines of code of a block; of one with prompts, what is after them, without what is printed."""
    while block and not block[-1][2].strip():
        block = block[:-1]
    first = next((text for _, _, text in block if text.strip()), None)
    if first is None:
        return
    if not _FIRST_PROMPT.match(first):
        yield tuple(_Line(row, indent, text) for row, indent, text in block)
        return
    lines: list[_Line] = []
    asked = False
    for row, indent, text in block:
        prompt = _PROMPT.match(text)
        if prompt is None or (not asked and not _FIRST_PROMPT.match(text)):
            asked = False
            continue
        asked = True
        lines.append(_Line(row, indent + text[: prompt.end()], text[prompt.end() :]))
    yield tuple(lines)
