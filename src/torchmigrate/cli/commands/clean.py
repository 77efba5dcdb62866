"""The command `clean`."""

from __future__ import annotations

from pathlib import Path

import click

from torchmigrate.cli.options import (
    Command,
    cache_dir_option,
    colour_option,
    config_options,
    quiet_option,
)


@click.command(cls=Command, short_help="Remove the caches of check.")
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
