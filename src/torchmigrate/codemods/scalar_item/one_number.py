"""What must hold one number, since `backward()` is called on it or on what is computed from it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property
from typing import TypeGuard

from torchmigrate.semantics.flow.steps import Path, Step
from torchmigrate.semantics.flow.values import ValueFlow

_HARMLESS = frozenset(["retain_graph", "create_graph", "retain_variables"])
_SUMS = (ast.Add, ast.Sub)
_PRODUCTS = (ast.Mult, ast.Div)
# What makes a value; or, where that is not known, a text that stands for it in one function.
_Value = Step | tuple[ast.AST | None, str, Path]


class Differentiated:
    """Answers about one file.

    `backward()` without a gradient is for a tensor of one element. If that is computed from others element by
    element, each of those has one element, too: it could not be broadcast to one otherwise.
    """

    def __init__(self, flow: ValueFlow) -> None:
        self._flow = flow

    def is_one(self, node: ast.expr) -> bool | None:
        """Whether an expression is differentiated, or a summand of what is.

        False: it is a factor, which may be a tensor of one dimension, as weights are. None: neither.
        """
        found = [self._found.get(value) for value in self._values(node)]
        return None if None in found else all(found)

    @cached_property
    def _found(self) -> dict[_Value, bool]:
        """Values of one element: whether they are more than factors."""
        found: dict[_Value, bool] = {}
        todo = [
            (call.func.value, True)
            for call in self._flow.names.nodes(ast.Call)
            if _is_backward(call.func, call)
        ]
        while todo:
            node, sure = todo.pop()
            for value in self._values(node):
                if found.get(value) or found.get(value) is sure:
                    continue
                found[value] = sure
                made = value.node if isinstance(value, Step) and not value.path else None
                if isinstance(made, ast.UnaryOp):
                    todo.append((made.operand, sure))
                elif isinstance(made, ast.BinOp) and isinstance(made.op, _SUMS + _PRODUCTS):
                    alike = sure and isinstance(made.op, _SUMS)
                    todo += [(made.left, alike), (made.right, alike)]
                elif isinstance(made, ast.AugAssign) and isinstance(made.op, _SUMS + _PRODUCTS):
                    todo += [(made.target, sure), (made.value, sure and isinstance(made.op, _SUMS))]
        return found

    def _values(self, node: ast.expr) -> Iterator[_Value]:
        """What an expression may be."""
        seen = [Step(node)]
        for step in seen:
            assert step.node is not None, "only steps to expressions are followed"
            text = (self._flow.index.home_of(step.node), ast.dump(step.node), step.path)
            steps = self._flow.steps(step)
            if isinstance(step.node, ast.Attribute) and not steps:  # of an object that is not followed
                yield text
                places = self._flow.classes.outside.get(step.node.attr, ())
                steps = tuple(
                    Step(each.node, each.path + step.path)
                    for place in places
                    if self._flow.index.home_of(place) is text[0]
                    and ast.unparse(place) == ast.unparse(step.node)
                    for each in self._flow.sources(place) or [Step(self._flow.names.parents[place])]
                )
            elif not steps:
                yield step
            elif any(each.node is None for each in steps):
                yield text
            seen += [each for each in steps if each.node is not None and each not in seen]


def _is_backward(callee: ast.expr, call: ast.Call) -> TypeGuard[ast.Attribute]:
    """Whether a call is `x.backward()`, without a gradient; callee: its function."""
    return (
        isinstance(callee, ast.Attribute)
        and callee.attr == "backward"
        and not call.args
        and all(item.arg in _HARMLESS for item in call.keywords)
    )
