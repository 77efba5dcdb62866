"""The commands and their options; what they do is in the modules that they import when they run."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from torchmigrate import __version__

if TYPE_CHECKING:
    from torchmigrate.config import Layer

INTERRUPTED = 130
_CANNOT_WRITE = frozenset([errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO])
_SELECTION = "Rule selection"
_VERSIONS = "Versions"
_FILES = "File selection"
_OUTPUT = "Output"
_CONFIG = "Configuration"
F = TypeVar("F", bound=Callable[..., object])


class _Option(click.Option):
    """An option that `--help` lists under a heading."""

    def __init__(self, *args: Any, group: str = "Options", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.group = group


class _Command(click.Command):
    """A command whose `--help` lists options by heading."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):  # arguments are in the text
                groups.setdefault(getattr(parameter, "group", "Options"), []).append(record)
        for heading, records in groups.items():
            with formatter.section(heading):
                formatter.write_dl(records, col_max=28)


def _option(*names: str, **kwargs: Any) -> Callable[[F], F]:
    return click.option(*names, cls=_Option, **kwargs)


def _listed(ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Comma lists, given any number of times, as one tuple."""
    return tuple(item.strip() for value in values for item in value.split(",") if item.strip())


def _version(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value is None:
        return None
    from torchmigrate.config import check_version

    try:
        return check_version(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _positive(ctx: click.Context, parameter: click.Parameter, value: int | None) -> int | None:
    if value is not None and value < 1:
        raise click.BadParameter(f"must be at least 1, not {value}.")
    return value


def _list_option(name: str, metavar: str, group: str, help: str) -> Callable[[F], F]:
    return _option(name, metavar=metavar, multiple=True, callback=_listed, group=group, help=help)


def _options(*decorators: Callable[[F], F]) -> Callable[[F], F]:
    def decorate(function: F) -> F:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


_CONFIG_OPTIONS: Callable[[Any], Any] = _options(
    _option(
        "--config",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        group=_CONFIG,
        help="Use this file instead of the nearest pyproject.toml or torchmigrate.toml.",
    ),
    _option("--isolated", is_flag=True, group=_CONFIG, help="Read no configuration and detect no minimum."),
)
_COLOUR: Callable[[Any], Any] = _option(
    "--color",
    "colour",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    group=_OUTPUT,
    help="When to use colour. auto: on a terminal, unless NO_COLOR or FORCE_COLOR says otherwise.",
)
_QUIET: Callable[[Any], Any] = _option(
    "-q", "--quiet", is_flag=True, group=_OUTPUT, help="Findings and errors only."
)
_VERBOSE: Callable[[Any], Any] = _option(
    "-v",
    "--verbose",
    is_flag=True,
    group=_OUTPUT,
    help="Say which configuration and versions are used, and where they come from.",
)


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 nothing found, 1 findings left, 2 something could not be done.",
)
@click.version_option(__version__, prog_name="torchmigrate", message="%(prog)s %(version)s")
def commands() -> None:
    """Find and rewrite PyTorch code that is outdated for the release you move to."""


@commands.command(cls=_Command, short_help="Find outdated code, and fix it on request.")
@click.argument("paths", nargs=-1, type=click.Path(readable=False, path_type=Path))
@_option("--fix", is_flag=True, help="Apply safe fixes to the files.")
@_option("--diff", is_flag=True, help="Show what --fix would change, and change nothing.")
@_option(
    "--unsafe-fixes/--no-unsafe-fixes",
    default=None,
    help="Count and apply fixes that may change results, too.",
)
@_option("--show-fixes", is_flag=True, help="List what was fixed, by file and rule.")
@_option("-e", "--exit-zero", is_flag=True, help="Exit with 0 even if there are findings.")
@_option("--exit-non-zero-on-fix", is_flag=True, help="Exit with 1 if anything was fixed.")
@_option(
    "-j",
    "--jobs",
    type=int,
    callback=_positive,
    metavar="NUMBER",
    help="How many processes work. [default: as many as pay off]",
)
@_list_option(
    "--select", "RULES", _SELECTION, "Look for these only: codes, prefixes such as TM1, names, or ALL."
)
@_list_option("--extend-select", "RULES", _SELECTION, "Look for these, too.")
@_list_option("--ignore", "RULES", _SELECTION, "Don't look for these.")
@_list_option("--extend-ignore", "RULES", _SELECTION, "The same as --ignore.")
@_option(
    "--target",
    metavar="VERSION",
    callback=_version,
    group=_VERSIONS,
    help="The torch release to move to. [default: the newest one known]",
)
@_option(
    "--minimum",
    metavar="VERSION",
    callback=_version,
    group=_VERSIONS,
    help="The oldest torch release that the code must still run on. [default: what the project requires]",
)
@_list_option(
    "--exclude", "PATTERNS", _FILES, "Leave out these instead of the default ones (.venv, build, ...)."
)
@_list_option("--extend-exclude", "PATTERNS", _FILES, "Leave out these, too.")
@_option(
    "--force-exclude/--no-force-exclude",
    default=None,
    group=_FILES,
    help="Leave out excluded files even if they are named as PATHS.",
)
@_option(
    "--respect-gitignore/--no-respect-gitignore",
    default=None,
    group=_FILES,
    help="Leave out what git ignores. [default: respect]",
)
@_option(
    "--stdin-filename",
    type=click.Path(path_type=Path),
    metavar="FILE",
    group=_FILES,
    help="What the text on stdin is called; with `-` as PATHS.",
)
@_option(
    "--output-format",
    type=click.Choice(["full", "concise", "json", "github"]),
    default="full",
    group=_OUTPUT,
    help="How to print findings. [default: full]",
)
@_option("--statistics", is_flag=True, group=_OUTPUT, help="Print how often each rule was found instead.")
@_QUIET
@_VERBOSE
@_COLOUR
@_CONFIG_OPTIONS
def check(
    paths: tuple[Path, ...],
    fix: bool,
    diff: bool,
    show_fixes: bool,
    exit_zero: bool,
    exit_non_zero_on_fix: bool,
    jobs: int | None,
    stdin_filename: Path | None,
    output_format: str,
    statistics: bool,
    quiet: bool,
    verbose: bool,
    colour: str,
    config: Path | None,
    isolated: bool,
    **options: Any,
) -> int:
    """Check files and directories (default: the current one), or stdin with `-`.

    Findings go to stdout, everything else to stderr. With --fix and `-`, the fixed text goes to stdout and
    the findings go to stderr.
    """
    from torchmigrate.check import Checker, Output
    from torchmigrate.session import Session

    from_stdin = Path("-") in paths
    if from_stdin and len(paths) > 1:
        raise click.UsageError("`-` (stdin) cannot be mixed with other paths.")
    if stdin_filename is not None and not from_stdin:
        raise click.UsageError("--stdin-filename goes with `-` as the only path.")
    paths = paths or (Path(),)
    name = stdin_filename or Path("<stdin>")
    session = Session.open(
        [name if stdin_filename else Path()] if from_stdin else paths,
        config=config,
        isolated=isolated,
        command_line=_layer(options),
        fix=fix or diff,
        quiet=quiet,
        verbose=verbose,
        colour=colour,
    )
    output = Output(output_format, diff, show_fixes, statistics, exit_zero, exit_non_zero_on_fix, jobs)
    checker = Checker(session.catalogue, session.settings, output, session.console, Path.cwd())
    if from_stdin:
        if sys.stdin is None:
            raise click.ClickException("stdin is closed.")
        return checker.check_stdin(sys.stdin.buffer.read(), name)
    return checker.check(paths)


def _layer(options: dict[str, Any]) -> Layer:
    """The command line as a layer of the configuration."""
    from torchmigrate.config import Layer

    return Layer(
        option="--{}",
        target=options["target"],
        minimum=options["minimum"],
        select=options["select"] or None,
        extend_select=options["extend_select"],
        ignore=(*options["ignore"], *options["extend_ignore"]),
        exclude=_from_here(options["exclude"]) or None,
        extend_exclude=_from_here(options["extend_exclude"]),
        unsafe_fixes=options["unsafe_fixes"],
        force_exclude=options["force_exclude"],
        respect_gitignore=options["respect_gitignore"],
    )


def _from_here(patterns: Sequence[str]) -> tuple[str, ...]:
    """Patterns with a directory in them are relative to the current one, not to that of a configuration."""
    here = Path.cwd().as_posix().rstrip("/")

    def absolute(pattern: str) -> str:
        if "/" not in pattern.rstrip("/") or Path(pattern).is_absolute():
            return pattern
        return f"{here}/{pattern.removeprefix('./')}"

    return tuple(map(absolute, patterns))


@commands.command(cls=_Command, short_help="Say all about one rule.")
@click.argument("rule", metavar="CODE|NAME|SYMBOL")
@_COLOUR
@_CONFIG_OPTIONS
def explain(rule: str, colour: str, config: Path | None, isolated: bool) -> int:
    """Why a rule exists, which releases it is about, what it does to code, how safe that is, and links.

    The rule is named by its code or name, or by what it finds, such as torch.symeig. For a code of TorchFix,
    such as TOR101, the rules that stand for it are listed.
    """
    from torchmigrate.describe import explained
    from torchmigrate.session import Session

    session = Session.open([Path()], config=config, isolated=isolated, detect=False, colour=colour)
    session.console.out(explained(rule, session))
    return 0


@commands.command(cls=_Command, short_help="List all rules.")
@_option(
    "--output-format",
    type=click.Choice(["table", "json"]),
    default="table",
    group=_OUTPUT,
    help="How to print them. [default: table]",
)
@_COLOUR
@_CONFIG_OPTIONS
def rules(output_format: str, colour: str, config: Path | None, isolated: bool) -> int:
    """Every rule, with the releases it is about and what it can fix."""
    from torchmigrate.describe import rules_json, rules_table
    from torchmigrate.session import Session

    session = Session.open([Path()], config=config, isolated=isolated, detect=False, colour=colour)
    if output_format == "json":
        session.console.out(rules_json(session.rules))
    else:
        width = os.get_terminal_size().columns if sys.stdout.isatty() else None
        session.console.out(rules_table(session.rules, session.console.style, width))
    return 0


@commands.command("test-rules", cls=_Command, short_help="Run the examples in rule files.")
@click.argument("directory", type=click.Path(exists=True, path_type=Path))
@_QUIET
@_COLOUR
def test_rules(directory: Path, quiet: bool, colour: str) -> int:
    """Load the rules in a directory (or file) and run every example in them.

    A `before` must be found and become its `after`, which must be clean; `report_only` must be found without
    a fix; `clean` must not be found.
    """
    from torchmigrate.rule_tests import test_directory
    from torchmigrate.session import open_console

    return test_directory(directory, open_console(colour, quiet=quiet))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 clean, 1 findings, 2 could not do the job, 130 interrupted.

    arguments: those of the process if not given.
    """
    code: object
    try:
        code = commands.main(arguments, prog_name="torchmigrate", standalone_mode=False)
    except click.exceptions.Exit as stop:
        code = stop.exit_code
    except click.ClickException as error:
        if isinstance(error, click.UsageError) and error.ctx is not None:
            click.echo(f"{error.ctx.get_usage()}\nTry `{error.ctx.command_path} --help`.\n", err=True)
        click.echo(f"error: {error.format_message()}", err=True)
        code = 2
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted.", err=True)
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
            click.echo(f"error: cannot write the output: {(error.strerror or '').lower()}", err=True)
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
    click.echo(
        f"error: internal error: {text}; please report it (TORCHMIGRATE_TRACEBACK=1 shows where it is)",
        err=True,
    )
    return 2


def _close_streams() -> None:
    """Flush stdout and stderr now: at exit, Python would print a traceback if the reader is gone."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
