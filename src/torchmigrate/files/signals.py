"""Signals that end the program: raised as an exception, and delayed while a step must complete."""

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
    """The program received SIGTERM."""


def interrupt_in(error: BaseException) -> KeyboardInterrupt | None:
    """The interrupt that became another exception.

    Before Python 3.12, whatever is raised while a class gets its attributes (`__set_name__`) becomes a
    RuntimeError; and modules are imported, and their classes made, all through a run.
    """
    return error.__cause__ if isinstance(error.__cause__, KeyboardInterrupt) else None


def catch_sigterm() -> None:
    """Raise Terminated on SIGTERM, so that processes that were started are ended; unless it is ignored."""
    in_main_thread = threading.current_thread() is threading.main_thread()
    if in_main_thread and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminate)


def end_by_sigterm() -> None:
    """End the program as SIGTERM does by default."""
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


class Noticed:
    """Signals that end the program, while it is at work that shall come to an end first.

    exception: what they would have raised; None: there was none.
    """

    def __init__(self) -> None:
        self.exception: type[KeyboardInterrupt] | None = None
        self._waiting = False

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """While the program only waits for somebody, they are raised at once, as is one that came before."""
        self._waiting = True
        try:
            if self.exception is not None:
                raise self.exception
            yield
        finally:
            self._waiting = False

    def handle(self, number: int, frame: FrameType | None) -> None:
        before = self.exception
        self.exception = KeyboardInterrupt if number == signal.SIGINT else Terminated
        if self._waiting or before is not None:  # a second signal ends the program at once
            raise self.exception


@contextmanager
def noticed() -> Iterator[Noticed]:
    """Let Control-C and SIGTERM be noticed instead of raised; a second one is raised."""
    found = Noticed()
    if threading.current_thread() is not threading.main_thread():
        yield found
        return
    kept = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            kept[number] = signal.signal(number, found.handle)
    try:
        yield found
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
