"""Answers to queries as text: a table for people, CSV or JSON for programs."""

from __future__ import annotations

import csv
import io
from datetime import datetime
from typing import Any

from torchmigrate.fleet.queries import Answer
from torchmigrate.printing import json_text
from torchmigrate.report.document import columns

FORMATS = ("table", "csv", "json")
_WIDEST = 60  # characters of a cell in a table
_CUT = "…"


def as_text(answer: Answer, output_format: str) -> str:
    """An answer in one of FORMATS."""
    if output_format == "json":
        return json_text([_plain(record) for record in answer.records])
    if output_format == "csv":
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(answer.columns)
        writer.writerows([_cell(value) for value in row] for row in answer.rows)
        return text.getvalue()
    return _table(answer)


def _table(answer: Answer) -> str:
    if not answer.columns:
        return ""
    rows = [[_shortened(_cell(value)) for value in row] for row in answer.rows]
    numbers = [
        index
        for index in range(len(answer.columns))
        if rows and all(isinstance(row[index], (int, float, type(None))) for row in answer.rows)
    ]
    return "".join(f"{line}\n" for line in columns([answer.columns, *rows], numbers=numbers))


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds")
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list):
        return ", ".join(map(_cell, value))
    return str(value)


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + _CUT


def _plain(record: dict[str, Any]) -> dict[str, Any]:
    """What JSON has no form for as text."""
    return {
        key: value if isinstance(value, (str, int, float, list, type(None))) else str(value)
        for key, value in record.items()
    }
