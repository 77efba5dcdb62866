"""Workflow commands that GitHub Actions shows as annotations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torchmigrate.findings import Problem, Severity
from torchmigrate.printing import printable
from torchmigrate.report.base import FileFindings
from torchmigrate.report.full import advice
from torchmigrate.report.locations import in_repository
from torchmigrate.report.reasons import message_of

_COMMAND = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}
_CHECKOUT = "GITHUB_WORKSPACE"


class GithubReporter:
    """`::error file=...,line=...,col=...,endLine=...,endColumn=...,title=...::message` per finding."""

    def piece(self, file: FileFindings) -> str:
        lines = []
        place = in_repository(file.path, file.shown, _CHECKOUT)
        for finding in file.findings:
            cell, row, column = file.source.place(finding.start)
            _, end_row, end_column = file.source.place(finding.end)
            name = file.shown if cell is None else f"{file.shown}:cell {cell}"
            places: dict[str, object] = {
                "file": place,
                "line": row,
                "col": column,
                "endLine": end_row,
                "endColumn": end_column,
            }
            if end_row != row:  # GitHub refuses columns in annotations of several lines
                del places["col"], places["endColumn"]
            if cell is not None:  # the line that the file has on GitHub, which is of JSON
                places = {"file": place, "line": file.source.file_row(finding.start)}
            places["title"] = f"torchmigrate ({finding.code})"
            message = f"{name}:{row}:{column}: {finding.code} {message_of(finding)}"
            also = file.also(finding)
            for kind, text in (*([("note", also)] if also else []), *advice(finding)):
                message += f"\n  {kind}: {text}"
            lines.append(_line(_COMMAND[finding.severity], places, message))
        return "".join(lines)

    def problem(self, problem: Problem, shown: str) -> str:
        row = problem.line or 1
        places: dict[str, object] = {
            "file": in_repository(problem.path, shown, _CHECKOUT),
            "line": row,
            "title": f"torchmigrate ({problem.kind.value})",
        }
        if problem.cell is not None:  # whose lines are not lines of the file
            del places["line"]
            shown = f"{shown}:cell {problem.cell}"
        message = f"{shown}:{row}: {problem.kind.value} {printable(problem.reason)}"
        return _line(_COMMAND[problem.severity], places, message)

    def whole(self, pieces: Sequence[str]) -> str:
        return "".join(pieces)


def _line(command: str, places: Mapping[str, object], message: str) -> str:
    fields = ",".join(f"{key}={_property(str(value))}" for key, value in places.items())
    return f"::{command} {fields}::{_data(message)}\n"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
