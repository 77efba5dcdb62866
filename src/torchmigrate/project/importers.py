"""The modules that importing a module surely imports: not those in a function, a `try` or an `if`."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from torchmigrate.files.paths import entries
from torchmigrate.project.mentions import Name
from torchmigrate.semantics.libraries import LIBRARY_ROOTS

_ELSEWHERE = LIBRARY_ROOTS | sys.stdlib_module_names
# Directories at the top of a project from which modules are imported.
_ROOTS = frozenset(["", "src", "lib", "python"])


class Taken(Struct, frozen=True):
    """A module that is imported. member: it may be no module, but a name in the module above."""

    name: Name
    member: bool = False


def imported_at_import(tree: ast.Module, directory: Sequence[str]) -> list[Taken]:
    """The modules that the import of a file imports, those that hold them included.

    directory: that the file is in, as parts of an absolute path.
    """
    found: dict[Taken, None] = {}
    for statement in _running(tree.body):
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                parts = tuple(alias.name.split("."))
                found.update((Taken(Name(None, parts[: size + 1])), None) for size in range(len(parts)))
            continue
        level = statement.level
        base = tuple(directory[: len(directory) - level + 1]) if level else None
        parts = tuple((statement.module or "").split(".")) if statement.module else ()
        first = 0 if level else 1
        found.update((Taken(Name(base, parts[:size])), None) for size in range(first, len(parts) + 1))
        for alias in statement.names:
            if alias.name != "*":
                found[Taken(Name(base, (*parts, alias.name)), True)] = None
    return [
        taken
        for taken in found
        if taken.name.base is not None or not _ELSEWHERE.intersection(taken.name.parts[:1])
    ]


def _running(body: Sequence[ast.stmt]) -> Iterator[ast.Import | ast.ImportFrom]:
    for statement in body:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            yield statement
        elif isinstance(statement, (ast.ClassDef, ast.With)):
            yield from _running(statement.body)


def is_reached(module: Path, parts: Sequence[str], other: Path, root: Path) -> bool:
    """Whether the absolute name of a module, which is as its path ends, surely means it in another file.

    The directory from which it is imported is the directory of the other file or one around it, or at the top
    of the project, and is not a package.
    """
    above = Path(*module.parts[: len(module.parts) - len(parts)])
    if "__init__.py" in entries(above):
        return False
    near = above == other.parent or above in other.parents
    return near or (above == root or (above.parent == root and above.name in _ROOTS))
