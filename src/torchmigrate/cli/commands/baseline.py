"""The command `baseline`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from torchmigrate.cli.options import (
    OUTPUT,
    Command,
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


@click.command(cls=Command, short_help="Accept all current findings, so that only new ones are reported.")
@paths_argument
@option("--prune", is_flag=True, help="Remove findings that no longer exist from the file, and add none.")
@option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    group=OUTPUT,
    help=(
        "The baseline file. [default: the file in the configuration, or .torchmigrate-baseline.json beside "
        "the configuration or the nearest pyproject.toml, setup.cfg or setup.py]"
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
    return run_baseline(session, paths, output, jobs, prune=prune)
