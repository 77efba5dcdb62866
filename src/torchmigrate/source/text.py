"""One file: its bytes, the decoded text, and the way between offsets and `ast` positions.

The text is what a person sees in an editor, without the byte order mark and with every newline as it is
in the file. Offsets are characters of that text. Lines are those of Python's tokenizer, so those of
`ast`: they end at `\\n`, `\\r\\n` or `\\r`, and nowhere else (`str.splitlines` knows more line ends).
"""

from __future__ import annotations

import ast
import codecs
import io
import re
import warnings
from bisect import bisect_right
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol

from torchmigrate.files.reading import SOURCE, UnreadableError, read
from torchmigrate.findings import Trouble
from torchmigrate.patterns import pattern

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchmigrate.findings import Edit

# PEP 263: in the first line, or in the second if the first has nothing but white space or a comment.
_COOKIE = pattern(
    rb"(?:[ \t\f]*(?:#[^\r\n]*)?(?:\r\n|\r|\n))??[ \t\f]*#[^\r\n]*?coding[:=][ \t]*([-_.a-zA-Z0-9]+)"
)


class SourceError(Exception):
    """A file that cannot be read, understood or written, with the reason in one line for a person.

    line: of the file, or of the cell.
    """

    def __init__(
        self,
        reason: str,
        line: int | None = None,
        kind: Trouble = Trouble.OTHER,
        cell: int | None = None,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line
        self.kind = kind
        self.cell = cell

    def __reduce__(self) -> tuple[type[SourceError], tuple[str, int | None, Trouble, int | None]]:
        return (SourceError, (self.reason, self.line, self.kind, self.cell))


class SourcePlace(NamedTuple):
    """Where something is, for a person: row and column are 1-based, and of the cell, if there are cells."""

    cell: int | None
    row: int
    column: int


class SourcePart(NamedTuple):
    """What a file holds of Python, as it is: all of it, or one cell. label: what messages add to the path."""

    label: str
    text: str


class Positioned(Protocol):
    """What `ast.expr`, `ast.stmt` and similar nodes have in common."""

    lineno: int
    col_offset: int
    end_lineno: int | None
    end_col_offset: int | None


class Source:
    """The text of one Python file; never changes.

    path: where it came from, for messages only.
    text: decoded, without the byte order mark, newlines untouched.
    data: the bytes as they were read.
    encoding: name of the codec, as in the file's PEP 263 cookie.
    bom: whether the file starts with a UTF-8 byte order mark; `encode` puts it back.
    async_arguments: set by `parse`, offsets of `async` where a call has it as a keyword argument.
    taken: names that are used in the parts of the file that are not Python.
    broken: why parts of the file do not parse, where the others are checked all the same.
    """

    taken: frozenset[str] = frozenset()
    broken: tuple[SourceError, ...] = ()
    in_pieces = False  # whether the file has Python in several pieces
    is_documentation = False  # whether it is examples for a reader, which nothing imports

    most: ClassVar[int] = SOURCE  # bytes of a file that is read

    __slots__ = (
        "_ascii",
        "_starts",
        "_tree",
        "_wide",
        "async_arguments",
        "bom",
        "data",
        "encoding",
        "path",
        "text",
    )

    def __init__(self, path: Path, text: str, data: bytes, encoding: str, bom: bool) -> None:
        self.path = path
        self.text = text
        self.data = data
        self.encoding = encoding
        self.bom = bom
        self.async_arguments: tuple[int, ...] = ()
        self._ascii = text.isascii()
        self._starts: list[int] | None = None
        self._tree: ast.Module | None = None
        # line -> byte columns where its non-ASCII characters end, and how many bytes more than characters
        # there are up to each of them
        self._wide: dict[int, tuple[list[int], list[int]]] = {}

    def __getstate__(self) -> tuple[None, dict[str, object]]:
        """What is sent to another process: all but what can be worked out again."""
        names = [name for kind in type(self).__mro__ for name in getattr(kind, "__slots__", ())]
        state = {name: getattr(self, name) for name in names}
        return None, {**state, "_starts": None, "_tree": None, "_wide": {}}

    @classmethod
    def read(cls, path: Path) -> Source:
        """Read and decode a file. Raises SourceError if it is missing, unreadable or no Python text."""
        try:
            return cls.from_bytes(read(path, cls.most), path)
        except UnreadableError as error:
            raise SourceError(error.reason) from None

    @classmethod
    def from_bytes(cls, data: bytes, path: Path) -> Source:
        """Decode the bytes of a file (or of standard input). Raises SourceError as `read` does."""
        bom = data.startswith(codecs.BOM_UTF8)
        body = data[3:] if bom else data
        if b"\0" in body:
            if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                raise SourceError("UTF-16 text, which Python does not read: save it as UTF-8")
            line = _line_of(body, body.index(b"\0"))
            raise SourceError("contains NUL bytes: not Python source", line, Trouble.SYNTAX)
        encoding = _cookie(body) or "utf-8"
        if bom and encoding != "utf-8":
            raise SourceError(f"UTF-8 byte order mark, but the encoding is declared as {encoding}", 1)
        try:
            text = body.decode() if encoding == "utf-8" else _decode(body, encoding)
        except LookupError:
            raise SourceError(f"unknown encoding: {encoding}", _line_of_cookie(body)) from None
        except UnicodeDecodeError as error:
            if error.start >= len(body):  # some codecs count in something else
                raise SourceError(f"not {encoding} text: {_one_line(error)}") from None
            raise SourceError(
                f"not {encoding} text: byte 0x{body[error.start]:02x} cannot be decoded",
                _line_of(body, error.start),
            ) from None
        except ValueError as error:  # some codecs raise a plain UnicodeError
            raise SourceError(f"not {encoding} text: {_one_line(error)}") from None
        return cls(path, text, data, encoding, bom)

    @classmethod
    def from_text(cls, text: str, path: Path) -> Source:
        """A source that was never bytes: the result of applying edits, or an example in a test."""
        bom = text.startswith("\ufeff")
        return cls(path, text[1:] if bom else text, text.encode("utf-8", "surrogatepass"), "utf-8", bom)

    def with_text(self, text: str) -> Source:
        """The same file with another text (after edits): same encoding, and `data` as it was read."""
        return type(self)(self.path, text, self.data, self.encoding, self.bom)

    def edited(self, text: str, edits: Sequence[Edit]) -> Source:
        """The same file after edits, which are sorted and do not overlap; `text` is what they give.

        Raises SourceError where this kind of file cannot be changed like that.
        """
        return self.with_text(text)

    def parts(self) -> list[SourcePart]:
        """The text in the parts in which a person sees it, for diffs; there are as many after edits."""
        return [SourcePart("", self.text)]

    def content(self) -> bytes:
        """The bytes of the file with this text. Raises SourceError as `encode` does."""
        return self.encode(self.text)

    def encode(self, text: str) -> bytes:
        """The bytes of a changed `text` in the encoding of this file, with its byte order mark.

        Raises SourceError if the encoding cannot express the text, if it would change bytes that the text
        has in common with the file (encodings with several forms of one text), or if the text declares
        another encoding than the file did.
        """
        body = self.data[3:] if self.bom else self.data
        try:
            data = text.encode(self.encoding)
            if _decode(body, self.encoding).encode(self.encoding) != body:
                raise SourceError(f"decoding and encoding with {self.encoding} changes the file")
        except UnicodeEncodeError as error:
            character = error.object[error.start]
            raise SourceError(f"character {character!a} does not exist in {self.encoding}") from None
        except ValueError as error:
            raise SourceError(f"not {self.encoding} text: {_one_line(error)}") from None
        if (_cookie(data) or "utf-8") != (_cookie(body) or "utf-8"):
            raise SourceError("the change would affect the declaration of the file's encoding")
        return codecs.BOM_UTF8 + data if self.bom else data

    # ---- places -------------------------------------------------------------------------------------

    def _lines(self) -> list[int]:
        if self._starts is None:
            # With newline="" the lines end exactly where Python's do, and it is all done in C.
            self._starts = list(accumulate(map(len, io.StringIO(self.text, newline="")), initial=0))
        return self._starts

    @property
    def line_count(self) -> int:
        """Number of lines; a text that ends with a newline has no empty line after it."""
        starts = self._lines()
        return len(starts) - 1

    def offset(self, line: int, column: int) -> int:
        """Character offset of an `ast` position: 1-based line, 0-based column in UTF-8 bytes.

        A position beyond the text (as in f-strings before Python 3.12) gives the end of the text.
        """
        starts = self._starts or self._lines()
        try:
            start = starts[line - 1]
        except IndexError:
            return len(self.text)
        if self._ascii:
            return start + column
        ends, extra = self._wide.get(line) or self._widen(line)
        return start + column - extra[bisect_right(ends, column)]

    def _widen(self, line: int) -> tuple[list[int], list[int]]:
        ends: list[int] = []
        extra = [0]
        text = self.line_text(line)
        if not text.isascii():
            column = total = 0
            for character in text:
                width = len(character.encode("utf-8", "surrogatepass"))
                column += width
                if width > 1:
                    total += width - 1
                    ends.append(column)
                    extra.append(total)
        entry = self._wide[line] = (ends, extra)
        return entry

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of a character, both 1-based, the column in characters."""
        starts = self._starts or self._lines()
        # The last start is the end of the text; it is a line of its own only after a newline.
        line = bisect_right(starts, offset)
        if line == len(starts) and line > 1 and not self.text.endswith(("\n", "\r")):
            line -= 1
        return line, offset - starts[line - 1] + 1

    def place(self, offset: int) -> SourcePlace:
        """Where a character is, as messages say it."""
        return SourcePlace(None, *self.position(offset))

    def said_row(self, row: int) -> str:
        """A row of the text, as sentences name it."""
        return f"line {row}"

    def rows_around(self, row: int) -> tuple[int, int]:
        """The first and the last row of the part of the file that a row is in."""
        return 1, self.line_count

    def shown_row(self, row: int) -> int:
        """The number of a row in messages."""
        return row

    def file_row(self, offset: int) -> int:
        """The line of the file, as an editor shows it, that a character is in."""
        return self.position(offset)[0]

    def shown_line(self, row: int) -> str:
        """A 1-based line, as it is in the file, without its newline."""
        return self.line_text(row)

    def lead(self, row: int) -> str:
        """The text that the file has before a line, such as the prompt of an example."""
        return ""

    def is_hidden(self, code: str, name: str, row: int) -> bool:
        """Whether a comment around the text hides a rule in a row of it."""
        return False

    def span(self, node: Positioned) -> tuple[int, int]:
        """Offsets of the first character of a node and of the one after its last."""
        end_line = node.end_lineno or node.lineno
        end_column = node.col_offset if node.end_col_offset is None else node.end_col_offset
        return self.offset(node.lineno, node.col_offset), self.offset(end_line, end_column)

    def segment(self, node: Positioned) -> str:
        """The source of a node, as it is written."""
        start, end = self.span(node)
        return self.text[start:end]

    def shown(self, node: Positioned) -> str:
        """A node in a message; new code quotes nodes by `rewrite.code`."""
        return self.segment(node)

    def shows(self, statement: Positioned) -> bool:
        """Whether the value of a statement that is an expression is shown, as notebooks do."""
        return False

    def line_start(self, line: int) -> int:
        """Offset of the first character of a 1-based line; raises IndexError beyond the last."""
        return self._lines()[line - 1]

    def line_text(self, line: int) -> str:
        """A 1-based line without its newline; empty beyond the last."""
        starts = self._lines()
        if not 0 < line < len(starts):
            return ""
        text = self.text[starts[line - 1] : starts[line]]
        if text.endswith("\r\n"):
            return text[:-2]
        return text[:-1] if text.endswith(("\n", "\r")) else text

    @property
    def newline(self) -> str:
        """The newline that most lines of the file end with: `\\n`, `\\r\\n` or `\\r`."""
        text = self.text
        if "\r" not in text:
            return "\n"
        pairs = text.count("\r\n")
        counts = {"\n": text.count("\n") - pairs, "\r\n": pairs, "\r": text.count("\r") - pairs}
        return max(counts, key=counts.__getitem__)

    # ---- syntax -------------------------------------------------------------------------------------

    def parse(self) -> ast.Module:
        """The syntax tree, which must not be changed; its positions are those of `offset`.

        Raises SourceError, with the line.
        """
        if self._tree is None:
            self._tree = self._parse()
        return self._tree

    def forget(self) -> None:
        """Free the syntax tree; `parse` makes another one, with other nodes."""
        self._tree = None

    def check(self) -> None:
        """Raise SourceError where `parse` does, in less time than that takes."""
        from symtable import symtable

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                symtable(self.text, "<source>", "exec")  # by Python's parser, without nodes
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            self.parse()  # which says why, and lets pass what only has no meaning

    def _parse(self) -> ast.Module:
        try:
            with warnings.catch_warnings():
                # An invalid escape in somebody's file is not ours to report, and must not be an error.
                warnings.simplefilter("ignore")
                return ast.parse(self.text)
        except SyntaxError as error:
            tree = self._parse_masked()
            if tree is not None:
                return tree
            from torchmigrate.source.syntax import explain

            line = error.lineno if error.lineno and error.lineno > 0 else None
            raise SourceError(explain(error, self), line, Trouble.SYNTAX) from None
        except (RecursionError, MemoryError):
            raise SourceError("nested too deeply for Python's own parser") from None
        except ValueError as error:
            raise SourceError(f"cannot be parsed: {_one_line(error)}", None, Trouble.SYNTAX) from None

    def _parse_masked(self) -> ast.Module | None:
        """The tree of a file that only `.cuda(async=True)` keeps from parsing; positions are the same."""
        if "async" not in self.text:
            return None
        from torchmigrate.source.async_argument import async_arguments, mask

        self.async_arguments = async_arguments(self.text)
        if not self.async_arguments:
            return None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return ast.parse(mask(self.text, self.async_arguments))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def _decode(data: bytes, encoding: str) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # `unicode_escape` warns of what it does not know
        return data.decode(encoding)


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())


def _cookie(data: bytes) -> str | None:
    """The encoding that a file declares, None if it declares none; names as Python normalises them."""
    if b"coding" not in data:
        return None  # most files; the pattern takes a while to compile
    found = _COOKIE.match(data)
    if found is None:
        return None
    name = found[1].decode("ascii")
    # As Python's tokenizer does: `utf-8-unix` and `latin-1-dos` are what Emacs writes.
    normal = name[:12].lower().replace("_", "-")
    if normal == "utf-8" or normal.startswith("utf-8-"):
        return "utf-8"
    for plain in ("latin-1", "iso-8859-1", "iso-latin-1"):
        if normal == plain or normal.startswith(plain + "-"):
            return "iso-8859-1"
    try:
        return "utf-8" if codecs.lookup(name).name in ("utf-8", "utf-8-sig") else name
    except LookupError:
        return name


def _line_of(data: bytes, position: int) -> int:
    return len(re.findall(rb"\r\n|\r|\n", data[:position])) + 1


def _line_of_cookie(data: bytes) -> int | None:
    found = _COOKIE.match(data)
    return None if found is None else _line_of(data, found.start(1))
