"""Colour, and how wide text may be."""

from __future__ import annotations

import os
from typing import TextIO

from msgspec import Struct

from torchmigrate.findings import Severity
from torchmigrate.printing import printable as printable  # one import for those that do both
from torchmigrate.printing import terminal_text as terminal_text

WIDTH = 110  # columns of text, without line numbers, if the width of the output is unknown
_NARROWEST = 40
_MARGIN = 9  # columns for line numbers and what is around them


class Style(Struct, frozen=True):
    """Adds colors to text, or does not.

    width: columns of text, without line numbers.
    """

    color: bool = False
    width: int = WIDTH

    def _in(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.color and text else text

    def bold(self, text: str) -> str:
        return self._in("1", text)

    def dim(self, text: str) -> str:
        return self._in("2", text)

    def heading(self, text: str) -> str:
        return self._in("1;36", text)

    def good(self, text: str) -> str:
        return self._in("32", text)

    def bad(self, text: str) -> str:
        return self._in("1;31", text)

    def gutter(self, text: str) -> str:
        return self._in("36", text)

    def severity(self, severity: Severity, text: str) -> str:
        return self._in(
            {Severity.ERROR: "1;31", Severity.WARNING: "1;33", Severity.INFO: "1;34"}[severity], text
        )


def wants_color(choice: str, stream: TextIO) -> bool:
    """Whether to color the output to a stream. choice: "auto", "always" or "never"."""
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return os.environ["FORCE_COLOR"] != "0"
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def width_of(stream: TextIO) -> int:
    """The columns of text that a stream has room for: on a terminal what is seen without scrolling."""
    columns = columns_of(stream)
    return WIDTH if columns is None else min(max(columns - _MARGIN, _NARROWEST), WIDTH)


def columns_of(stream: TextIO) -> int | None:
    """The columns of a terminal; None: it is none, or does not say."""
    if not stream.isatty():
        return None
    try:
        return int(os.environ.get("COLUMNS") or os.get_terminal_size(stream.fileno()).columns) or None
    except (OSError, ValueError):
        return None
