"""Workflow commands that GitHub Actions shows as annotations."""

from __future__ import annotations

from torchmigrate.findings import Severity
from torchmigrate.report.locations import Item, ItemReporter, in_repository

_COMMAND = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}
_CHECKOUT = "GITHUB_WORKSPACE"


def reporter() -> ItemReporter:
    """`::error file=...,line=...,col=...,endLine=...,endColumn=...,title=...::message` per finding."""
    return ItemReporter(_line)


def _line(item: Item) -> str:
    region = item.region
    places: dict[str, object] = {"file": in_repository(item.path, item.shown, _CHECKOUT)}
    if item.finding is not None or not item.place:
        places["line"] = region.row
    place = item.place or f"{region.row}: "
    if item.finding is not None and region.column is not None:
        place = f"{region.row}:{region.column}: "
        if region.end_row == region.row:  # GitHub refuses columns in annotations of several lines
            places["col"] = region.column
        places["endLine"] = region.end_row
        if region.end_row == region.row:
            places["endColumn"] = region.end_column
    places["title"] = f"torchmigrate ({item.code})"
    fields = ",".join(f"{key}={_property(str(value))}" for key, value in places.items())
    message = f"{item.shown}:{place}{item.code} {item.text}"
    message += "".join(f"\n  {kind}: {text}" for kind, text in item.notes)
    return f"::{_COMMAND[item.severity]} {fields}::{_data(message)}\n"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
