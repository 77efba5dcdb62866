"""The file of a notebook: where in its JSON the source of each cell is, and how to change no other byte.

The JSON is never written anew: only strings are replaced whose text changed. What Jupyter, Colab and others
differ in (indentation, the order of keys, escapes, `source` as a list or as one string) stays as it is.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate

from msgspec import Struct
from msgspec.structs import replace

from torchmigrate.patterns import pattern
from torchmigrate.source.changes import changes
from torchmigrate.source.text import SourceError

NO_JSON = "not a notebook: not valid JSON ({})"
OTHER = "not a notebook: {}"
_SPACE = pattern(r"[ \t\r\n]*")
_CHARACTER = pattern(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|[^\\]"
)
_MUST_ESCAPE = pattern(r'[\x00-\x1f"\\\ud800-\udfff]')


class Literal(Struct, frozen=True):
    """A string in the file, quotes included, and what it means."""

    start: int
    end: int
    text: str


class CellSource(Struct, frozen=True):
    """The source of one cell.

    start, end: of the value in the file. literals: its strings. is_list: whether they are in a list.
    """

    start: int
    end: int
    literals: tuple[Literal, ...]
    is_list: bool

    @property
    def text(self) -> str:
        return "".join(literal.text for literal in self.literals)


class Cell(Struct, frozen=True):
    """One code cell. number: among all cells, 1-based. language: as far as the cell itself says."""

    number: int
    source: CellSource
    language: str | None


class NotebookFile(Struct, frozen=True):
    """What there is in a notebook.

    text: of the file. language: of its kernel, in lower case; None: it does not say. cells: those of code.
    """

    text: str
    language: str | None
    cells: tuple[Cell, ...]


def read_notebook(text: str) -> NotebookFile:
    """The code cells of a notebook of format 4 or 3. Raises SourceError if the text is not a notebook."""
    try:
        return _Reader(text).notebook()
    except json.JSONDecodeError as error:
        what = error.msg[:1].lower() + error.msg[1:]
        raise SourceError(NO_JSON.format(what), error.lineno) from None
    except ValueError as error:
        raise SourceError(NO_JSON.format(" ".join(str(error).split()))) from None
    except RecursionError:
        raise SourceError(OTHER.format("its JSON is nested too deeply")) from None


class _Reader:
    """Reads JSON and knows where it is; what is of no interest is skipped by Python's own decoder."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        # What numbers are does not matter, and endless ones are refused.
        self._decoder = json.JSONDecoder(parse_int=str, parse_float=str)

    def notebook(self) -> NotebookFile:
        if self._next() != "{":
            self.value()
            raise SourceError(OTHER.format("its JSON is not an object"))
        cells: list[Cell] | None = None
        language: str | None = None
        version: object = None
        for key in self._members():
            if key in ("cells", "worksheets") and self._next() == "[":
                if cells is not None:
                    raise SourceError(OTHER.format("it has two lists of cells"))
                cells = []
                for _ in self._items():
                    if key == "cells":
                        cells.append(self._cell(len(cells) + 1))
                    else:
                        self._worksheet(cells)
                continue
            value = self.value()
            if key == "metadata":
                language = _language(value)
            elif key == "nbformat":
                version = value
        if self._next():
            raise json.JSONDecodeError("Extra data", self.text, self.at)
        if version is not None and version not in ("3", "4"):
            raise SourceError(OTHER.format("only formats 3 and 4 are supported"))
        if cells is None:
            raise SourceError(OTHER.format("it has no cells"))
        return NotebookFile(self.text, language, tuple(cell for cell in cells if cell.source.end))

    def _worksheet(self, cells: list[Cell]) -> None:
        if self._next() != "{":
            self.value()
            return
        for key in self._members():
            if key == "cells" and self._next() == "[":
                for _ in self._items():
                    cells.append(self._cell(len(cells) + 1))
            else:
                self.value()

    def _cell(self, number: int) -> Cell:
        """A cell; one without code gets a source that ends at 0."""
        nothing = CellSource(0, 0, (), False)
        if self._next() != "{":
            self.value()
            return Cell(number, nothing, None)
        found: list[CellSource] = []
        values: dict[str, object] = {}
        for key in self._members():
            if key in ("source", "input") and self._next() in ('"', "["):
                source = self._source()
                if source is None:
                    raise SourceError("not a notebook: the source of a cell is not text", cell=number)
                found.append(source)
            else:
                values[key] = self.value()
        if values.get("cell_type") != "code":
            return Cell(number, nothing, None)
        if len(found) > 1:
            raise SourceError("not a notebook: a cell has two sources", cell=number)
        metadata = values.get("metadata")
        own = metadata.get("vscode") if isinstance(metadata, dict) else None
        language = own.get("languageId") if isinstance(own, dict) else values.get("language")
        language = language.lower() if isinstance(language, str) else None
        return Cell(number, found[0] if found else nothing, language)

    def _source(self) -> CellSource | None:
        """The string or list of strings that begins here; None where it is something else."""
        start = self.at
        if self.text[start] == '"':
            return replace(CellSource(start, self.at, (self._literal(),), False), end=self.at)
        literals: list[Literal] = []
        for first in self._items():
            if first != '"':
                return None
            literals.append(self._literal())
        return CellSource(start, self.at, tuple(literals), True)

    # ---- JSON ---------------------------------------------------------------------------------------

    def _literal(self) -> Literal:
        start = self.at
        text, self.at = self._decoder.raw_decode(self.text, start)
        return Literal(start, self.at, text)

    def _next(self) -> str:
        """The next character that is not white space; nothing at the end."""
        found = _SPACE.match(self.text, self.at)
        self.at = found.end() if found else self.at
        return self.text[self.at : self.at + 1]

    def value(self) -> object:
        """Skip a value."""
        self._next()
        value, self.at = self._decoder.raw_decode(self.text, self.at)
        return value

    def _expected(self, what: str) -> json.JSONDecodeError:
        return json.JSONDecodeError(f"Expecting {what}", self.text, self.at)

    def _members(self) -> Iterator[str]:
        """The keys of the object that begins here; after each, the caller must read its value."""
        self.at += 1
        if self._next() == "}":
            self.at += 1
            return
        while True:
            if self._next() != '"':
                raise self._expected("property name enclosed in double quotes")
            key = self._literal().text
            if self._next() != ":":
                raise self._expected("':' delimiter")
            self.at += 1
            self._next()
            yield key
            end = self._next()
            if end not in (",", "}"):
                raise self._expected("',' delimiter")
            self.at += 1
            if end == "}":
                return

    def _items(self) -> Iterator[str]:
        """The first character of each item of the list that begins here; after each, the caller must read
        it."""
        self.at += 1
        if self._next() == "]":
            self.at += 1
            return
        while True:
            yield self._next()
            end = self._next()
            if end not in (",", "]"):
                raise self._expected("',' delimiter")
            self.at += 1
            if end == "]":
                return


