"""Runs one side of an example, and says what it left behind."""

from __future__ import annotations

import ast
import contextlib
import copy
import io
from collections.abc import Mapping
from typing import Any

import torch

from . import plain

SHOWN = "__shown__"  # collects the values of bare expressions
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.ListComp)


class Failed(Exception):
    """The code raised something, which is the cause."""


class Outcome:
    """What one side of an example left behind.

    names: the variables that it assigned at its top level.
    inputs: the input variables as they are afterwards, if it did not assign them.
    shown: the values of bare expressions.
    """

    def __init__(self, names: dict[str, Any], inputs: dict[str, Any], shown: list[Any]) -> None:
        self.names = names
        self.inputs = inputs
        self.shown = shown

    def values(self) -> dict[str, Any]:
        """Everything that can be compared, by name."""
        shown = {f"value {index + 1}": item for index, item in enumerate(self.shown)}
        return dict(self.inputs, **self.names, **shown)


def execute(code: str, inputs: Mapping[str, Any]) -> Outcome:
    """Execute code on copies of its inputs; what it prints is swallowed.

    Raises:
        Failed: it raised something, which is the cause.
    """
    tree = ast.parse(code)
    stored = _stored(tree)
    tree = ast.fix_missing_locations(_Show().visit(tree))
    shown: list[Any] = []
    copied = copies(inputs)
    space = {"__name__": "example", SHOWN: shown}
    space.update(copied)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(tree, "<example>", "exec", dont_inherit=True), space)
    except Exception as error:
        raise Failed(f"{type(error).__name__}: {error}") from error
    names = {name: space[name] for name in sorted(stored) if name in space}
    left = {name: value for name, value in copied.items() if name not in names}
    return Outcome(names, left, shown)


def copies(values: Mapping[str, Any]) -> dict[str, Any]:
    """Deep copies that share what the originals share; modules of Python and functions stay themselves."""
    memo: dict[int, Any] = {}
    return {name: copy.deepcopy(value, memo) for name, value in values.items()}


class _Show(ast.NodeTransformer):
    """Bare expressions at the top level append their value to a list."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        if isinstance(node.value, (ast.Constant, ast.Str)):
            return node
        append = ast.Attribute(ast.Name(SHOWN, ast.Load()), "append", ast.Load())
        return ast.copy_location(ast.Expr(ast.Call(append, [node.value], [])), node)

    def _leave(self, node: ast.AST) -> ast.AST:
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = _leave


def _stored(tree: ast.Module) -> set[str]:
    """Names assigned at the top level: by assignments, loops and `with`, not by `def` or `import`."""
    found: set[str] = set()
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, _SCOPES):
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id != "_":
            found.add(node.id)
        todo.extend(ast.iter_child_nodes(node))
    return found


# ---- gradients -----------------------------------------------------------------------------------------


class Gradients:
    """flags: which results require gradients. of: the gradient of a weighted sum of all results, by input."""

    def __init__(self, flags: dict[str, bool], of: dict[str, torch.Tensor]) -> None:
        self.flags = flags
        self.of = of


def gradients(run: Any, inputs: Mapping[str, Any]) -> Gradients | None:
    """Gradients with respect to all inputs that can have some; None: there are no such inputs.

    Args:
        run: from inputs to an Outcome, such as `execute` with some code.

    Raises:
        Failed: the code, or autograd, which says so where there is no derivative.
    """
    names = [name for name, value in inputs.items() if plain.differentiable(value)]
    if not names:
        return None
    leaves = {name: inputs[name].detach().clone().requires_grad_() for name in names}
    # Not the leaves themselves: those may not be changed in place. Deep copies of what is no leaf fail.
    handed = {name: Uncopied(leaves[name]) if name in leaves else value for name, value in inputs.items()}
    zeros = {name: torch.zeros_like(leaf) for name, leaf in leaves.items()}
    try:
        with torch.enable_grad():
            outcome = run(handed)
        total, flags = plain.loss(outcome.values(), set(outcome.inputs))
        if total is None or not total.requires_grad:
            return Gradients(flags, zeros)
        found = torch.autograd.grad(total, list(leaves.values()), allow_unused=True)
    except (RuntimeError, NotImplementedError) as error:
        raise Failed(f"{type(error).__name__}: {error}") from error
    of = {name: zeros[name] if item is None else item for name, item in zip(leaves, found)}
    return Gradients(flags, {name: _in_kind(item, inputs[name]) for name, item in of.items()})


def _in_kind(gradient: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """What the gradient says of changes that leave a symmetric or triangular matrix what it is.

    Functions of such matrices read one triangle, and releases are free in what they say about the other.
    """
    if value.dim() < 2 or value.shape[-1] != value.shape[-2] or value.shape[-1] == 1:
        return gradient
    flipped = value.transpose(-1, -2)
    if str(value.dtype).startswith("torch.complex"):
        adjoint = gradient.transpose(-1, -2).conj()
        return (gradient + adjoint) / 2 if torch.equal(value, flipped.conj() * 1) else gradient
    if torch.equal(value, flipped):
        return (gradient + gradient.transpose(-1, -2)) / 2
    shape = torch.ones(value.shape[-2:], dtype=value.dtype)
    for triangle in (torch.triu, torch.tril):
        if torch.equal(value, value * triangle(shape)):
            return gradient * triangle(shape)
    return gradient


class Uncopied:
    """A tensor that is handed over as it is, cloned within the graph."""

    def __init__(self, leaf: torch.Tensor) -> None:
        self.leaf = leaf

    def __deepcopy__(self, memo: dict[int, Any]) -> torch.Tensor:
        return self.leaf.clone()
