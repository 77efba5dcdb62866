"""A real terminal, in which a command runs and a person types."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Sequence
from pathlib import Path

from harness.launcher import quick_command
from harness.program import heed_interrupts
from harness.project import command, environment

PATIENCE = 60.0  # seconds


class Terminal:
    """A command in a terminal. `shown` is all that it has written by now.

    program: what runs with the arguments; empty: torchmigrate. own: in a process of its own, for signals.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        cwd: Path,
        *,
        columns: int = 0,
        program: Sequence[str] = (),
        own: bool = False,
        **environ: str,
    ) -> None:
        self._controller, terminal = pty.openpty()
        if columns:
            fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.process = subprocess.Popen(
            [*program, *arguments] if program else (command if own else quick_command)(*arguments),
            cwd=cwd,
            env=environment(**{"TERM": "xterm", **environ}),
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            start_new_session=True,
            preexec_fn=_begin,
        )
        os.close(terminal)
        self._bytes = b""

    @property
    def shown(self) -> str:
        return self._bytes.decode("utf-8", "replace").replace("\r\n", "\n")

    def until(self, *texts: str) -> str:
        """Wait for texts, in any order; what was shown since the last ones that were waited for."""
        start = len(self.shown)
        begin = getattr(self, "_seen", 0)
        end = time.monotonic() + PATIENCE
        while not all(text in self.shown[begin:] for text in texts):
            if not self._more(end - time.monotonic()):
                raise AssertionError(f"{texts!r} are not in {self.shown[begin:]!r}")
        at = max(self.shown.index(text, begin) + len(text) for text in texts)
        self._seen = at
        return self.shown[min(begin, start) : at]

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._controller, text.encode())

    def press(self, key: str) -> None:
        """Press a key when the program waits for one: what is typed before is lost."""
        end = time.monotonic() + PATIENCE
        while termios.tcgetattr(self._controller)[3] & termios.ICANON:
            assert time.monotonic() < end, f"no key is waited for: {self.shown!r}"
            time.sleep(0.01)
        self.type(key)

    def end(self) -> int:
        """Wait for the end; the exit code."""
        while self._more(PATIENCE):
            pass
        code = self.process.wait(PATIENCE)
        os.close(self._controller)
        return code

    def _more(self, seconds: float) -> bool:
        if seconds <= 0 or not select.select([self._controller], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self._controller, 65536)
        except OSError:  # the other side is closed
            return False
        self._bytes += data
        return bool(data)


def _begin() -> None:
    heed_interrupts()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def in_terminal(arguments: Sequence[str], cwd: Path, *, columns: int = 0) -> str:
    """What a command writes to a terminal."""
    terminal = Terminal(arguments, cwd, columns=columns)
    terminal.end()
    return terminal.shown
