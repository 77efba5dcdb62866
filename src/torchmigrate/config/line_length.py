"""The line length that a project declares to its formatter or its linter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from torchmigrate.files.formats import FormatError, read_cfg, read_toml
from torchmigrate.files.paths import directories_of_project, entries, project_of, real_directory, remembered
from torchmigrate.files.reading import UnreadableError, read

_DEFAULT = 88  # of Black and of Ruff
_MOST = 1000  # columns; a larger value means no limit
_OF_RUFF = (".ruff.toml", "ruff.toml")
_OF_LINTERS = ("setup.cfg", "tox.ini", ".flake8")


def line_length(path: Path) -> int | None:
    """The columns that a line of a file may have; None where its project declares no limit.

    The nearest directory counts that declares one. In it, Ruff comes first, then Black, then flake8 and
    pycodestyle; both formatters have a default. Files that cannot be read declare nothing.
    """
    for directory in directories_of_project(real_directory(path.parent)):
        if (found := _declared(directory)) is not None:
            return found if found <= _MOST else None
    return None


@remembered
def _declared(directory: Path) -> int | None:
    given = list(_given(directory))
    return next((length for length in given if length), _DEFAULT if 0 in given else None)


def _given(directory: Path) -> Iterator[int]:
    """The values in the files of a directory, the strongest first; 0: the default of a formatter."""
    held = entries(directory)
    project = _toml(directory, "pyproject.toml") if "pyproject.toml" in held else {}
    tools = _table(project, "tool")
    own = [_toml(directory, name) for name in _OF_RUFF if name in held]
    for ruff in (*own[:1], *([tools["ruff"]] if "ruff" in tools and not own else [])):
        yield _length(ruff, "line-length")
        yield _length(_table(_table(ruff, "lint"), "pycodestyle"), "max-line-length")
    if "black" in tools:
        yield _length(tools["black"], "line-length") or _length(tools["black"], "line_length")
    for name in _OF_LINTERS:
        if name in held:
            yield from filter(None, _cfg(directory / name))


def _toml(directory: Path, name: str) -> dict[str, Any]:
    try:
        return read_toml(read(directory / name, within=project_of(directory)))
    except (FormatError, UnreadableError):
        return {}


def _cfg(path: Path) -> Iterator[int]:
    try:
        data = read(path, within=project_of(path.parent))
        parser = read_cfg(data.decode("utf-8", "replace"))
    except (FormatError, UnreadableError):
        return
    for section in ("flake8", "pycodestyle", "pep8"):
        for key in ("max-line-length", "max_line_length"):
            text = parser.get(section, key, fallback="").strip()
            if text.isascii() and text.isdigit() and len(text) < 10:
                yield int(text)


def _table(value: object, key: str) -> Mapping[str, Any]:
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def _length(table: object, key: str) -> int:
    found = table.get(key) if isinstance(table, dict) else None
    return found if type(found) is int and found > 0 else 0
