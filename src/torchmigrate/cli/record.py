"""The command `record`: run a command, and keep what it shows of outdated places."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from torchmigrate.catalogue.recorded import recorded_names
from torchmigrate.cli.options import Command, Given, color_option, config_options, option, quiet_option
from torchmigrate.cli.session import Session
from torchmigrate.files.paths import project_of
from torchmigrate.files.reading import UnreadableError, explain_os_error
from torchmigrate.report.base import shown_path
from torchmigrate.report.summary import plural

if TYPE_CHECKING:
    from subprocess import Popen

    from torchmigrate.evidence.recording import Recording


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
@color_option
@config_options
def record(
    command: tuple[str, ...], root: Path | None, quiet: bool, color: str, config: Given, isolated: bool
) -> int:
    """Run COMMAND, such as `pytest`, and record the types of objects in code that rules may apply to.

    For each such place of the project that runs, torchmigrate records the classes of the objects in
    .torchmigrate/evidence.json, and the dtype, number of dimensions and layout of tensors, but no values.
    `check` and `plan` use the records for files that have not changed since. Later runs add to the file. The
    command runs in its own Python (3.7 or newer), which does not need torchmigrate.

    Exit code: the exit code of the command, or 2 if it cannot run or the records cannot be written.
    """
    session = Session.open([Path()], config=config, isolated=isolated, detect=False, color=color, quiet=quiet)
    return run_recorded(session, command, root)


def begin_recording(session: Session, root: Path | None = None) -> Recording:
    """A recording of the places that the rules of a session are about.

    root: the directory of the project; None: the repository of the current directory, or that itself.

    Raises click.ClickException where nothing can be written there.
    """
    from torchmigrate.evidence.recording import begin

    root = root or project_of(Path.cwd())
    try:
        return begin(root, recorded_names(session.catalogue))
    except UnreadableError as error:
        raise click.ClickException(f"{root}: {error.reason}") from None


def end_recording(recording: Recording) -> str:
    """Keep what was seen; what to say of it. Raises click.ClickException where it cannot be kept."""
    try:
        count = recording.end()
    except UnreadableError as error:
        raise click.ClickException(f"{recording.evidence}: {error.reason}") from None
    if not count:
        return "torchmigrate: the command ran no code that a rule applies to; nothing was recorded."
    shown = shown_path(recording.evidence, Path.cwd())
    return f"torchmigrate: {shown} now has records of {plural(count, 'place')}."


def run_recorded(session: Session, command: Sequence[str], root: Path | None) -> int:
    """Run a command, record it, and give its exit code.

    Raises click.ClickException where it cannot be started, or nothing can be kept.
    """
    from subprocess import Popen

    from torchmigrate.evidence.recording import recorded_command

    recording = begin_recording(session, root)
    try:
        process = Popen(recorded_command(command), env=recording.environment(os.environ))
    except OSError as error:
        raise click.ClickException(f"{command[0]}: {explain_os_error(error)}") from None
    code = _wait(process)
    session.console.note(end_recording(recording))
    return 128 - code if code < 0 else code


def _wait(process: Popen[bytes]) -> int:
    """The exit code of a process; Control-C goes to it, too, and it is the one to decide what that means."""
    import signal

    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return process.wait()
    finally:
        with suppress(TypeError):  # what was set by another language
            signal.signal(signal.SIGINT, before)
