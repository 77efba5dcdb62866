"""Which names in tests a file has from other files of its project: `if utils.TORCH_IS_NEW:`."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from torchmigrate.patterns import pattern
from torchmigrate.project.mentions import Name
from torchmigrate.semantics.guards.spellings import compares_versions
from torchmigrate.semantics.guards.tests import may_mark
from torchmigrate.semantics.libraries import LIBRARY_ROOTS
from torchmigrate.semantics.model import Binding, BindingKind, SemanticModel
from torchmigrate.source.trees import last_name, walk

# A name that seems to say which release there is: `TORCH_GE_1_8`, `is_torch_version`, `skip_if_torch_lt`.
_PROMISES = pattern(
    "torch.*(?:[0-9]|version|greater|less|higher|lower|newer|older|later|min|max|after|before|_[gl][te])"
    "|(?:version|_[gl][te]_|min|max).*torch"
)


class Tested(NamedTuple):
    """A name that a file has from another one. attributes: those of it that tests ask, if it is a module."""

    name: Name
    attributes: frozenset[str]


def is_promising(names: SemanticModel) -> bool:
    """Whether a name that a file imports seems to be about a version."""
    for binding in names.imports:
        name = binding.name.lower()
        if "torch" in name and _PROMISES.search(name) and not _is_of_library(binding):
            return True
    return False


def tested_names(names: SemanticModel, path: Path) -> dict[str, Tested]:
    """The imported names that a test or a decorator of a file reads, by their local names.

    A key with dots, such as `package.compat.NEW`, is an attribute that a test reads from a module below an
    imported one.
    """
    imports = {binding.name: binding for binding in names.imports if not _is_of_library(binding)}
    asked: defaultdict[str, set[str]] = defaultdict(set)
    found = {}
    for test in names.asked if imports else ():
        for local, *attributes in _asked(test):
            if local not in imports:
                continue
            binding, directory = imports[local], path.parent.parts
            whole, first = _imported(binding, directory), 1
            if whole is None:
                if binding.kind is not BindingKind.IMPORT:
                    continue
                whole, first = Name(None, (local,)), 0  # the first part of `import package.compat`
            else:
                asked[local].add(attributes[0] if attributes else "")
            for size in range(first + 1, len(attributes) + 1):
                below = attributes[:size]
                found[".".join((local, *below))] = Tested(whole.plus(*below), frozenset())
    for local, directly in asked.items():
        whole = _imported(imports[local], path.parent.parts)
        if whole is not None:
            found[local] = Tested(whole, frozenset(directly))
    return found


def imported_from(
    tree: ast.Module, directory: tuple[str, ...], names: Collection[str]
) -> Iterator[tuple[str, Name]]:
    """What `from` imports bind under a part of some dotted names: the local name, and what it means.

    directory: that the file is in, as parts of an absolute path.
    """
    parts = {part for name in names for part in name.split(".")}
    for node in walk(tree):
        if not isinstance(node, ast.ImportFrom):
            continue
        base = directory[: len(directory) - node.level + 1] if node.level else None
        module = tuple(node.module.split(".")) if node.module else ()
        for alias in node.names:
            if alias.name in parts:
                yield alias.asname or alias.name, Name(base, (*module, alias.name))


def imported_name(names: SemanticModel, node: ast.expr, path: Path) -> Name | None:
    """What a dotted name means that begins with what an import binds; None: it does not, or not for sure."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    found = [each for each in names.imports if isinstance(node, ast.Name) and each.name == node.id]
    if len(found) != 1 or _is_of_library(found[0]):
        return None
    whole = _imported(found[0], path.parent.parts)
    if whole is None and found[0].kind is BindingKind.IMPORT:  # the first part of `import package.compat`
        whole = Name(None, (found[0].name,))
    return None if whole is None else whole.plus(*parts)


def _is_of_library(binding: Binding) -> bool:
    return (binding.target or "").partition(".")[0] in LIBRARY_ROOTS


def _asked(test: ast.expr) -> Iterator[tuple[str, ...]]:
    """The names that may make a test depend on versions, without the arguments of functions.

    Each with the attributes that are read: `("package", "compat", "NEW")`.
    """
    waiting = [test]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.Name, ast.Attribute)):
            attributes = []
            while isinstance(node, ast.Attribute):
                attributes.append(node.attr)
                node = node.value
            if isinstance(node, ast.Name):
                yield (node.id, *reversed(attributes))
            else:
                waiting.append(node)
        elif isinstance(node, (ast.Subscript, ast.NamedExpr)):
            waiting.append(node.value)
        elif isinstance(node, ast.BoolOp):
            waiting += node.values
        elif isinstance(node, ast.UnaryOp):
            waiting.append(node.operand)
        elif isinstance(node, ast.IfExp):
            waiting += (node.test, node.body, node.orelse)
        elif isinstance(node, ast.Compare):
            waiting += (node.left, *node.comparators)
        elif isinstance(node, ast.Call):
            waiting.append(node.func)
            name = last_name(node.func)
            if may_mark(name) or compares_versions(name):  # `is_torch_version(">=", MINIMUM)`
                waiting += (*node.args, *(keyword.value for keyword in node.keywords))


def _imported(binding: Binding, directory: tuple[str, ...]) -> Name | None:
    """What an import binds; None for the first part of `import a.b`."""
    target = binding.target or ""
    inside = target.lstrip(".")
    level = len(target) - len(inside)
    if not inside or (binding.kind is BindingKind.IMPORT and binding.module != target):
        return None
    base = directory[: len(directory) - level + 1] if level else None
    return Name(base, tuple(inside.split(".")))
