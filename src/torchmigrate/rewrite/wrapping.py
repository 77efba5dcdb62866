"""Rows that fixes made longer than the project allows, broken at brackets and commas.

A row that cannot be brought within the limit like that stays as it is.
"""

from __future__ import annotations

import ast
import io
import tokenize
import unicodedata
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from torchmigrate.findings import Edit
from torchmigrate.patterns import pattern
from torchmigrate.source.changes import changes
from torchmigrate.source.text import Source
from torchmigrate.source.trees import walk

_TAB = 4  # columns, as Black and Ruff count
# A comment of this kind is about its row.
_PRAGMA = pattern(
    r"(?i)[^\r\n]*#\s*(?:noqa|type:|pylint|flake8|torchmigrate|nosec|nopep8|pragma|fmt|yapf|isort|mypy|pyright|ruff)"
)
_NOT_ASCII = pattern(r"[^\x00-\x7f]")
_INDEX = pattern(r"""[\w)\]}"']\[""")
_HEADERS = frozenset(
    ["if", "elif", "else", "for", "while", "with", "try", "except", "finally", "class", "def", "async"]
)
_BEGINS = (getattr(tokenize, "FSTRING_START", -1), getattr(tokenize, "TSTRING_START", -1))
_ENDS = (getattr(tokenize, "FSTRING_END", -1), getattr(tokenize, "TSTRING_END", -1))
_LAYOUT = (tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)


class _Token(NamedTuple):
    text: str
    start: int
    end: int


def wrapped(old: str, source: Source, limit: int) -> list[Edit]:
    """The edits that break the rows of a fixed text which were within a limit before the fixes.

    Args:
        old: the text before all fixes.
        source: the text after them, which parses.
        limit: columns.
    """
    rows = list(_longer(old, source.text, limit))
    try:
        breaks = _Breaks(source, limit) if rows else None
    except (tokenize.TokenError, SyntaxError, IndexError):
        return []
    return [edit for row in rows if breaks for edit in sorted(breaks.of(row))]


def _longer(old: str, new: str, limit: int) -> Iterator[int]:
    """The rows, 1-based, of the new text that are longer than the limit, where none was before."""
    before, after = ([line.rstrip("\r\n") for line in io.StringIO(text, newline="")] for text in (old, new))
    if all(_width(line) <= limit for line in after):
        return
    for i1, i2, j1, j2 in changes(before, after):
        same = i2 - i1 == j2 - j1
        longest = max(map(_width, before[i1:i2]), default=0)
        for index in range(j1, j2):
            if _width(after[index]) > limit >= (_width(before[i1 + index - j1]) if same else longest):
                yield index + 1


def _width(line: str) -> int:
    """How many columns a line takes."""
    line = line.expandtabs(_TAB)
    if line.isascii():
        return len(line)
    wide = (unicodedata.east_asian_width(character) in "WF" for character in line)
    return len(line) + sum(wide) - sum(unicodedata.combining(character) > 0 for character in line)


