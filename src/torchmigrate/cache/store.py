"""One file of a cache: what was found in the files of a project, with some settings.

Writers replace it in one step; what another run has written meanwhile is kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from torchmigrate.cache.location import DAYS, tidy
from torchmigrate.cache.sealed import SealedFile
from torchmigrate.files.reading import explain_os_error
from torchmigrate.project.questions import Asked, Plain

_DAY = 86_400


class CacheEntry(Struct, array_like=True, frozen=True):
    """What is kept of a file.

    key: of the file and what is around it. seen: the day on which a run last looked for it, from 1970 on.
    record: what was found, which may be anything; None: nothing. asked: the queries about other files; None:
    none.
    """

    key: str
    seen: int
    record: Any = None
    asked: Asked | None = None


class _Written(Struct):
    """What is in the file: the day on which it was written, and the entries by path."""

    day: int
    files: dict[str, CacheEntry]


class Store(SealedFile):
    """What is known of the files of a project; read when it is first needed.

    Args:
        directory: of the cache.
        name: of the file in it.
    """

    def __init__(self, directory: Path, name: str, key: bytes, note: Callable[[str], None]) -> None:
        super().__init__(directory / f"{name}.json", key, note)
        self.today = int(time.time()) // _DAY
        self._status = self._status_now()
        written = self.read(_Written) or _Written(self.today, {})
        self._entries = written.files
        self._seen: set[str] = set()
        self._changed = written.day != self.today

    def get(self, path: str) -> CacheEntry | None:
        """What is kept of a file."""
        entry = self._entries.get(path)
        if entry is not None:
            self._seen.add(path)
        return entry

    def put(self, path: str, key: str, record: Plain, asked: Asked | None) -> None:
        """Keep something of a file, instead of what was kept."""
        self._entries[path] = CacheEntry(key, self.today, record, asked)
        self._seen.add(path)
        self._changed = True

    def save(self) -> None:
        """Write it, if there is anything new; where that cannot be done, it is not."""
        if not self._changed:
            return
        try:
            if self._status_now() != self._status and (others := self.read(_Written)):  # of another run
                self._entries = {**others.files, **self._entries}
            # What is too old goes; where the clock was set back, what is newer than now is as old as now.
            kept = [path for path, entry in self._entries.items() if self.today - entry.seen <= DAYS]
            if not (self._write(self._seen.union(kept)) or self._write(self._seen)):
                self.note(f"cache: too many entries for {self.path}")
            tidy(self.path.parent, time.time())
        except OSError as error:
            self.note(f"cache: not written to {self.path.parent}: {explain_os_error(error)}")

    def _write(self, paths: Collection[str]) -> bool:
        """Write the entries of some paths; False: that is too much. Raises OSError."""
        files = {
            path: replace(entry, seen=self.today if path in self._seen else min(entry.seen, self.today))
            for path, entry in self._entries.items()
            if path in paths
        }
        return self.write(_Written(self.today, files))

    def _status_now(self) -> tuple[int, ...] | None:
        try:
            found = self.path.lstat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino
