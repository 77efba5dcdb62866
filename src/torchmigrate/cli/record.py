"""The `record` command: run a command, and keep what it shows of outdated places."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import click

from torchmigrate.catalogue.recorded import recorded_names
from torchmigrate.cli.session import Session
from torchmigrate.evidence.recording import Recording, begin, recorded_command
from torchmigrate.files.paths import project_of
from torchmigrate.files.reading import UnreadableError, explain_os_error
from torchmigrate.report.base import shown_path
from torchmigrate.report.summary import plural


def begin_recording(session: Session, root: Path | None = None) -> Recording:
    """A recording of the places that the rules of a session are about.

    root: the directory of the project; None: the repository of the current directory, or that itself.

    Raises click.ClickException where nothing can be written there.
    """
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
    recording = begin_recording(session, root)
    try:
        process = subprocess.Popen(recorded_command(command), env=recording.environment(os.environ))
    except OSError as error:
        raise click.ClickException(f"{command[0]}: {explain_os_error(error)}") from None
    code = _wait(process)
    session.console.note(end_recording(recording))
    return 128 - code if code < 0 else code


def _wait(process: subprocess.Popen[bytes]) -> int:
    """The exit code of a process; Control-C goes to it, too, and it is the one to decide what that means."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return process.wait()
    finally:
        with suppress(TypeError):  # what was set by another language
            signal.signal(signal.SIGINT, before)
