"""Places in a document as the client counts them: lines, and units of the encoding that was agreed on."""

from __future__ import annotations

import io
from bisect import bisect_right
from itertools import accumulate

from lsprotocol import types
from pygls.workspace import PositionCodec


def lines_of(text: str) -> list[str]:
    """The lines of a text with their ends, which are those of the protocol, and of Python: no form feeds."""
    return list(io.StringIO(text, newline=""))


class Lines:
    """The lines of one text, which knows offsets in characters."""

    def __init__(self, text: str, codec: PositionCodec) -> None:
        self.text = text
        self.codec = codec
        self._lines = lines_of(text)
        self._starts = list(accumulate(map(len, self._lines), initial=0))

    def position(self, offset: int) -> types.Position:
        """The position of a character."""
        offset = max(0, min(offset, len(self.text)))
        row = bisect_right(self._starts, offset) - 1
        if row == len(self._lines) and row and not self.text.endswith(("\n", "\r")):
            row -= 1
        return self._position(row, self.text[self._starts[row] : offset])

    def at(self, row: int, column: int) -> types.Position:
        """The position of a row and a column in characters, both 0-based; of what is beyond, the end."""
        if row >= len(self._lines):
            return self.position(len(self.text))
        return self._position(row, self._lines[row].rstrip("\r\n")[: max(0, column)])

    def offset(self, position: types.Position) -> int:
        """The character at a position; after the end of a line is at its end."""
        if position.line >= len(self._lines):
            return len(self.text)
        start, line = self._starts[position.line], self._lines[position.line].rstrip("\r\n")
        if line.isascii():
            return start + min(position.character, len(line))
        units = 0
        for index, character in enumerate(line):
            if units >= position.character:
                return start + index
            units += self.codec.client_num_units(character)
        return start + len(line)

    def range(self, start: int, end: int) -> types.Range:
        """The range between two characters."""
        return types.Range(self.position(start), self.position(end))

    def whole_line(self, row: int) -> types.Range:
        """The range of a 0-based line without its end, and without the white space before it."""
        line = self._lines[row].rstrip("\r\n") if row < len(self._lines) else ""
        return types.Range(self.at(row, len(line) - len(line.lstrip())), self.at(row, len(line)))

    def _position(self, row: int, before: str) -> types.Position:
        units = len(before) if before.isascii() else self.codec.client_num_units(before)
        return types.Position(row, units)
