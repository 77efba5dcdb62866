"""Which files of a directory are rule files."""

from __future__ import annotations

from pathlib import Path

from torchmigrate.catalogue.problems import CatalogueError, RuleProblem


def rule_paths(directory: Path) -> list[Path]:
    """The rule files below a directory, in a fixed order; hidden ones are left out."""
    paths = [path for pattern in ("*.yaml", "*.yml") for path in directory.rglob(pattern)]
    found = {path.relative_to(directory): path for path in paths}
    shown = [path for path in found if not any(part.startswith(".") for part in path.parts)]
    return [found[path] for path in sorted(shown, key=Path.as_posix)]


def directory_files(directory: Path) -> list[Path]:
    """The rule files below a directory that has to hold some.

    Raises:
        CatalogueError: it is not a directory, or holds none.
    """
    if not directory.is_dir():
        raise CatalogueError([RuleProblem(directory, 0, "is not a directory with rules")])
    paths = rule_paths(directory)
    if not paths:
        raise CatalogueError([RuleProblem(directory, 0, "contains no rule files (*.yaml)")])
    return paths
