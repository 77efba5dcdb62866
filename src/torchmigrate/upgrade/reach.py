"""Which files of tests a change may affect: by what they import, and by the names of files in their text."""

from __future__ import annotations

import ast
import os
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from pathlib import Path, PurePosixPath

from torchmigrate.files.reading import SOURCE, UnreadableError, read
from torchmigrate.patterns import pattern
from torchmigrate.project.mentions import Mentions

# What runs or reads files that no import tells: then every change counts.
_DYNAMIC = pattern(
    rb"\b(?:subprocess|runpy|exec|system|popen|spawn|import_module|__import__|spec_from_file_location"
    rb"|SourceFileLoader|walk_packages|iter_modules|entry_points|r?glob|listdir|scandir|iterdir|os\.walk)\b"
)
# What tests use only by its name: what a package asks for, and how it is installed.
_OF_INSTALLATION = pattern(
    r"setup\.(?:py|cfg)|pyproject\.toml|.*req.*\.(?:txt|in)|environment.*\.ya?ml|Pipfile"
)
_OF_ALL = pattern(r"pytest\.ini|tox\.ini|conftest\.py|.*\.(?:c|cc|cpp|cu|cuh|h|hpp|pyx)")


class Reach:
    """The files of a tree that files of tests use.

    tree: the directory of all. paths: of its files, relative to it, with `/`.
    """

    def __init__(self, tree: Path, paths: Collection[str]) -> None:
        self.tree = Path(os.path.realpath(tree))
        self.paths = frozenset(paths)
        self._by_name: defaultdict[str, list[tuple[str, ...]]] = defaultdict(list)
        for path in self.paths:
            if path.endswith(".py"):
                parts = _module(path)
                self._by_name[parts[-1] if parts else ""].append(parts)
        self._direct: dict[str, frozenset[str]] = {}

    def affected(self, changed: Collection[str], tests: Iterable[str]) -> set[str]:
        """Those of some files of tests whose outcomes a change of other files may change."""
        names = [PurePosixPath(path).name for path in changed]
        if any(map(_OF_ALL.fullmatch, names)):
            return set(tests)
        word = re.compile(b"|".join(re.escape(name.encode()) for name in names) or b"(?!)")
        runs_anything = not all(map(_OF_INSTALLATION.fullmatch, names))

        @cache
        def is_source(path: str) -> bool:
            text = self._text(path)
            named = path in changed or word.search(text) is not None
            return named or (runs_anything and _DYNAMIC.search(text) is not None)

        return {test for test in tests if any(map(is_source, self.used(test)))}

    def used(self, test: str) -> Iterator[str]:
        """The file itself, and what it may import, one after the other."""
        found = {test, *self._above(test, "conftest.py")}
        left = list(found)
        while left:
            path = left.pop()
            yield path
            new = self._uses(path) - found
            found |= new
            left += new

    def _uses(self, path: str) -> frozenset[str]:
        """The files that a file may import, also by names in strings, with the packages that they are in."""
        known = self._direct.get(path)
        if known is None:
            found = {used for parts in self._names(path) for used in self._files(parts)}
            found |= {above for used in [*found, path] for above in self._above(used, "__init__.py")}
            known = self._direct[path] = frozenset(found)
        return known

    def _names(self, path: str) -> Iterator[tuple[str, ...]]:
        try:
            tree = ast.parse(self._text(path))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return
        mentions = Mentions(tree, PurePosixPath(path).parent.parts)
        yield from ((*(name.base or ()), *name.parts) for name in (*mentions.names, *mentions.stars))
        yield from mentions.strings
        yield from (tuple(text.split(".")) for text in mentions.texts if text.endswith(".py"))

    def _files(self, name: tuple[str, ...]) -> Iterator[str]:
        """The files that a dotted name, or what it begins with, may mean, wherever Python looks for it."""
        for size in range(1, len(name) + 1):
            for parts in self._by_name.get(name[size - 1], ()):
                if parts[-size:] == name[:size]:
                    path = "/".join(parts)
                    yield from {f"{path}.py", f"{path}/__init__.py"} & self.paths

    def _above(self, path: str, name: str) -> Iterator[str]:
        for directory in PurePosixPath(path).parents:
            found = (directory / name).as_posix()
            if found in self.paths:
                yield found

    def _text(self, path: str) -> bytes:
        try:
            return read(self.tree / path, SOURCE, within=self.tree)
        except UnreadableError:
            return b"exec"  # nothing is known of it


def _module(path: str) -> tuple[str, ...]:
    parts = PurePosixPath(path).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts
