"""Values that can be read off the source: lists of names, simple texts."""

from __future__ import annotations

import ast
from collections.abc import Mapping

Constants = Mapping[str, ast.expr]


def strings(node: ast.expr, constants: Constants, depth: int = 0) -> list[str] | None:
    """The strings in a list, tuple, set, dict (its keys), sum of those, or a constant; None: unknown."""
    if depth > 8:
        return None
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        found: list[str] = []
        for element in node.elts:
            if isinstance(element, ast.Starred):
                more = strings(element.value, constants, depth + 1)
            else:
                one = text(element, constants)
                more = None if one is None else [one]
            if more is None:
                return None
            found += more
        return found
    if isinstance(node, ast.Dict):
        keys = [text(key, constants) for key in node.keys if key is not None]
        return (
            [key for key in keys if key is not None] if None not in keys and None not in node.keys else None
        )
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.BitOr)):
        left, right = strings(node.left, constants, depth + 1), strings(node.right, constants, depth + 1)
        return left + right if left is not None and right is not None else None
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id in (
            "sorted",
            "list",
            "tuple",
            "set",
            "frozenset",
        ):
            return strings(node.args[0], constants, depth + 1) if node.args else []
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("keys", "split", "copy"):
            if node.func.attr == "split":
                words = text(node.func.value, constants)
                return words.split() if words is not None and not node.args else None
            return strings(node.func.value, constants, depth + 1)
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        return _comprehension(node, constants)
    if isinstance(node, ast.Name) and node.id in constants:
        return strings(constants[node.id], constants, depth + 1)
    return None


def _comprehension(node: ast.ListComp | ast.GeneratorExp, constants: Constants) -> list[str] | None:
    generator = node.generators[0]
    if len(node.generators) > 1 or generator.ifs or not isinstance(generator.target, ast.Name):
        return None
    elements = items(generator.iter, constants)
    if elements is None:
        return None
    found = [text(node.elt, {**constants, generator.target.id: element}) for element in elements]
    return [one for one in found if one is not None] if None not in found else None


def items(node: ast.expr, constants: Constants) -> list[ast.expr] | None:
    """The elements that a loop over `node` takes, if they are written out; `range(3)` as well."""
    if isinstance(node, ast.Name) and node.id in constants:
        return items(constants[node.id], {k: v for k, v in constants.items() if k != node.id})
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return None if any(isinstance(e, ast.Starred) for e in node.elts) else list(node.elts)
    if isinstance(node, ast.Dict):
        return [key for key in node.keys if key is not None]
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
    ):
        table = constants.get(node.func.value.id)
        if isinstance(table, ast.Dict) and None not in table.keys:
            if node.func.attr == "items":
                pairs = zip(table.keys, table.values, strict=True)
                return [ast.Tuple([key, value], ast.Load()) for key, value in pairs if key is not None]
            if node.func.attr == "keys":
                return [key for key in table.keys if key is not None]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range":
        bounds = [arg.value for arg in node.args if isinstance(arg, ast.Constant)]
        numbers = [bound for bound in bounds if isinstance(bound, int)]
        if len(numbers) == len(node.args) and 0 < len(numbers) < 4:
            return [ast.Constant(number) for number in range(*numbers)]
    known = strings(node, constants)
    return None if known is None else [ast.Constant(one) for one in known]


def text(node: ast.expr, constants: Constants, depth: int = 0) -> str | None:
    """A string: a literal, a constant, a sum, an f-string or format of those; None: unknown."""
    if depth > 8:
        return None
    if isinstance(node, ast.Constant):
        return str(node.value) if isinstance(node.value, (str, int)) else None
    if isinstance(node, ast.Name) and node.id in constants:
        return text(constants[node.id], {k: v for k, v in constants.items() if k != node.id}, depth + 1)
    if isinstance(node, ast.JoinedStr):
        parts = [text(part, constants, depth + 1) for part in node.values]
        return "".join(part or "" for part in parts) if None not in parts else None
    if isinstance(node, ast.FormattedValue) and node.format_spec is None:
        return text(node.value, constants, depth + 1)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = text(node.left, constants, depth + 1), text(node.right, constants, depth + 1)
        return left + right if left is not None and right is not None else None
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "format"
        and not node.keywords
    ):
        pattern = text(node.func.value, constants, depth + 1)
        values = [text(argument, constants, depth + 1) for argument in node.args]
        if pattern is not None and None not in values:
            try:
                return pattern.format(*values)
            except (IndexError, KeyError, ValueError):
                return None
    return None
