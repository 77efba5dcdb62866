"""Workflow commands that GitHub Actions shows as annotations."""

from __future__ import annotations

from collections.abc import Sequence

from torchmigrate.findings import Severity
from torchmigrate.report.base import FileFindings
from torchmigrate.report.full import advice
from torchmigrate.report.reasons import message_of

_COMMAND = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


class GithubReporter:
    """`::error file=...,line=...,col=...,endLine=...,endColumn=...,title=...::message` per finding."""

    def piece(self, file: FileFindings) -> str:
        lines = []
        for finding in file.findings:
            cell, row, column = file.source.place(finding.start)
            _, end_row, end_column = file.source.place(finding.end)
            name = file.shown if cell is None else f"{file.shown}:cell {cell}"
            places = {
                "file": file.shown,
                "line": row,
                "col": column,
                "endLine": end_row,
                "endColumn": end_column,
            }
            if end_row != row:  # GitHub refuses columns in annotations of several lines
                del places["col"], places["endColumn"]
            if cell is not None:  # the line that the file has on GitHub, which is of JSON
                places = {"file": file.shown, "line": file.source.file_row(finding.start)}
            places["title"] = f"torchmigrate ({finding.code})"
            message = f"{name}:{row}:{column}: {finding.code} {message_of(finding)}"
            also = file.also(finding)
            for kind, text in (*([("note", also)] if also else []), *advice(finding)):
                message += f"\n  {kind}: {text}"
            fields = ",".join(f"{key}={_property(str(value))}" for key, value in places.items())
            lines.append(f"::{_COMMAND[finding.severity]} {fields}::{_data(message)}\n")
        return "".join(lines)

    def whole(self, pieces: Sequence[str]) -> str:
        return "".join(pieces)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
