"""Literal tables and dicts, and other places that hold builders of models."""

from __future__ import annotations

import ast

from msgspec import Struct


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


def namespace_of(node: ast.AST | None) -> ast.expr | None:
    """The module in `module.__dict__` and `vars(module)`."""
    if isinstance(node, ast.Attribute) and node.attr == "__dict__":
        return node.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "vars":
        return node.args[0] if len(node.args) == 1 else None
    return None


def sets_another(node: ast.AST | None) -> bool:
    """Whether `kwargs[key]` sets an argument that is neither a flag of models nor weights."""
    return (
        isinstance(node, ast.Subscript)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.slice, ast.Constant)
        and isinstance(node.slice.value, str)
        and not node.slice.value.startswith(("pretrained", "weights"))
    )
