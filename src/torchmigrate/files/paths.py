"""Whether a path is there, where a directory on the way may be closed.

`Path.exists`, `is_file`, `is_dir` raise PermissionError below a directory that this user may not enter (until
Python 3.14). For looking around, what cannot be reached is not there.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
PROJECT_FILES = frozenset(["pyproject.toml", "setup.py", "setup.cfg", "torchmigrate.toml"])
_forget: list[Callable[[], None]] = []


def remembered(function: Callable[..., T]) -> functools._lru_cache_wrapper[T]:
    """Ask the file system once for each directory or path, until `forget` is called."""
    cached = functools.lru_cache(maxsize=4096)(function)
    _forget.append(cached.cache_clear)
    return cached


def forget() -> None:
    """Look anew at whatever is `remembered`: files may have been created, removed or changed since."""
    for clear in _forget:
        clear()


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


def has_other_links(path: Path) -> bool:
    """Whether other hard links lead to a file, which keep the old content when it is replaced."""
    try:
        return path.stat().st_nlink > 1
    except OSError:
        return False


def is_dir(path: Path) -> bool:
    """Whether there is a directory that this user can see."""
    try:
        return path.is_dir()
    except OSError:
        return False


@remembered
def with_parents(directory: Path) -> tuple[Path, ...]:
    """A directory and those above it, the root last; the same objects for all that ask."""
    parent = directory.parent
    return (directory,) if parent == directory else (directory, *with_parents(parent))


def real_directory(directory: Path) -> Path:
    """The real path of a directory, for many calls."""
    return _real(directory.absolute())


@remembered
def _real(directory: Path) -> Path:
    parent = directory.parent
    if os.name == "nt" or parent == directory or directory.name == os.pardir or os.path.islink(directory):  # noqa: PTH114
        return Path(os.path.realpath(directory))
    real = _real(parent)
    return directory if real is parent else real / directory.name


def repository_of(start: Path) -> Path | None:
    """The root of the repository that a directory is in."""
    return next((place for place in with_parents(start.absolute()) if exists(place / ".git")), None)


def project_of(directory: Path) -> Path:
    """What counts as the project of a directory, as a real path: its repository, or itself.

    What is outside of it is read only where the user named it.
    """
    real = real_directory(directory)
    return real_directory(repository_of(real) or real)


@remembered
def entries(directory: Path) -> Collection[str]:
    """The names in a directory, for many calls; links that lead nowhere are among them."""
    try:
        return frozenset(os.listdir(directory))  # noqa: PTH208 (names are all that is needed)
    except OSError:
        return frozenset()


_VERSION_CONTROL = (".git", ".hg", ".svn")


@remembered
def work_tree_of(directory: Path) -> Path | None:
    """The root of what is under version control around a directory; of a submodule, the one around it."""
    above = with_parents(directory)
    for marker in _VERSION_CONTROL:
        held = [place for place in above if marker in entries(place)]
        # A submodule, which has a file of that name, belongs to the repository around it.
        for place in [item for item in held if (item / marker).is_dir()] or held:
            return place
    return None


@remembered
def shared_directories() -> frozenset[Path]:
    """Directories that hold everything: what is below them does not belong together."""
    # Not by `tempfile`, which takes long to load.
    named = [os.environ.get(name, "") for name in ("TMPDIR", "TEMP", "TMP")]
    with contextlib.suppress(RuntimeError):  # there is no home
        named.append(str(Path.home()))
    found = [Path(os.path.realpath(path)) for path in ("/tmp", "/var/tmp", *filter(None, named))]
    return frozenset([*found, Path(found[0].anchor)])


def directories_of_project(directory: Path) -> list[Path]:
    """A real directory and those above it that belong to its project, the outermost last.

    The outermost is the root of the repository. Without one, it is the highest below `shared_directories`.
    """
    above = with_parents(directory)
    top = work_tree_of(directory)
    if top is not None:
        return [*above[: above.index(top) + 1]]
    outside = shared_directories()
    return [directory, *itertools.takewhile(lambda place: place not in outside, above[1:])]


def nearest_project(start: Path) -> Path | None:
    """The nearest real directory with a project file, such as `pyproject.toml`, at or above a directory.

    None if its project has no such file.
    """
    above = directories_of_project(real_directory(start))
    return next((place for place in above if not PROJECT_FILES.isdisjoint(entries(place))), None)


def project_directory(start: Path) -> Path:
    """What patterns are relative to without a configuration: where the command runs, if that is above."""
    here = Path.cwd()
    return here if start.is_relative_to(here) else start


def common_directory(paths: Sequence[Path]) -> Path:
    """The directory that holds all of the paths; they need not exist."""
    places = [path.absolute() if is_dir(path) else path.absolute().parent for path in paths]
    try:
        return Path(os.path.commonpath([os.path.normpath(place) for place in places]))
    except ValueError:  # different drives
        return Path.cwd()
