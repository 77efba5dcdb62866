"""What tells a finding from the others of a project, and stays when lines move."""

from __future__ import annotations

import hashlib
from collections import Counter

from torchmigrate.report.locations import Item
from torchmigrate.source.text import Source


class Fingerprints:
    """The fingerprints of one report; no two are equal.

    They are made of the path, the rule and the code in the line, white space aside; where that occurs again,
    of how often it occurred before. Ask for the findings in order of place.
    """

    def __init__(self) -> None:
        self._given: Counter[tuple[str, ...]] = Counter()
        self._line: tuple[Source, int, str] | None = None  # a long one may have many findings

    def of(self, path: str, item: Item) -> str:
        """The fingerprint of a finding, or of what could not be done. path: as the report names the file."""
        if item.file is None or item.finding is None:
            return self._next(path, item.code, item.text)
        source = item.file.source
        row, _ = source.position(item.finding.start)
        if self._line is None or self._line[0] is not source or self._line[1] != row:
            code = " ".join(source.shown_line(row).split())
            self._line = source, row, hashlib.sha256(code.encode("utf-8", "surrogatepass")).hexdigest()
        return self._next(path, item.code, self._line[2])

    def _next(self, *parts: str) -> str:
        number = self._given[parts]
        self._given[parts] += 1
        text = "\0".join((*parts, str(number)))
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
