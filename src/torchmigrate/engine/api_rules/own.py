"""Libraries that a repository holds itself: what their released versions have says nothing about it."""

from __future__ import annotations

from pathlib import Path

from torchmigrate.files.paths import entries, exists, remembered
from torchmigrate.semantics.libraries import LIBRARY_ROOTS

_MARKS = (".git", "pyproject.toml", "setup.py", "setup.cfg")
_INSTALLED = ("site-packages", "dist-packages")


@remembered
def held_libraries(directory: Path) -> frozenset[str]:
    """The libraries whose sources are in a directory or one above it, up to the project's root.

    directory: absolute. Packages that are only installed somewhere around are none of them.
    """
    if directory.name in _INSTALLED or directory.parent == directory:
        return frozenset()
    here = frozenset(
        root
        for place in (directory, directory / "src")
        for root in LIBRARY_ROOTS.intersection(entries(place))
        if exists(place / root / "__init__.py")
    )
    if any(exists(directory / mark) for mark in _MARKS if mark in entries(directory)):
        return here
    return here | held_libraries(directory.parent)
