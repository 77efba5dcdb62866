"""The commands and their options; what they do is in the modules that they import when they run."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

import click

from torchmigrate import __version__
from torchmigrate.cli.fleet import fleet
from torchmigrate.cli.options import (
    ENVIRONMENT,
    FILES,
    OUTPUT,
    Command,
    Group,
    baseline_options,
    cache_dir_option,
    cache_options,
    colour_option,
    complete_rules,
    config_options,
    evidence_option,
    file_options,
    jobs_option,
    listed,
    minimum_option,
    option,
    paths_argument,
    positive,
    quiet_option,
    range_options,
    selection_options,
    span,
    target_option,
    verbose_option,
    version_option,
)
from torchmigrate.report import COUNTED, FORMATS

INTERRUPTED = 130
_CANNOT_WRITE = frozenset([errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO])


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()


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


@click.group(
    cls=Group,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 no findings, 1 findings left, 2 an error occurred.",
)
@click.version_option(__version__, prog_name="torchmigrate", message="%(prog)s %(version)s")
def commands() -> None:
    """Find and rewrite PyTorch code that is outdated for the release you migrate to."""


@commands.command(cls=Command, short_help="Find outdated code, and optionally fix it.")
@paths_argument
@option("--fix", is_flag=True, help="Apply safe fixes.")
@option("--diff", is_flag=True, help="Show the changes of --fix as a diff, without writing files.")
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
@option("-e", "--exit-zero", is_flag=True, help="Exit with 0, even if there are findings.")
@option(
    "--exit-non-zero-on-fix",
    is_flag=True,
    help="Exit with 1 if any file was fixed, even if no findings are left.",
)
@jobs_option
@evidence_option
@selection_options
@target_option
@minimum_option
@file_options
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
    default="full",
    envvar="TORCHMIGRATE_OUTPUT_FORMAT",
    group=OUTPUT,
    help="The format of the findings. [env: TORCHMIGRATE_OUTPUT_FORMAT] [default: full]",
)
@option(
    "-o",
    "--output-file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    envvar="TORCHMIGRATE_OUTPUT_FILE",
    group=OUTPUT,
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
    help="Print the number of findings per rule instead of the findings.",
)
@quiet_option
@verbose_option
@colour_option
@config_options
@cache_options
def check(
    paths: tuple[Path, ...],
    show_fixes: bool,
    watch: bool,
    exit_zero: bool,
    exit_non_zero_on_fix: bool,
    jobs: int | None,
    stdin_filename: Path | None,
    output_format: str,
    output_file: Path | None,
    statistics: bool,
    no_cache: bool,
    **options: Any,
) -> int:
    """Check files and directories (default: the current directory), or stdin with `-`.

    Findings go to stdout, everything else to stderr. With --fix and `-`, the fixed text goes to stdout and
    the findings go to stderr.
    """
    from torchmigrate.cli.check import Checker, Output
    from torchmigrate.cli.session import Session, errors_of_the_user

    from_stdin = Path("-") in paths
    if from_stdin and len(paths) > 1:
        raise click.UsageError("`-` (stdin) cannot be combined with other paths.")
    if from_stdin and options["changed_since"] is not None:
        raise click.UsageError("--changed-since requires files and cannot be used with `-` (stdin).")
    if stdin_filename is not None and not from_stdin:
        raise click.UsageError("--stdin-filename requires `-` as the only path.")
    if statistics and output_format not in COUNTED:
        raise click.UsageError(
            f"--statistics supports the formats {', '.join(COUNTED[:-1])} and {COUNTED[-1]}, not "
            f"{output_format}."
        )
    if options["diff"] and output_file is not None:
        raise click.UsageError(
            "--output-file only applies to findings and cannot be used with --diff, which writes to stdout."
        )
    if watch and (from_stdin or options["fix"] or options["diff"] or options["fix_pins"]):
        raise click.UsageError(
            "--watch only reports findings in files; it cannot be used with `-` or with fixes."
        )
    if options["interactive"]:
        if from_stdin or watch or options["diff"]:
            raise click.UsageError(
                "--interactive fixes files; it cannot be used with `-`, --diff or --watch."
            )
        if not _is_terminal(sys.stdin) or not _is_terminal(sys.stderr):
            raise click.ClickException("--interactive needs a terminal for stdin and stderr.")
    paths = paths or (Path(),)
    name = stdin_filename or Path("<stdin>")
    where = [name if stdin_filename else Path()] if from_stdin else paths
    output = Output(
        output_format,
        output_file,
        options["diff"],
        show_fixes,
        statistics,
        exit_zero,
        exit_non_zero_on_fix,
        jobs,
        cached=not no_cache,
        interactive=options["interactive"],
    )

    def checker() -> Checker:
        session = Session.from_options(where, options)
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

        return keep_checking(paths, check_files, options["colour"])
    return check_files()


@commands.command(cls=Command, short_help="Accept all current findings, so that only new ones are reported.")
@paths_argument
@option("--prune", is_flag=True, help="Remove findings that no longer exist from the file, and add none.")
@option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    group=OUTPUT,
    help=(
        "The baseline file. [default: the file in the configuration, or .torchmigrate-baseline.json in its "
        "directory]"
    ),
)
@jobs_option
@evidence_option
@selection_options
@target_option
@minimum_option
@file_options
@quiet_option
@verbose_option
@colour_option
@config_options
def baseline(
    paths: tuple[Path, ...], prune: bool, output: Path | None, jobs: int | None, **options: Any
) -> int:
    """Write a baseline: a file with all current findings, which `check --baseline` then hides.

    The baseline identifies a finding by its file, its rule and the text of its line, so line numbers may
    change. Existing entries for files that are not under PATHS, and for rules that are not enabled, are kept.

    Exit codes: 0 done, 2 an error occurred.
    """
    from torchmigrate.cli.baseline import run_baseline
    from torchmigrate.cli.session import Session

    session = Session.from_options(paths or (Path(),), options)
    return run_baseline(session, paths or (Path(),), output, jobs, prune=prune)


@commands.command("suppress", cls=Command, short_help="Add suppression comments for all current findings.")
@paths_argument
@option("--reason", metavar="TEXT", callback=_reason, help="The reason to write after the codes.")
@jobs_option
@evidence_option
@selection_options
@target_option
@minimum_option
@file_options
@baseline_options
@quiet_option
@verbose_option
@colour_option
@config_options
def suppress_findings(paths: tuple[Path, ...], reason: str, jobs: int | None, **options: Any) -> int:
    """Add a `# torchmigrate: ignore[CODE] reason` comment to the lines of all findings.

    Existing comments of this kind get the additional codes. Findings in the baseline are not suppressed. If a
    line cannot take a comment, a message on stderr says so.

    Exit codes: 0 done, 1 findings left, 2 an error occurred.
    """
    from torchmigrate.cli.session import Session
    from torchmigrate.cli.suppress import Suppressor

    session = Session.from_options(paths or (Path(),), options)
    return Suppressor(session, reason, jobs, baseline=not options["no_baseline"]).run(paths or (Path(),))


@commands.command(cls=Command, short_help="Remove the caches of check.")
@quiet_option
@colour_option
@config_options
@cache_dir_option
def clean(quiet: bool, colour: str, config: Path | None, isolated: bool, cache_dir: Path | None) -> int:
    """Remove the caches of the current project, and all caches below the current directory.

    The command only removes files that torchmigrate created.
    """
    from torchmigrate.cli.clean import remove_caches
    from torchmigrate.cli.session import Session

    session = Session.open(
        [Path()], config=config, isolated=isolated, detect=False, colour=colour, quiet=quiet
    )
    return remove_caches(session, cache_dir)


@commands.command(cls=Command, short_help="Show what each torch release breaks in a project.")
@paths_argument
@jobs_option
@evidence_option
@version_option(
    "--to",
    "--target",
    "target",
    help="The release to plan for; lists everything to do for it. [default: the newest known release, "
    "without a list]",
)
@minimum_option
@selection_options
@file_options
@option(
    "--output-format",
    type=click.Choice(["table", "markdown", "json", "html"]),
    default="table",
    group=OUTPUT,
    help=(
        "The format of the plan; html is a page with a chart, a filterable table, and source excerpts. "
        "[default: table]"
    ),
)
@option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    group=OUTPUT,
    help="Write the plan to this file instead of stdout.",
)
@option(
    "--link-template",
    metavar="URL",
    group=OUTPUT,
    help="The link for each place, such as https://github.com/o/r/blob/main/{path}#L{line}; the path is "
    "relative to the root of the repository. [default: the file itself]",
)
@option(
    "--title",
    metavar="TEXT",
    group=OUTPUT,
    help="The name of the project. [default: the name of its directory]",
)
@quiet_option
@verbose_option
@colour_option
@config_options
def plan(
    paths: tuple[Path, ...],
    jobs: int | None,
    output_format: str,
    output: Path | None,
    link_template: str | None,
    title: str | None,
    **options: Any,
) -> int:
    """Show the upgrade plan for files and directories (default: the current directory).

    The plan lists the places that no fix can change, then a table of the torch releases from the project's
    minimum to the newest. Each row counts the places that break on import, raise when reached, may raise,
    silently change their results or warn on these releases, the places for which that is new (+), and the
    effort to change them. Releases with the same counts share a row. Finally, the plan lists files that were
    not read. The command ignores the target in the configuration.

    Exit codes: 0 done, 2 an error occurred.
    """
    from torchmigrate.cli.plan import Request, run_plan
    from torchmigrate.cli.session import Session
    from torchmigrate.versions.releases import NEWEST

    step = options["target"] is not None
    session = Session.from_options(
        paths or (Path(),), {**options, "target": options["target"] or NEWEST}, guessing=True
    )
    return run_plan(
        session, paths or (Path(),), Request(output_format, step, output, title, link_template, jobs)
    )


@commands.command(cls=Command, short_help="Upgrade a project, and verify the result with its own tests.")
@click.argument("path", type=click.Path(path_type=Path), default=".")
@version_option(
    "--to", "--target", "target", help="The torch release to upgrade to. [default: the newest known release]"
)
@option(
    "--test",
    metavar="COMMAND",
    help="The command that runs the tests. [default: pytest -q, if there are tests]",
)
@option(
    "--unsafe-fixes",
    is_flag=True,
    help="Include fixes that may change results, and let the tests judge them.",
)
@option(
    "--also",
    "also",
    metavar="TOOLS",
    multiple=True,
    callback=listed,
    help="Also replace what numpy, python (with ruff) or python2 (with fissix) removed.",
)
@option(
    "--evidence/--no-evidence",
    default=True,
    help="Record the types of objects during the tests, which allows more fixes. [default: record]",
)
@option("--dry-run", is_flag=True, help="Show what the command would do, without doing it.")
@option("--resume", is_flag=True, help="Continue an interrupted upgrade.")
@option(
    "--work",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="The directory to work in. [default: next to the project]",
)
@option(
    "--time-limit",
    type=float,
    callback=positive,
    metavar="MINUTES",
    help="Stop after this time; continue with --resume.",
)
@option(
    "--test-timeout",
    type=float,
    callback=positive,
    default=300.0,
    metavar="SECONDS",
    help="The time limit for a single test. [default: 300]",
)
@option(
    "--env",
    "environment",
    type=click.Path(path_type=Path),
    metavar="DIR",
    group=ENVIRONMENT,
    help="An existing environment with the target release. [default: create one]",
)
@option(
    "--old-env",
    "old_environment",
    type=click.Path(path_type=Path),
    metavar="DIR",
    group=ENVIRONMENT,
    help="An environment with the old torch; the tests run there first.",
)
@option(
    "--python",
    metavar="VERSION",
    group=ENVIRONMENT,
    help="The Python for the new environment: a version such as 3.11, or a path.",
)
@option("--index-url", metavar="URL", group=ENVIRONMENT, help="The package index, as for pip.")
@option(
    "--extra-index-url",
    metavar="URL",
    multiple=True,
    group=ENVIRONMENT,
    help="An additional package index, for example for CPU builds.",
)
@option(
    "--install-option",
    metavar="OPTION",
    multiple=True,
    group=ENVIRONMENT,
    help="An additional option for pip install, such as --no-cache-dir.",
)
@jobs_option
@option(
    "--output-format",
    type=click.Choice(["text", "markdown", "json", "html"]),
    default="text",
    group=OUTPUT,
    help="The format of the report. [default: text]",
)
@quiet_option
@verbose_option
@colour_option
def upgrade(path: Path, output_format: str, **options: Any) -> int:
    """Upgrade a project to a torch release, and verify the result with the project's own tests.

    The command works on a branch in a separate git work tree next to the project and does not touch your
    checkout. It runs the tests on the new torch before it changes anything, and commits fixes by rule or
    migration. It then runs the tests again, and finds and reverts the fixes that make a test fail.

    Exit codes: 0 all tests pass, 1 tests still fail (as they did before), 2 an error occurred.
    """
    from torchmigrate.cli.session import open_console
    from torchmigrate.cli.upgrade import dry_run, run_upgrade
    from torchmigrate.upgrade.environment import Options
    from torchmigrate.upgrade.upgrade import Request
    from torchmigrate.versions.releases import NEWEST, parse_version

    console = open_console(options["colour"], quiet=options["quiet"], verbose=options["verbose"])
    limit = options["time_limit"]
    request = Request(
        path=path,
        to=parse_version(options["target"] or NEWEST),
        test=options["test"],
        environment=options["environment"],
        old_environment=options["old_environment"],
        options=Options(
            options["python"], options["index_url"], options["extra_index_url"], options["install_option"]
        ),
        unsafe=options["unsafe_fixes"],
        evidence=options["evidence"],
        also=options["also"],
        work=options["work"],
        resume=options["resume"],
        jobs=options["jobs"],
        time_limit=None if limit is None else limit * 60,
        test_timeout=options["test_timeout"],
    )
    if options["dry_run"]:
        return dry_run(request, console)
    return run_upgrade(request, console, output_format)


@commands.command(
    cls=Command,
    short_help="Run a command, and record the types of objects in outdated code.",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@option(
    "--root",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIRECTORY",
    help="The project whose files to record. [default: the repository, or the current directory]",
)
@quiet_option
@colour_option
@config_options
def record(
    command: tuple[str, ...], root: Path | None, quiet: bool, colour: str, config: Path | None, isolated: bool
) -> int:
    """Run COMMAND, such as `pytest`, and record the types of objects in code that rules may apply to.

    For each such place of the project that runs, torchmigrate records the classes of the objects in
    .torchmigrate/evidence.json, and the dtype, number of dimensions and layout of tensors, but no values.
    `check` and `plan` use the records for files that have not changed since. Later runs add to the file. The
    command runs in its own Python (3.7 or newer), which does not need torchmigrate.

    Exit code: the exit code of the command, or 2 if it cannot run or the records cannot be written.
    """
    from torchmigrate.cli.record import run_recorded
    from torchmigrate.cli.session import Session

    session = Session.open(
        [Path()], config=config, isolated=isolated, detect=False, colour=colour, quiet=quiet
    )
    return run_recorded(session, command, root)


@commands.command("config", cls=Command, short_help="Show the settings that hold for a file.")
@click.argument("path", metavar="[FILE]", type=click.Path(readable=False, path_type=Path), default=".")
@option(
    "--schema",
    type=click.Choice(["torchmigrate", "pyproject", "rules"]),
    help="Print the JSON Schema of torchmigrate.toml, of pyproject.toml or of rule files instead.",
)
@option(
    "--unsafe-fixes/--no-unsafe-fixes",
    default=None,
    help="Also count and apply fixes that may change results.",
)
@evidence_option
@selection_options
@target_option
@minimum_option
@file_options
@option(
    "--output-format",
    type=click.Choice(["text", "json"]),
    default="text",
    group=OUTPUT,
    help="Format of the output. [default: text]",
)
@quiet_option
@verbose_option
@colour_option
@config_options
@cache_dir_option
def show_config(path: Path, schema: str | None, output_format: str, **options: Any) -> int:
    """Show the settings that hold for a file or a directory (default: the current one), which need not exist.

    Each setting comes with its origin: the default, a file (the minimum may be from one that states what the
    project requires), or the command line. Takes the options of `check` that change settings.

    Exit codes: 0 done, 2 a configuration cannot be used.
    """
    if schema is not None:
        import json

        from torchmigrate.authoring.schemas import schema as made
        from torchmigrate.cli.session import open_console

        open_console(options["colour"]).out(json.dumps(made(schema), indent=2) + "\n")
        return 0
    from torchmigrate.cli.config import show_settings
    from torchmigrate.cli.session import Session

    return show_settings(Session.from_options([path], options), path, output_format)


@commands.command(cls=Command, short_help="Explain a rule.")
@click.argument("rule", metavar="CODE|NAME|SYMBOL|PARAMETER", shell_complete=complete_rules)
@range_options
@colour_option
@config_options
def explain(rule: str, colour: str, config: Path | None, isolated: bool, **options: Any) -> int:
    """Explain a rule: its reason, the releases it applies to, its fix and how safe that is, and links.

    You can name the rule by its code or name, by what it finds, such as a function, class or module
    (torch.symeig, symeig, x.symeig), or by a parameter (size_average, torch.nn.MSELoss.size_average). If
    there are several rules, the command lists them. For a TorchFix code, such as TOR101, it lists the
    equivalent rules; for a prefix such as TM21, the rules with that prefix.
    """
    from torchmigrate.cli.describe import explained
    from torchmigrate.cli.session import Session

    session = Session.open([Path()], config=config, isolated=isolated, detect=False, colour=colour)
    session.console.out(explained(rule, session, span(options)))
    return 0


@commands.command(cls=Command, short_help="List all rules.")
@option(
    "--output-format",
    type=click.Choice(["table", "json"]),
    default="table",
    group=OUTPUT,
    help="The format of the list. [default: table]",
)
@range_options
@colour_option
@config_options
def rules(output_format: str, colour: str, config: Path | None, isolated: bool, **options: Any) -> int:
    """List all rules, with the releases they apply to and what they can fix.

    With --target, list the rules that report something for that release, with their severity and the
    applicability of their fix.
    """
    from torchmigrate.cli.describe import rules_json, rules_table
    from torchmigrate.cli.session import Session

    session = Session.open([Path()], config=config, isolated=isolated, detect=False, colour=colour)
    if output_format == "json":
        session.console.out(rules_json(session.rules, span(options)))
    else:
        width = os.get_terminal_size().columns if sys.stdout.isatty() else None
        session.console.out(rules_table(session.rules, session.console.style, width, span(options)))
    return 0


@commands.command("server", cls=Command, short_help="Serve an editor: findings and fixes while one types.")
@click.option("--stdio", is_flag=True, hidden=True)  # what editors say of themselves; there is nothing else
def server(stdio: bool) -> int:
    """Run the language server, which an editor starts and speaks to on stdin and stdout.

    It speaks the Language Server Protocol, and needs the extra `lsp`. docs/editors.md says how to set up
    editors, and which options they may give.

    Exit codes: 0 the editor ended it, 1 the editor went away, 2 it could not be started.
    """
    from torchmigrate.cli.server import run_server

    return run_server()


@commands.command("test-rules", cls=Command, short_help="Run the examples in rule files.")
@click.argument("directory", type=click.Path(exists=True, path_type=Path))
@quiet_option
@colour_option
def test_rules(directory: Path, quiet: bool, colour: str) -> int:
    """Load the rules in a directory (or file) and run every example in them.

    A `before` must be found and become its `after`, which must be clean; `report_only` must be found without
    a fix; `clean` must not be found.
    """
    from torchmigrate.authoring.command import test_directory
    from torchmigrate.cli.session import open_console

    return test_directory(directory, open_console(colour, quiet=quiet))


commands.add_command(fleet)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 clean, 1 findings, 2 could not do the job, 130 interrupted.

    arguments: those of the process if not given.
    """
    _open_streams()
    code: object
    if "_TORCHMIGRATE_COMPLETE" in os.environ:
        from torchmigrate.cli.completion import prepare

        prepare()
    try:
        code = commands.main(arguments, prog_name="torchmigrate", standalone_mode=False)
    except click.exceptions.Exit as stop:
        code = stop.exit_code
    except click.ClickException as error:
        # Without a command, click's message is the help (and an exception of its own since 8.2).
        if type(error).__name__ == "NoArgsIsHelpError":
            _say(error.format_message())
        elif isinstance(error, click.UsageError) and error.ctx is not None:
            _say(f"{error.ctx.get_usage()}\nTry `{error.ctx.command_path} --help`.\n")
            _say(f"error: {error.format_message()}")
        else:
            _say(f"error: {error.format_message()}")
        code = 2
    except (click.Abort, KeyboardInterrupt) as error:
        from torchmigrate.files.signals import Terminated, end_by_sigterm

        if isinstance(error.__cause__ or error, Terminated):
            end_by_sigterm()
        _say("Interrupted.")
        code = INTERRUPTED
        # With `python -m`, CPython ends by the signal instead of the exit code if what was interrupted was an
        # `exec` of text, as in making a dataclass; another one makes it forget that.
        exec("")
    except BrokenPipeError:  # from click's own output; ours sees to it itself
        code = 0
    except OSError as error:
        if error.errno not in _CANNOT_WRITE:
            code = _internal_error(error)
        else:
            _say(f"error: cannot write the output: {(error.strerror or '').lower()}")
            code = 2
    except Exception as error:  # a mistake of ours: one line for the user instead of a traceback
        code = _internal_error(error)
    _close_streams()
    sys.exit(code if isinstance(code, int) else 0)


def _internal_error(error: Exception) -> int:
    """Say that something went wrong that nobody foresaw; the exit code."""
    if os.environ.get("TORCHMIGRATE_TRACEBACK"):
        raise error
    text = " ".join(f"{type(error).__name__}: {error}".split())
    _say(f"error: internal error: {text}; please report it (TORCHMIGRATE_TRACEBACK=1 shows where it is)")
    return 2


def _say(text: str) -> None:
    """Write to stderr, where that is possible; control characters are escaped."""
    from torchmigrate.report.style import terminal_text

    with suppress(OSError):
        click.echo(terminal_text(text, colour=False), err=True)


def _open_streams() -> None:
    """Put something in the place of stdout and stderr that were closed by whoever started the program.

    Else the next file that is opened would be one of them, and get what is printed.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


def _close_streams() -> None:
    """Flush stdout and stderr now: at exit, Python would print a traceback if the reader is gone."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
