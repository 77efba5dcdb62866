"""Which library names mean something else in a file, since its repository holds modules of that name."""

from __future__ import annotations

import os
import re
from pathlib import Path

from torchmigrate.files.paths import entries, exists, remembered
from torchmigrate.files.reading import UnreadableError, read
from torchmigrate.semantics.libraries import LIBRARY_ROOTS


@remembered
def _is_top(package: Path) -> bool:
    """Whether a package that is in no other one is imported by its own name.

    `texar/torch/` is a part of `texar`, which has no `__init__.py`: it imports itself as `texar.torch`.
    """
    try:
        text = read(package / "__init__.py")
    except UnreadableError:
        return True
    whole = os.fsencode(f"{package.parent.name}.{package.name}")
    return re.search(rb"(?<![\w.])%s\b" % re.escape(whole), text) is None


@remembered
def _package_of(directory: Path) -> str | None:
    """The top-level package that a directory belongs to, by its `__init__.py` files."""
    top: Path | None = None
    while _is_package(directory):
        top = directory
        if directory.parent == directory:
            break
        directory = directory.parent
    if top is None or (top.name in LIBRARY_ROOTS and not _is_top(top)):
        return None
    return top.name


@remembered
def _held(directory: Path) -> frozenset[str] | None:
    """Library names that the repository around a directory holds as packages, next to it or above it.

    The tests of `apex/apex/`, and files next to them, mean that package. What a package holds is a part of
    it, such as `nncf.torch`. None: there is no repository.
    """
    if exists(directory / ".git"):
        above: frozenset[str] | None = frozenset()
    else:
        above = None if directory.parent == directory else _held(directory.parent)
    if above is None:
        return None
    if _is_package(directory):
        return above
    held = LIBRARY_ROOTS & {*entries(directory)}
    return above.union(root for root in held if _is_package(directory / root) and _is_top(directory / root))


def _is_package(directory: Path) -> bool:
    return "__init__.py" in entries(directory) and exists(directory / "__init__.py")


@remembered
def _shadows(directory: Path) -> frozenset[str]:
    """Library names that a directory holds as modules of its own (a script there imports those).

    A module of a package is not found that way: there, `import torch` gives the library.
    """
    names = entries(directory)
    if _is_package(directory):
        return frozenset()
    return frozenset(
        root
        for root in LIBRARY_ROOTS
        if (f"{root}.py" in names and exists(directory / f"{root}.py"))
        or (root in names and _is_package(directory / root) and _is_top(directory / root))
    )


def own_packages(path: Path) -> frozenset[str]:
    """Library roots that mean something else in this file: its own package, or a module next to it.

    Not the file itself: a module does not import itself, so a `functorch.py` with `import functorch`
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
