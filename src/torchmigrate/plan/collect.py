"""Looks for everything that a plan is about: one run over the files, for the target of the plan."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from torchmigrate.catalogue.codes import NEEDS_NEWER
from torchmigrate.findings import Applicability, FileResult, Finding, Obstacle
from torchmigrate.plan.compute import since
from torchmigrate.plan.model import Effort, Line, Place, Since
from torchmigrate.report.base import shown_path
from torchmigrate.report.reasons import help_of, message_of, reason_of
from torchmigrate.report.style import printable
from torchmigrate.run.engines import Engines
from torchmigrate.run.needs import newest_required
from torchmigrate.source.kinds import read_source
from torchmigrate.source.text import Source, SourceError

CONTEXT = 2  # rows of source before and after a place
MOST_ROWS = 6  # of a long place; its other rows are left out
MOST_COLUMNS = 160  # of each part of a row
_CUT = "…"
_EFFORTS = {Applicability.SAFE: Effort.SAFE, Applicability.UNSAFE: Effort.UNSAFE}


class Search:
    """Checks files, and looks for what each of them needs; can be sent to another process."""

    def __init__(self, engines: Engines) -> None:
        self.engines = engines

    def check(self, path: Path) -> FileResult:
        """What is found in a file; whatever is wrong with it becomes a problem of the result."""
        result = self.engines.check(path)
        if self.engines.of(path).settings.selects(NEEDS_NEWER) and not result.problems:
            others = [finding for finding in result.findings if finding.code != NEEDS_NEWER]
            result.findings = [*others, *self._needs(path)]
        return result

    def _needs(self, path: Path) -> list[Finding]:
        try:
            return self.engines.needing(path).findings(read_source(path), path)
        except SourceError:  # it was there a moment ago
            return []


def places_of(result: FileResult, here: Path, root: Path) -> Iterator[Place]:
    """The places in one file. here: the directory that paths are shown relative to; root: see `Place`.

    Raises SourceError if the file cannot be read any more.
    """
    findings = [
        (finding, when)
        for finding in result.findings
        if finding.timeline is not None and (when := since(finding.timeline)).known
    ]
    if not findings:
        return
    source = read_source(result.path)
    shown = shown_path(result.path, here)
    file = inside(result.path, root)
    for finding, when in findings:
        yield _place(finding, when, source, shown, file)


def _place(finding: Finding, when: Since, source: Source, path: str, file: str) -> Place:
    row, column = source.position(finding.start)
    fix = finding.fix
    reason, text = None if fix is None else reason_of(fix), help_of(finding)
    return Place(
        path=path,
        file=file,
        row=row,
        column=column,
        code=finding.code,
        name=finding.name,
        message=printable(message_of(finding)),
        since=when,
        effort=Effort.BY_HAND if fix is None else _EFFORTS.get(fix.applicability, Effort.BY_HAND),
        fix=None if fix is None else printable(fix.title),
        fix_needs=None if fix is None else newest_required(fix.requires),
        held_by_minimum=fix is not None and [each.kind for each in fix.held_by] == [Obstacle.MINIMUM],
        reason=None if reason is None else printable(reason),
        help=None if text is None else printable(text),
        url=finding.url,
        symbol=finding.symbol,
        excerpt=tuple(excerpt(source, finding.start, finding.end)),
    )


def excerpt(source: Source, start: int, end: int) -> Iterator[Line]:
    """The rows around a range of the text (offsets in characters), of a long one only the first ones."""
    first, left = source.position(start)
    last, right = source.position(max(end, start + 1))
    shown = min(last, first + MOST_ROWS - 1)
    bottom = shown if shown < last else min(source.line_count, last + CONTEXT)
    for row in range(max(1, first - CONTEXT), bottom + 1):
        text = source.line_text(row)
        if not first <= row <= last:
            yield Line(row, _cut(text))
            continue
        begin = left - 1 if row == first else len(text) - len(text.lstrip())
        stop = right - 1 if row == last else len(text.rstrip())
        before, after = text[:begin], text[max(begin, stop) :]
        if len(before) > MOST_COLUMNS:
            before = _CUT + before[-MOST_COLUMNS:]
        yield Line(row, printable(before), _cut(text[begin:stop]), _cut(after))


def _cut(text: str) -> str:
    return printable(text if len(text) <= MOST_COLUMNS else text[:MOST_COLUMNS] + _CUT)


# ---- the project --------------------------------------------------------------------------------------


def inside(path: Path, root: Path) -> str:
    """A path relative to a directory, with `/` between its parts; absolute if there is no way to it."""
    absolute = os.path.abspath(path)  # noqa: PTH100 (Path.absolute keeps `..`)
    try:
        return Path(os.path.relpath(absolute, root)).as_posix()
    except ValueError:  # another drive
        return Path(absolute).as_posix()
