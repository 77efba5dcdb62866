"""Which names of a file others may take by their name: other files, strings, doctests."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import cached_property

from torchmigrate.patterns import pattern
from torchmigrate.semantics.model import Binding, SemanticModel
from torchmigrate.source.trees import walk

# Whether another file takes a name; the flag says whether a star import takes it (None: if it names it, too).
Elsewhere = Callable[[str, bool | None], bool]

_RUNS_TEXT = frozenset(["eval", "exec", "compile", "timeit", "repeat", "Timer", "runctx", "run_line"])
_OF_MODULE = frozenset(["globals", "vars"])
_READS = frozenset(["getattr", "hasattr"])
_WORD = pattern(r"[A-Za-z_]\w*")
_DOCTEST = pattern(r"^[ \t]*(?:>>>|\.\.\.)[ \t](.*)", re.MULTILINE)


def not_imported_elsewhere(name: str, starred: bool | None) -> bool:
    """What is known of a text that belongs to no project."""
    return False


class Exports:
    """What speaks for a name of the module but the uses that the resolver sees.

    Args:
        names: what the resolver found in the file.
        is_init: the file is an `__init__.py`, whose imports other modules use.
        elsewhere: whether another file of the project takes a name; called last, since it may take long.
        fails: whether an import raises an error on every supported release, so that no other file can import
        its name.
    """

    def __init__(
        self,
        names: SemanticModel,
        *,
        is_init: bool = False,
        elsewhere: Elsewhere = not_imported_elsewhere,
        fails: Callable[[Binding], bool] = lambda binding: False,
    ) -> None:
        self.names = names
        self.fails = fails
        self.is_init = is_init
        self._elsewhere = elsewhere
        self._asked: dict[str, bool] = {}

    def takes(self, binding: Binding) -> bool:
        """Whether the name that this binds has to stay bound."""
        name = binding.name
        if binding.exported or name in self.names.all_names:
            return True
        if binding.scope is not self.names.module:
            return False
        return self.is_init or self.is_taken(name)

    def keeps(self, binding: Binding) -> bool:
        """The same; of an import that fails, only what others name has to stay bound.

        Without what `__all__` names, a star import fails.
        """
        if not (binding.is_import and self.fails(binding)):
            return self.takes(binding)
        name = binding.name
        return name in self.names.all_names or name in self._in_strings or self._elsewhere(name, None)

    def is_taken(self, name: str) -> bool:
        """Whether a string, a doctest or another file takes a name of the module."""
        if name not in self._asked:
            starred = not self.names.all_names or name in self.names.all_names
            here = self._any_name or name in self._in_strings
            self._asked[name] = here or self._elsewhere(name, starred)
        return self._asked[name]

    @cached_property
    def _in_strings(self) -> set[str]:
        """The names in doctests, in text that is run as code, and in `globals()["name"]`."""
        found: set[str] = set()
        for node in self.names.nodes(ast.Constant):
            if isinstance(node.value, str) and ">>>" in node.value:
                for line in _DOCTEST.findall(node.value):
                    found.update(_WORD.findall(line))
        for call in self.names.nodes(ast.Call):
            called = _last(call.func)
            if called in _RUNS_TEXT:
                for text in _strings(call):
                    found.update(_WORD.findall(text))
            elif called in _READS and len(call.args) > 1 and self._is_module(call.args[0]):
                found.update(_strings(call.args[1]))
            elif isinstance(call.func, ast.Attribute) and self._is_module(call.func.value):
                found.update(text for argument in call.args[:1] for text in _strings(argument))
        for subscript in self.names.nodes(ast.Subscript):
            if self._is_module(subscript.value):
                found.update(_strings(subscript.slice))
        for attribute in self.names.nodes(ast.Attribute):
            if self._is_module(attribute.value):
                found.add(attribute.attr)
        return found

    @cached_property
    def _any_name(self) -> bool:
        """Whether the file reads names of its own that are made while it runs: `globals()[name]`."""
        known: set[int] = set()
        for subscript in self.names.nodes(ast.Subscript):
            if isinstance(subscript.slice, ast.Constant) or not isinstance(subscript.ctx, ast.Load):
                known.add(id(subscript.value))
        for call in self.names.nodes(ast.Call):
            if _last(call.func) in _READS and _is_constant(call.args[1:2]):
                known.add(id(call.args[0]))
            elif isinstance(call.func, ast.Attribute) and (
                call.func.attr == "update"
                or (call.func.attr in ("get", "setdefault") and _is_constant(call.args[:1]))
            ):
                known.add(id(call.func.value))
        nodes = [*self.names.nodes(ast.Call), *self.names.nodes(ast.Subscript)]
        attributes = {id(node.value) for node in self.names.nodes(ast.Attribute)}
        return any(self._is_module(node) and id(node) not in known | attributes for node in nodes)

    def _is_module(self, node: ast.AST) -> bool:
        """Whether an expression is this module or its names: `globals()`, `sys.modules[__name__]`."""
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name) and node.func.id in _OF_MODULE and not node.args:
                return node.func.id not in self.names.module.bindings
            return _last(node.func) in ("import_module", "__import__") and _is_own_name(node.args[:1])
        return (
            isinstance(node, ast.Subscript) and _last(node.value) == "modules" and _is_own_name([node.slice])
        )


def _is_constant(nodes: list[ast.expr]) -> bool:
    return any(isinstance(node, ast.Constant) for node in nodes)


def _is_own_name(nodes: list[ast.expr]) -> bool:
    return any(
        (isinstance(node, ast.Name) and node.id == "__name__")
        or (isinstance(node, ast.Constant) and node.value == "__main__")
        for node in nodes
    )


def _last(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _strings(node: ast.AST) -> Iterator[str]:
    for item in walk(node):
        if isinstance(item, ast.Constant) and isinstance(item.value, str):
            yield item.value
