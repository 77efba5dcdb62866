"""Looks for everything that a plan is about: one run over the files, for the target of the plan."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from pathlib import Path

from msgspec.structs import replace

from torchmigrate.catalogue.codes import ASYNC_ARGUMENT, NEEDS_NEWER
from torchmigrate.config.settings import Settings
from torchmigrate.engine.api_rules.api import Point
from torchmigrate.engine.engine import Engine
from torchmigrate.engine.options import EngineOptions
from torchmigrate.engine.results import FileResult
from torchmigrate.evidence.evidence import Warned
from torchmigrate.findings import Applicability, Finding, Obstacle, Problem
from torchmigrate.planning.compute import Nature, since
from torchmigrate.planning.decisions import Decided, decisions
from torchmigrate.planning.model import Effort, Line, Place, Since
from torchmigrate.planning.reach import Places, Reach
from torchmigrate.planning.trial import Back, left_of
from torchmigrate.printing import printable
from torchmigrate.report.base import shown_path
from torchmigrate.report.reasons import help_of, message_of, reason_of, said_of
from torchmigrate.report.warned import is_of_change
from torchmigrate.run.configurations import Configurations, Scope, guesses
from torchmigrate.run.engines import Engines
from torchmigrate.run.needs import newest_required
from torchmigrate.source.other import CPP, OtherSource
from torchmigrate.source.text import Source, SourceError

CONTEXT = 2  # rows of source before and after a place
MOST_ROWS = 6  # of a long place; its other rows are left out
MOST_COLUMNS = 160  # of each part of a row
_CUT = "…"
_EFFORTS = {Applicability.SAFE: Effort.SAFE, Applicability.UNSAFE: Effort.UNSAFE}
_MODULES = frozenset([".py"])  # suffixes of what is imported


class FilePlan(FileResult):
    """What a plan knows of one file.

    places: in order. concerned: whether it mentions one of the libraries. warned: as in `Plan`.
    """

    __slots__ = ("concerned", "places", "warned")

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.places: list[Place] = []
        self.concerned = False
        self.warned: list[Warned] = []


class Search:
    """Looks at one file after the other; can be sent to another process.

    Fixes are tried in memory, as `--fix` and `--unsafe-fixes` make them: what remains is work for a person.

    Args:
        configurations: of the run.
        scopes: what holds for each file.
        here: the directory that paths are shown relative to.
        root: see `Place`.
    """

    def __init__(
        self, configurations: Configurations, scopes: Mapping[Path, Scope], here: Path, root: Path
    ) -> None:
        self.here = here
        self.root = root
        # Whose fixes are not tried: it is a guess whether a place is affected.
        self.guesses = frozenset[str]().union(
            *(guesses(scope.catalogue) & scope.settings.codes for scope in scopes.values())
        )
        safe: dict[int, Settings] = {}  # of equal settings, one
        trying = {}
        for path, scope in scopes.items():
            if id(scope.settings) not in safe:
                safe[id(scope.settings)] = replace(
                    scope.settings, fix=True, unsafe_fixes=False, keeps_line_length=False
                )
            trying[path] = scope._replace(settings=safe[id(scope.settings)])
        options = EngineOptions(keeps_history=True, by_place=True, unfixed=self.guesses)
        self.engines = Engines(configurations, trying, options)
        self._unsafe: dict[int, Engine] = {}
        self._targets: dict[str, Point] = {}

    def check(self, path: Path) -> FileResult:
        """What is found in a file (`FilePlan`); whatever is wrong with it becomes a problem of the result."""
        looked = FilePlan(path)
        engine = self.engines.of(path)
        try:
            source = engine.read(path)
        except SourceError as error:
            looked.problems.append(Problem(path, error.reason, error.line, error.kind, error.cell))
            return looked
        if source is None:
            return looked
        is_code = not isinstance(source, OtherSource) or source.kind == CPP
        looked.concerned = is_code and engine.mentions(source.text)
        looked.places = self._places_in(source, looked, engine)
        if engine.settings.embedded:
            from torchmigrate.engine.embedded import examples_in

            try:
                examples = examples_in(source, engine.hiding(source), engine.mentions)
            except SourceError:  # which is reported for the file
                examples = []
            for _, document in examples:
                looked.places += self._places_in(document, looked, engine)
        return looked

    def _places_in(self, source: Source, looked: FilePlan, engine: Engine) -> list[Place]:
        """The places in one text of a file; what cannot be done is added to the problems."""
        path = looked.path
        result = engine.check_text(source, path)
        looked.add(result.problems)
        if result.history is None:
            return []
        found = [each for each in result.history.found if each.code != NEEDS_NEWER]
        looked.warned += self._warned(found, source, path, engine)
        mended = self._tried(found, result, source)
        if engine.settings.selects(NEEDS_NEWER) and looked.concerned and not source.is_documentation:
            needs = self.engines.needing(path).findings(source, path, result.history.file)
            mended += ((finding, Effort.BY_HAND) for finding in needs)
        places = list(self._places(mended, source, path, engine))
        if result.history.file is not None:
            result.history.file.close()
        return places

    def _warned(
        self, found: Iterable[Finding], source: Source, path: Path, engine: Engine
    ) -> Iterator[Warned]:
        """Where torch was seen to warn of a change in a text, but for the lines of findings."""
        seen = engine.analyser.evidence.of(path, source)
        if seen is None or not seen.warnings:
            return
        rows: set[int] = set()
        for finding in found:
            for start, end in ((finding.start, finding.end), *finding.places):
                rows.update(range(source.position(start)[0], source.position(end)[0] + 1))
        shown = shown_path(path, self.here)
        for line, texts in seen.warnings.items():
            if line not in rows:
                yield from (Warned(shown, line, printable(text)) for text in texts if is_of_change(text))

    # ---- what is left --------------------------------------------------------------------------------

    def _tried(
        self, found: list[Finding], result: FileResult, source: Source
    ) -> list[tuple[Finding, Effort]]:
        """The findings with what it takes to mend them, by what is left when fixes were made.

        What the fixes leave that was not found before is a finding as well, where the fixed code came from.
        """
        assert result.history is not None, "the engine keeps it"
        back = [Back(edits) for edits in result.history.rounds]
        left = [each for each in result.findings if each.code != NEEDS_NEWER]
        unmended, _ = left_of(found, left, back)
        if any(self._is_fixable(finding) for finding in left):
            text = result.new or source
            more = self._unsafe_engine(result.path).check_text(text, result.path, result.history.file)
            if more.history is not None:
                if more.history.file is not None:
                    more.history.file.close()
                back += [Back(edits) for edits in more.history.rounds]
                left = [each for each in more.findings if each.code != NEEDS_NEWER]
        by_hand, fresh = left_of(found, left, back)
        tried = []
        for index, finding in enumerate(found):
            effort = Effort.SAFE if index not in unmended else Effort.UNSAFE
            if index in by_hand:
                fix = finding.fix if finding.code in self.guesses else None
                effort = _EFFORTS.get(fix.applicability, Effort.BY_HAND) if fix else Effort.BY_HAND
            tried.append((finding, effort))
        return tried + [(finding, Effort.BY_HAND) for finding in fresh]

    def _is_fixable(self, finding: Finding) -> bool:
        fix = finding.fix
        if fix is None or finding.code in self.guesses:
            return False
        return fix.unsafe is not None or fix.applicability >= Applicability.UNSAFE

    def _unsafe_engine(self, path: Path) -> Engine:
        safe = self.engines.of(path)
        if id(safe) not in self._unsafe:
            self._unsafe[id(safe)] = safe.sibling(replace(safe.settings, unsafe_fixes=True))
        return self._unsafe[id(safe)]

    # ---- places --------------------------------------------------------------------------------------

    def _places(
        self, found: Iterable[tuple[Finding, Effort]], source: Source, path: Path, engine: Engine
    ) -> Iterator[Place]:
        dated = [(finding, effort) for finding, effort in found if finding.timeline is not None]
        if not dated:
            return
        try:
            importable = path.suffix in _MODULES and not source.is_documentation
            around = Places(source.parse(), source, importable=importable)
        except SourceError:  # no Python: nothing is known of when it runs
            around = Places(ast.Module([], []), source, importable=False)
        decided = [
            Decided(
                finding,
                self._since(finding, around, engine, source),
                effort,
                around.at(finding.start, finding.end),
            )
            for finding, effort in dated
        ]
        decided = [each for each in decided if each.since.known]
        shown, file = shown_path(path, self.here), inside(path, self.root)
        for group in decisions(decided, around, engine.whole.find):
            yield _place(group, source, shown, file)

    def _since(self, finding: Finding, around: Places, engine: Engine, source: Source) -> Since:
        """What happens at a finding and at the other places of the same decision."""
        assert finding.timeline is not None, "what has no timeline has no place in a plan"
        places = ((finding.start, finding.end), *finding.places)
        found = reduce(
            Since.joined,
            (since(finding.timeline, self._nature(finding, around.at(*place), engine)) for place in places),
        )
        # Examples in documentation do not run with the project.
        return Since(outdated=min(found.known, default=None)) if source.is_documentation else found

    def _nature(self, finding: Finding, reach: Reach, engine: Engine) -> Nature:
        if finding.code == ASYNC_ARGUMENT:  # no Python of today compiles the file
            return Nature(reach=Reach(on_import=reach.on_import or not reach.never))
        rule = engine.whole.find(finding.code)
        release = engine.settings.target
        target = self._targets.setdefault(release, Point(release))
        # The import of an existing name is found only if it raises all the same.
        gone = finding.symbol is not None and target.exists(finding.symbol) is False
        missing = gone or reach.is_import
        return Nature(None if rule is None else rule.raises, finding.code in self.guesses, missing, reach)


def _place(group: list[Decided], source: Source, path: str, file: str) -> Place:
    """The place of one decision: at the first of its findings."""
    first = said_of(group[0].finding, source)
    cell, row, column = source.place(first.start)
    fixes = [each.finding.fix for each in group if each.finding.fix is not None]
    fix = fixes[0] if fixes else None
    effort = max((each.effort for each in group), key=list(Effort).index)
    if effort is not Effort.BY_HAND:
        fix = next((each for each in fixes if _EFFORTS.get(each.applicability) is effort), fix)
    reason, text = None if fix is None else reason_of(fix), help_of(first)
    needs = {text for each in fixes for text in each.requires}
    starts = [start for each in group for start, _ in each.finding.places]
    starts += [each.finding.start for each in group[1:]]
    places = {source.place(start)[:2] for start in starts} - {(cell, row)}
    when = group[0].since
    for each in group[1:]:
        when = when.joined(each.since)
    return Place(
        path=path,
        file=file,
        row=row,
        column=column,
        code=first.code,
        name=first.name,
        message=printable(message_of(first)),
        since=when,
        effort=effort,
        fix=None if fix is None else printable(fix.title),
        fix_needs=newest_required(needs),
        held_by_minimum=fix is not None and [each.kind for each in fix.held_by] == [Obstacle.MINIMUM],
        reason=None if reason is None else printable(reason),
        help=None if text is None else printable(text),
        url=first.url,
        symbol=first.symbol,
        excerpt=tuple(excerpt(source, first.start, first.end)),
        cell=cell,
        line=None if cell is None else source.file_row(first.start),
        rows=tuple(sorted(row for where, row in places if where == cell)),
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
