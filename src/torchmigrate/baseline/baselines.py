"""The baselines of a run: each configuration may name one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from torchmigrate.baseline.baseline import Baseline


class Baselines:
    """Every baseline is read once."""

    def __init__(self) -> None:
        self._read: dict[Path, Baseline] = {}

    def __iter__(self) -> Iterator[Baseline]:
        return iter(self._read.values())

    def of(self, path: Path) -> Baseline:
        """The baseline in a file. Raises BaselineError where it cannot be read."""
        if path not in self._read:
            self._read[path] = Baseline(path)
        return self._read[path]
