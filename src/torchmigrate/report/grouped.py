"""One line for each finding, under the name of its file."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from msgspec import Struct

from torchmigrate.findings import Finding, Problem
from torchmigrate.printing import printable
from torchmigrate.report.base import FileFindings
from torchmigrate.report.reasons import message_of
from torchmigrate.report.style import Style


class _FileGroup(Struct, frozen=True):
    """Lines about a file: where, and what."""

    shown: str
    lines: list[tuple[str, str]]


class GroupedReporter:
    """`path:`, and `row:column CODE [*] message` below it; places are aligned, as ruff has them."""

    def __init__(self, style: Style) -> None:
        self.style = style

    def piece(self, file: FileFindings) -> _FileGroup:
        return _FileGroup(file.shown, [self._line(file, finding) for finding in file.findings])

    def _line(self, file: FileFindings, finding: Finding) -> tuple[str, str]:
        cell, row, column = file.source.place(finding.start)
        where = f"{row}:{column}" if cell is None else f"cell {cell}:{row}:{column}"
        parts = [self.style.severity(finding.severity, finding.code)]
        if file.mark(finding):
            parts.append(self.style.gutter(file.mark(finding)))
        also = file.also(finding)
        parts.append(printable(message_of(finding)) + (f" ({also})" if also else ""))
        return where, " ".join(parts)

    def problem(self, problem: Problem, shown: str) -> None:
        """Nothing: stderr says it."""

    def whole(self, pieces: Sequence[_FileGroup]) -> str:
        text = ""
        for shown, groups in groupby(pieces, key=lambda piece: piece.shown):
            lines = [line for group in groups for line in group.lines]
            width = max(len(where) for where, _ in lines)
            text += f"{self.style.bold(shown)}:\n"
            text += "".join(f"  {where:{width}} {what}\n" for where, what in lines) + "\n"
        return text


reporter = GroupedReporter
