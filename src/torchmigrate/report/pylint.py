"""pylint's lines, which many programs read."""

from __future__ import annotations

from collections.abc import Sequence

from torchmigrate.findings import Problem
from torchmigrate.printing import printable
from torchmigrate.report.base import FileFindings
from torchmigrate.report.locations import region_of, row_of_problem, said_place, said_place_of_problem
from torchmigrate.report.reasons import message_of


class PylintReporter:
    """`path:row: [CODE] message` for each finding."""

    def piece(self, file: FileFindings) -> str:
        lines = []
        for finding in file.findings:
            row = region_of(file.source, finding.start, finding.end).row
            message = said_place(file.source, finding) + message_of(finding)
            lines.append(f"{file.shown}:{row}: [{finding.code}] {printable(message)}\n")
        return "".join(lines)

    def problem(self, problem: Problem, shown: str) -> str:
        message = said_place_of_problem(problem) + problem.reason
        return f"{shown}:{row_of_problem(problem)}: [{problem.kind.value}] {printable(message)}\n"

    def whole(self, pieces: Sequence[str]) -> str:
        return "".join(pieces)
