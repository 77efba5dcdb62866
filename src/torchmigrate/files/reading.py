"""The one way to read an untrusted file.

An untrusted repository may hold anything under any name: a link to a device that never ends, a named pipe
that blocks, a gigabyte. What is read here is a regular file of bounded size and, where the program itself
found it, one that is in the project, not somewhere else on this machine.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

MEGABYTE = 1 << 20
TEXT = MEGABYTE  # the most that is read of a configuration, a list of requirements or of patterns
SOURCE = 10 * MEGABYTE  # of Python; generated code of 6 MB has been seen
PARSED = (
    2 * MEGABYTE
)  # of Python that is parsed: a tree is up to 700 times as large; torch's own tests have 1.4 MB
NOTEBOOK = 100 * MEGABYTE  # of a notebook, mostly pictures
UNRELATED = MEGABYTE // 2  # of Python that is parsed only to see whether it is Python
# Without O_NONBLOCK, opening a named pipe waits for a writer. Not every system has all of them.
_FLAGS = sum(getattr(os, name, 0) for name in ("O_RDONLY", "O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY"))


class UnreadableError(Exception):
    """A file that is not read, with the reason in one line for a person; nothing of its content is in it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def read(path: str | Path, most: int = TEXT, within: Path | None = None) -> bytes:
    """The bytes of a regular file.

    most: more than so many bytes are refused.
    within: the directory (a real path) that must contain the file, also if a link leads to it.

    Raises:
        UnreadableError: there is no such file, it cannot be read, or it is refused.
    """
    try:
        if within is not None:
            path = os.path.realpath(path, strict=True)
            if not is_below(path, str(within)):
                raise UnreadableError("points outside of the project: not read")
        _check(os.stat(path), most)  # noqa: PTH116 (opening a device may set it going)
        handle = os.open(path, _FLAGS)
        try:
            size = _check(os.fstat(handle), most)
            data = os.read(handle, size + 1)
            # It may have grown, and what the system makes up (/proc) has no size.
            while len(data) != size and len(data) <= most and (more := os.read(handle, 65536)):
                data += more
        finally:
            os.close(handle)
    except (OSError, ValueError) as error:
        raise UnreadableError(f"cannot read: {explain_os_error(error)}") from None
    if len(data) > most:
        raise too_large(most)
    return data


def _check(status: os.stat_result, most: int) -> int:
    if stat.S_ISDIR(status.st_mode):
        raise UnreadableError("is a directory")
    if not stat.S_ISREG(status.st_mode):
        raise UnreadableError("is not a regular file")
    if status.st_size > most:
        raise too_large(most)
    return status.st_size


def too_large(most: int, what: str = "not read") -> UnreadableError:
    """The error about more than `most` bytes."""
    limit = f"{most // MEGABYTE} MB" if most >= MEGABYTE else f"{most // 1024} kB"
    return UnreadableError(f"is larger than {limit}: {what}")


def is_below(path: str, directory: str) -> bool:
    """Whether a real path is a directory or something in it."""
    return path == directory or path.startswith(directory.rstrip(os.sep) + os.sep)


def explain_os_error(error: OSError | ValueError) -> str:
    """What went wrong, in the system's words, without number and path."""
    if isinstance(error, FileNotFoundError):
        return "no such file or directory"
    if not isinstance(error, OSError):
        return "not a path"  # a NUL character in it
    return (error.strerror or type(error).__name__).lower()
