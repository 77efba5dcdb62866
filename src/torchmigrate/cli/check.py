"""The command `check`: find, fix or diff, report."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click
from msgspec import Struct
from msgspec.structs import replace

from torchmigrate.cli.options import (
    FILES,
    OUTPUT,
    Command,
    baseline_options,
    cache_options,
    config_options,
    console_options,
    fixable_options,
    jobs_option,
    option,
    output_option,
    paths_argument,
    settings_options,
)
from torchmigrate.engine.options import PLAIN, EngineOptions
from torchmigrate.engine.results import FileResult
from torchmigrate.files.paths import is_dir
from torchmigrate.findings import Finding, Problem, Severity, Trouble
from torchmigrate.printing import terminal_text
from torchmigrate.report import COMMANDS, COUNTED, FORMATS, reporter_for
from torchmigrate.report.base import FileFindings, Tally, Versions, relative_path, shown_path
from torchmigrate.report.console import Console
from torchmigrate.report.reasons import said_of
from torchmigrate.report.style import Style
from torchmigrate.report.summary import (
    baseline_lines,
    diff_line,
    fixed_line,
    fixed_list,
    held_line,
    kept_line,
    needs_line,
    overview,
    overview_line,
    plural,
    statistics,
    statistics_json,
    summary,
    versions_line,
)
from torchmigrate.run.results import problems_in_order, texts_in
from torchmigrate.source.kinds import kind_of, read_source, with_code
from torchmigrate.source.text import Source, SourceError
from torchmigrate.versions.releases import parse_version

if TYPE_CHECKING:
    from torchmigrate.baseline.baseline import Checked
    from torchmigrate.baseline.baselines import Baselines
    from torchmigrate.cache.cache import Cache
    from torchmigrate.catalogue.index import Catalogue
    from torchmigrate.catalogue.model import Rule
    from torchmigrate.cli.interactive import Asker
    from torchmigrate.cli.session import Session
    from torchmigrate.config.settings import Settings
    from torchmigrate.engine.focus import Focus
    from torchmigrate.project.questions import Questions
    from torchmigrate.run.configurations import Configurations, Scope
    from torchmigrate.run.engines import Engines
    from torchmigrate.run.runner import Progress


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()


@click.command(cls=Command, short_help="Find outdated code, and optionally fix it.")
@paths_argument
@option("--fix/--no-fix", default=None, help="Apply safe fixes.")
@option("--fix-only", is_flag=True, help="Like --fix, without a report of what is left.")
@option("--diff", is_flag=True, help="Show the changes of --fix, without writing files.")
@option(
    "--unsafe-fixes/--no-unsafe-fixes",
    default=None,
    help="Include fixes that may change results.",
)
@option(
    "--fix-pins",
    is_flag=True,
    help="Like --fix, and also raise the pins of torch, its companion packages and Python to the target.",
)
@option("-i", "--interactive", is_flag=True, help="Ask about every fix before applying it.")
@option("--show-fixes", is_flag=True, help="List the applied fixes by file and rule.")
@option("-w", "--watch", is_flag=True, help="Check again whenever a file changes.")
@option(
    "--add-noqa",
    "--add-ignore",
    is_flag=True,
    help="Add suppression comments for all findings.",
)
@option("--ignore-noqa", is_flag=True, help="Also report findings that comments suppress.")
@option("--show-files", is_flag=True, help="List the files that would be checked.")
@option("--show-settings", is_flag=True, help="Show the settings of the first path.")
@option("-e", "--exit-zero", is_flag=True, help="Exit with 0, even if there are findings.")
@option(
    "--exit-non-zero-on-fix",
    is_flag=True,
    help="Exit with 1 if any file was fixed, even if no findings are left.",
)
@jobs_option
@settings_options
@fixable_options
@option(
    "--stdin-filename",
    type=click.Path(path_type=Path),
    metavar="FILE",
    group=FILES,
    help="The file name to use for the text on stdin; with `-` as PATHS.",
)
@option(
    "--output-format",
    type=click.Choice(FORMATS),
    envvar="TORCHMIGRATE_OUTPUT_FORMAT",
    group=OUTPUT,
    help="The format of the findings. [env: TORCHMIGRATE_OUTPUT_FORMAT] [default: full]",
)
@output_option(
    "--output-file",
    envvar="TORCHMIGRATE_OUTPUT_FILE",
    help="Write the findings to this file instead of stdout. [env: TORCHMIGRATE_OUTPUT_FILE]",
)
@option(
    "--changed-since",
    metavar="REVISION",
    group=FILES,
    help=(
        "Only report findings in lines that have changed in git since this revision, including uncommitted "
        "changes and new files."
    ),
)
@baseline_options
@option(
    "--statistics",
    is_flag=True,
    group=OUTPUT,
    help="Print the number of findings per rule instead of the findings. A finding may have several places.",
)
@console_options
@config_options
@cache_options
def check(
    paths: tuple[Path, ...],
    show_fixes: bool,
    watch: bool,
    add_noqa: bool,
    show_files: bool,
    show_settings: bool,
    exit_zero: bool,
    exit_non_zero_on_fix: bool,
    jobs: int | None,
    stdin_filename: Path | None,
    output_format: str | None,
    output_file: Path | None,
    statistics: bool,
    no_cache: bool,
    **options: Any,
) -> int:
    """Check files and directories (default: the current directory), or stdin with `-`.

    Findings go to stdout, everything else to stderr. With --fix and `-`, the fixed text goes to stdout and
    the findings go to stderr.
    """
    from torchmigrate.cli.session import Session, errors_of_the_user

    from_stdin = Path("-") in paths
    diff, interactive = options["diff"], options["interactive"]
    fixing = any(options[name] for name in ("fix", "fix_only", "fix_pins", "diff", "interactive"))
    wrong = {
        "`-` (stdin) cannot be combined with other paths.": from_stdin and len(paths) > 1,
        "--changed-since requires files and cannot be used with `-` (stdin).": (
            from_stdin and options["changed_since"] is not None
        ),
        "--stdin-filename requires `-` as the only path.": stdin_filename is not None and not from_stdin,
        "--output-file only applies to findings and cannot be used with --diff, which writes to stdout.": (
            diff and output_file is not None
        ),
        "--no-fix cannot be used with --fix-only.": options["fix"] is False and options["fix_only"],
        "--add-noqa only writes comments into files; it cannot be used with `-`, --watch, --ignore-noqa or "
        "fixes.": add_noqa and (from_stdin or watch or fixing or options["ignore_noqa"]),
        "--show-files requires paths and cannot be used with `-` (stdin).": show_files and from_stdin,
        "--interactive fixes files; it cannot be used with `-`, --diff or --watch.": (
            interactive and (from_stdin or watch or diff)
        ),
        "--watch only reports findings in files; it cannot be used with `-` or with fixes.": (
            watch and (from_stdin or fixing)
        ),
    }
    if message := next((text for text, holds in wrong.items() if holds), None):
        raise click.UsageError(message)
    if interactive and not (_is_terminal(sys.stdin) and _is_terminal(sys.stderr)):
        raise click.ClickException("--interactive needs a terminal for stdin and stderr.")
    paths = paths or (Path(),)
    name = stdin_filename or Path("<stdin>")
    where = [name if stdin_filename else Path()] if from_stdin else paths
    if watch or add_noqa:
        options["fix"] = False
    if show_settings:
        from torchmigrate.cli.config import show_settings as show

        text = "json" if output_format == "json" else "text"
        return show(Session.from_options(where, options), where[0], text)
    if show_files:
        return list_files(paths, Session.from_options(where, options), options["changed_since"])
    if add_noqa:
        from torchmigrate.cli.suppress import Suppressor

        session = Session.from_options(where, options)
        return Suppressor(session, "", jobs, baseline=not options["no_baseline"]).run(paths)

    def checker() -> Checker:
        session = Session.from_options(where, options)
        wanted = output_format or session.preference("output_format")
        if statistics and (wanted or FULL) not in COUNTED:
            raise click.UsageError(
                f"--statistics supports the formats {', '.join(COUNTED[:-1])} and {COUNTED[-1]}, not "
                f"{wanted}."
            )
        output = Output(
            wanted or FULL,
            output_file,
            options["diff"],
            show_fixes,
            statistics,
            exit_zero,
            exit_non_zero_on_fix,
            jobs,
            cached=not no_cache,
            interactive=options["interactive"],
            fix_only=options["fix_only"],
            most=None
            if wanted or output_file or statistics or options["quiet"] or not _is_terminal(sys.stdout)
            else MOST_IN_FULL,
        )
        return Checker(
            session.configurations,
            output,
            session.console,
            Path.cwd(),
            baseline=not options["no_baseline"],
            changed_since=options["changed_since"],
        )

    def check_files() -> int:
        with errors_of_the_user():
            return checker().check(paths)

    if from_stdin:
        if sys.stdin is None:
            raise click.ClickException("stdin is closed.")
        from torchmigrate.files.reading import SOURCE, too_large

        data = sys.stdin.buffer.read(SOURCE + 1)
        if len(data) > SOURCE:
            raise click.ClickException(f"stdin {too_large(SOURCE).reason}")
        with errors_of_the_user():
            return checker().check_stdin(data, name)
    if watch:
        from torchmigrate.cli.watch import watch as keep_checking

        return keep_checking(paths, check_files, options["color"])
    return check_files()


CLEAN, FOUND, FAILED = 0, 1, 2
FULL = "full"
MOST_IN_FULL = 200  # findings; of more, a terminal gets counts by rule and file


def list_files(paths: Sequence[Path], session: Session, revision: str | None) -> int:
    """Print the files that a check of some paths would read, one a line; the exit code.

    revision: only the files that have changed since this revision of git.
    """
    from torchmigrate.cli.session import errors_of_the_user
    from torchmigrate.project.discover import discover_for

    console, here = session.console, Path.cwd()
    with errors_of_the_user():
        found = discover_for(paths, session.configurations.settings_in)
        files: Iterable[Path] = found.files
        if revision is not None and found.files:
            from torchmigrate.files.changed_lines import changed_since

            files = changed_since(revision, found.files)
    console.out("".join(f"{shown_path(path, here)}\n" for path in files))
    for problem in found.problems:
        console.problem(problem, here)
    return FAILED if found.problems else CLEAN


class Output(Struct, frozen=True):
    """How a check reports.

    file: what gets the report; None: stdout. diff: fixes are shown instead of written.
    fix_only: the findings that are left are not reported. most: the number of findings above which they are
    only counted by rule and file; None: never.
    """

    format: str = FULL
    file: Path | None = None
    diff: bool = False
    show_fixes: bool = False
    statistics: bool = False
    exit_zero: bool = False
    exit_non_zero_on_fix: bool = False
    jobs: int | None = None  # None: as many as pay off
    cached: bool = True  # what earlier runs have found is used, and kept
    interactive: bool = False  # ask about every fix; needs a terminal
    fix_only: bool = False
    most: int | None = None


class Checker:
    """One run over files or over stdin.

    here: the directory to which messages are relative. baseline: whether findings may be accepted already.
    changed_since: a revision of git; findings are about lines alone that have changed since.
    """

    def __init__(
        self,
        configurations: Configurations,
        output: Output,
        console: Console,
        here: Path,
        *,
        baseline: bool = True,
        changed_since: str | None = None,
    ) -> None:
        self.configurations = configurations
        self.output = output
        self.console = console
        self.here = here
        self.tally = Tally()
        self.known: dict[str, str] = {}  # the code of every rule, by code and by name
        self.problems: list[Problem] = []
        self.pieces: list[tuple[str, object]] = []  # path, its part of the report
        self.diffs: list[tuple[str, bytes]] = []
        self.style = console.style if output.file is None else Style()
        self.catalogues: list[Catalogue] = []
        self.reporter = reporter_for(output.format, self.style, self._rule)
        self.baseline = baseline
        self.changed_since = changed_since
        self.baselines: Baselines | None = None  # where there are any
        self.checked: list[tuple[Checked, Settings]] = []  # as a whole, with a baseline
        self.asker: Asker | None = None  # with interactive fixes

    def check(self, paths: Sequence[Path]) -> int:
        """Check files and directories; the exit code.

        Raises ConfigError, BaselineError or GitError where a configuration, a baseline or the revision cannot
        be used; then nothing was changed.
        """
        from torchmigrate.project.discover import discover_for

        started = time.monotonic()
        found = discover_for(paths, self.configurations.settings_in)
        self.problems += found.problems
        if not found.files and not found.problems:
            self.console.note("warning: no Python files found under the given paths")
        # What is found in a part of a file is not what is found in it.
        cached = self.output.cached and self.changed_since is None
        focus: Focus | None = None
        questions: Questions | None = None
        if self.changed_since is not None and found.files:
            from torchmigrate.engine.focus import Focus
            from torchmigrate.files.changed_lines import changed_since

            changed = changed_since(self.changed_since, found.files)
            found = replace(found, files=list(changed))
            focus = Focus(changed)
        elif cached and not self.configurations.fix:
            from torchmigrate.project.questions import Questions

            questions = Questions()
        engines = self._engines(found.files, EngineOptions(focus=focus, questions=questions))
        cache = self._cache(engines) if cached else None
        known = {} if cache is None else cache.results(found.files)
        left = [path for path in found.files if path not in known]
        if cache is not None:
            self.console.detail(f"cache: {len(known)} of {plural(len(found.files), 'file')} are up to date")
        done = 0
        with self._at_work() as progress:
            checked = self._checked(left, engines, progress)
            for done, path in enumerate(found.files, 1):  # noqa: B007 (how many that were)
                result = known.pop(path, None)
                if result is None:
                    result = next(checked)
                    if cache is not None:
                        cache.keep(result)
                    if result.new_text is not None and not self.output.diff:
                        result = self._write(result, engines)
                self._add(result, engines.scopes[result.path].settings)
                if self.asker is not None and self.asker.stopped:
                    break
        if cache is not None:
            cache.save()
        self.console.detail(f"checked {plural(done, 'file')} in {time.monotonic() - started:.2f} s")
        if self.asker is not None and self.asker.stopped:
            self._settle_baselines([])
            return self._stop(self.asker, len(found.files) - done)
        self._settle_baselines(paths)
        if self.output.diff:
            for _, diff in sorted(self.diffs):
                self.console.diff(diff)
        else:
            self._print(self.console.out)
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
            self._print(self.console.err)
        elif self.output.diff:
            for _, diff in self.diffs:
                self.console.diff(diff)
        else:
            self._print(self.console.out)
        return self._finish()

    # ---- one file ------------------------------------------------------------------------------------

    def _engines(self, files: Sequence[Path], options: EngineOptions = PLAIN) -> Engines:
        """What checks these files, with `options` and those that hold for every check."""
        from torchmigrate.engine.engine import MOST_FINDINGS
        from torchmigrate.run.engines import Engines, scopes_of

        scopes, problems = scopes_of(files, self.configurations, self.console)
        self.problems += problems
        different = {id(scope): scope for scope in scopes.values()}
        for key, count in Counter(id(scopes[path]) for path in with_code(files)).items():
            self.tally.versions[self._versions(different[key])] += count
        for scope in different.values():
            self.known.update(scope.settings.known)
            if self.baseline and scope.settings.baseline is not None:
                from torchmigrate.baseline.baselines import Baselines

                self.baselines = self.baselines or Baselines()
                self.baselines.of(scope.settings.baseline)
        self.catalogues = [scope.catalogue for scope in different.values()]
        if self.output.interactive:
            from torchmigrate.cli.interactive import Asker  # seldom needed

            self.asker = Asker(self.console, self.here, lambda path: scopes[path].settings.least)
        options = replace(options, chooser=self.asker, most=MOST_FINDINGS)
        return Engines(self.configurations, scopes, options)

    @contextmanager
    def _at_work(self) -> Iterator[Progress | None]:
        """While files are checked: what shows the progress, where nothing else is on the terminal."""
        if self.asker is not None:
            with self.asker.asking():
                yield None
            return
        with self.console.progress() as progress:
            yield progress

    def _checked(
        self, files: Sequence[Path], engines: Engines, progress: Progress | None
    ) -> Iterator[FileResult]:
        """What is found in files, in their order."""
        if not files:
            return
        from torchmigrate.run.runner import run

        if len(files) > 1:
            engines.load()
        jobs = 1 if self.output.interactive else self.output.jobs
        yield from run(files, engines.check, jobs, progress, engines.share)

    def _cache(self, engines: Engines) -> Cache:
        from torchmigrate.cache.cache import Cache

        return Cache(
            engines.scopes,
            self.configurations.settings_around,
            lambda path: engines.of(path).project,
            self.console.detail,
            self.console.note,
            fixing=self.configurations.fix,
        )

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
        """Write the fixed text of a file. If that fails, return the result for the unchanged file."""
        from torchmigrate.rewrite.apply import save

        assert result.new is not None
        try:
            with self.console.replacing(result.path, self.here):
                save(result.path, result.new)
        except SourceError as error:
            problem = Problem(result.path, error.reason, error.line, error.kind)
            engine = engines.of(result.path)
            result = engine.sibling(replace(engine.settings, fix=False)).check(result.path)
            result.problems = [
                problem,
                *(other for other in result.problems if other.reason != problem.reason),
            ]
        return result

    def _add(self, result: FileResult, settings: Settings, source: Source | None = None) -> None:
        """Count and render one result. source: what was checked; None: the file."""
        from torchmigrate.engine.engine import MOST_FINDINGS

        self.problems += result.problems
        if self.baselines is None and not (result.findings or result.examples or result.new_text is not None):
            return
        shown = shown_path(result.path, self.here)
        if result.new_text is not None:
            minimum = None if settings.minimum is None else parse_version(settings.minimum)
            self.tally.fixed[shown] = Counter(result.fixed)
            self.tally.add_needs(result.needs, minimum)
        try:
            if self.baselines is not None and settings.baseline is not None:
                self._leave_out_accepted(result, settings, source)
                result.leave_out(MOST_FINDINGS)
                self.problems += [each for each in result.problems if each.kind is Trouble.MANY]
            if self.output.diff:
                self.tally.add(result.findings, settings.least)
                for findings in result.examples.values():
                    self.tally.add(findings, settings.least)
                if result.old is not None and result.new is not None:
                    self.diffs.append((str(result.path), self._diff(result.old, result.new, result.path)))
            elif result.findings or result.examples:
                source = result.new or source or read_source(result.path, embedded=settings.embedded)
                for text, findings in _problems_in_order(result, source):
                    found = [said_of(finding, text) for finding in findings]
                    self._render(FileFindings(result.path, shown, text, found, settings.least))
        except SourceError as error:  # it was there a moment ago
            self.problems.append(Problem(result.path, error.reason, error.line, error.kind))

    def _leave_out_accepted(self, result: FileResult, settings: Settings, source: Source | None) -> None:
        """Take the findings out of a result that its baseline hides.

        source: what was checked; None: the file. Raises SourceError if the file was removed meanwhile.
        """
        from torchmigrate.baseline.baseline import Checked

        assert self.baselines is not None and settings.baseline is not None
        if source is None and not result.problems and self.changed_since is None:
            looks_for = settings.looks_for_in(result.path)
            self.checked.append(
                (Checked(result.path, looks_for, settings.target, settings.embedded), settings)
            )
        if not result.findings and not result.examples:
            return
        text = result.new or source or read_source(result.path, embedded=settings.embedded)
        found = [(each, finding) for each, some in texts_in(result, text) for finding in _sorted(some)]
        before = None if result.old is None or result.new is None else (result.old, result.new)
        new = self.baselines.of(settings.baseline).new(result.path, found, before)
        left = {id(finding) for _, finding in new}
        self.tally.hidden += len(found) - len(left)
        result.findings = [finding for finding in result.findings if id(finding) in left]
        for number, some in list(result.examples.items()):
            result.examples[number] = [finding for finding in some if id(finding) in left]

    def _settle_baselines(self, paths: Sequence[Path]) -> None:
        """Remove entries without a finding from the baselines if files may be changed; else count them."""
        if self.baselines is None or self.changed_since is not None:
            return
        from torchmigrate.baseline.baseline import fewer_in
        from torchmigrate.baseline.file import BaselineError

        directories = [path for path in paths if is_dir(path)]
        for baseline in self.baselines:
            mine = [each for each, settings in self.checked if settings.baseline == baseline.path]
            change = baseline.change(mine, directories)
            if not self.configurations.fix or self.output.diff:
                self.tally.stale += fewer_in(change, baseline.content.counts)
                continue
            try:
                with self.console.replacing(baseline.path, self.here):
                    fewer = baseline.apply(change)
            except BaselineError as error:
                self.problems.append(Problem(error.path, error.reason, None, Trouble.UNREADABLE))
                continue
            if fewer:
                self.console.note(
                    f"Removed {plural(fewer, 'finding')} from {shown_path(baseline.path, self.here)}."
                )

    def _render(self, file: FileFindings) -> None:
        if self.output.fix_only:
            return
        self.tally.add(file.findings, file.least)
        if self.output.most is not None:
            self.tally.add_places(file)
        if not self.output.statistics:
            self.pieces.append((str(file.path), self.reporter.piece(file)))

    def _diff(self, old: Source, new: Source, path: Path) -> bytes:
        from torchmigrate.rewrite.apply import unified_diff

        name = relative_path(path, self.here)
        # In the file's own encoding and with its byte order mark, so that the diff can be applied.
        mark = "\ufeff" if old.bom else ""
        diffs = [
            unified_diff(Path(name + was.label), mark + was.text, mark + now.text)
            for was, now in zip(old.parts(), new.parts(), strict=True)
        ]
        return "".join(diffs).encode(old.encoding, "backslashreplace")

    # ---- the end -------------------------------------------------------------------------------------

    def _rule(self, code: str) -> Rule | None:
        """A rule that was looked for."""
        from torchmigrate.catalogue.builtin import RULES

        found = (catalogue.find(code) for catalogue in self.catalogues)
        return next(filter(None, found), next((rule for rule in RULES if rule.code == code), None))

    def _print(self, stream: Callable[..., None]) -> None:
        """Write the report to a stream, or to the file that replaces it."""
        text = self._report()
        commands = self.output.format in COMMANDS and not self.output.statistics
        if self.output.file is None:
            stream(text, commands=commands)
            return
        from torchmigrate.cli.writing import write_output

        text = terminal_text(text, color=False, commands=commands)
        write_output(self.output.file, text.encode("utf-8", "backslashreplace"), parents=True)

    def _report(self) -> str:
        problems = problems_in_order(self.problems)
        self.tally.troubles.update(problem.kind for problem in problems)
        if self.output.statistics:
            if self.output.format == "json":
                return statistics_json(self.tally)
            return statistics(self.tally, self.style)
        if self._is_overview:
            return overview(self.tally, self.style)
        pieces = [
            (str(problem.path), self.reporter.problem(problem, shown_path(problem.path, self.here)))
            for problem in problems
        ]
        pieces = sorted([*pieces, *self.pieces], key=lambda item: item[0])
        return self.reporter.whole([piece for _, piece in pieces if piece is not None])

    @property
    def _is_overview(self) -> bool:
        """Whether there are too many findings for a terminal."""
        return self.output.most is not None and self.tally.found > self.output.most

    @property
    def _failed(self) -> list[Problem]:
        return [problem for problem in self.problems if problem.severity is Severity.ERROR]

    def _stop(self, asker: Asker, left: int) -> int:
        """End a run that the user stopped. left: how many files were not looked at.

        Raises KeyboardInterrupt if a signal stopped it.
        """
        for problem in problems_in_order(self.problems):
            self.console.problem(problem, self.here)
        self.console.note(kept_line(self.tally, left))
        if asker.interrupted is not None:
            raise asker.interrupted
        if self._failed:
            return FAILED
        return CLEAN if self.output.exit_zero else FOUND

    def _finish(self) -> int:
        for problem in problems_in_order(self.problems):
            self.console.problem(problem, self.here)
        tally, output, console = self.tally, self.output, self.console
        if output.diff:
            console.note(diff_line(tally))
        elif tally.fixes or output.fix_only:
            console.note(fixed_line(tally))
        if tally.fixes and output.show_fixes:
            names = {code: name for name, code in self.known.items() if name != code}
            console.note(fixed_list(tally, names))
        if not (output.diff or output.fix_only) and (tally.found or not self._failed):
            console.note(summary(tally))
        lines = [
            *baseline_lines(tally),
            versions_line(tally),
            held_line(tally),
            needs_line(tally, written=not output.diff),
            overview_line(tally) if self._is_overview and not output.diff else "",
        ]
        for line in filter(None, lines):
            console.note(line)
        if failed := self._failed:
            console.note(
                f"{plural(len({problem.path for problem in failed}), 'file')} could not be processed."
            )
            return FAILED
        if output.exit_zero:
            return CLEAN
        if output.diff:
            return FOUND if self.diffs else CLEAN
        if tally.found or (tally.fixes and output.exit_non_zero_on_fix):
            return FOUND
        return CLEAN


def _problems_in_order(result: FileResult, source: Source) -> Iterator[tuple[Source, list[Finding]]]:
    """The findings of a file in order of place, those in a row that are in one text with that."""
    texts = texts_in(result, source)
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
