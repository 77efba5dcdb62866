"""The directory of a cache: where it is, how it is made, and what may be removed from it.

Its content is untrusted: a cloned repository can bring one. Links are not followed out of the
project, and only files that are named as ours are removed.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from torchmigrate.files.paths import entries, shared_directories
from torchmigrate.patterns import pattern

DIRECTORY = ".torchmigrate_cache"
DAYS = 30  # what was not used for so long vanishes
MOST_STORES = 100  # one for each project and each way to call the program
CONTENTS = "contents.json"  # what files held, whatever the program and its settings are
_OURS = pattern(r"(?:[0-9a-f]{32}|contents)\.json")
_TEMPORARY = pattern(r"(?:[0-9a-f]{32}|contents)\.\w+\.tmp")
_TAG = "CACHEDIR.TAG"
_FILES = {
    ".gitignore": "# Made by torchmigrate.\n*\n",
    _TAG: (
        "Signature: 8a477f597d28d172789f06886806bc55\n"
        "# This file is a cache directory tag, made by torchmigrate.\n"
        "# For information about cache directory tags see https://bford.info/cachedir/\n"
    ),
}
_DAY = 86_400


def directory_for(root: Path, given: Path | None) -> Path | None:
    """Where the cache of a project is; None: nowhere, since its directory is one that many share.

    Args:
        root: of the project.
        given: by the user.
    """
    if given is not None:
        return given.absolute()
    real = Path(os.path.realpath(root))
    return None if real in shared_directories() else real / DIRECTORY


def is_usable(directory: Path) -> bool:
    """Whether a directory is there that may be read; a link in the place of a cache is none."""
    try:
        return directory.name != DIRECTORY or stat.S_ISDIR(os.lstat(directory).st_mode)
    except OSError:
        return False


def make(directory: Path) -> None:
    """Make the directory, with what tells git and backups to leave it alone. Raises OSError."""
    if directory.name == DIRECTORY:
        if not os.path.lexists(directory):
            directory.mkdir()  # the project is there
        if not is_usable(directory):
            raise NotADirectoryError(20, "not a directory", str(directory))
    else:
        directory.mkdir(parents=True, exist_ok=True)
    if any(name not in _FILES and not _is_ours(name) for name in os.listdir(directory)):  # noqa: PTH208
        return  # it holds something else, which git and backups are to see
    for name, text in _FILES.items():
        with suppress(FileExistsError), (directory / name).open("x", encoding="utf-8") as file:
            file.write(text)


def replace(path: Path, data: bytes) -> None:
    """Write a file of a cache in one step. Raises OSError."""
    from torchmigrate.files.signals import held

    temporary = path.with_suffix(f".{os.getpid()}_{time.time_ns()}.tmp")
    with held():
        try:
            with temporary.open("xb") as file:
                file.write(data)
            temporary.replace(path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise


def tidy(directory: Path, now: float) -> None:
    """Remove what is too old, or too much. now: seconds since 1970."""
    found: list[tuple[float, Path]] = []
    for path in _ours(directory):
        with suppress(OSError):
            found.append((path.lstat().st_mtime, path))
    found.sort(reverse=True)
    for number, (changed, path) in enumerate(found):
        days = 1 if path.suffix == ".tmp" else DAYS
        if number >= MOST_STORES or now - changed > days * _DAY:
            with suppress(OSError):
                path.unlink()


def remove(directory: Path) -> bool:
    """Remove a cache, but nothing that is not ours; whether there was one. Raises OSError."""
    if not is_usable(directory):
        return False
    found = [*_ours(directory)]
    with suppress(OSError):
        if (directory / _TAG).read_text("utf-8") == _FILES[_TAG]:
            found += [directory / name for name in _FILES]
    for path in found:
        path.unlink(missing_ok=True)
    with suppress(OSError):  # something else is in it
        directory.rmdir()
    return bool(found)


def caches_below(directory: Path) -> Iterator[Path]:
    """The caches in a directory and below it; links are not followed."""
    for place, names, _ in os.walk(directory):
        names.sort()
        if DIRECTORY in names:
            names.remove(DIRECTORY)
            yield Path(place, DIRECTORY)


def _ours(directory: Path) -> Iterator[Path]:
    for name in sorted(entries.__wrapped__(directory)):  # as it is now
        if _is_ours(name):
            yield directory / name


def _is_ours(name: str) -> bool:
    return bool(_OURS.fullmatch(name) or _TEMPORARY.fullmatch(name))
