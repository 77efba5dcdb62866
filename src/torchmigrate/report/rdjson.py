"""The Reviewdog Diagnostic Format, from which reviewdog makes comments with suggestions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torchmigrate.findings import Applicability, Finding, Fix, Problem, Severity, in_order
from torchmigrate.printing import printable
from torchmigrate.report.base import FileFindings
from torchmigrate.report.full import advice
from torchmigrate.report.json_text import strict_json_text
from torchmigrate.report.locations import (
    absolute,
    region_of,
    replacements,
    row_of_problem,
    said_place,
    said_place_of_problem,
)
from torchmigrate.report.reasons import message_of
from torchmigrate.report.shared_edits import MOST
from torchmigrate.source.text import Source

_SEVERITY = {Severity.ERROR: "ERROR", Severity.WARNING: "WARNING", Severity.INFO: "INFO"}
# From the first to the last edit of a fix that is suggested.
_MOST_ROWS = 20
_MOST_CHARACTERS = 5000


class RdjsonReporter:
    """An object with a list of diagnostics.

    A suggestion may be taken alone, so a fix is one suggestion or, where its edits are far apart, none.
    """

    def piece(self, file: FileFindings) -> list[object]:
        return [_diagnostic(file, finding) for finding in file.findings]

    def problem(self, problem: Problem, shown: str) -> list[object]:
        position = {"line": row_of_problem(problem), "column": 1}
        return [
            {
                "message": printable(said_place_of_problem(problem) + problem.reason),
                "location": {
                    "path": absolute(problem.path),
                    "range": {"start": position, "end": position},
                },
                "severity": _SEVERITY[problem.severity],
                "code": {"value": problem.kind.value},
            }
        ]

    def whole(self, pieces: Sequence[list[object]]) -> str:
        report = {
            "source": {"name": "torchmigrate"},
            "severity": "WARNING",
            "diagnostics": [item for piece in pieces for item in piece],
        }
        return strict_json_text(report) + "\n"


def _diagnostic(file: FileFindings, finding: Finding) -> dict[str, object]:
    source = file.source
    message = said_place(source, finding) + printable(message_of(finding))
    also = file.also(finding)
    for kind, text in (*([("note", also)] if also else []), *advice(finding)):
        message += f"\n{kind}: {printable(text)}"
    code = {"value": finding.code}
    if finding.url is not None:
        code["url"] = finding.url
    suggestions = list(_suggestions(source, finding.fix))
    return {
        "message": message,
        "location": {"path": absolute(file.path), "range": _range(source, finding.start, finding.end)},
        "severity": _SEVERITY[finding.severity],
        "code": code,
        **({"suggestions": suggestions} if suggestions else {}),
    }


def _suggestions(source: Source, fix: Fix | None) -> Iterator[dict[str, object]]:
    """The fix as one text in the place of another, which is all that its edits have between them."""
    if fix is None or fix.applicability is Applicability.DISPLAY or not 0 < len(fix.edits) <= MOST:
        return
    if not replacements(source, fix.edits):
        return
    edits = in_order(fix.edits)
    start, end = edits[0].start, edits[-1].end
    if source.position(end)[0] - source.position(start)[0] >= _MOST_ROWS or end - start > _MOST_CHARACTERS:
        return
    if source.in_pieces and "\n" in source.text[start:end]:
        return
    text, done = "", start
    for edit in edits:
        text += source.text[done : edit.start] + edit.text
        done = edit.end
    yield {"range": _range(source, start, end), "text": text}


def _range(source: Source, start: int, end: int) -> dict[str, object]:
    region = region_of(source, start, end)
    if region.column is None:
        return {"start": {"line": region.row}}
    return {"start": _position(source, start), "end": _position(source, end)}


def _position(source: Source, offset: int) -> dict[str, int]:
    """A row and a column, which counts bytes of UTF-8."""
    row, column = source.position(offset)
    place = source.place(offset)
    before = source.text[offset - column + 1 : offset]
    wide = len(before.encode("utf-8", "surrogatepass")) - len(before)
    lead = source.lead(row)
    wide += len(lead.encode("utf-8", "surrogatepass")) - len(lead)
    return {"line": place.row, "column": place.column + wide}
