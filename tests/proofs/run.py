"""Runs both sides of an example on the same inputs and compares everything that both compute."""

from __future__ import annotations

import ast
import contextlib
import copy
import io
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from proofs import companions, stubs, vocabulary
from proofs.compare import differences, is_evidence
from proofs.patches import Used, old_torch

SHOWN = "__shown__"  # collects the values of bare expressions
STEP = 1e-6


class ProofError(Exception):
    """The example cannot be executed, or says nothing."""


@dataclass
class Outcome:
    """What one side of an example left behind."""

    names: dict[str, Any]  # the variables that it assigned at its top level
    inputs: dict[str, Any]  # the input variables as they are afterwards
    shown: list[Any]  # the values of bare expressions
    used: Used = field(default_factory=Used)

    def values(self) -> dict[str, Any]:
        return {**self.inputs, **self.names, **{f"value {i + 1}": item for i, item in enumerate(self.shown)}}


def prove(before: str, after: str, prove: Mapping[str, str], gradients: bool = True) -> list[str]:
    """In what the two sides of an example differ, one line each; an empty list is a proof.

    Raises:
        ProofError: one side does not run, or there is nothing to compare.
    """
    given = _inputs(prove)
    old = run(before, given, old=True)
    new = run(after, given, old=False)
    found = list(_compare(old, new, given))
    if not found and gradients and ".backward(" not in before:
        found = list(_gradients(before, after, given, old))
    return found


def run(code: str, inputs: Mapping[str, Any], old: bool) -> Outcome:
    """Execute one side on copies of the inputs, with the old functions in place or not.

    Raises:
        ProofError: it raised something, which is the cause.
    """
    tree = ast.parse(code)
    stored = _stored(tree)
    tree = ast.fix_missing_locations(_Show().visit(tree))
    shown: list[Any] = []
    copied = _copy(dict(inputs))
    space = {"__name__": "example", SHOWN: shown, **copied}
    vocabulary.seed_all()
    side = "old" if old else "new"
    with contextlib.ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        stack.enter_context(stubs.installed())
        stack.enter_context(_restored())
        stack.enter_context(companions.prepared(code))
        used = stack.enter_context(old_torch()) if old else Used()
        if old:
            stack.enter_context(companions.old_companions(code, used))
        try:
            exec(compile(tree, f"<{side} side of the example>", "exec", dont_inherit=True), space)
        except Exception as error:
            raise ProofError(f"the {side} side raised {type(error).__name__}: {error}") from error
    names = {name: space[name] for name in stored if name in space}
    left = {name: value for name, value in copied.items() if name not in names}
    return Outcome(names, left, shown, used)


@contextlib.contextmanager
def _restored() -> Iterator[None]:
    """Put global settings of torch back after an example has changed them."""
    dtype = torch.get_default_dtype()
    deterministic = torch.are_deterministic_algorithms_enabled()
    grad = torch.is_grad_enabled()
    try:
        yield
    finally:
        torch.set_default_dtype(dtype)
        torch.set_default_device(None)
        if torch.are_deterministic_algorithms_enabled() != deterministic:
            torch.use_deterministic_algorithms(deterministic)
        torch.set_grad_enabled(grad)


def _inputs(prove: Mapping[str, str]) -> dict[str, Any]:
    with stubs.installed():
        try:
            return vocabulary.evaluate(prove)
        except Exception as error:
            raise ProofError(f"the inputs raised {type(error).__name__}: {error}") from error


def _copy(values: dict[str, Any]) -> dict[str, Any]:
    """Deep copies that share what the originals share; modules of Python and functions stay themselves."""
    memo: dict[int, Any] = {}
    return {name: copy.deepcopy(value, memo) for name, value in values.items()}


