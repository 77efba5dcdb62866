"""Findings as text: one module per output format, each with a `Reporter`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchmigrate.report.base import Reporter
    from torchmigrate.report.style import Style

FORMATS = ("full", "concise", "json", "github")


def reporter_for(output_format: str, style: Style) -> Reporter:
    """The reporter of one of FORMATS; only its own module is imported."""
    if output_format == "json":
        from torchmigrate.report.json import JsonReporter

        return JsonReporter()
    if output_format == "github":
        from torchmigrate.report.github import GithubReporter

        return GithubReporter()
    if output_format == "concise":
        from torchmigrate.report.concise import ConciseReporter

        return ConciseReporter(style)
    from torchmigrate.report.full import FullReporter

    return FullReporter(style)
