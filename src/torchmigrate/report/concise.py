"""One line for each finding."""

from __future__ import annotations

from collections.abc import Sequence

from torchmigrate.findings import Finding, Problem
from torchmigrate.printing import printable
from torchmigrate.report.base import FileFindings
from torchmigrate.report.reasons import message_of
from torchmigrate.report.style import Style


class ConciseReporter:
    """`path:row:column: CODE [*] message`."""

    def __init__(self, style: Style) -> None:
        self.style = style

    def piece(self, file: FileFindings) -> str:
        return "".join(self._line(file, finding) + "\n" for finding in file.findings)

    def _line(self, file: FileFindings, finding: Finding) -> str:
        also = file.also(finding)
        return header(file, finding, self.style) + (f" ({also})" if also else "")

    def problem(self, problem: Problem, shown: str) -> None:
        """Nothing: stderr says it."""

    def whole(self, pieces: Sequence[str]) -> str:
        return "".join(pieces)


def header(file: FileFindings, finding: Finding, style: Style) -> str:
    """The line that says where and what."""
    cell, row, column = file.source.place(finding.start)
    colon = style.gutter(":")
    in_cell = "" if cell is None else f"{colon}cell {cell}"
    where = f"{style.bold(file.shown)}{in_cell}{colon}{row}{colon}{column}{colon}"
    parts = [where, style.severity(finding.severity, finding.code)]
    if file.mark(finding):
        parts.append(style.gutter(file.mark(finding)))
    return " ".join([*parts, printable(message_of(finding))])


reporter = ConciseReporter
