"""The command `clean`."""

from __future__ import annotations

from pathlib import Path

import click

from torchmigrate.cache.location import caches_below, directory_for, remove
from torchmigrate.cli.options import (
    Command,
    Given,
    cache_dir_option,
    color_option,
    config_options,
    quiet_option,
)
from torchmigrate.cli.session import Session
from torchmigrate.files.reading import explain_os_error
from torchmigrate.report.base import shown_path

DONE, FAILED = 0, 2


@click.command(cls=Command, short_help="Remove the caches of check.")
@quiet_option
@color_option
@config_options
@cache_dir_option
def clean(quiet: bool, color: str, config: Given, isolated: bool, cache_dir: Path | None) -> int:
    """Remove the caches of the current project, and all caches below the current directory.

    The command only removes files that torchmigrate created.
    """
    session = Session.open([Path()], config=config, isolated=isolated, detect=False, color=color, quiet=quiet)
    here = Path.cwd()
    settings = session.settings
    own = directory_for(settings.root, cache_dir or settings.cache_dir)
    failed = False
    for directory in dict.fromkeys([*([] if own is None else [own]), *caches_below(here)]):
        try:
            if remove(directory):
                session.console.note(f"Removed the cache {shown_path(directory, here)}")
        except OSError as error:
            session.console.error(f"{shown_path(directory, here)}: cannot remove: {explain_os_error(error)}")
            failed = True
    return FAILED if failed else DONE
