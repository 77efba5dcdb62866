"""Signals that end the program: told as an exception, and kept waiting where a step must be whole."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")


class Terminated(KeyboardInterrupt):
    """The program was told to end (SIGTERM)."""


def catch_sigterm() -> None:
    """Raise Terminated on SIGTERM, so that processes that were started are ended; unless it is ignored."""
    in_main_thread = threading.current_thread() is threading.main_thread()
    if in_main_thread and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminate)


def end_by_sigterm() -> None:
    """End the program as SIGTERM does by itself."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGTERM)


def _terminate(number: int, frame: FrameType | None) -> None:
    raise Terminated


@contextmanager
def held() -> Iterator[None]:
    """Keep signals that end the program waiting: for steps that take a moment and must not be cut in half."""
    if sys.platform == "win32":
        yield
        return
    old = signal.pthread_sigmask(signal.SIG_BLOCK, [getattr(signal, name) for name in _NAMES])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old)
