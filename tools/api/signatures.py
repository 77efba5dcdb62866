"""Signatures as text: parameters and defaults, without annotations."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from api.bound import Field

LONGEST_DEFAULT = 40  # characters; a longer one is shown as ...

_ARROW = re.compile(r"\s*(->|→).*", re.S)
_CONTAINERS = {"[": "]", "(": ")", "{": "}"}


def default_text(node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and node.value is not Ellipsis:
        text = repr(node.value)
    else:
        text = ast.unparse(node)
    return text if len(text) <= LONGEST_DEFAULT and "\n" not in text else "..."


def of_arguments(arguments: ast.arguments, drop_first: bool = False) -> str:
    """`(a, b=1, *, c)` of a parsed parameter list; `drop_first` leaves out `self` or `cls`."""
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
    defaults += arguments.defaults
    parts = []
    for index, (parameter, default) in enumerate(zip(positional, defaults, strict=True)):
        if not (drop_first and index == 0):
            parts.append(parameter.arg if default is None else f"{parameter.arg}={default_text(default)}")
        if index + 1 == len(arguments.posonlyargs) and parts:
            parts.append("/")
    if arguments.vararg is not None:
        parts.append("*" + arguments.vararg.arg)
    elif arguments.kwonlyargs:
        parts.append("*")
    for parameter, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        parts.append(parameter.arg if default is None else f"{parameter.arg}={default_text(default)}")
    if arguments.kwarg is not None:
        parts.append("**" + arguments.kwarg.arg)
    return f"({', '.join(parts)})"


def of_fields(fields: Iterable[Field]) -> str:
    """The constructor of a dataclass or named tuple."""
    given = [field for field in fields if field.given]
    ordered = [field for field in given if not field.keyword_only]
    parts = [_field_text(field) for field in ordered]
    if len(ordered) < len(given):
        parts.append("*")
        parts += [_field_text(field) for field in given if field.keyword_only]
    return f"({', '.join(parts)})"


def _field_text(field: Field) -> str:
    return field.name if field.default is None else f"{field.name}={field.default}"


def without_first(signature: str) -> str:
    """The signature of a function once it is bound as a method; as it is if it takes no named parameter."""
    tree = parse(signature)
    if tree is None or not (tree.posonlyargs or tree.args):
        return signature
    return of_arguments(tree, drop_first=True)


def parse(signature: str) -> ast.arguments | None:
    try:
        tree = ast.parse(f"def f{signature}: pass")
    except SyntaxError:
        return None
    node = tree.body[0]
    return node.args if isinstance(node, ast.FunctionDef) else None


def from_docstring(doc: str, name: str) -> tuple[str, ...]:
    """The signatures that a docstring of a builtin begins with: `abs(input, *, out=None) -> Tensor`.

    The documentation writes types, stars and brackets freely; what is no Python is left out.
    """
    found: list[str] = []
    lines = doc.strip().splitlines()
    index = 0
    while index < len(lines):
        line = re.sub(r"^(\.\. (function|method)::|::)\s*", "", lines[index].strip())
        line = re.sub(r"^[\w.]*\.", "", line)
        if not line.startswith(name + "("):
            if line and found:
                break
            index += 1
            if not found and index > 3:
                break
            continue
        text = line[len(name) :]
        while text.count("(") > text.count(")") and index + 1 < len(lines):
            index += 1
            text += " " + lines[index].strip()
        signature = documented(text)
        if signature is not None and signature not in found:
            found.append(signature)
        index += 1
    return tuple(found)


def documented(text: str) -> str | None:
    """`(size, dtype=None) -> Tensor` as a signature, or None if it is not one."""
    end = _closing(text)
    if end is None:
        return None
    inside = text[1:end]
    inside = re.sub(r"\\([*_])", r"\1", inside).replace("...", "")
    inside = re.sub(r"\*?(\w+)\s*\(\*\)", r"*\1", inside)
    tree = parse(f"({inside})")
    return of_arguments(tree) if tree is not None else None


def _closing(text: str) -> int | None:
    depth = 0
    for index, char in enumerate(text):
        if char in _CONTAINERS:
            depth += 1
        elif char in _CONTAINERS.values():
            depth -= 1
            if depth == 0:
                return index
    return None
