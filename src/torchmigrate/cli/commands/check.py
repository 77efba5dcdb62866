"""The command `check`: findings, and their fixes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, TextIO

import click

from torchmigrate.cli.options import (
    FILES,
    OUTPUT,
    Command,
    baseline_options,
    cache_options,
    colour_option,
    config_options,
    evidence_option,
    file_options,
    jobs_option,
    minimum_option,
    option,
    paths_argument,
    quiet_option,
    selection_options,
    target_option,
    verbose_option,
)
from torchmigrate.report import COUNTED, FORMATS


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()


@click.command(cls=Command, short_help="Find outdated code, and optionally fix it.")
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
    help="Print the number of findings per rule instead of the findings. A finding may have several places.",
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
