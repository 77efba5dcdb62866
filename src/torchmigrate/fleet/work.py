"""What a worker of the cluster does: run one job in a process of its own, within its limits."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from torchmigrate import __version__
from torchmigrate.fleet.model import Done, Failed, Job, Limits, Trouble, Usage

_PAUSE = 0.02  # seconds between two looks at the process, at first
_MOST_PAUSE = 0.25
_MEGABYTE = 1_000_000
# Nothing is imported from the current directory, which may be a repository; `sys` is in the interpreter.
START = "import sys; '' in sys.path and sys.path.remove(''); "
START += "from torchmigrate.fleet.examine import start; start()"


def work(job: Job) -> Done:
    """Do a job. What would fail again for sure is its result (`Failed`).

    Raises Failed: the repository could not be examined, and may be tried again.
    """
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="torchmigrate-", ignore_cleanup_errors=True) as name:
        source, target, said = (Path(name) / part for part in ("job", "result", "said"))
        try:
            source.write_bytes(pickle.dumps(job))
            megabytes = _run([str(source), str(target)], said, job.limits)
            result = pickle.loads(target.read_bytes()) if target.exists() else None
        except OSError as error:
            why = f"the worker's temporary directory: {error.strerror or error}"
            raise Failed(Trouble.CRASH, why) from None
        if result is None:
            raise Failed(Trouble.CRASH, _last_line(said))
    if isinstance(result, Failed) and result.trouble is not Trouble.SETTINGS:
        raise result
    return Done(result, Usage(time.monotonic() - started, megabytes), __version__)


def work_together(job: Job, parts: Sequence[Done]) -> Done:
    """Make one result of what was seen in all parts of a repository.

    Raises Failed: as `work`.
    """
    failed = next((part for part in parts if isinstance(part.what, Failed)), None)
    if failed is not None:
        return failed
    done = work(replace(job, seen=tuple(part.what for part in parts)))
    usage = done.usage
    for part in parts:
        usage = usage.plus(part.usage)
    return replace(done, usage=usage)


def _run(arguments: list[str], said: Path, limits: Limits) -> int:
    """Run the process to its end; the memory that it took at most, in megabytes."""
    import psutil

    with said.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", START, *arguments],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            start_new_session=os.name == "posix",  # to end all that it starts with it
        )
    most, pause, end = 0, _PAUSE, time.monotonic() + limits.seconds
    try:
        watched = psutil.Process(process.pid)
        while process.poll() is None:
            with suppress(psutil.Error):
                most = max(most, _memory(watched))
            if most > limits.megabytes * _MEGABYTE:
                raise Failed(Trouble.MEMORY, f"it needed more than {limits.megabytes} MB of memory")
            if time.monotonic() > end:
                raise Failed(Trouble.TIME, f"it took longer than {limits.seconds:g} s")
            with suppress(subprocess.TimeoutExpired):
                process.wait(pause)
            pause = min(pause * 1.5, _MOST_PAUSE)
    finally:
        _end(process)
    return most // _MEGABYTE


def _memory(process: object) -> int:
    """Bytes that a process and those that it started hold."""
    import psutil

    assert isinstance(process, psutil.Process)
    total: int = process.memory_info().rss
    for child in process.children(recursive=True):  # git
        with suppress(psutil.Error):
            total += child.memory_info().rss
    return total


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        with suppress(OSError):
            if os.name == "posix":
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
    if process.stdin is not None:
        process.stdin.close()
    process.wait()


def _last_line(said: Path) -> str:
    """The last output of a crashed process, for people."""
    try:
        lines = said.read_text("utf-8", "replace").strip().splitlines()
    except OSError:
        lines = []
    return f"the process ended: {lines[-1][:300]}" if lines else "the process ended without an error message"
