"""Findings for programs, in ruff's shape. README.md describes the fields."""

from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Sequence

from torchmigrate.findings import Finding, Fix, Problem, Reason, Severity
from torchmigrate.report.base import FileFindings
from torchmigrate.report.reasons import help_of, message_of, reason_of
from torchmigrate.report.style import printable
from torchmigrate.source.text import Source


class JsonReporter:
    """A list of objects, one for each finding. Rows and columns are 1-based, columns in characters."""

    def piece(self, file: FileFindings) -> str:
        # ASCII only, so that any terminal, locale and file name gives valid JSON.
        items = (json.dumps(as_object(file, finding), indent=2) for finding in file.findings)
        return ",\n".join(textwrap.indent(item, "  ") for item in items)

    def problem(self, problem: Problem, shown: str) -> str:
        return textwrap.indent(json.dumps(problem_as_object(problem), indent=2), "  ")

    def whole(self, pieces: Sequence[str]) -> str:
        if not pieces:
            return "[]\n"
        return "[\n" + ",\n".join(pieces) + "\n]\n"


def as_object(file: FileFindings, finding: Finding) -> dict[str, object]:
    """One finding as JSON types."""
    fix = finding.fix
    return {
        "code": finding.code,
        "name": finding.name,
        "message": message_of(finding),
        "severity": finding.severity.label,
        "filename": os.path.abspath(file.path),  # noqa: PTH100 (Path.absolute keeps `..`)
        "cell": None,
        **_span(file.source, finding.start, finding.end),
        "places": [_span(file.source, start, end) for start, end in finding.places],
        "url": finding.url,
        "symbol": finding.symbol,
        "help": help_of(finding),
        "blocked_by": [_reason(reason) for reason in finding.blocked_by],
        "fix": None if fix is None else _fix(file, fix),
        "unsafe_fix": None if fix is None or fix.unsafe is None else _fix(file, fix.unsafe),
    }


def problem_as_object(problem: Problem) -> dict[str, object]:
    """What could not be done, in the same form as a finding; without a line, it is at the first."""
    place = {"row": problem.line or 1, "column": 1}
    return {
        "code": problem.kind.value,
        "name": problem.kind.value,
        "message": printable(problem.reason),
        "severity": Severity.ERROR.label,
        "filename": os.path.abspath(problem.path),  # noqa: PTH100 (Path.absolute keeps `..`)
        "cell": problem.cell,
        "location": place,
        "end_location": place,
        "places": [],
        "url": None,
        "symbol": None,
        "help": None,
        "blocked_by": [],
        "fix": None,
        "unsafe_fix": None,
    }


def _fix(file: FileFindings, fix: Fix) -> dict[str, object]:
    return {
        "applicability": fix.applicability.label,
        "message": fix.title,
        "reason": reason_of(fix),
        "held_by": [_reason(reason) for reason in fix.held_by],
        "edits": [
            {"content": edit.text, **_span(file.source, edit.start, edit.end)} for edit in sorted(fix.edits)
        ],
    }


def _reason(reason: Reason) -> dict[str, object]:
    """What is in the way, as far as there are values for it."""
    values = {
        "text": reason.text or None,
        "name": reason.name,
        "path": None if reason.path is None else str(reason.path),
        "row": reason.line,
        "needs": reason.needs,
        "has": reason.has,
    }
    known = {key: value for key, value in values.items() if value is not None}
    return {"kind": reason.kind.value, **known}


def _span(source: Source, start: int, end: int) -> dict[str, object]:
    """Where something begins and ends; rows are those of the cell, which is named where there is one."""
    cell, row, column = source.place(start)
    _, end_row, end_column = source.place(end)
    return {
        **({} if cell is None else {"cell": cell}),
        "location": {"row": row, "column": column},
        "end_location": {"row": end_row, "column": end_column},
    }