class _Show(ast.NodeTransformer):
    """Bare expressions at the top level append their value to a list."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        if isinstance(node.value, ast.Constant):
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
        if isinstance(
            node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda | ast.ListComp
        ):
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id != "_":
            found.add(node.id)
        todo.extend(ast.iter_child_nodes(node))
    return found


def _compare(old: Outcome, new: Outcome, given: Mapping[str, Any]) -> Iterator[str]:
    a, b = old.values(), new.values()
    if len(old.shown) != len(new.shown):
        yield f"{len(old.shown)} bare expressions became {len(new.shown)}"
    changed = {name for name in old.inputs if any(differences(given[name], old.inputs[name], name))}
    both = [name for name in a if name in b]
    if not any(
        is_evidence(a[name]) for name in both if name not in given or name in changed or name in old.names
    ):
        raise ProofError("nothing is computed that both sides have: assign a result in the example")
    for name in both:
        yield from differences(a[name], b[name], name, requires_grad=not old.used)


# ---- gradients -----------------------------------------------------------------------------------------


def _gradients(before: str, after: str, given: Mapping[str, Any], old: Outcome) -> Iterator[str]:
    names = [name for name, value in given.items() if _differentiable(value)]
    if not names:
        return
    by_hand = bool(old.used)
    if by_hand and any(given[name].dtype not in (torch.float64, torch.complex128) for name in names):
        return  # a difference quotient of single precision says nothing
    after_run = _differentiate(lambda inputs: run(after, inputs, old=False), given, names)
    if by_hand:
        if isinstance(after_run, ProofError):
            yield f"with inputs that require gradients {after_run}"
        else:
            yield from _against_quotient(before, given, names, after_run, old.used.symmetric)
        return
    before_run = _differentiate(lambda inputs: run(before, inputs, old=True), given, names)
    if isinstance(before_run, ProofError) and isinstance(after_run, ProofError):
        return  # not differentiable, before or after
    for side, result in (("old", before_run), ("new", after_run)):
        if isinstance(result, ProofError):
            yield f"only the {side} side fails with inputs that require gradients: {result}"
            return
    assert not isinstance(before_run, ProofError)
    assert not isinstance(after_run, ProofError)
    (flags_old, grads_old), (flags_new, grads_new) = before_run, after_run
    for name in flags_old:
        if name in flags_new and flags_old[name] != flags_new[name]:
            yield f"{name}: requires_grad {flags_old[name]} became {flags_new[name]}"
    for name in names:
        yield from differences(grads_old[name], grads_new[name], f"gradient of {name}")


def _differentiable(value: Any) -> bool:
    return (
        isinstance(value, Tensor)
        and not isinstance(value, torch.nn.Parameter)
        and (value.is_floating_point() or value.is_complex())
        and not value.is_quantized
        and value.layout is torch.strided
    )


Result = tuple[dict[str, bool], dict[str, Tensor]]


def _differentiate(
    call: Callable[[Mapping[str, Any]], Outcome], given: Mapping[str, Any], names: list[str]
) -> Result | ProofError:
    """Which results require gradients, and the gradients of a weighted sum of all results."""
    leaves = {name: given[name].detach().clone().requires_grad_() for name in names}
    # Not the leaves themselves: those may not be changed in place. Deep copies of what is no leaf fail.
    inputs = {name: _Uncopied(leaves[name]) if name in leaves else value for name, value in given.items()}
    try:
        with torch.enable_grad():
            outcome = call(inputs)
        loss, flags = _loss(outcome)
        if loss is None or not loss.requires_grad:
            return flags, {name: torch.zeros_like(leaf) for name, leaf in leaves.items()}
        grads = torch.autograd.grad(loss, list(leaves.values()), allow_unused=True)
    except ProofError as error:
        return error
    except (RuntimeError, NotImplementedError) as error:  # what autograd raises where there is no derivative
        return ProofError(f"{type(error).__name__}: {error}")
    pairs = zip(leaves.items(), grads, strict=True)
    return flags, {name: torch.zeros_like(leaf) if grad is None else grad for (name, leaf), grad in pairs}


class _Uncopied:
    """A tensor that is handed over as it is, cloned within the graph."""

    def __init__(self, leaf: Tensor) -> None:
        self.leaf = leaf

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        return self.leaf.clone()


def _loss(outcome: Outcome) -> tuple[Tensor | None, dict[str, bool]]:
    total: Tensor | None = None
    flags: dict[str, bool] = {}
    for name, value in outcome.values().items():
        for part, item in _tensors(value, name):
            flags[part] = item.requires_grad
            if part in outcome.inputs or not (item.is_floating_point() or item.is_complex()):
                continue
            weighted = (item.to_dense() if item.layout is not torch.strided else item) * _weights(item)
            term = weighted.sum().real if weighted.is_complex() else weighted.sum()
            term = term.double()
            total = term if total is None else total + term
    return total, flags


def _weights(item: Tensor) -> Tensor:
    """The same for each shape, and different for each element: a plain sum often has no gradient."""
    index = torch.arange(1, item.numel() + 1, dtype=torch.float64)
    return torch.sin(index).reshape(item.shape).to(item.dtype)


def _tensors(value: Any, name: str) -> Iterator[tuple[str, Tensor]]:
    if isinstance(value, Tensor):
        yield name, value
    elif isinstance(value, tuple | list):
        for index, item in enumerate(value):
            yield from _tensors(item, f"{name}[{index}]")
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _tensors(item, f"{name}[{key!r}]")


def _against_quotient(
    before: str, given: Mapping[str, Any], names: list[str], after_run: Result, symmetric: bool
) -> Iterator[str]:
    """The gradient of the new side against central differences of the old one, in two directions each."""
    _, grads = after_run
    for name in names:
        value = given[name]
        for seed in (1, 2):
            direction = torch.randn(
                value.shape, dtype=value.dtype, generator=torch.Generator().manual_seed(seed)
            )
            direction = _in_kind(direction, value, symmetric)
            quotient = (
                _loss_at(before, {**given, name: value + STEP * direction})
                - _loss_at(before, {**given, name: value - STEP * direction})
            ) / (2 * STEP)
            slope = (grads[name].conj() * direction).sum()
            expected = float(slope.real if slope.is_complex() else slope)
            if abs(quotient - expected) > 1e-5 * max(1.0, abs(quotient), abs(expected)):
                yield f"gradient of {name}: {quotient:.8g} on the old side, {expected:.8g} on the new one"
                break


def _in_kind(direction: Tensor, value: Tensor, symmetric: bool) -> Tensor:
    """A change that leaves a symmetric matrix symmetric and a triangular one triangular.

    Functions of such matrices read one triangle, and are free in what the gradient says about the other.
    """
    if value.ndim < 2 or value.shape[-1] != value.shape[-2]:
        return direction
    if symmetric or torch.equal(value, value.mH):
        return (direction + direction.mH) / 2
    if torch.equal(value, value.triu()):
        return direction.triu()
    return direction.tril() if torch.equal(value, value.tril()) else direction


def _loss_at(code: str, inputs: Mapping[str, Any]) -> float:
    loss, _ = _loss(run(code, inputs, old=True))
    return 0.0 if loss is None else float(loss)