def _language(metadata: object) -> str | None:
    """The language that the metadata of a notebook name."""
    if not isinstance(metadata, dict):
        return None
    for place, key in (("language_info", "name"), ("kernelspec", "language")):
        held = metadata.get(place)
        if isinstance(held, dict) and isinstance(held.get(key), str):
            return str(held[key]).lower()
    return None


# ---- changing it ------------------------------------------------------------------------------------


def changed(file: NotebookFile, texts: Sequence[tuple[CellSource, str]]) -> str:
    """The text of the file with these sources of cells, in order, in the place of their own."""
    parts: list[str] = []
    place = 0
    for source, text in texts:
        for start, end, raw in sorted(_patches(file.text, source, text)):
            parts += (file.text[place:start], raw)
            place = end
    parts.append(file.text[place:])
    return "".join(parts)


_Patch = tuple[int, int, str]  # offsets in the file, and what comes there


def _patches(file: str, source: CellSource, new: str) -> Iterator[_Patch]:
    old = source.text
    if new == old:
        return
    writer = _Writer(file, source)
    starts = list(accumulate((len(literal.text) for literal in source.literals), initial=0))
    before, after = _lines(old), _lines(new)
    offsets = list(accumulate(map(len, before), initial=0))
    if source.is_list and not after:
        yield source.start + 1, source.end - 1, ""
        return
    hunks = list(changes(before, after))
    patches: list[_Patch] = []
    for i1, i2, j1, j2 in hunks:
        start, end, lines = offsets[i1], offsets[i2], after[j1:j2]
        whole = starts[bisect_left(starts, start)] == start and starts[bisect_left(starts, end)] == end
        if j2 - j1 == i2 - i1 == 1 and before[i1][-1:] == "\n" == after[j1][-1:]:
            # Only what differs in the line, which may be in several strings.
            left, right = _common(before[i1], after[j1])
            start, end, lines = start + left, end - right, [after[j1][left : len(after[j1]) - right]]
            whole = False
        first = min(bisect_right(starts, start), len(source.literals)) - 1  # the string that `start` is in
        if not source.is_list or (not whole and end <= starts[first + 1]):
            literal, offset = source.literals[first], starts[first]
            patches.append(writer.within(literal, start - offset, end - offset, lines))
        elif whole:
            patches += writer.items(bisect_left(starts, start), bisect_left(starts, end), lines)
        else:  # a list that was not cut at the ends of lines: from the first change to the last, it is now
            i1, i2, j1, j2 = hunks[0][0], hunks[-1][1], hunks[0][2], hunks[-1][3]
            first = bisect_right(starts, offsets[i1]) - 1
            last = bisect_left(starts, offsets[i2], lo=first)
            head, tail = old[starts[first] : offsets[i1]], old[offsets[i2] : starts[last]]
            yield from writer.items(first, last, _lines(head + "".join(after[j1:j2]) + tail))
            return
    yield from patches


