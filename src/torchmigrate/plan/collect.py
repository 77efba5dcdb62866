"""Looks for everything that a plan is about: one run over the files, for the target of the plan."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from torchmigrate.api_rules.rules import NEEDS_NEWER
from torchmigrate.catalogue.index import Catalogue
from torchmigrate.config import Settings
from torchmigrate.engine import Engine
from torchmigrate.model import Applicability, FileResult, Finding
from torchmigrate.plan.compute import since
from torchmigrate.plan.model import Effort, Line, Place, Since
from torchmigrate.reach import exists
from torchmigrate.report.base import shown_path
from torchmigrate.source import Source
from torchmigrate.style import printable
from torchmigrate.versions.range import AND_SUPPORTS, held_by_minimum, requirement
from torchmigrate.versions.releases import torch_release

CONTEXT = 2  # rows of source before and after a place
MOST_ROWS = 6  # of a long place; its other rows are left out
MOST_COLUMNS = 160  # of each part of a row
_CUT = "…"
# Of 1.0, the API data cannot tell what `torch` itself lacks: most of it came from compiled code.
_OLDEST = "1.1"
_EFFORTS = {Applicability.SAFE: Effort.SAFE, Applicability.UNSAFE: Effort.UNSAFE}


class Search:
    """Checks one file after the other; can be sent to another process.

    Where the minimum is not known, nothing is newer than it, so that a second look at the file, with a very
    old release as the minimum, finds out what the code needs.
    """

    def __init__(self, catalogue: Catalogue, settings: Settings) -> None:
        self.catalogue = catalogue
        self.settings = settings._replace(fix=False)

    @cached_property
    def engine(self) -> Engine:
        return Engine(self.catalogue, self.settings)

    @cached_property
    def second(self) -> Engine | None:
        wanted = self.settings.codes & {NEEDS_NEWER}
        if self.settings.minimum is not None or not wanted:
            return None
        return Engine(self.catalogue, self.settings._replace(codes=wanted, minimum=_OLDEST))

    def check(self, path: Path) -> FileResult:
        """What is found in a file; whatever is wrong with it becomes a problem of the result."""
        result = self.engine.check(path)
        if self.second is not None and not result.problems:
            known = {(finding.code, finding.start, finding.end) for finding in result.findings}
            needs = self._needs(path)
            result.findings += [item for item in needs if (item.code, item.start, item.end) not in known]
        return result

    def _needs(self, path: Path) -> list[Finding]:
        """What the code needs; that the oldest release of all lacks it is not worth a word."""
        assert self.second is not None
        return [
            finding._replace(message=finding.message.partition(AND_SUPPORTS)[0])
            for finding in self.second.check(path).findings
            if finding.code == NEEDS_NEWER
        ]


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
    source = Source.read(result.path)
    shown = shown_path(result.path, here)
    file = inside(result.path, root)
    for finding, when in findings:
        yield _place(finding, when, source, shown, file)


def _place(finding: Finding, when: Since, source: Source, path: str, file: str) -> Place:
    row, column = source.position(finding.start)
    fix = finding.fix
    needs = [] if fix is None else [torch_release(*requirement(text, "torch")) for text in fix.requires]
    return Place(
        path=path,
        file=file,
        row=row,
        column=column,
        code=finding.code,
        name=finding.name,
        message=printable(finding.message),
        since=when,
        effort=Effort.BY_HAND if fix is None else _EFFORTS.get(fix.applicability, Effort.BY_HAND),
        fix=None if fix is None else printable(fix.title),
        fix_needs=max((version for version in needs if version is not None), default=None),
        held_by_minimum=fix is not None and held_by_minimum(fix.reason),
        reason=None if fix is None or fix.reason is None else printable(fix.reason),
        help=None if finding.help is None else printable(finding.help),
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


def repository_of(start: Path) -> Path | None:
    """The root of the repository that a directory is in."""
    start = start.absolute()
    return next((directory for directory in (start, *start.parents) if exists(directory / ".git")), None)
