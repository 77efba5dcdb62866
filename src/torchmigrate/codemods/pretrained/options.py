"""Dicts of arguments that calls unpack: their content, the calls that receive them, and their other uses."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from msgspec import Struct, field

from torchmigrate.codemods.pretrained.tables import TableEntry, keyword_entries, literal_entries
from torchmigrate.semantics.flow.tree_index import TreeIndex
from torchmigrate.semantics.model import Binding, Scope

_READS = frozenset(["get", "pop", "setdefault", "keys", "values", "items", "__contains__"])
_SHOWS = frozenset(["print", "len", "bool", "repr", "str"])


class UnpackedOptions(Struct):
    """A dict that is made in one scope.

    receivers: calls that unpack it. keys: that are read or tested. other: mentions that may read or
    change it in another way.
    """

    entries: list[TableEntry] = field(default_factory=list)
    receivers: list[ast.Call] = field(default_factory=list)
    bindings: list[Binding] = field(default_factory=list)
    keys: set[object] = field(default_factory=set)
    other: list[ast.expr] = field(default_factory=list)

    def named(self, name: str) -> list[TableEntry]:
        return [entry for entry in self.entries if entry.name == name]


def options_of(name: str, held: Scope, local: TreeIndex, key: str) -> UnpackedOptions:
    """What a scope's variable holds as a dict of arguments; key: the one whose other uses count."""
    found = UnpackedOptions()
    for binding in held.bindings[name]:
        if isinstance(binding.statement, (ast.Assign, ast.AnnAssign)):
            found.bindings.append(binding)
        elif isinstance(binding.node, ast.expr):
            found.other.append(binding.node)
        else:  # a parameter, an import
            found.other.append(ast.Name(name))
    for mention in local.named(name):
        if local.holder(mention) is held and not _read(mention, found, local, key):
            found.other.append(mention)
    return found


def _read(mention: ast.Name, found: UnpackedOptions, local: TreeIndex, key: str) -> bool:
    """Take in one mention; False if it is none that is understood."""
    outer = local.parent(mention)
    if isinstance(mention.ctx, ast.Store):
        value = outer.value if isinstance(outer, (ast.Assign, ast.AnnAssign)) else None
        return value is not None and _take(literal_entries(value), found)
    if isinstance(outer, ast.keyword) and outer.arg is None:
        call = local.parent(outer)
        assert isinstance(call, ast.Call), (
            "keywords stand in calls and classes, and these do not unpack names"
        )
        found.receivers.append(call)
        return True
    if isinstance(outer, ast.Subscript) and outer.value is mention:
        return _subscript(outer, found, local, key)
    if isinstance(outer, ast.Attribute):
        return _method(outer, found, local, key)
    if isinstance(outer, ast.Compare):
        if isinstance(outer.left, ast.Constant):
            found.keys.add(outer.left.value)
        return isinstance(outer.left, ast.Constant) and outer.left.value != key
    if isinstance(outer, ast.Call) and isinstance(outer.func, ast.Name):
        return outer.func.id in _SHOWS
    return isinstance(outer, ast.FormattedValue)


def _take(entries: list[TableEntry] | None, found: UnpackedOptions) -> bool:
    found.entries += entries or []
    return entries is not None


def _subscript(node: ast.Subscript, found: UnpackedOptions, local: TreeIndex, key: str) -> bool:
    if not isinstance(node.slice, ast.Constant):
        return False
    statement = local.parent(node)
    if isinstance(node.ctx, ast.Store) and isinstance(statement, ast.Assign):
        found.entries.append(TableEntry(node.slice, statement.value))
        return len(statement.targets) == 1
    found.keys.add(node.slice.value)
    return node.slice.value != key


def _method(node: ast.Attribute, found: UnpackedOptions, local: TreeIndex, key: str) -> bool:
    call = local.parent(node)
    if not isinstance(call, ast.Call) or call.func is not node:
        return False
    if node.attr == "update":
        return all(_take(entries, found) for entries in _updates(call))
    first = call.args[0] if call.args else None
    if not isinstance(first, ast.Constant):
        return False
    found.keys.add(first.value)
    return node.attr in _READS and first.value != key


def _updates(call: ast.Call) -> Iterator[list[TableEntry] | None]:
    for argument in call.args:
        yield literal_entries(argument)
    yield keyword_entries(call)
