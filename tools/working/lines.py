"""The lines of code that are tried: every way to write a name, each in a function of its own.

In a function a line depends on no other: its import is its own, and so is what a fix makes of it.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

FUNCTIONS = 500  # in one file


class Members(NamedTuple):
    """The public names of a module.

    names: name -> the number of the class that it is, if it is one of the libraries.
    stars: what `import *` gives.
    classes: own and inherited public attributes of classes, by number; each in the first module that has it.
    """

    names: dict[str, int | None]
    stars: list[str]
    classes: dict[str, tuple[list[str], list[str]]]


Library = dict[str, Members]


class Line(NamedTuple):
    """What a function does.

    name: the qualified name that it is about.
    body: `@` in it is the number of the function, so that no two functions of a file have a name in common.
    top: the import at the top of its file.
    """

    name: str
    body: tuple[str, ...]
    top: str = ""


def lines(library: Library) -> Iterator[Line]:
    """Every line, module by module."""
    shortest = _shortest(library)
    classes = {key: both for members in library.values() for key, both in members.classes.items()}
    for module, members in library.items():
        yield Line(module, (f"import {module}", f"return {module}"))
        yield Line(module, (f"import {module} as a@", "return a@"))
        package, _, last = module.rpartition(".")
        if package:
            yield Line(module, (f"from {package} import {last} as a@", "return a@"))
        for name, number in members.names.items():
            path = f"{module}.{name}"
            yield Line(path, (f"import {module}", f"c@ = {path}", "return c@"))
            yield Line(path, (f"from {module} import {name} as b@", "return b@"))
            if number is None or shortest[number] != path:
                continue
            own, inherited = classes[str(number)]
            for attribute in own:
                there = f"{path}.{attribute}"
                yield Line(there, (f"import {module}", f"d@ = {there}", "return d@"))
            for attribute in (*own, *inherited):
                there = f"{path}.{attribute}"
                yield Line(there, (f"from {module} import {name} as e@", f"f@ = e@.{attribute}", "return f@"))
        for name in members.stars:
            yield Line(f"{module}.{name}", (f"return {name}",), f"from {module} import *")


def _shortest(library: Library) -> dict[int, str]:
    """The shortest name of each class, public ones before private: under that its attributes are tried."""
    found: dict[int, list[str]] = {}
    for module, members in library.items():
        for name, number in members.names.items():
            if number is not None:
                found.setdefault(number, []).append(f"{module}.{name}")
    return {
        number: min(paths, key=lambda path: ("._" in path, path.count("."), path))
        for number, paths in found.items()
    }


def sampled(found: Iterable[Line], every: int, wanted: Callable[[str], bool]) -> Iterator[Line]:
    """One in `every` lines, always the same ones, and all that are about a wanted name."""
    for line in found:
        if not zlib.crc32(repr(line).encode()) % every or wanted(line.name):
            yield line


def files(found: Iterable[Line]) -> Iterator[str]:
    """The lines as texts of Python files, a function each: `f0`, `f1`, and so on."""
    by_top: dict[str, list[Line]] = {}
    for line in found:
        by_top.setdefault(line.top, []).append(line)
    for top, those in by_top.items():
        for start in range(0, len(those), FUNCTIONS):
            functions = [top + "\n"] * bool(top)
            for number, line in enumerate(itertools.islice(those, start, start + FUNCTIONS)):
                body = "\n    ".join(line.body).replace("@", str(number))
                functions.append(f"def f{number}():\n    {body}\n")
            yield "\n\n".join(functions)