class _Breaks:
    """Breaks rows of a text. Raises what `tokenize` does.

    tokens: the code, without comments; an f-string is one token. pairs: indices of brackets, both ways.
    around: the bracket that each token is in. rows: the first token and the one after the last; rows with a
    part of a longer string are left out. ends: where a comment ends after a row, by the token after the row.
    """

    def __init__(self, source: Source, limit: int) -> None:
        self.source = source
        self.limit = limit
        self.newline = source.newline
        self.step = ""
        self.tokens: list[_Token] = []
        self.pairs: dict[int, int] = {}
        self.around: list[int | None] = []
        self.rows: dict[int, tuple[int, int]] = {}
        self.ends: dict[int, int] = {}
        opened: list[int] = []
        strings: list[tuple[int, int]] = []  # where the f-strings begin that are open
        broken: set[int] = set()
        # Python 3.12 takes quadratic time for long rows with other characters, 3.10 reads no `\r`.
        lines = io.StringIO(_NOT_ASCII.sub("_", source.text), newline=None)
        for kind, text, begin, (last_row, column), _ in tokenize.generate_tokens(lines.readline):
            if kind == tokenize.INDENT:
                self.step = self.step or text
            if kind in _BEGINS:
                strings.append(begin)
            elif kind in _ENDS:
                begin = strings.pop()
            if strings or kind in _LAYOUT:
                continue
            row, index, end = begin[0], len(self.tokens), source.line_start(last_row) + column
            if kind == tokenize.COMMENT:
                if row in self.rows:
                    self.ends[index] = end
                continue
            if row < last_row:
                broken.update((row, last_row))
            if text in (")", "]", "}"):
                self.pairs[index] = opened.pop()
                self.pairs[self.pairs[index]] = index
            self.around.append(opened[-1] if opened else None)
            if text in ("(", "[", "{"):
                opened.append(index)
            self.tokens.append(_Token(text, source.line_start(row) + begin[1], end))
            self.rows[row] = self.rows.get(row, (index, index))[0], index + 1
        for row in broken & self.rows.keys():
            del self.rows[row]

    def of(self, row: int) -> list[Edit]:
        """The edits that break a row; none if it stays."""
        lines = self.source.line_text(row - 1), self.source.line_text(row)
        if row not in self.rows or any(line.endswith("\\") for line in lines):
            return []
        tokens, (first, last) = self.tokens, self.rows[row]
        begin, end, indent, inside = tokens[first], tokens[last - 1], self._indent(first), self.around[first]
        if _PRAGMA.match(self.source.text, end.end):
            return []
        opening = [index for index in range(first, last) if self.pairs.get(index, 0) >= last]
        if opening:  # the last elements go to the row below, as far as one begins there
            return self._at_comma(first, opening[-1] + 1, last, last, last) if end.text == "," else []
        if inside is None:
            has_body = begin.text in _HEADERS and end.text != ":"
            if has_body or any(token.text == ";" for token in tokens[first:last]):
                return []
            if begin.text == "from" and end.text not in (")", "*"):
                return self._import(first, last, indent)
        elif inside == first - 1 and self.pairs[inside] == last:
            edits, comma = self._inside(first, last, indent) or ([], "")
            return [*edits, Edit(end.end, end.end, comma)] if comma else edits
        found: list[Edit] = []
        if inside is not None and (inside == first - 1 or tokens[first - 1].text == ","):
            found = self._at_comma(first, first, min(last, self.pairs[inside]), last, first)
        return found or self._at_brackets(first, last, indent)

    def _at_brackets(self, first: int, last: int, indent: str) -> list[Edit]:
        """What is in the last brackets where that helps goes to rows of its own."""
        inner, closer = indent + self._step(indent), last - 1
        while closer > first:
            opener = self.pairs.get(closer, closer)
            is_index = _INDEX.match(self.source.text, self.tokens[opener].start - 1)
            if first <= opener < closer - 1 and not is_index and self._fits(first, opener + 1, indent):
                made = self._inside(opener + 1, closer, inner) if self._fits(closer, last, indent) else None
                if made is not None:
                    edits, comma = made
                    return [self._row(opener + 1, inner), *edits, self._row(closer, indent, comma)]
            closer = (opener if opener >= first else closer) - 1
        return []

    def _inside(
        self, first: int, last: int, indent: str, *, each: bool = False
    ) -> tuple[list[Edit], str] | None:
        """What is in brackets, on one row (unless `each`) or on a row for each element: edits, last comma."""
        if self._fits(first, last, indent) and not each:
            return [], ""
        starts = self._elements(first, last)
        comma = "," if each or (len(starts) > 1 and self._takes_comma(starts, last)) else ""
        edits = [self._row(start, indent) for start in starts[1:]]
        for start, end in zip(starts, [*starts[1:], last], strict=True):
            if not self._fits(start, end, indent, len(comma) if end == last else 0):
                found = self._at_brackets(start, end, indent)
                if not found:
                    return None
                edits += found
        return edits, comma

    def _at_comma(self, first: int, begin: int, to: int, last: int, like: int) -> list[Edit]:
        """Divide a row at the last comma that helps, from `begin` to `to`; the rest is indented as `like`."""
        for start in reversed(self._elements(begin, to)[1:]):
            if self._fits(first, start, self._indent(first)) and self._fits(start, last, self._indent(like)):
                return [self._row(start, self._indent(like))]
        return []

    def _import(self, first: int, last: int, indent: str) -> list[Edit]:
        """The imported names, in parentheses, go to rows of their own."""
        inner, end = indent + self._step(indent), self.tokens[last - 1].end
        names = next(index for index in range(first, last) if self.tokens[index].text == "import") + 1
        made = self._inside(names, last, inner, each=True) if self._fits(first, names, indent, 2) else None
        if made is None:
            return []
        closing = Edit(end, end, f",{self.newline}{indent})")
        return [self._row(names, inner, " ("), *made[0], closing]

    def _elements(self, first: int, last: int) -> list[int]:
        """Where the elements between commas begin; a comprehension and a `lambda` are not divided."""
        starts, index = [first], first
        while index < last:
            text = self.tokens[index].text
            if text in ("for", "lambda"):
                return [first]
            if text == "," and index + 1 < last:
                starts.append(index + 1)
            index = max(index, self.pairs.get(index, index)) + 1
        return starts

    def _takes_comma(self, starts: list[int], last: int) -> bool:
        """Whether a comma may follow the last element: after `*args` only since Python 3.6."""
        starred = any(self.tokens[start].text in ("*", "**") for start in starts)
        return self.tokens[last - 1].text != "," and (self._newer or not starred)

    @cached_property
    def _newer(self) -> bool:
        """Whether the text needs Python 3.6."""
        return any(isinstance(node, (ast.JoinedStr, ast.NamedExpr)) for node in walk(self.source.parse()))

    def _fits(self, first: int, last: int, indent: str, more: int = 0) -> bool:
        start, end = self.tokens[first].start, self.ends.get(last, self.tokens[last - 1].end)
        if end - start > 4 * self.limit:  # whatever the width of its characters
            return False
        return _width(indent + self.source.text[start:end]) + more <= self.limit

    def _row(self, index: int, indent: str, before: str = "") -> Edit:
        """Begin a row at a token."""
        start, end = self.tokens[index - 1].end, self.tokens[index].start
        return Edit(start, end, before + self.newline + indent)

    def _indent(self, index: int) -> str:
        """What is before the first token of a row."""
        start = self.tokens[index].start
        return self.source.text[self.source.line_start(self.source.position(start)[0]) : start]

    def _step(self, indent: str) -> str:
        return "\t" if "\t" in indent else self.step or "    "
