"""Where the nodes of LibCST are in a text, by what it prints of them."""

from __future__ import annotations

import libcst as cst

from torchmigrate.match.context import CannotFix
from torchmigrate.patterns import pattern

_NEWLINE = pattern(r"\r\n|\n|\r")


class Cursor:
    """Goes over a piece of a text, node by node.

    Args:
        text: of the file.
        start, end: of the piece.
    """

    def __init__(self, text: str, start: int, end: int) -> None:
        self.text = text
        self.position = start
        # LibCST keeps the first newline of the code as the default one, which nodes do not repeat.
        newline = _NEWLINE.search(text, start, end)
        self._printer = cst.Module([], default_newline=newline[0] if newline else "\n")

    def skip(self, *parts: cst.CSTNode | str) -> int:
        """The offset after some nodes. Raises CannotFix if LibCST prints something else."""
        for part in parts:
            code = part if isinstance(part, str) else self._printer.code_for_node(part)
            if not self.text.startswith(code, self.position):
                raise CannotFix("LibCST prints another text")
            self.position += len(code)
        return self.position
