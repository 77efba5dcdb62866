"""The lines of code that are tried: every way to write a name, each in a function of its own.

In a function a line depends on no other: its import is its own, and so is what a fix makes of it.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

FUNCTIONS = 1000  # in one file
SHORTEST = 8  # names under which the attributes of a class are tried; `Tensor` is in a thousand modules

Library = dict[str, dict[str, list[str]]]  # module -> name -> attributes, of a class


class Line(NamedTuple):
    """What a function does. name: the qualified name that it is about."""

    name: str
    body: tuple[str, ...]


def lines(library: Library) -> Iterator[Line]:
    """Every line, module by module."""
    offered = _offered(library)
    for module, names in library.items():
        yield Line(module, (f"import {module}", f"return {module}"))
        yield Line(module, (f"import {module} as a", "return a"))
        package, _, last = module.rpartition(".")
        if package:
            yield Line(module, (f"from {package} import {last} as a", "return a"))
        for name, attributes in names.items():
            path = f"{module}.{name}"
            yield Line(path, (f"import {module} as a", f"c = a.{name}", "return c"))
            yield Line(path, (f"import {module}", f"c = {path}", "return c"))
            yield Line(path, (f"from {module} import {name} as b", "return b"))
            yield Line(path, (f"from {module} import {name}", f"return {name}"))
            for attribute in attributes if path in offered else ():
                there = f"{path}.{attribute}"
                yield Line(there, (f"import {module}", f"d = {there}", "return d"))
                yield Line(there, (f"from {module} import {name} as e", f"f = e.{attribute}", "return f"))


def _offered(library: Library) -> set[str]:
    """The names of classes of which the attributes are tried: the shortest, public ones before private."""
    found: dict[tuple[str, int, str], list[str]] = {}
    for module, names in library.items():
        for name, attributes in names.items():
            if attributes:  # the same name with the same attributes is mostly the same class
                key = name, len(attributes), attributes[-1]
                found.setdefault(key, []).append(f"{module}.{name}")
    for paths in found.values():
        paths.sort(key=lambda path: ("._" in path, path.count("."), path))
    return {path for paths in found.values() for path in paths[:SHORTEST]}


def sampled(found: Iterable[Line], every: int, wanted: Callable[[str], bool]) -> Iterator[Line]:
    """One in `every` lines, always the same ones, and all that are about a wanted name."""
    for line in found:
        if not zlib.crc32(repr(line).encode()) % every or wanted(line.name):
            yield line


def files(found: Iterable[Line]) -> Iterator[str]:
    """The lines as texts of Python files, a function each: `f0`, `f1`, and so on."""
    functions: list[str] = []
    for line in found:
        functions.append("\n    ".join((f"def f{len(functions)}():", *line.body)) + "\n")
        if len(functions) == FUNCTIONS:
            yield "\n\n".join(functions)
            functions = []
    if functions:
        yield "\n\n".join(functions)
