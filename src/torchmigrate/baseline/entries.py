"""What a baseline knows of a finding: the file, the rule, the symbol and the text of its line.

There is no line number in it, so that findings are known again when lines move. White space does not count:
neither the indentation nor line ends nor how a call is laid out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from msgspec import Struct

from torchmigrate.findings import Finding
from torchmigrate.patterns import pattern
from torchmigrate.source.text import Source

MOST_TEXT = 200  # characters that are kept of a line
_SUPPRESSION = pattern(r"\s*#\s*torchmigrate:.*")


class BaselineEntry(NamedTuple):
    """One line of a baseline.

    path: of the file, relative to the directory of the baseline, with slashes.
    line: the text as a person reads it. symbol: empty where the finding has none.
    """

    path: str
    code: str
    symbol: str
    line: str

    @property
    def key(self) -> Key:
        """What it is known by within its file."""
        return Key(self.code, squeezed(self.line))


class Key(Struct, frozen=True):
    """A rule and the text of a line without white space."""

    code: str
    text: str


class Spot(Struct, frozen=True):
    """A place of a finding: rows of a text, and what a baseline knows of it.

    symbol None: it is not known, since the finding is named after another one of its places.
    """

    code: str
    symbol: str | None
    line: str
    rows: range

    @property
    def key(self) -> Key:
        return Key(self.code, squeezed(self.line))

    def entry(self, path: str) -> BaselineEntry:
        """The line of a baseline for it."""
        return BaselineEntry(path, self.code, self.symbol or "", self.line)


def spots(finding: Finding, source: Source) -> Iterator[Spot]:
    """The places of a finding, its own first: a decision is accepted for those that it was made for."""
    joined = bool(finding.places)
    symbol = None if joined else finding.symbol or ""
    for start, end in ((finding.start, finding.end), *finding.places):
        first, last = source.position(start)[0], source.position(max(start, end - 1))[0]
        rows = range(first, min(last, first + MOST_TEXT) + 1)
        text = " ".join(source.shown_line(row) for row in rows)
        yield Spot(finding.code, symbol, readable(text), rows)


def readable(text: str) -> str:
    """A line as a baseline shows it: without a comment of ours, and with single spaces."""
    return " ".join(_SUPPRESSION.sub("", text).split())[:MOST_TEXT]


def squeezed(line: str) -> str:
    """A line without white space."""
    return "".join(line.split())