def _lines(text: str) -> list[str]:
    """The lines with their ends, as they are in the list of a cell."""
    lines = text.split("\n")
    last = lines.pop()
    return [*(line + "\n" for line in lines), *([last] if last else [])]


class _Writer:
    """Writes strings as the cell has its others."""

    def __init__(self, file: str, source: CellSource) -> None:
        self.file = file
        self.source = source
        self.forms: dict[str, str] = {}  # character -> how the cell writes it, where that is an escape
        plain: set[str] = set()
        for literal in source.literals:
            for raw in _CHARACTER.findall(file[literal.start + 1 : literal.end - 1]):
                if len(raw) == 1:
                    plain.add(raw)
                else:
                    self.forms.setdefault(json.loads(f'"{raw}"'), raw)
        for character in plain:
            self.forms.pop(character, None)
        self.ascii = file.isascii()

    def _raw(self, text: str) -> str:
        return "".join(map(self._character, text))

    def _character(self, character: str) -> str:
        if character in self.forms:
            return self.forms[character]
        if _MUST_ESCAPE.match(character) or (self.ascii and not character.isascii()):
            return json.dumps(character)[1:-1]
        return character

    def within(self, literal: Literal, start: int, end: int, lines: list[str]) -> _Patch:
        """The patch that puts lines in the place of a part of a string."""
        ends = [literal.start + 1]
        for found in _CHARACTER.finditer(self.file, literal.start + 1, literal.end - 1):
            ends.append(found.end())
        old, new = literal.text[start:end], "".join(lines)
        left, right = _common(old, new)
        return ends[start + left], ends[end - right], self._raw(new[left : len(new) - right])

    def items(self, first: int, last: int, lines: list[str]) -> Iterator[_Patch]:
        """The patches that put lines in the place of the strings from `first` up to `last`."""
        literals = self.source.literals
        both = min(last - first, len(lines))
        for literal, line in zip(literals[first : first + both], lines[:both], strict=True):
            if literal.text != line:
                yield self.within(literal, 0, len(literal.text), [line])
        more = ['"' + self._raw(line) + '"' for line in lines[both:]]
        place = first + both
        if more:
            between = self._between()
            if place:
                end = literals[place - 1].end
                yield end, end, "".join(between + item for item in more)
            else:
                start = literals[0].start
                yield start, start, "".join(item + between for item in more)
        elif place < last:
            if place:
                yield literals[place - 1].end, literals[last - 1].end, ""
            else:
                yield literals[0].start, literals[last].start, ""

    def _between(self) -> str:
        """What is between two strings of the list."""
        literals = self.source.literals
        if len(literals) > 1:
            return self.file[literals[0].end : literals[1].start]
        return "," + self.file[self.source.start + 1 : literals[0].start]


def _common(old: str, new: str) -> tuple[int, int]:
    """How many characters two texts have in common at their beginning and at their end."""
    most = min(len(old), len(new))
    left = 0
    while left < most and old[left] == new[left]:
        left += 1
    right = 0
    while right < most - left and old[-1 - right] == new[-1 - right]:
        right += 1
    return left, right
