"""pylint's lines, which many programs read."""

from __future__ import annotations

from torchmigrate.report.locations import ItemReporter


def reporter() -> ItemReporter:
    """`path:row: [CODE] message` for each finding."""
    return ItemReporter(lambda item: f"{item.shown}:{item.region.row}: [{item.code}] {item.message}\n")
