"""What must hold one number, since `backward()` is called on it or on what is computed from it."""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TypeGuard

from torchmigrate.codemods.base.functions import functions_of
from torchmigrate.rewrite.context import FileContext
from torchmigrate.semantics.flow.functions import Function, Functions
from torchmigrate.semantics.model import Scope
from torchmigrate.source.trees import walk

_HARMLESS = frozenset(["retain_graph", "create_graph", "retain_variables"])
_SUMS = (ast.Add, ast.Sub)
_PRODUCTS = (ast.Mult, ast.Div)


class Differentiated:
    """Answers about one file.

    `backward()` without a gradient is for a tensor of one element. If that is computed from others element by
    element, each of those has one element, too: it could not be broadcast to one otherwise.
    """

    def __init__(self, file: FileContext) -> None:
        self._file = file
        self._found: dict[int, dict[str, bool]] = {}

    @cached_property
    def _functions(self) -> Functions:
        return functions_of(self._file)

    @cached_property
    def _by_node(self) -> dict[int, Function]:
        return {id(function.node): function for function in self._functions.every}

    def is_one(self, node: ast.expr, scope: Scope) -> bool | None:
        """Whether an expression is differentiated in its function, or a summand of what is.

        False: it is a factor, which may be a tensor of one dimension, as weights are. None: neither.
        """
        while scope.kind == "comprehension" and scope.parent is not None:
            scope = scope.parent
        function = self._by_node.get(id(scope.node))
        key = _key(node)
        if function is None or key is None:
            return None
        if id(function) not in self._found:
            self._found[id(function)] = self._of(function)
        return self._found[id(function)].get(key)

    def _of(self, function: Function) -> dict[str, bool]:
        """Names and attributes of one element, as source: whether they are more than factors."""
        found: dict[str, bool] = {}
        roots = [
            call.func.value
            for inner in self._functions.every
            if inner.within(function)
            for _, call in inner.calls
            if _is_backward(call.func, call)
            and (inner is function or self._is_of(function, call.func, inner))
        ]
        todo = [(node, True) for node in roots]
        while todo:
            node, sure = todo.pop()
            if _is_elementwise(node):
                both = sure and isinstance(node.op, _SUMS)
                todo += [(node.left, both), (node.right, both)]
            elif isinstance(node, ast.UnaryOp):
                todo.append((node.operand, sure))
            elif (key := _key(node)) is not None and not found.get(key) and found.get(key) is not sure:
                made = self._made(key, function)
                if made is not None or node in roots:
                    found[key] = sure
                    todo += [(value, sure and alike) for value, alike in made or ()]
        return found

    def _is_of(self, function: Function, method: ast.Attribute, inner: Function) -> bool:
        """Whether a method is one of a variable of a function, in another one that is defined there."""
        key = _key(method.value)
        return key is not None and self._functions.home(key.partition(".")[0], inner) is function

    def _made(self, key: str, function: Function) -> list[tuple[ast.expr, bool]] | None:
        """What a variable is computed from, each with whether it is an addend rather than a factor.

        None: the variable is several things, not all of them in branches of their own.
        """
        bound: list[ast.stmt] = []
        found: list[tuple[ast.expr, bool]] = []
        for statement in function.statements:
            if isinstance(statement, ast.AugAssign) and _key(statement.target) == key:
                if isinstance(statement.op, ast.MatMult):
                    return None
                found.append((statement.value, isinstance(statement.op, _SUMS)))
            elif isinstance(statement, ast.Assign):
                if not any(_has(target, key) for target in statement.targets):
                    continue
                if any(_key(target) == key for target in statement.targets):
                    if isinstance(statement.value, ast.Constant):
                        continue  # a sum that begins with 0
                    found.append((statement.value, True))
                    if _is_elementwise(statement.value) and _has(statement.value, key):
                        continue  # `loss = loss + other`
                bound.append(statement)
            elif isinstance(statement, (ast.For, ast.AsyncFor)) and _has(statement.target, key):
                bound.append(statement)
        apart = self._functions.apart
        if any(not apart(one, other) for one in bound for other in bound if one is not other):
            return None
        return found


def _is_elementwise(node: ast.expr) -> TypeGuard[ast.BinOp]:
    return isinstance(node, ast.BinOp) and isinstance(node.op, (_SUMS + _PRODUCTS))


def _is_backward(callee: ast.expr, call: ast.Call) -> TypeGuard[ast.Attribute]:
    """Whether a call is `x.backward()`, without a gradient; callee: its function."""
    return (
        isinstance(callee, ast.Attribute)
        and callee.attr == "backward"
        and not call.args
        and all(item.arg in _HARMLESS for item in call.keywords)
    )


def _has(node: ast.expr, key: str) -> bool:
    return any(isinstance(item, (ast.Name, ast.Attribute)) and _key(item) == key for item in walk(node))


def _key(node: ast.expr) -> str | None:
    """`loss` or `self.loss` as text; None for anything but a plain name of an object."""
    here = node
    while isinstance(here, ast.Attribute):
        here = here.value
    return ast.unparse(node) if isinstance(here, ast.Name) else None
