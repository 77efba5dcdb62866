"""Where the evidence of a project is. Every run asks, so that there is nothing else in here."""

from __future__ import annotations

import os
from pathlib import Path

from torchmigrate.files.paths import entries, real_directory, remembered, shared_directories, with_parents

DIRECTORY, FILE = ".torchmigrate", "evidence.json"


def find(directory: Path) -> Path | None:
    """The evidence that is about the files of a directory: the nearest at or above it."""
    return _nearest(real_directory(directory))


@remembered
def _nearest(real: Path) -> Path | None:
    for place in with_parents(real):
        if DIRECTORY in entries(place) and place not in shared_directories():
            path = place / DIRECTORY / FILE
            if os.path.lexists(path):
                return path
    return None
