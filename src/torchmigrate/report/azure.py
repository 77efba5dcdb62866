"""Logging commands that Azure Pipelines shows as issues of a build."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torchmigrate.findings import Problem, Severity
from torchmigrate.printing import printable
from torchmigrate.report.base import FileFindings
from torchmigrate.report.locations import (
    absolute,
    region_of,
    row_of_problem,
    said_place,
    said_place_of_problem,
)
from torchmigrate.report.reasons import message_of

# Azure knows these two kinds only.
_TYPE = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "warning"}


class AzureReporter:
    """`##vso[task.logissue type=...;sourcepath=...;linenumber=...;columnnumber=...;code=...;]message`."""

    def piece(self, file: FileFindings) -> str:
        lines = []
        for finding in file.findings:
            region = region_of(file.source, finding.start, finding.end)
            fields = {
                "type": _TYPE[finding.severity],
                "sourcepath": absolute(file.path),
                "linenumber": region.row,
                "columnnumber": region.column or 1,
                "code": finding.code,
            }
            lines.append(_line(fields, said_place(file.source, finding) + message_of(finding)))
        return "".join(lines)

    def problem(self, problem: Problem, shown: str) -> str:
        fields = {
            "type": _TYPE[problem.severity],
            "sourcepath": absolute(problem.path),
            "linenumber": row_of_problem(problem),
            "columnnumber": 1,
            "code": problem.kind.value,
        }
        return _line(fields, said_place_of_problem(problem) + problem.reason)

    def whole(self, pieces: Sequence[str]) -> str:
        return "".join(pieces)


def _line(fields: Mapping[str, object], message: str) -> str:
    shown = "".join(f"{key}={_property(printable(str(value)))};" for key, value in fields.items())
    return f"##vso[task.logissue {shown}]{_data(printable(message))}\n"


def _data(text: str) -> str:
    # `%` has an escape of its own in what Azure reads, so that a text which has escapes stays as it is.
    return text.replace("%", "%AZP25")


def _property(text: str) -> str:
    return _data(text).replace(";", "%3B").replace("]", "%5D")
