"""Looks for everything that a plan is about: one run over the files, for the target of the plan."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from torchmigrate.catalogue.codes import NEEDS_NEWER
from torchmigrate.catalogue.index import Catalogue
from torchmigrate.config.settings import Settings
from torchmigrate.engine.engine import Engine
from torchmigrate.findings import Applicability, FileResult, Finding, Obstacle
from torchmigrate.plan.compute import since
from torchmigrate.plan.model import Effort, Line, Place, Since
from torchmigrate.report.base import shown_path
from torchmigrate.report.reasons import help_of, message_of, reason_of, said_of
from torchmigrate.report.style import printable
from torchmigrate.run.engines import Engines
from torchmigrate.source.kinds import read_source
from torchmigrate.source.text import Source
from torchmigrate.versions.range import requirement
from torchmigrate.versions.releases import Version, parse_version, show_version, torch_release

CONTEXT = 2  # rows of source before and after a place
MOST_ROWS = 6  # of a long place; its other rows are left out
MOST_COLUMNS = 160  # of each part of a row
_CUT = "…"
# Of 1.0, the API data cannot tell what `torch` itself lacks: most of it came from compiled code.
_OLDEST = (1, 1)
_EFFORTS = {Applicability.SAFE: Effort.SAFE, Applicability.UNSAFE: Effort.UNSAFE}


class Search:
    """Checks one file after the other; can be sent to another process.

    What the minimum lacks is looked for on its own: in a usual run a place that another rule reports is not
    reported as too new as well. A finding says which release has a module that the minimum lacks, not which
    one has all that is used of it: the file is looked at again with that release as the minimum, until
    nothing is missing. Where the minimum is not known, that begins with a very old one.
    """

    def __init__(self, catalogue: Catalogue, settings: Settings, own: Mapping[Path, Settings]) -> None:
        self.catalogue = catalogue
        self.settings = settings
        self.engines = Engines(catalogue, settings, own)
        self._needing: dict[Version, Engine] = {}

    def check(self, path: Path) -> FileResult:
        """What is found in a file; whatever is wrong with it becomes a problem of the result."""
        result = self.engines.check(path)
        if self.settings.selects(NEEDS_NEWER) and not result.problems:
            others = [finding for finding in result.findings if finding.code != NEEDS_NEWER]
            result.findings = [*others, *self._needs(path)]
        return result

    def _needs(self, path: Path) -> list[Finding]:
        """What the code needs, at each place the newest."""
        found: dict[int, Finding] = {}
        minimum, target = self.engines.settings_of(path).minimum, parse_version(self.settings.target)
        floor: Version | None = _OLDEST if minimum is None else parse_version(minimum)
        first = minimum is not None
        while floor is not None and floor <= target:
            more = [
                # That the project supports this release is only so for its minimum.
                finding if first else finding._replace(lacking=None)
                for finding in self._engine_for(floor).check(path).findings
                if finding.code == NEEDS_NEWER
            ]
            found |= {finding.start: finding for finding in more}
            newest = _newest(more)
            if newest is not None and newest > floor:
                floor = newest
            else:
                floor = _OLDEST if floor < _OLDEST else None
            first = False
        return list(found.values())

    def _engine_for(self, minimum: Version) -> Engine:
        if minimum not in self._needing:
            settings = self.settings._replace(codes=frozenset([NEEDS_NEWER]), minimum=show_version(minimum))
            self._needing[minimum] = Engine(self.catalogue, settings, everywhere=True)
        return self._needing[minimum]


def _newest(findings: Iterable[Finding]) -> Version | None:
    """The first release that has all that these findings are about."""
    needs = (since(finding.timeline).needs for finding in findings if finding.timeline is not None)
    return max((version for version in needs if version is not None), default=None)


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
    cell, row, column = source.place(finding.start)
    finding = said_of(finding, source)
    fix = finding.fix
    reason, text = None if fix is None else reason_of(fix), help_of(finding)
    needs = [] if fix is None else [torch_release(*requirement(text, "torch")) for text in fix.requires]
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
        fix_needs=max((version for version in needs if version is not None), default=None),
        held_by_minimum=fix is not None and [each.kind for each in fix.held_by] == [Obstacle.MINIMUM],
        reason=None if reason is None else printable(reason),
        help=None if text is None else printable(text),
        url=finding.url,
        symbol=finding.symbol,
        excerpt=tuple(excerpt(source, finding.start, finding.end)),
        cell=cell,
        line=None if cell is None else source.file_row(finding.start),
    )


def excerpt(source: Source, start: int, end: int) -> Iterator[Line]:
    """The rows around a range of the text (offsets in characters), of a long one only the first ones."""
    first, left = source.position(start)
    last, right = source.position(max(end, start + 1))
    shown = min(last, first + MOST_ROWS - 1)
    top, end_row = source.rows_around(first)
    bottom = shown if shown < last else max(last, min(end_row, last + CONTEXT))
    for row in range(max(top, first - CONTEXT), bottom + 1):
        text = source.shown_line(row)
        if not first <= row <= last:
            yield Line(source.shown_row(row), _cut(text))
            continue
        begin = left - 1 if row == first else len(text) - len(text.lstrip())
        stop = right - 1 if row == last else len(text.rstrip())
        before, after = text[:begin], text[max(begin, stop) :]
        if len(before) > MOST_COLUMNS:
            before = _CUT + before[-MOST_COLUMNS:]
        yield Line(source.shown_row(row), printable(before), _cut(text[begin:stop]), _cut(after))


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
