"""What files held when a run last read them, so that unchanged files need not be read.

What the operating system says of a file stands for its content, as in git's index: a file that was written
just before it was read is read again, since it may be written once more without that being seen.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from torchmigrate.cache.location import CONTENTS
from torchmigrate.cache.sealed import SealedFile
from torchmigrate.files.digests import digest_of
from torchmigrate.files.reading import UnreadableError, explain_os_error, read

# Times of the last change of the content, and of the file, in ns; its size in bytes; its inode.
Status = tuple[int, int, int, int]
_MOST_FILES = 100_000
_SETTLED = 2_000_000_000  # ns since the last change, after which the next one has another time


def status_of(found: os.stat_result) -> Status:
    """What is different when a file was written."""
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


class _Written(Struct):
    """What is in the file: for each real path its status, and the digest of the content in hexadecimal."""

    files: dict[str, tuple[Status, str]]


class Contents(SealedFile):
    """The digests of what the files of a project hold. directory: of the cache."""

    def __init__(self, directory: Path, key: bytes, note: Callable[[str], None]) -> None:
        super().__init__(directory / CONTENTS, key, note)
        written = self.read(_Written)
        self._known = {} if written is None else written.files
        self._new: dict[str, tuple[Status, str]] = {}

    def digest(self, path: str, status: Status) -> bytes | None:
        """The digest of a file in this state, a real path; None: it must be read."""
        known = self._known.get(path)
        return bytes.fromhex(known[1]) if known is not None and known[0] == status else None

    def keep(self, path: str, status: Status, digest: bytes) -> None:
        """What was read of a file, which was in this state before and after that."""
        if time.time_ns() - max(status[:2]) > _SETTLED:
            self._new[path] = status, digest.hex()

    def content_digest(self, path: Path, most: int) -> bytes:
        """The digest of what a file holds; as of nothing where it cannot be read.

        most: bytes; of more, nothing is read.
        """
        try:
            before = status_of(os.stat(path))  # noqa: PTH116 (of every file in a project)
            known = self.digest(str(path), before)
            if known is None:
                known = digest_of(read(path, most))
                if status_of(os.stat(path)) == before:  # noqa: PTH116
                    self.keep(str(path), before, known)
        except (OSError, ValueError, UnreadableError):
            return digest_of(b"")
        return known

    def save(self) -> None:
        """Write it, if there is anything new; where that cannot be done, it is not."""
        if not self._new:
            return
        known = self._new if len(self._known) + len(self._new) > _MOST_FILES else {**self._known, **self._new}
        try:
            self.write(_Written(known))
        except OSError as error:
            self.note(f"cache: not written to {self.path.parent}: {explain_os_error(error)}")
