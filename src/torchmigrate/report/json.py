"""Findings for programs, in ruff's shape. `docs/output.md` describes the fields."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.findings import Finding, Fix, Problem, Reason, in_order
from torchmigrate.printing import printable
from torchmigrate.report.base import FileFindings
from torchmigrate.report.json_text import json_text
from torchmigrate.report.locations import absolute
from torchmigrate.report.reasons import help_of, message_of, reason_of
from torchmigrate.report.shared_edits import SharedEdits
from torchmigrate.source.text import Source

RuleOf = Callable[[str], Rule | None]  # gives a rule by its code


class JsonReporter:
    """A list of objects, one for each finding. Rows and columns are 1-based, columns in characters."""

    def __init__(self, rule_of: RuleOf) -> None:
        self.rule_of = rule_of

    def piece(self, file: FileFindings) -> str:
        shared = SharedEdits()
        items = (json_text(as_object(file, finding, shared, self.rule_of)) for finding in file.findings)
        return ",\n".join(textwrap.indent(item, "  ") for item in items)

    def problem(self, problem: Problem, shown: str) -> str:
        return textwrap.indent(json_text(problem_as_object(problem)), "  ")

    def whole(self, pieces: Sequence[str]) -> str:
        if not pieces:
            return "[]\n"
        return "[\n" + ",\n".join(pieces) + "\n]\n"


def as_object(
    file: FileFindings, finding: Finding, shared: SharedEdits, rule_of: RuleOf
) -> dict[str, object]:
    """One finding as JSON types."""
    fix = finding.fix
    rule = rule_of(finding.code)
    return {
        "code": finding.code,
        "name": finding.name,
        "message": message_of(finding),
        "severity": finding.severity.label,
        "filename": absolute(file.path),
        "cell": None,
        **_span(file.source, finding.start, finding.end),
        "places": [_span(file.source, start, end) for start, end in finding.places],
        "url": finding.url,
        "references": [] if rule is None else list(rule.references),
        "symbol": finding.symbol,
        "help": help_of(finding),
        "blocked_by": [_reason(reason) for reason in finding.blocked_by],
        "fix": None if fix is None else _fix(file, fix, finding, shared),
        "unsafe_fix": None if fix is None or fix.unsafe is None else _fix(file, fix.unsafe, finding, shared),
    }


def problem_as_object(problem: Problem) -> dict[str, object]:
    """What could not be done, in the same form as a finding; without a line, it is at the first."""
    place = {"row": problem.line or 1, "column": 1}
    return {
        "code": problem.kind.value,
        "name": problem.kind.value,
        "message": printable(problem.reason),
        "severity": problem.severity.label,
        "filename": absolute(problem.path),
        "cell": problem.cell,
        "location": place,
        "end_location": place,
        "places": [],
        "url": None,
        "references": [],
        "symbol": None,
        "help": None,
        "blocked_by": [],
        "fix": None,
        "unsafe_fix": None,
    }


def _fix(file: FileFindings, fix: Fix, finding: Finding, shared: SharedEdits) -> dict[str, object]:
    other = shared.elsewhere(fix, finding)
    if other is not None:
        edits: list[object] = []
        more = {"edits_of": _span(file.source, other.start, other.end)}
    else:
        found = in_order(fix.edits)
        edits = [{"content": edit.text, **_span(file.source, edit.start, edit.end)} for edit in found]
        more = {}
    return {
        "applicability": fix.applicability.label,
        "message": fix.title,
        "reason": reason_of(fix),
        "held_by": [_reason(reason) for reason in fix.held_by],
        "edits": edits,
        **more,
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
