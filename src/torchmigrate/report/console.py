"""Where a command writes: findings to stdout, everything else to stderr."""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from torchmigrate.files.paths import has_other_links
from torchmigrate.findings import Problem, Severity
from torchmigrate.printing import printable, terminal_text
from torchmigrate.report.base import shown_path
from torchmigrate.report.style import Style, columns_of, wants_color, width_of

PROGRESS_AFTER = 1.0  # seconds


class Console:
    """The two streams of a command. A reader that has ended is not an error: the rest is not written.

    color: "auto", "always" or "never". quiet: only errors on stderr. verbose: details on stderr.
    """

    def __init__(self, color: str = "auto", *, quiet: bool = False, verbose: bool = False) -> None:
        self.style = Style(wants_color(color, sys.stdout), width_of(sys.stdout))
        self.error_style = Style(wants_color(color, sys.stderr), width_of(sys.stderr))
        self.columns = columns_of(sys.stderr)
        self.quiet = quiet
        self.verbose = verbose

    def out(self, text: str, *, commands: bool = False) -> None:
        """Write a result to stdout; control characters, and those that its encoding lacks, are escaped.

        commands: the text has commands of our own for a log.
        """
        text = terminal_text(text, color=self.style.color, commands=commands)
        self.out_bytes(text.encode(sys.stdout.encoding or "utf-8", "backslashreplace"))

    def out_bytes(self, data: bytes) -> None:
        """Write bytes to stdout, as they are."""
        _write(sys.stdout, data)

    def diff(self, data: bytes) -> None:
        """Write a diff to stdout: as it is, so that it can be applied; to people only what is safe."""
        if sys.stdout.isatty() or _is_log(sys.stdout):
            data = terminal_text(data.decode("utf-8", "backslashreplace"), color=False).encode("utf-8")
        _write(sys.stdout, data)

    def err(self, text: str, *, commands: bool = False) -> None:
        """Write a result to stderr, because stdout is taken. A failure is ignored, because there is nowhere
        to report it."""
        text = terminal_text(text, color=self.error_style.color, commands=commands)
        with suppress(OSError):
            _write(sys.stderr, text.encode(sys.stderr.encoding or "utf-8", "backslashreplace"))

    def note(self, text: str) -> None:
        """Say something about the run."""
        if not self.quiet:
            self._say(_fitted(text, self.columns))

    def detail(self, text: str) -> None:
        """Say something that only `--verbose` asks for."""
        if self.verbose:
            self._say(self.error_style.dim(terminal_text(text, color=False)))

    def error(self, text: str) -> None:
        """Say why something could not be done."""
        self._say(f"{self.error_style.bad('error')}: {terminal_text(text, color=False)}")

    def problem(self, problem: Problem, here: Path) -> None:
        """Say what could not be done with a file; its path is shown relative to `here`."""
        where = shown_path(problem.path, here)
        if problem.cell is not None:
            where += f":cell {problem.cell}"
        if problem.line is not None:
            where += f":{problem.line}"
        text = f"{where}: {printable(problem.reason)}"
        if problem.severity is Severity.ERROR:
            self.error(text)
        else:
            self.note(f"warning: {text}")

    @contextmanager
    def replacing(self, path: Path, here: Path) -> Iterator[None]:
        """While a file may be replaced: say so afterwards if there were other hard links to it.

        Paths as in `problem`.
        """
        before = path.stat() if has_other_links(path) else None
        yield
        if before is not None and path.stat().st_ino != before.st_ino:
            self.note(
                f"warning: {shown_path(path, here)}: other hard links to this file keep the old content"
            )

    def _say(self, text: str) -> None:
        with suppress(OSError):
            sys.stdout.flush()
        self.err(text + "\n")

    @contextmanager
    def progress(self, label: str = "Checking") -> Iterator[Callable[[int, int], None] | None]:
        """What to call with (files done, all files): shows a bar on stderr once a run takes a while.

        With the time that is left. None where there is no terminal to show it on.
        """
        if self.quiet or not sys.stderr.isatty():
            yield None
            return
        bar = _Bar(label, time.monotonic() + PROGRESS_AFTER)
        try:
            yield bar
        finally:
            bar.close()


class _Bar:
    def __init__(self, label: str, due: float) -> None:
        self.label = label
        self.due = due
        self.bar: Any = None
        self.done = 0

    def __call__(self, done: int, total: int) -> None:
        if self.bar is None:
            if time.monotonic() < self.due:
                return
            import click

            self.bar = click.progressbar(length=total, label=self.label, file=sys.stderr)
            self.bar.__enter__()
        self.bar.update(done - self.done)
        self.done = done

    def close(self) -> None:
        if self.bar is not None:
            self.bar.__exit__(None, None, None)


def _fitted(text: str, columns: int | None) -> str:
    """Text for a terminal: lines that are too long for it end where sentences do, or else between words."""
    if columns is None or len(text) <= columns:
        return text
    import re
    import textwrap

    lines: list[str] = []
    for line in text.split("\n"):
        whole = len(line) <= columns or line != line.lstrip()  # a list
        for sentence in [line] if whole else re.split(r"(?<=\.) (?=[A-Z0-9])", line):
            lines += (
                textwrap.wrap(
                    sentence, columns, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
                )
                if not whole
                else [sentence]
            )
    return "\n".join(lines)


def _is_log(stream: TextIO) -> bool:
    """Whether a stream goes to the log of a service that carries out commands in it, and not to a file."""
    if not (os.environ.get("GITHUB_ACTIONS") or os.environ.get("TF_BUILD")):
        return False
    try:
        return not stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):
        return True


def _write(stream: TextIO, data: bytes) -> None:
    try:
        stream.flush()
        binary = stream.buffer
        binary.write(data)
        binary.flush()
    except BrokenPipeError:
        # Whatever is written from here on, at exit as well, goes nowhere.
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
