"""Literal tables and dicts, and other places that hold builders of models."""

from __future__ import annotations

import ast

from msgspec import Struct

from torchmigrate.semantics.model import Binding
from torchmigrate.source.trees import walk


class TableEntry(Struct, frozen=True):
    """One item of a dict. key: a string, or the keyword of `dict(key=value)`."""

    key: ast.expr | ast.keyword
    value: ast.expr

    @property
    def name(self) -> object:
        if isinstance(self.key, ast.keyword):
            return self.key.arg
        return self.key.value if isinstance(self.key, ast.Constant) else None


def literal_entries(node: ast.expr) -> list[TableEntry] | None:
    """The items of `{...}` or `dict(...)`; None if not all of them can be seen."""
    if isinstance(node, ast.Dict):
        if any(key is None for key in node.keys):
            return None
        return [
            TableEntry(key, value)
            for key, value in zip(node.keys, node.values, strict=True)
            if key is not None
        ]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict":
        return None if node.args else keyword_entries(node)
    return None


def keyword_entries(call: ast.Call) -> list[TableEntry] | None:
    if any(keyword.arg is None for keyword in call.keywords):
        return None
    return [TableEntry(keyword, keyword.value) for keyword in call.keywords]


def target_of(binding: Binding) -> ast.AST:
    """The name that a binding binds; that of a comprehension stands for the whole comprehension."""
    node = binding.node
    if not isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        return node
    targets = (name for generator in node.generators for name in walk(generator.target))
    return next((name for name in targets if isinstance(name, ast.Name) and name.id == binding.name), node)


def namespace_of(node: ast.expr) -> ast.expr | None:
    """The module in `module.__dict__` and `vars(module)`."""
    if isinstance(node, ast.Attribute) and node.attr == "__dict__":
        return node.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "vars":
        return node.args[0] if len(node.args) == 1 else None
    return None


def values_in(table: ast.expr, key: ast.expr | None) -> list[ast.expr] | None:
    """The values of a literal table, or those under a literal key; None: it is not a literal table."""
    wanted = key.value if isinstance(key, ast.Constant) else None
    entries = literal_entries(table)
    if entries is not None:
        same = [entry.value for entry in entries if entry.name == wanted]
        return same if same and wanted is not None else [entry.value for entry in entries]
    if not isinstance(table, (ast.Tuple, ast.List, ast.Set)):
        return None
    if any(isinstance(item, ast.Starred) for item in table.elts):
        return None
    if isinstance(wanted, int) and not isinstance(wanted, bool):
        return [table.elts[wanted]] if -len(table.elts) <= wanted < len(table.elts) else None
    return table.elts


def sets_another(node: ast.AST | None) -> bool:
    """Whether `kwargs[key]` sets an argument that is neither a flag of models nor weights."""
    return (
        isinstance(node, ast.Subscript)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.slice, ast.Constant)
        and isinstance(node.slice.value, str)
        and not node.slice.value.startswith(("pretrained", "weights"))
    )


def parameter_names(node: ast.expr) -> list[str]:
    """The names in the first argument of `pytest.mark.parametrize`: `"a, b"` or `["a", "b"]`."""
    items = node.elts if isinstance(node, (ast.Tuple, ast.List)) else [node]
    texts = [item.value for item in items if isinstance(item, ast.Constant) and isinstance(item.value, str)]
    return [name.strip() for text in texts for name in text.split(",")]
