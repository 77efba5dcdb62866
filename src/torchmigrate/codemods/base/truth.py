"""Whether an expression is surely `True` or `False`, and not just something that counts as one."""

from __future__ import annotations

import ast

from torchmigrate.source.trees import walk


def is_bool(node: ast.expr, tree: ast.AST) -> bool:
    """Whether an expression is a bool, as far as the file says: comparisons, flags of argparse, defaults."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, bool)
    if isinstance(node, ast.Compare):
        return True
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Not)
    if isinstance(node, ast.BoolOp):
        return all(is_bool(value, tree) for value in node.values)
    if isinstance(node, ast.IfExp):
        return is_bool(node.body, tree) and is_bool(node.orelse, tree)
    if isinstance(node, ast.Call):
        name = _last(node.func)
        return name == "bool" or name.startswith(("is_", "has_"))
    name = _last(node)
    given = [value for inner in walk(tree) for value in _values(inner, name)]
    return bool(given) and all(given)


def _last(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _values(node: ast.AST, name: str) -> list[bool]:
    """Whether what gives something of this name a value gives it a bool."""
    if isinstance(node, ast.Assign):
        return [_plain(node.value, name) for target in node.targets if _last(target) == name]
    if isinstance(node, ast.AnnAssign) and _last(node.target) == name:
        return [_last(node.annotation) == "bool"]
    if isinstance(node, ast.AugAssign) and _last(node.target) == name:
        return [False]
    if isinstance(node, ast.arguments):
        return _parameters(node, name)
    if isinstance(node, ast.Call) and _last(node.func) == "add_argument":
        options = {item.arg: item.value for item in node.keywords}
        flags = [_text(item).lstrip("-").replace("-", "_") for item in node.args]
        target = options.get("dest")
        wanted = target.value if isinstance(target, ast.Constant) else None
        if wanted == name or (wanted is None and name in flags):
            action = getattr(options.get("action"), "value", None)
            return [action in ("store_true", "store_false") or _last(options.get("type", node)) == "bool"]
    return []


def _text(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _plain(value: ast.expr, name: str) -> bool:
    """Whether an assigned value is a bool; `self.fp16 = fp16` says nothing new."""
    if isinstance(value, (ast.Compare, ast.Constant)):
        return not isinstance(value, ast.Constant) or isinstance(value.value, bool)
    return _last(value) == name or (isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not))


def _parameters(node: ast.arguments, name: str) -> list[bool]:
    every = [*node.posonlyargs, *node.args]
    pairs = list(zip(every[len(every) - len(node.defaults) :], node.defaults, strict=True))
    pairs += [
        (item, value)
        for item, value in zip(node.kwonlyargs, node.kw_defaults, strict=True)
        if value is not None
    ]
    found = [
        isinstance(value, ast.Constant) and isinstance(value.value, bool)
        for item, value in pairs
        if item.arg == name
    ]
    found += [True for item in (*every, *node.kwonlyargs) if item.arg == name and _annotated(item)]
    return found


def _annotated(item: ast.arg) -> bool:
    return item.annotation is not None and _last(item.annotation) == "bool"
