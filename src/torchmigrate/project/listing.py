"""Where the project of a file begins, which of its files may say something of others, and their state.

Every run with a cache asks, so that nothing here parses anything.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from torchmigrate.files.digests import blake2b, digest_of
from torchmigrate.files.paths import (
    PROJECT_FILES,
    entries,
    exists,
    is_file,
    project_of,
    remembered,
    shared_directories,
    with_parents,
    work_tree_of,
)
from torchmigrate.files.reading import SOURCE, UnreadableError, read
from torchmigrate.project.discover import SettingsIn, discover_real

NOTEBOOK = ".ipynb"
# Of a project that is searched; in a bigger one nothing is known, and every name stays.
MOST_FILES = 10_000
MOST_BYTES = 100_000_000


@remembered
def project_root(directory: Path, root: Path) -> Path:
    """The directory of the project that a directory is in.

    That is the repository. Without one it is the highest directory that has the files of a project (such as
    `pyproject.toml`), or that is reached through directories with Python files; or `root`, if that is above.
    """
    if (top := work_tree_of(directory)) is not None:
        return top
    above = with_parents(directory)
    outside = shared_directories()
    inside = [place for place in above if place not in outside]
    found = [directory]
    found += [place for place in inside if not PROJECT_FILES.isdisjoint(entries(place))]
    if root in above and root not in outside:
        found.append(root)
    for place in inside:
        if place != directory and not any(name.endswith(".py") for name in entries(place)):
            break
        found.append(place)
    return min(found, key=lambda place: len(place.parts))


def project_around(path: Path, root: Path) -> Path:
    """Where the files are that one which is not Python may name: its repository, or what patterns are for.

    root: the root of the settings.
    """
    return _project_around(os.path.dirname(path), root)  # noqa: PTH120 (of every file)


@remembered
def _project_around(directory: str, root: Path) -> Path:
    place, root = Path(directory).absolute(), root.absolute()
    top = project_of(place)
    return root if top == place and place.is_relative_to(root) else top


def files_of(root: Path, settings_in: SettingsIn | None) -> list[Path] | None:
    """The real paths of the Python files and notebooks of a project; None: there is too much to look at."""
    if settings_in is None:
        return []
    suffixes = (".py", ".pyi", NOTEBOOK)
    if root in shared_directories():  # only files of one directory belong together
        files = [root / name for name in entries(root) if name.endswith(suffixes)]
        return sorted(path for path in files if is_file(path))
    return discover_real(root, settings_in, suffixes, MOST_FILES)


def content_of(path: Path) -> bytes:
    """The content of a file of a project; nothing where it cannot be read."""
    try:
        return read(path, SOURCE)
    except UnreadableError:
        return b""


def state_of(
    root: Path, settings_in: SettingsIn | None, digest: Callable[[Path], bytes | None] | None = None
) -> str:
    """A digest of all that the index of a project looks at: as long as it is the same, so is every answer.

    That is what its files hold, and which modules and packages are next to them and around them.

    Args:
        digest: returns the digest of a file's content if it is known already, as `digest_of` makes it.
    """
    files = files_of(root, settings_in)
    state = blake2b(digest_size=16)
    for part in _states(root, files, digest or (lambda path: None)):
        state.update(part)
        state.update(b"\0")
    return state.hexdigest()


def _states(root: Path, files: list[Path] | None, digest: Callable[[Path], bytes | None]) -> Iterator[bytes]:
    yield os.fsencode(root)
    if files is None:
        yield b"too many"
        return
    directories: dict[str, None] = {}
    left = {True: MOST_BYTES, False: MOST_BYTES}
    top = str(root).rstrip(os.sep) + os.sep
    for path in files:
        name = str(path)
        yield os.fsencode(name)
        known = digest(path)
        if known is None:
            is_notebook = name.endswith(NOTEBOOK)
            data = content_of(path) if left[is_notebook] >= 0 else b""
            left[is_notebook] -= len(data)  # of what is too large, only the size counts
            known = digest_of(data)
        yield known
        place = os.path.dirname(name)  # noqa: PTH120 (of every file in a project)
        while place not in directories and (place + os.sep).startswith(top):
            directories[place] = None
            place = os.path.dirname(place)  # noqa: PTH120
    around = root
    while "__init__.py" in entries(around) and around.parent != around:  # it may be in a package itself
        around = around.parent
    yield os.fsencode(around)
    for place in sorted(directories):
        yield os.fsencode(place)
        for name in sorted(entries(Path(place))):
            if name.endswith(".py"):
                yield os.fsencode(name)
            elif name.isidentifier() and os.path.join(place, name) not in directories:  # noqa: PTH118
                yield os.fsencode(name) if exists(Path(place, name, "__init__.py")) else b""
