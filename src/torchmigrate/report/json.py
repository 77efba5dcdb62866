"""Findings for programs, in ruff's shape. README.md describes the fields."""

from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Sequence

from torchmigrate.findings import Finding
from torchmigrate.report.base import FileFindings
from torchmigrate.source.text import Source


class JsonReporter:
    """A list of objects, one for each finding. Rows and columns are 1-based, columns in characters."""

    def piece(self, file: FileFindings) -> str:
        # ASCII only, so that any terminal, locale and file name gives valid JSON.
        items = (json.dumps(as_object(file, finding), indent=2) for finding in file.findings)
        return ",\n".join(textwrap.indent(item, "  ") for item in items)

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
        "message": finding.message,
        "severity": finding.severity.label,
        "filename": os.path.abspath(file.path),  # noqa: PTH100 (Path.absolute keeps `..`)
        "location": _place(file.source, finding.start),
        "end_location": _place(file.source, finding.end),
        "places": [
            {"location": _place(file.source, start), "end_location": _place(file.source, end)}
            for start, end in finding.places
        ],
        "url": finding.url,
        "symbol": finding.symbol,
        "help": finding.help,
        "fix": None
        if fix is None
        else {
            "applicability": fix.applicability.label,
            "message": fix.title,
            "reason": fix.reason,
            "edits": [
                {
                    "content": edit.text,
                    "location": _place(file.source, edit.start),
                    "end_location": _place(file.source, edit.end),
                }
                for edit in sorted(fix.edits)
            ],
        },
    }


def _place(source: Source, offset: int) -> dict[str, int]:
    row, column = source.position(offset)
    return {"row": row, "column": column}
