"""Modules that exist for every name, to run code without the libraries it imports.

An attribute of a fake module is a `Fake` with its qualified name. Fakes can be called (returning an object
that is none of theirs), used as decorators, base classes and context managers; each use is recorded.
"""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Iterator, Sequence
from typing import Any

VERSION = "2.15.0"


class Result:
    """What calling a fake gives: perhaps a decorator."""

    def __call__(self, function: Any) -> Any:
        return function


class Fake:
    """A function or class of a library, by its qualified name."""

    def __init__(self, name: str, used: list[str]) -> None:
        self.name = name
        self.used = used

    def __getattr__(self, attribute: str) -> Fake:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        return Fake(f"{self.name}.{attribute}", self.used)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.used.append(self.name)
        if len(args) == 1 and not kwargs and isinstance(args[0], types.FunctionType):
            return args[0]  # as a decorator
        return Result()

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        self.used.append(self.name)
        return ()


class FakeModule(types.ModuleType):
    """A module with every attribute."""

    def __init__(self, name: str, used: list[str]) -> None:
        super().__init__(name)
        self.__path__: list[str] = []
        self.__version__ = VERSION
        self._used = used

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        return sys.modules.get(f"{self.__name__}.{attribute}") or Fake(
            f"{self.__name__}.{attribute}", self._used
        )


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, roots: frozenset[str], used: list[str]) -> None:
        self.roots = roots
        self.used = used

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] not in self.roots:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return FakeModule(spec.name, self.used)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


@contextlib.contextmanager
def fake_libraries(roots: frozenset[str]) -> Iterator[list[str]]:
    """Replace some libraries by fakes; yields the (growing) list of the names that were used."""

    def inside(name: str) -> bool:
        return name.partition(".")[0] in roots

    used: list[str] = []
    finder = _Finder(roots, used)
    hidden = {name: sys.modules.pop(name) for name in list(sys.modules) if inside(name)}
    sys.meta_path.insert(0, finder)
    try:
        yield used
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if inside(name)]:
            del sys.modules[name]
        sys.modules.update(hidden)
