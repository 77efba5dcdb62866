"""A file of a cache: JSON that only this user can write (see `trust`), and that is replaced in one step."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from msgspec import Struct, convert, to_builtins

from torchmigrate.cache.location import is_usable, make, replace
from torchmigrate.cache.trust import seal, unseal
from torchmigrate.files.reading import MEGABYTE, UnreadableError, read

MOST = 64 * MEGABYTE  # bytes of one file
T = TypeVar("T", bound=Struct)


class SealedFile:
    """One file in the directory of a cache.

    Args:
        path: of the file.
        key: of the cache.
        note: receives, in a line, why it is not used, or not written.
    """

    def __init__(self, path: Path, key: bytes, note: Callable[[str], None]) -> None:
        self.path = path
        self.key = key
        self.note = note

    def read(self, kind: type[T]) -> T | None:
        """What it holds; None: it is not there, or cannot be used."""
        directory = self.path.parent
        if not is_usable(directory) or not os.path.lexists(self.path):
            return None
        try:
            data = read(self.path, MOST, within=Path(os.path.realpath(directory)))
            return convert(json.loads(unseal(self.path, data, self.key)), kind)
        except UnreadableError as error:
            self.note(f"cache: ignoring {self.path}: {error.reason}")
        except (ValueError, RecursionError):
            self.note(f"cache: ignoring {self.path}: damaged, or not written by this user on this machine")
        return None

    def write(self, content: Struct) -> bool:
        """Write it; False: that would be too much. Raises OSError."""
        make(self.path.parent)
        data = json.dumps(to_builtins(content), separators=(",", ":")).encode()
        if len(data) > MOST - 1024:
            return False
        replace(self.path, seal(self.path, data, self.key))
        return True
