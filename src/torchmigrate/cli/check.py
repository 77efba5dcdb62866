"""The `check` command: find, fix or diff, report."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from torchmigrate.findings import FileResult, Finding, Problem
from torchmigrate.report import reporter_for
from torchmigrate.report.base import FileFindings, Tally, Versions, shown_path
from torchmigrate.report.console import Console
from torchmigrate.report.reasons import said_of
from torchmigrate.report.summary import (
    diff_line,
    fixed_line,
    fixed_list,
    held_line,
    needs_line,
    plural,
    statistics,
    statistics_json,
    summary,
    versions_line,
)
from torchmigrate.source.kinds import kind_of, read_source, with_code
from torchmigrate.source.text import Source, SourceError
from torchmigrate.versions.releases import parse_version

if TYPE_CHECKING:
    from torchmigrate.config.settings import Settings
    from torchmigrate.run.configurations import Configurations, Scope
    from torchmigrate.run.engines import Engines

CLEAN, FOUND, FAILED = 0, 1, 2


class Output(NamedTuple):
    """How a check reports. diff: fixes are shown instead of written."""

    format: str = "full"
    diff: bool = False
    show_fixes: bool = False
    statistics: bool = False
    exit_zero: bool = False
    exit_non_zero_on_fix: bool = False
    jobs: int | None = None  # None: as many as pay off


class Checker:
    """One run over files or over stdin.

    here: the directory to which messages are relative.
    """

    def __init__(self, configurations: Configurations, output: Output, console: Console, here: Path) -> None:
        self.configurations = configurations
        self.output = output
        self.console = console
        self.here = here
        self.tally = Tally()
        self.known: dict[str, str] = {}  # the code of every rule, by code and by name
        self.problems: list[Problem] = []
        self.pieces: list[tuple[str, str]] = []  # path, its part of the report
        self.diffs: list[tuple[str, bytes]] = []
        self.reporter = reporter_for(output.format, console.style)

    def check(self, paths: Sequence[Path]) -> int:
        """Check files and directories; the exit code.

        Raises ConfigError where a configuration cannot be used; then nothing was changed.
        """
        from torchmigrate.project.discover import discover_for
        from torchmigrate.run.runner import run

        started = time.monotonic()
        found = discover_for(paths, self.configurations.settings_in)
        self.problems += found.problems
        if not found.files and not found.problems:
            self.console.note("warning: no Python files found under the given paths")
        engines = self._engines(found.files)
        if len(found.files) > 1:
            engines.load()
        with self.console.progress() as progress:
            for result in run(found.files, engines.check, self.output.jobs, progress, engines.share):
                if result.new_text is not None and not self.output.diff:
                    result = self._write(result, engines)
                self._add(result, engines.scopes[result.path].settings)
        self.console.detail(
            f"checked {plural(len(found.files), 'file')} in {time.monotonic() - started:.2f} s"
        )
        if self.output.diff:
            for _, diff in sorted(self.diffs):
                self.console.diff(diff)
        else:
            self.console.out(self._report())
        return self._finish()

    def check_stdin(self, data: bytes, path: Path) -> int:
        """Check what stdin held, as the file `path`; the exit code.

        With fixes, stdout gets the text, fixed or not, and stderr the findings.
        """
        from torchmigrate.project.discover import is_excluded

        rewriting = self.configurations.fix and not self.output.diff
        text = data
        if not is_excluded(path, self.configurations.settings_in):
            try:
                engines = self._engines([path])
                embedded = engines.scopes[path].settings.embedded
                source = kind_of(path, embedded=embedded).from_bytes(data, path)
                result = engines.check_source(source, path)
                if result.new_text is not None:
                    assert result.new is not None
                    text = result.new.content()
                self._add(result, engines.scopes[path].settings, source)
            except SourceError as error:
                self.problems.append(Problem(path, error.reason, error.line, error.kind, error.cell))
        if rewriting:
            self.console.out_bytes(text)
            self.console.err(self._report())
        elif self.output.diff:
            for _, diff in self.diffs:
                self.console.diff(diff)
        else:
            self.console.out(self._report())
        return self._finish()

    # ---- one file ------------------------------------------------------------------------------------

    def _engines(self, files: Sequence[Path]) -> Engines:
        """What checks these files."""
        from torchmigrate.run.engines import Engines, scopes_of

        scopes, problems = scopes_of(files, self.configurations, self.console)
        self.problems += problems
        different = {id(scope): scope for scope in scopes.values()}
        for key, count in Counter(id(scopes[path]) for path in with_code(files)).items():
            self.tally.versions[self._versions(different[key])] += count
        for scope in different.values():
            self.known.update(scope.settings.known)
        return Engines(self.configurations, scopes)

    def _versions(self, scope: Scope) -> Versions:
        """What the end of the run says of files."""
        settings, origin = scope.settings, None
        if scope.source is not None:
            origin = shown_path(scope.source, self.here)
        elif settings.minimum_from is not None:
            origin = settings.minimum_from
            if not origin.startswith("--"):
                origin = shown_path(Path(origin), self.here)
        return Versions(settings.target, settings.minimum, origin)

    def _write(self, result: FileResult, engines: Engines) -> FileResult:
        """Write the fixed text of a file. If that fails, what is said of the file as it still is."""
        from torchmigrate.rewrite.apply import save

        assert result.new is not None
        try:
            save(result.path, result.new)
        except SourceError as error:
            problem = Problem(result.path, error.reason, error.line, error.kind)
            engine = engines.of(result.path)
            result = engine.sibling(engine.settings._replace(fix=False)).check(result.path)
            result.problems = [
                problem,
                *(other for other in result.problems if other.reason != problem.reason),
            ]
        return result

    def _add(self, result: FileResult, settings: Settings, source: Source | None = None) -> None:
        """Count and render one result. source: what was checked; None: the file."""
        self.problems += result.problems
        shown = shown_path(result.path, self.here)
        if result.new_text is not None:
            minimum = None if settings.minimum is None else parse_version(settings.minimum)
            self.tally.fixed[shown] = Counter(result.fixed)
            self.tally.add_needs(result.needs, minimum)
        try:
            if self.output.diff:
                self.tally.add(result.findings, settings.least)
                for findings in result.examples.values():
                    self.tally.add(findings, settings.least)
                if result.old is not None and result.new is not None:
                    self.diffs.append((str(result.path), self._diff(result.old, result.new, shown)))
            elif result.findings or result.examples:
                source = result.new or source or read_source(result.path, embedded=settings.embedded)
                for text, findings in _in_order(result, source):
                    found = [said_of(finding, text) for finding in findings]
                    self._render(FileFindings(result.path, shown, text, found, settings.least))
        except SourceError as error:  # it was there a moment ago
            self.problems.append(Problem(result.path, error.reason, error.line, error.kind))

    def _render(self, file: FileFindings) -> None:
        self.tally.add(file.findings, file.least)
        if not self.output.statistics:
            self.pieces.append((str(file.path), self.reporter.piece(file)))

    def _diff(self, old: Source, new: Source, shown: str) -> bytes:
        from torchmigrate.rewrite.apply import unified_diff

        # In the file's own encoding and with its byte order mark, so that the diff can be applied.
        mark = "\ufeff" if old.bom else ""
        diffs = [
            unified_diff(Path(shown + was.label), mark + was.text, mark + now.text)
            for was, now in zip(old.parts(), new.parts(), strict=True)
        ]
        return "".join(diffs).encode(old.encoding, "backslashreplace")

    # ---- the end -------------------------------------------------------------------------------------

    def _report(self) -> str:
        problems = self._sorted_problems()
        self.tally.troubles.update(problem.kind for problem in problems)
        if self.output.statistics:
            if self.output.format == "json":
                return statistics_json(self.tally)
            return statistics(self.tally, self.console.style)
        pieces = [
            (str(problem.path), self.reporter.problem(problem, shown_path(problem.path, self.here)))
            for problem in problems
        ]
        pieces = sorted([*pieces, *self.pieces], key=lambda item: item[0])
        return self.reporter.whole([text for _, text in pieces if text])

    def _sorted_problems(self) -> list[Problem]:
        return sorted(self.problems, key=lambda each: (str(each.path), each.cell or 0, each.line or 0))

    def _finish(self) -> int:
        for problem in self._sorted_problems():
            self.console.problem(problem, self.here)
        tally, output, console = self.tally, self.output, self.console
        if output.diff:
            console.note(diff_line(tally))
        elif tally.fixes:
            console.note(fixed_line(tally))
        if tally.fixes and output.show_fixes:
            names = {code: name for name, code in self.known.items() if name != code}
            console.note(fixed_list(tally, names))
        if not output.diff and (tally.found or not self.problems):
            console.note(summary(tally))
        lines = [versions_line(tally), held_line(tally), needs_line(tally, written=not output.diff)]
        for line in filter(None, lines):
            console.note(line)
        if self.problems:
            console.note(
                f"{plural(len({problem.path for problem in self.problems}), 'file')} could not be done."
            )
            return FAILED
        if output.exit_zero:
            return CLEAN
        if output.diff:
            return FOUND if self.diffs else CLEAN
        if tally.found or (tally.fixes and output.exit_non_zero_on_fix):
            return FOUND
        return CLEAN


def _in_order(result: FileResult, source: Source) -> Iterator[tuple[Source, list[Finding]]]:
    """The findings of a file in order of place, those in a row that are in one text with that."""
    texts = [(source, result.findings)]
    if result.examples:
        from torchmigrate.source.embedded import embedded_in

        documents = embedded_in(source)
        texts += ((documents[number], found) for number, found in result.examples.items())
    every = [
        (text.place(finding.start), finding.end, finding.code, text, finding)
        for text, found in texts
        for finding in _sorted(found)
    ]
    if len(texts) > 1:
        every.sort(key=lambda each: ((each[0].cell or 0, *each[0][1:]), *each[1:3]))
    for _, group in groupby(every, key=lambda each: id(each[3])):
        some = list(group)
        yield some[0][3], [each[4] for each in some]


def _sorted(findings: Iterable[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: (finding.start, finding.end, finding.code))
