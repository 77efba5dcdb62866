"""The command `suppress`: comments that hide what is found now."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from torchmigrate.cli.options import (
    Command,
    baseline_options,
    config_options,
    console_options,
    jobs_option,
    option,
    paths_argument,
    settings_options,
)
from torchmigrate.cli.session import Session, errors_of_the_user
from torchmigrate.engine.results import FileResult
from torchmigrate.findings import Finding, Problem
from torchmigrate.printing import printable
from torchmigrate.report.base import shown_path
from torchmigrate.report.summary import plural
from torchmigrate.rewrite.apply import save
from torchmigrate.run.results import Results, texts_in
from torchmigrate.source.kinds import read_source
from torchmigrate.source.text import Source, SourceError

if TYPE_CHECKING:
    from torchmigrate.engine.suppressing import Refused


def _reason(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str:
    """The callback of an option for text that becomes part of a comment."""
    reason = (value or "").strip()
    if not reason.isprintable():
        raise click.BadParameter("must be one line of text.")
    if any(not after[:1].isdigit() for after in reason.split("#")[1:]):
        raise click.BadParameter(
            "must not contain `#` except before a number: another comment would start there."
        )
    return reason


@click.command("suppress", cls=Command, short_help="Add suppression comments for all current findings.")
@paths_argument
@option("--reason", metavar="TEXT", callback=_reason, help="The reason to write after the codes.")
@jobs_option
@settings_options
@baseline_options
@console_options
@config_options
def suppress_findings(paths: tuple[Path, ...], reason: str, jobs: int | None, **options: Any) -> int:
    """Add a `# torchmigrate: ignore[CODE] reason` comment to the lines of all findings.

    Existing comments of this kind get the additional codes. Findings in the baseline are not suppressed. If a
    line cannot take a comment, a message on stderr reports it.

    Exit codes: 0 done, 1 findings left, 2 an error occurred.
    """
    session = Session.from_options(paths or (Path(),), options)
    return Suppressor(session, reason, jobs, baseline=not options["no_baseline"]).run(paths or (Path(),))


DONE, LEFT, FAILED = 0, 1, 2
_NO_USE = "a comment cannot hide it"
# A comment may uncover a finding of another rule on the line, or the next place of a finding that is reported
# once for a file.
_ROUNDS = 100


class Suppressor:
    """Writes comments into the files of a run.

    here: the directory to which messages are relative.
    """

    def __init__(self, session: Session, reason: str, jobs: int | None, *, baseline: bool) -> None:
        self.session = session
        self.console = session.console
        self.reason = reason
        self.jobs = jobs
        self.here = Path.cwd()
        from torchmigrate.baseline.baselines import Baselines

        self.baselines = Baselines() if baseline else None
        self.hidden = 0
        self.files = 0
        self.refused: list[str] = []

    def run(self, paths: Sequence[Path]) -> int:
        """Write the comments; the exit code."""
        with errors_of_the_user():
            results = Results(paths, self.session.configurations, self.console, self.jobs)
            if self.baselines is not None:
                for scope in results.engines.scopes.values():
                    if scope.settings.baseline is not None:
                        self.baselines.of(scope.settings.baseline)  # a damaged one is reported first
            for result in results:
                # A file with parts that do not parse is not changed.
                if result.problems or not (result.findings or any(result.examples.values())):
                    continue
                try:
                    self._write(result, results)
                except SourceError as error:
                    results.problems.append(Problem(result.path, error.reason, error.line, error.kind))
        for line in self.refused:
            self.console.note(line)
        self.console.note(
            f"Suppressed {plural(self.hidden, 'finding')} in {plural(self.files, 'file')}."
            + (f" {len(self.refused)} left." if self.refused else "")
        )
        if results.say_problems(self.here):
            return FAILED
        return LEFT if self.refused else DONE

    def _write(self, result: FileResult, results: Results) -> None:
        from torchmigrate.engine.suppressing import Refused, rows_without_use, with_comments, without_use

        path = result.path
        settings = results.engines.scopes[path].settings
        source = original = read_source(path, embedded=settings.embedded)
        refused: list[Refused] = []
        found = self._found(result, source, results)
        before = len(found)
        useless = rows_without_use(source, found)
        is_trimmed = False
        for number in range(_ROUNDS):
            if not found:
                break
            written = with_comments(source, found, self.reason, everywhere=number > 0)
            refused = written.refused
            if written.source.text == source.text:
                fewer = source if is_trimmed else without_use(source, found, useless)
                is_trimmed = True
                if fewer is not source:
                    source, refused = fewer, []
                    found = self._found(results.engines.check_source(source, path), source, results)
                    continue
                named = {id(each.finding) for each in refused}
                left = [each for each in found if id(each[1]) not in named]
                refused += [Refused(finding, text, _NO_USE) for text, finding in left]
                break
            source = written.source
            found = self._found(results.engines.check_source(source, path), source, results)
        else:
            refused = [Refused(finding, text, _NO_USE) for text, finding in found]
        if source is not original:
            with self.console.replacing(path, self.here):
                save(path, source)
            self.files += 1
        self.hidden += max(0, before - len(refused))
        self.refused += [self._said(path, each) for each in refused]

    def _found(self, result: FileResult, source: Source, results: Results) -> list[tuple[Source, Finding]]:
        found = [(text, finding) for text, some in texts_in(result, source) for finding in some]
        baseline = results.engines.scopes[result.path].settings.baseline
        if self.baselines is None or baseline is None or not found:
            return found
        return self.baselines.of(baseline).new(result.path, found)

    def _said(self, path: Path, refused: Refused) -> str:
        finding, source, reason = refused
        cell, row, column = source.place(finding.start)
        where = shown_path(path, self.here) + ("" if cell is None else f":cell {cell}")
        return f"{where}:{row}:{column}: {finding.code} is not suppressed: {printable(reason)}"
