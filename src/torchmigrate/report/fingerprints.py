"""What tells a finding from the others of a project, and stays when lines move."""

from __future__ import annotations

import hashlib
from collections import Counter

from torchmigrate.findings import Finding, Problem
from torchmigrate.report.base import FileFindings
from torchmigrate.source.text import Source


class Fingerprints:
    """The fingerprints of one report; no two are equal.

    They are made of the path, the rule and the code in the line, white space aside; where that occurs again,
    of how often it occurred before. Ask for the findings in order of place.
    """

    def __init__(self) -> None:
        self._given: Counter[tuple[str, ...]] = Counter()
        self._line: tuple[Source, int, str] | None = None  # a long one may have many findings

    def of(self, path: str, file: FileFindings, finding: Finding) -> str:
        """The fingerprint of a finding. path: as the report names the file."""
        source = file.source
        row, _ = source.position(finding.start)
        if self._line is None or self._line[0] is not source or self._line[1] != row:
            code = " ".join(source.shown_line(row).split())
            self._line = source, row, hashlib.sha256(code.encode("utf-8", "surrogatepass")).hexdigest()
        return self._next(path, finding.code, self._line[2])

    def of_problem(self, path: str, problem: Problem) -> str:
        """The same for what could not be done."""
        return self._next(path, problem.kind.value, problem.reason)

    def _next(self, *parts: str) -> str:
        number = self._given[parts]
        self._given[parts] += 1
        text = "\0".join((*parts, str(number)))
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
