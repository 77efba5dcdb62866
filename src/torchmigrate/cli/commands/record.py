"""The command `record`."""

from __future__ import annotations

from pathlib import Path

import click

from torchmigrate.cli.options import (
    Command,
    colour_option,
    config_options,
    option,
    quiet_option,
)


@click.command(
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
