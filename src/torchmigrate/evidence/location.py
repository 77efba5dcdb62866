"""Where the evidence of a project is. Every run asks, so that there is nothing else in here."""

from __future__ import annotations

import functools
import os
from pathlib import Path

from torchmigrate.files.paths import entries, shared_directories

DIRECTORY, FILE = ".torchmigrate", "evidence.json"


def find(directory: Path) -> Path | None:
    """The evidence that is about the files of a directory: the nearest at or above it."""
    return _nearest(Path(os.path.realpath(directory)))


def forget() -> None:
    """Look anew: there may be some now."""
    entries.cache_clear()
    _nearest.cache_clear()


@functools.lru_cache(maxsize=4096)
def _nearest(real: Path) -> Path | None:
    for place in (real, *real.parents):
        if DIRECTORY in entries(place) and place not in shared_directories():
            path = place / DIRECTORY / FILE
            if os.path.lexists(path):
                return path
    return None
