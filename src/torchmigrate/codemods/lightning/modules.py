"""Classes of the file that derive from a class of Lightning, also through another class of the file."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchmigrate.codemods.base.subclasses import Subclass
from torchmigrate.rewrite.context import FileContext
from torchmigrate.semantics.model import Role
from torchmigrate.source.trees import walk

_ROOTS = ("pytorch_lightning", "lightning")


def subclasses(file: FileContext, base: str) -> list[Subclass]:
    """The classes derived from one that Lightning calls `base`, such as "LightningModule"."""
    return file.once(("lightning subclasses", base), lambda: _subclasses(file, base))


def _subclasses(file: FileContext, base: str) -> list[Subclass]:
    found: dict[str, Subclass] = {}
    for use in file.names.uses:
        if use.role is not Role.BASE or file.runs_elsewhere(use.node):
            continue
        owner, names = use.statement, [candidate.split(".") for candidate in use.candidates]
        # `pl` may be either package.
        if not isinstance(owner, ast.ClassDef) or not any(part is use.node for part in owner.bases):
            continue
        if all(parts[0] in _ROOTS and parts[-1] == base for parts in names):
            found[owner.name] = Subclass(owner, use, len(owner.bases) == 1)
    classes = file.names.nodes(ast.ClassDef)
    for node in classes:  # a class comes after those that it derives from
        bases = [part.id for part in node.bases if isinstance(part, ast.Name)]
        above = next((name for name in bases if name in found), None)
        if above is not None and node.name not in found:
            found[node.name] = Subclass(node, found[above].base, len(node.bases) == 1)
    return list(found.values())


def attributes(file: FileContext, name: str) -> Iterator[ast.Attribute]:
    """The attributes of this name in the file."""
    return (node for node in file.names.nodes(ast.Attribute) if node.attr == name)


def names_in(node: ast.AST, name: str) -> list[ast.Name]:
    """The uses of a variable below a node."""
    return [part for part in walk(node) if isinstance(part, ast.Name) and part.id == name]
