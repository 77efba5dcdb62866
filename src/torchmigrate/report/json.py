"""Findings for programs, in ruff's shape. `docs/output.md` describes the fields."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable

from torchmigrate.catalogue.model import Rule
from torchmigrate.findings import Finding, Fix, Problem, Reason, in_order
from torchmigrate.patterns import pattern
from torchmigrate.printing import printable
from torchmigrate.report.base import FileFindings
from torchmigrate.report.locations import Item, ItemReporter, SharedEdits, absolute
from torchmigrate.report.reasons import help_of, message_of, reason_of
from torchmigrate.source.text import Source

_LONE = pattern("[\ud800-\udfff]")
RuleOf = Callable[[str], Rule | None]  # gives a rule by its code


def reporter(rule_of: RuleOf) -> ItemReporter:
    """A list of objects, one for each finding. Rows and columns are 1-based, columns in characters."""
    made = _objects(rule_of)

    def listed(objects: list[str]) -> str:
        return "[\n" + ",\n".join(objects) + "\n]\n" if objects else "[]\n"

    return ItemReporter(lambda item: textwrap.indent(_json_text(made(item)), "  "), listed)


def lines_reporter(rule_of: RuleOf) -> ItemReporter:
    """An object for each finding, one on a line, without a list around them."""
    made = _objects(rule_of)
    return ItemReporter(lambda item: _json_text(made(item), indent=None) + "\n")


def _objects(rule_of: RuleOf) -> Callable[[Item], dict[str, object]]:
    shared = SharedEdits()

    def object_of(item: Item) -> dict[str, object]:
        if item.problem is not None:
            return _of_problem(item.problem)
        assert item.file is not None and item.finding is not None, "an item is about one of them"
        return _of_finding(item.file, item.finding, shared, rule_of)

    return object_of


def _of_finding(
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


def _of_problem(problem: Problem) -> dict[str, object]:
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


# ---- text ---------------------------------------------------------------------------------------------


def _json_text(value: object, *, indent: int | None = 2) -> str:
    """A value as JSON; characters that JSON may hold, but no terminal should get, are escaped."""
    return json.dumps(value, indent=indent).replace("\x7f", "\\u007f")


def strict_json_text(value: object) -> str:
    """The same without halves of surrogate pairs, which many readers refuse: they are written as escapes.

    Such a half is a byte of a file name that is not text, or an escape in the code of a notebook.
    """
    text = _json_text(value)
    return _json_text(_without_halves(value)) if "\\ud" in text else text


def _without_halves(value: object) -> object:
    if isinstance(value, str):
        return _LONE.sub(lambda found: f"\\u{ord(found[0]):04x}", value)
    if isinstance(value, dict):
        return {key: _without_halves(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_halves(item) for item in value]
    return value
