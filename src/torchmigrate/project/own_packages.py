"""Which library names mean something else in a file, since its repository holds modules of that name."""

from __future__ import annotations

from pathlib import Path

from torchmigrate.files.paths import entries, exists, remembered
from torchmigrate.semantics.libraries import LIBRARY_ROOTS


@remembered
def _package_of(directory: Path) -> str | None:
    """The top-level package that a directory belongs to, by its `__init__.py` files."""
    top = None
    while "__init__.py" in entries(directory) and exists(directory / "__init__.py"):
        top = directory.name
        if directory.parent == directory:
            break
        directory = directory.parent
    return top


@remembered
def _held(directory: Path) -> frozenset[str] | None:
    """Library names that the repository around a directory holds as packages, beside or above it.

    The tests of `apex/apex/`, and what stands next to them, mean that one. None: there is no repository.
    """
    if exists(directory / ".git"):
        above: frozenset[str] | None = frozenset()
    else:
        above = None if directory.parent == directory else _held(directory.parent)
    if above is None:
        return None
    held = LIBRARY_ROOTS & {*entries(directory)}
    return above.union(root for root in held if exists(directory / root / "__init__.py"))


@remembered
def _shadows(directory: Path) -> frozenset[str]:
    """Library names that a directory holds as modules of its own (a script there imports those).

    A module of a package is not found that way: there, `import torch` gives the library.
    """
    names = entries(directory)
    if "__init__.py" in names and exists(directory / "__init__.py"):
        return frozenset()
    return frozenset(
        root
        for root in LIBRARY_ROOTS
        if (f"{root}.py" in names and exists(directory / f"{root}.py"))
        or (root in names and exists(directory / root / "__init__.py"))
    )


def own_packages(path: Path) -> frozenset[str]:
    """Library roots that mean something else in this file: its own package, or a module beside it.

    Not the file itself: nobody imports a module into itself, so that a `functorch.py` with `import functorch`
    means the library, though Python would find the file first if that was run as a script.
    """
    directory = path.absolute().parent
    own = _package_of(directory)
    shadows = _shadows(directory)
    if path.stem in shadows and not exists(directory / path.stem / "__init__.py"):
        shadows -= {path.stem}
    return (
        shadows
        | (_held(directory) or frozenset())
        | (frozenset([own]) if own in LIBRARY_ROOTS else frozenset())
    )
