"""Rule files and codemods of installed packages, found by their entry points.

A configuration can only name them. No metadata of packages is read before a rule or a configuration does.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchmigrate.catalogue.problems import CatalogueError, RuleProblem, listed

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

CODEMODS = "torchmigrate.codemods"
RULES = "torchmigrate.rules"


@contextmanager
def _without_current_directory() -> Iterator[None]:
    """Find no module in the current directory, which `python -m torchmigrate` searches first.

    It may be a project.
    """
    before = sys.path[:]
    if before[:1] in ([""], [os.getcwd()]):  # noqa: PTH109 (as Python has it)
        del sys.path[0]
    try:
        yield
    finally:
        sys.path[:] = before


@functools.cache
def entry_points(group: str) -> dict[str, EntryPoint]:
    """The entry points of a group by name."""
    from importlib.metadata import distributions  # costs 20 ms

    with _without_current_directory():
        every = [entry for each in distributions() for entry in each.entry_points if entry.group == group]
    return {entry.name: entry for entry in reversed(every)}


def load(codemod: str) -> Any:
    """The module that an installed package has for a codemod. Raises what importing it raises."""
    with _without_current_directory():
        return entry_points(CODEMODS)[codemod].load()


def rule_directory(name: str) -> Path:
    """The directory with the rule files of an installed package; no code of the package runs.

    Raises:
        CatalogueError: no package brings rules under this name.
    """
    entry = entry_points(RULES).get(name)
    top, *below = entry.value.split(".") if entry is not None else [""]
    with _without_current_directory():
        spec = importlib.util.find_spec(top) if top else None
    for place in (spec and spec.submodule_search_locations) or ():
        if Path(place, *below).is_dir():
            return Path(place, *below)
    there = listed(sorted(entry_points(RULES)), last="and")
    problem = f"no installed package has rules under this name (entry points `{RULES}`: {there})"
    raise CatalogueError([RuleProblem(Path(f"package:{name}"), 0, problem)])


def fingerprint(codemods: Iterable[str]) -> str:
    """A text that changes when the code of one of these codemods changes."""
    return "".join(line for name in sorted(codemods) for line in _files(entry_points(CODEMODS).get(name)))


def _files(entry: EntryPoint | None) -> Iterator[str]:
    """The Python files of the package of an entry point, with the time of their last change."""
    with _without_current_directory():
        spec = importlib.util.find_spec(entry.module.partition(".")[0]) if entry is not None else None
    if entry is None or spec is None:
        return
    yield f"{entry.name} {entry.value}\n"
    places = map(Path, spec.submodule_search_locations or ())
    files = [file for place in places for file in sorted(place.rglob("*.py"))]
    for file in files or ([Path(spec.origin)] if spec.origin else []):
        found = file.stat()
        yield f"{file}:{found.st_mtime_ns}:{found.st_size}\n"
