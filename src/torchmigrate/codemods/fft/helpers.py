"""Functions of the file that multiply or conjugate pairs: `def mul(a, b): return torch.stack(..., -1)`."""

from __future__ import annotations

import ast

from torchmigrate.codemods.fft.layouts import Layouts, Local
from torchmigrate.codemods.fft.model import Helper
from torchmigrate.codemods.fft.products import product
from torchmigrate.semantics.flow.values import ValueFlow
from torchmigrate.source.trees import walk


class Helpers:
    """Finds what calls of functions of the file multiply."""

    def __init__(self, flow: ValueFlow) -> None:
        self._flow = flow
        self._known: dict[ast.AST, Helper | None] = {}

    def __call__(self, call: ast.Call) -> Helper | None:
        """What a call multiplies, if that is all that its function does."""
        plain = not call.keywords and not any(isinstance(item, ast.Starred) for item in call.args)
        function = self._flow.called(call) if plain else None
        if not isinstance(function, ast.FunctionDef):
            return None
        if function not in self._known:
            self._known[function] = _read(function, self._flow)
        found = self._known[function]
        return found if found is not None and found.count == len(call.args) else None


def _read(function: ast.FunctionDef, flow: ValueFlow) -> Helper | None:
    """What a function computes of its parameters, which are pairs."""
    arguments = function.args
    if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.defaults:
        return None
    names = [item.arg for item in (*arguments.posonlyargs, *arguments.args)]
    marks = [ast.unparse(mark) for mark in function.decorator_list]
    if names[:1] == ["self"] and not marks:
        names = names[1:]
    elif marks not in ([], ["staticmethod"]):
        return None
    *body, last = [item for item in function.body if not _is_text(item) and not isinstance(item, ast.Assert)]
    if not isinstance(last, ast.Return) or last.value is None:
        return None
    if len(names) == 1 and len(body) == 1 and _negates(body[0], names[0]):
        same = isinstance(last.value, ast.Name) and last.value.id == names[0]
        return Helper((0,), (True,), 1, in_place=True) if same else None
    if not all(isinstance(item, ast.Assign) and _names_only(item) for item in body):
        return None
    layouts = Local(Layouts(flow, {}, lambda call: None), function, {}, takes_pairs=True)
    stacked = layouts.stacked(last.value)
    made = product(*stacked, last, layouts) if stacked is not None else None
    if made is None or set(made.factors) != set(names) or len(made.factors) != len(names):
        return None
    given = {item.node for pair in made.pairs for item in layouts.variables.of(pair)}
    if not all(isinstance(node, ast.arg) for node in given):
        return None  # no longer the parameter
    return Helper(tuple(names.index(name) for name in made.factors), made.conjugated, len(names))


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _names_only(node: ast.Assign) -> bool:
    """Whether nothing but variables is assigned to."""
    return all(
        isinstance(item, (ast.Name, ast.Tuple, ast.List, ast.Store, ast.expr_context))
        for target in node.targets
        for item in walk(target)
    )


def _negates(node: ast.stmt, name: str) -> bool:
    """`x[..., 1] = -x[..., 1]`, or `*= -1`."""
    part = f"{name}[..., 1]"
    return ast.unparse(node) in (f"{part} = -{part}", f"{part} *= -1", f"{part} *= -1.0")
