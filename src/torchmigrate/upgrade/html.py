"""What came of an upgrade, as one page that needs nothing else, with every change before and after."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from torchmigrate.report.web_page import web_page
from torchmigrate.upgrade.model import Outcome, Report
from torchmigrate.upgrade.terminal import headline, verified_by, warnings_of
from torchmigrate.versions.releases import show_version

_TEMPLATES = Path(__file__).parent / "templates"
_MOST_LINES = 2000  # of the diff of a commit


class Row(Struct, frozen=True):
    """A line of a diff. kind: "file", "place", "old", "new" or "same"."""

    kind: str
    text: str


def as_html(report: Report) -> str:
    """The report as a page."""
    style = (_TEMPLATES / "upgrade.css").read_text(encoding="utf-8")
    runs = [("before", report.before), ("after", report.after)]
    if report.before_old is not None:
        runs.insert(0, ("before, old torch", report.before_old))
    return web_page(
        _TEMPLATES / "upgrade.html.jinja",
        style=style,
        filters={},
        report=report,
        target=show_version(report.target),
        headline=headline(report),
        verified=verified_by(report),
        outcomes=[outcome for outcome in Outcome if any(run.count(outcome) for _, run in runs)],
        runs=runs,
        warnings_of=warnings_of,
        diffs={commit: list(_rows(diff)) for commit, diff in report.diffs.items()},
    )


def _rows(diff: str) -> Iterator[Row]:
    lines = diff.splitlines()
    for line in lines[:_MOST_LINES]:
        if line.startswith("+++ b/"):
            yield Row("file", line[6:])
        elif line.startswith("@@"):
            yield Row("place", line)
        elif line.startswith(("diff ", "index ", "--- ", "+++ ")):
            continue
        elif line.startswith(("+", "-")):
            yield Row("new" if line[0] == "+" else "old", line[1:])
        else:
            yield Row("same", line[1:])
    if len(lines) > _MOST_LINES:
        yield Row("place", f"and {len(lines) - _MOST_LINES} more lines")
