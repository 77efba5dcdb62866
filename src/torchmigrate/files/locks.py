"""Runs of this program at the same time: one waits where another is writing."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_LONGEST = 3.0  # seconds: a run that was stopped (SIGSTOP) does not let go of what it has locked
_PAUSE = 0.002  # seconds


@contextmanager
def alone_in(directory: Path) -> Iterator[None]:
    """Keep other runs that ask for the same directory waiting: between a look at a file and its replacement.

    The lock is the system's: it leaves no file, and ends with the process. Where there is none (on
    Windows, on some network file systems), or another run does not let go of it, this one goes on without.
    A process must not enter it twice at a time.
    """
    handle = _locked(directory)
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)


def _locked(directory: Path) -> int | None:
    """What holds the lock until it is closed."""
    if sys.platform == "win32":
        return None
    import fcntl

    try:
        handle = os.open(directory, os.O_RDONLY)
    except OSError:
        return None
    end = time.monotonic() + _LONGEST
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() < end:
                time.sleep(_PAUSE)
                continue
        except OSError:  # no locks here
            pass
        except BaseException:
            os.close(handle)
            raise
        return handle
