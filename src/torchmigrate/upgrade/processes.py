"""Running other programs: their output goes to the log, their time is limited, and all of them are ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from torchmigrate.upgrade.model import UpgradeError

_PATIENCE = 5.0  # seconds between asking a program to end and ending it
_PAUSE = 0.1


class OutOfTime(Exception):
    """The time that the user gave is over."""


class Clock:
    """How long an upgrade may take. limit: in seconds; None: as long as it takes."""

    def __init__(self, limit: float | None = None) -> None:
        self.started = time.monotonic()
        self.limit = limit

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.started

    @property
    def left(self) -> float | None:
        """Seconds; None: there is no limit."""
        return None if self.limit is None else self.limit - self.elapsed

    def check(self) -> None:
        """Raises OutOfTime when the time is over."""
        if self.limit is not None and self.elapsed >= self.limit:
            raise OutOfTime


def run(
    arguments: Sequence[str],
    *,
    directory: Path,
    log: Path,
    clock: Clock,
    environment: Mapping[str, str] | None = None,
    watch: Callable[[], bool] | None = None,
) -> int:
    """Run a program until it ends; its exit code, negative for a signal.

    What it writes is appended to the log. Everything that it started is ended with it.

    watch: called ten times a second; False ends the program.
    Raises OutOfTime, and UpgradeError where the program cannot be started.
    """
    clock.check()
    with log.open("ab") as stream:
        stream.write(f"\n$ {' '.join(arguments)}\n".encode("utf-8", "replace"))
        stream.flush()
        try:
            process = subprocess.Popen(
                arguments,
                cwd=directory,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=sys.platform != "win32",
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise UpgradeError(f"`{arguments[0]}` cannot be run: {reason}") from None
        try:
            while True:
                try:
                    return process.wait(_PAUSE)
                except subprocess.TimeoutExpired:
                    clock.check()
                if watch is not None and not watch():
                    return -signal.SIGTERM
        finally:
            _end(process)


def cpu_of_children() -> float:
    """Seconds of the processors that the programs took that this process has run."""
    times = os.times()
    return times.children_user + times.children_system


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a program and what it started."""
    if sys.platform == "win32":
        process.kill()
        process.wait()
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_PATIENCE)
        if number is signal.SIGTERM and process.returncode is not None and not _lives(process.pid):
            break


def _lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def tail(log: Path, start: int, most: int = 4000) -> str:
    """The end of what was written to a log from an offset on."""
    try:
        with log.open("rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(start, size - most))
            return stream.read().decode("utf-8", "replace")
    except OSError:
        return ""


def size_of(log: Path) -> int:
    try:
        return log.stat().st_size
    except OSError:
        return 0
