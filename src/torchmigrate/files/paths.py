"""Whether a path is there, where a directory on the way may be closed.

`Path.exists`, `is_file`, `is_dir` raise PermissionError below a directory that this user may not enter (until
Python 3.14). For looking around, what cannot be reached is not there.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Collection
from pathlib import Path


def exists(path: Path) -> bool:
    """Whether there is something that this user can see."""
    try:
        return path.exists()
    except OSError:
        return False


def is_file(path: Path) -> bool:
    """Whether there is a file that this user can see."""
    try:
        return path.is_file()
    except OSError:
        return False


def is_dir(path: Path) -> bool:
    """Whether there is a directory that this user can see."""
    try:
        return path.is_dir()
    except OSError:
        return False


def repository_of(start: Path) -> Path | None:
    """The root of the repository that a directory is in."""
    start = start.absolute()
    return next((directory for directory in (start, *start.parents) if exists(directory / ".git")), None)


def project_of(directory: Path) -> Path:
    """What counts as the project of a directory, as a real path: its repository, or itself.

    What is outside of it is read only where the user named it.
    """
    return Path(os.path.realpath(repository_of(Path(os.path.realpath(directory))) or directory))


@functools.lru_cache(maxsize=4096)
def entries(directory: Path) -> Collection[str]:
    """The names in a directory, to be asked for many; links that lead nowhere are among them."""
    try:
        return frozenset(os.listdir(directory))  # noqa: PTH208 (names are all that is needed)
    except OSError:
        return frozenset()


_VERSION_CONTROL = (".git", ".hg", ".svn")


@functools.lru_cache(maxsize=4096)
def work_tree_of(directory: Path) -> Path | None:
    """The root of what is under version control around a directory; of a submodule, the one around it."""
    above = [directory, *directory.parents]
    for marker in _VERSION_CONTROL:
        held = [place for place in above if marker in entries(place)]
        # A submodule, which has a file of that name, belongs to the repository around it.
        for place in [item for item in held if (item / marker).is_dir()] or held:
            return place
    return None


@functools.lru_cache(maxsize=1)
def shared_directories() -> frozenset[Path]:
    """Directories that hold everything: what is below them does not belong together."""
    # Not by `tempfile`, which takes long to load.
    named = [os.environ.get(name, "") for name in ("TMPDIR", "TEMP", "TMP")]
    with contextlib.suppress(RuntimeError):  # there is no home
        named.append(str(Path.home()))
    found = [Path(os.path.realpath(path)) for path in ("/tmp", "/var/tmp", *filter(None, named))]
    return frozenset([*found, Path(found[0].anchor)])
