"""Files next to the packages of a project: they need not run on its minimum."""

from __future__ import annotations

from pathlib import Path

from torchmigrate.files.paths import entries, remembered, with_parents
from torchmigrate.patterns import pattern

_BESIDE = frozenset(
    "test tests testing example examples benchmark benchmarks doc docs tutorial tutorials".split()
)
_METADATA = frozenset(["pyproject.toml", "setup.py", "setup.cfg"])
_HOLD_PACKAGES = frozenset(["src", "lib", "python"])
_BETWEEN_WORDS = pattern(r"[^a-z]+")


def is_beside_the_code(path: Path, directory: Path, root: Path) -> bool:
    """Whether a file is a test, an example, a benchmark or documentation, or else not installed.

    directory: where it is, as an absolute path.
    """
    stem = path.stem.lower()
    return (
        stem == "conftest"
        or stem.startswith("test_")
        or stem.endswith("_test")
        or is_directory_beside(path.parent, directory, root)
    )


@remembered
def is_directory_beside(given: Path, directory: Path, root: Path) -> bool:
    """The same of a directory, as it is named and as it is."""
    inside = directory.relative_to(root) if directory.is_relative_to(root) else given
    words = {word for part in inside.parts for word in _BETWEEN_WORDS.split(part.lower())}
    return not words.isdisjoint(_BESIDE) or _is_beside_packages(directory, root)


def _is_beside_packages(directory: Path, root: Path) -> bool:
    """Whether a directory is next to the packages of its project, such as `recipes/` or `scripts/`.

    `pip` installs packages, and modules at the root or below one of `_HOLD_PACKAGES`, such as `src`. The
    minimum of a project applies to its installed code.
    """
    home = None
    for place in with_parents(directory) if directory.is_relative_to(root) else ():
        if not _METADATA.isdisjoint(entries(place)):
            home = place
        if home is not None or place == root:
            break
    if home is None or directory == home:
        return False
    top = directory.relative_to(home).parts[0]
    return top not in _HOLD_PACKAGES and not _is_package(home / top) and _has_packages(home)


@remembered
def _has_packages(home: Path) -> bool:
    """Whether something below a directory is installed as a package, apart from `_BESIDE`, such as tests."""
    others = [name for name in entries(home) if name not in _HOLD_PACKAGES]
    inside = [place for name in _HOLD_PACKAGES & {*entries(home)} for place in _below(home / name)]
    return any(
        _is_package(place)
        for place in [*(home / name for name in others), *inside]
        if _BESIDE.isdisjoint(_BETWEEN_WORDS.split(place.name.lower()))
    )


def _below(directory: Path) -> list[Path]:
    return [directory / name for name in entries(directory)]


def _is_package(directory: Path) -> bool:
    return "__init__.py" in entries(directory)
