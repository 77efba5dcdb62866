"""One file of a cache: what was found in the files of a project, with some settings.

It is JSON that only this user can write (see `trust`). Writers replace it in one step; what another run has
written meanwhile is kept.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from torchmigrate.cache.location import DAYS, is_usable, make, replace, tidy
from torchmigrate.cache.trust import seal, unseal
from torchmigrate.files.reading import MEGABYTE, UnreadableError, explain_os_error, read
from torchmigrate.project.questions import Plain

MOST = 64 * MEGABYTE  # bytes of one file
_DAY = 86_400


class CacheEntry(NamedTuple):
    """What is kept of a file; every part but `seen` may be anything.

    key: of the file and what is around it. seen: the day on which a run last looked for it, from 1970 on.
    record: what was found; None: nothing. asked: the queries about other files, as in `Asked`; None: none.
    """

    key: str
    seen: int
    record: Any = None
    asked: Any = None


class Store:
    """What is known of the files of a project; read when it is first needed.

    Args:
        directory: of the cache.
        name: of the file in it.
        key: of the cache.
        note: receives, in a line, why it is not used.
    """

    def __init__(self, directory: Path, name: str, key: bytes, note: Callable[[str], None]) -> None:
        self.directory = directory
        self.key = key
        self.path = directory / f"{name}.json"
        self.note = note
        self.today = int(time.time()) // _DAY
        self._written = self._status()
        self._entries, day = self._read()
        self._seen: set[str] = set()
        self._changed = bool(self._entries) and day != self.today

    def get(self, path: str) -> CacheEntry | None:
        """What is kept of a file."""
        entry = self._entries.get(path)
        if entry is not None:
            self._seen.add(path)
        return entry

    def put(self, path: str, key: str, record: Plain, asked: Plain) -> None:
        """Keep something of a file, instead of what was kept."""
        self._entries[path] = CacheEntry(key, self.today, record, asked)
        self._seen.add(path)
        self._changed = True

    def save(self) -> None:
        """Write it, if there is anything new; where that cannot be done, it is not."""
        if not self._changed:
            return
        try:
            make(self.directory)
            if self._status() != self._written:  # by another run
                for path, entry in self._read()[0].items():
                    self._entries.setdefault(path, entry)
            data = self._data(self._kept()) or self._data(self._seen)
            if data is None:
                self.note(f"cache: too many entries for {self.path}")
                return
            replace(self.path, seal(self.path, data, self.key))
            tidy(self.directory, time.time())
        except OSError as error:
            self.note(f"cache: not written to {self.directory}: {explain_os_error(error)}")

    # ---- the file ------------------------------------------------------------------------------------

    def _status(self) -> tuple[int, ...] | None:
        try:
            found = self.path.lstat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino

    def _read(self) -> tuple[dict[str, CacheEntry], int]:
        """The entries, and the day on which they were written; none if the file cannot be used."""
        if not is_usable(self.directory) or not os.path.lexists(self.path):
            return {}, 0
        try:
            data = read(self.path, MOST, within=Path(os.path.realpath(self.directory)))
            content = json.loads(unseal(self.path, data, self.key))
            day, found = content["day"], content["files"]
            entries = {path: CacheEntry(*entry) for path, entry in found.items()}
            if type(day) is not int or any(type(entry.seen) is not int for entry in entries.values()):
                raise ValueError("no days")
        except UnreadableError as error:
            self.note(f"cache: ignoring {self.path}: {error.reason}")
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            self.note(f"cache: ignoring {self.path}: damaged, or not written by this user on this machine")
        else:
            return entries, day
        return {}, 0

    def _kept(self) -> set[str]:
        """What is not too old; where the clock was set back, what is newer than now is as old as now."""
        return {
            path
            for path, entry in self._entries.items()
            if path in self._seen or self.today - entry.seen <= DAYS
        }

    def _data(self, paths: set[str]) -> bytes | None:
        """The content of the file with the entries of some paths; None: that is too much."""
        files = {
            path: [*entry._replace(seen=self.today if path in self._seen else min(entry.seen, self.today))]
            for path, entry in self._entries.items()
            if path in paths
        }
        data = json.dumps({"day": self.today, "files": files}, separators=(",", ":")).encode()
        return data if len(data) <= MOST - 1024 else None
