"""Parameters, arguments and results, as they are written."""

from __future__ import annotations

import ast
from functools import lru_cache

from torchmigrate.source.trees import children

_Def = (ast.FunctionDef, ast.AsyncFunctionDef)
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def first_parameter(home: ast.AST) -> tuple[str, ...]:
    """The name of the first parameter of a method."""
    if not isinstance(home, _Def):
        return ()
    names = [*home.args.posonlyargs, *home.args.args]
    return (names[0].arg,) if names else ()


def parameters(function: Function) -> dict[str, int]:
    """The parameters by name, with their position; those that take no position have a large one."""
    arguments = function.args
    found = {item.arg: number for number, item in enumerate([*arguments.posonlyargs, *arguments.args])}
    return {**found, **{item.arg: 1 << 20 for item in arguments.kwonlyargs}}


def default_of(function: Function, name: str) -> ast.expr | None:
    arguments = function.args
    plain = [*arguments.posonlyargs, *arguments.args]
    for item, default in zip(reversed(plain), reversed(arguments.defaults), strict=False):
        if item.arg == name:
            return default
    for item, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if item.arg == name:
            return value
    return None


def argument_of(call: ast.Call, name: str, index: int) -> ast.expr | None:
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    if 0 <= index < len(call.args) and not any(
        isinstance(item, ast.Starred) for item in call.args[: index + 1]
    ):
        return call.args[index]
    return None


def constant_key(node: ast.AST) -> int | str | None:
    """A constant key of an item."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = getattr(node.operand, "value", None)
        return -value if type(value) is int else None
    value = getattr(node, "value", None) if isinstance(node, ast.Constant) else None
    return value if type(value) in (int, str) else None


def is_plain(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether the decorators of a function leave what it returns as it is."""
    plain = {"staticmethod", "classmethod", "property", "no_grad", "jit", "script", "wraps", "inference_mode"}
    for mark in function.decorator_list:
        inner = mark.func if isinstance(mark, ast.Call) else mark
        if getattr(inner, "attr", getattr(inner, "id", "")) not in plain:
            return False
    return True


def without_first(call: ast.Call) -> ast.Call:
    """The call that `functools.partial(f, ...)` prepares; more arguments may follow."""
    return ast.Call(call.func, [*call.args[1:], _REST], call.keywords)


_REST = ast.Starred(ast.Name("_", ast.Load()), ast.Load())


@lru_cache(maxsize=1024)  # answers are kept by their nodes: with new ones for each question they have no end
def key_of(name: str) -> ast.Constant:
    """The key that a keyword of `dict(...)` makes."""
    return ast.Constant(name)


def returned(function: ast.FunctionDef | ast.AsyncFunctionDef) -> tuple[list[ast.expr], bool]:
    """What a function returns, and whether it is a generator."""
    found: list[ast.expr] = []
    yields = False
    todo: list[ast.AST] = [*function.body]
    while todo:
        node = todo.pop()
        if isinstance(node, (*_Def, ast.ClassDef, ast.Lambda)):
            continue
        if isinstance(node, ast.Return) and node.value is not None:
            found.append(node.value)
        yields = yields or isinstance(node, (ast.Yield, ast.YieldFrom))
        todo += children(node)
    return found, yields
