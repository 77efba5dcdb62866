"""The Reviewdog Diagnostic Format, from which reviewdog makes comments with suggestions."""

from __future__ import annotations

from collections.abc import Iterator

from torchmigrate.findings import Applicability, Fix, Severity, in_order
from torchmigrate.report.json import strict_json_text
from torchmigrate.report.locations import MOST_EDITS, Item, ItemReporter, absolute, region_of, replacements
from torchmigrate.source.text import Source

_SEVERITY = {Severity.ERROR: "ERROR", Severity.WARNING: "WARNING", Severity.INFO: "INFO"}
# From the first to the last edit of a fix that is suggested.
_MOST_ROWS = 20
_MOST_CHARACTERS = 5000


def reporter() -> ItemReporter:
    """An object with a list of diagnostics.

    A suggestion may be taken alone, so a fix is one suggestion or, where its edits are far apart, none.
    """
    return ItemReporter(_diagnostic, _report)


def _report(diagnostics: list[object]) -> str:
    report = {"source": {"name": "torchmigrate"}, "severity": "WARNING", "diagnostics": diagnostics}
    return strict_json_text(report) + "\n"


def _diagnostic(item: Item) -> dict[str, object]:
    code, start = {"value": item.code}, {"line": item.region.row, "column": 1}
    area: dict[str, object] = {"start": start, "end": start}
    suggestions: list[dict[str, object]] = []
    if item.file is not None and item.finding is not None:
        finding, source = item.finding, item.file.source
        code |= {} if finding.url is None else {"url": finding.url}
        area = _range(source, finding.start, finding.end)
        suggestions += _suggestions(source, finding.fix)
    return {
        "message": "\n".join([item.message, *(f"{kind}: {text}" for kind, text in item.notes)]),
        "location": {"path": absolute(item.path), "range": area},
        "severity": _SEVERITY[item.severity],
        "code": code,
        **({"suggestions": suggestions} if suggestions else {}),
    }


def _suggestions(source: Source, fix: Fix | None) -> Iterator[dict[str, object]]:
    """The fix as one text in the place of another, which is all that its edits have between them."""
    if fix is None or fix.applicability is Applicability.DISPLAY or not 0 < len(fix.edits) <= MOST_EDITS:
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
