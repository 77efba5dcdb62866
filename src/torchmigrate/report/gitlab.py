"""A Code Quality report of GitLab, which merge requests show."""

from __future__ import annotations

from collections.abc import Sequence

from torchmigrate.findings import Problem, Severity
from torchmigrate.printing import printable
from torchmigrate.report.base import FileFindings
from torchmigrate.report.fingerprints import Fingerprints
from torchmigrate.report.json_text import strict_json_text
from torchmigrate.report.locations import (
    Region,
    in_repository,
    region_of,
    row_of_problem,
    said_place,
    said_place_of_problem,
)
from torchmigrate.report.reasons import message_of

_SEVERITY = {Severity.ERROR: "major", Severity.WARNING: "minor", Severity.INFO: "info"}
_CHECKOUT = "CI_PROJECT_DIR"


class GitlabReporter:
    """A list of objects, one for each finding; GitLab takes two with the same fingerprint for one."""

    def __init__(self) -> None:
        self.fingerprints = Fingerprints()

    def piece(self, file: FileFindings) -> list[object]:
        path = in_repository(file.path, file.shown, _CHECKOUT)
        return [
            _item(
                finding.code,
                said_place(file.source, finding) + message_of(finding),
                finding.severity,
                self.fingerprints.of(path, file, finding),
                path,
                region_of(file.source, finding.start, finding.end),
            )
            for finding in file.findings
        ]

    def problem(self, problem: Problem, shown: str) -> list[object]:
        path = in_repository(problem.path, shown, _CHECKOUT)
        row = row_of_problem(problem)
        return [
            _item(
                problem.kind.value,
                said_place_of_problem(problem) + problem.reason,
                problem.severity,
                self.fingerprints.of_problem(path, problem),
                path,
                Region(row, 1, row, 1),
            )
        ]

    def whole(self, pieces: Sequence[list[object]]) -> str:
        return strict_json_text([item for piece in pieces for item in piece]) + "\n"


def _item(
    code: str, message: str, severity: Severity, fingerprint: str, path: str, region: Region
) -> dict[str, object]:
    return {
        "check_name": code,
        # GitLab shows the description alone.
        "description": f"{code}: {printable(message)}",
        "severity": _SEVERITY[severity],
        "fingerprint": fingerprint,
        "location": {
            "path": path,
            "positions": {
                "begin": {"line": region.row, "column": region.column or 1},
                "end": {"line": region.end_row, "column": region.end_column or 1},
            },
        },
    }
