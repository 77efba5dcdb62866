"""Places that belong to a use of apex without naming it: steps of its optimizers, clipping, `.half()`."""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from msgspec import Struct

from torchmigrate.codemods.apex.objects import AMP, LOSS_SCALER, MODEL, WRAPPER, Objects
from torchmigrate.semantics.flow.functions import Function, Functions, key_of, own
from torchmigrate.semantics.flow.mentions import common_block
from torchmigrate.semantics.model import Role, SemanticModel, Use
from torchmigrate.source.trees import last_name

_CLIPPING = frozenset(
    f"torch.nn.utils.{module}{name}"
    for module in ("", "clip_grad.")
    for name in ("clip_grad_norm_", "clip_grad_norm", "clip_grad_value_")
)
_STEP = (
    "call `scaler.step({optimizer})`, and `scaler.update()` after the last step of an iteration; the "
    "scaler skips a step if its gradients are not finite"
)
_CLIP = "gradients stay scaled until the step: call `scaler.unscale_({optimizer})` first, once per step"
_METHODS = {
    "backward": "write `scaler.scale({argument}).backward()`",
    "clip_master_grads": (
        "write `scaler.unscale_({optimizer})`, then "
        "`torch.nn.utils.clip_grad_norm_(model.parameters(), {argument})`"
    ),
    "update_master_grads": "remove it: `scaler.step` unscales, and there are no master gradients",
    "step": _STEP,
}
_STATE = {
    "overflow": (
        "compare `scaler.get_scale()` before and after `scaler.update()`: it is smaller after a skipped step"
    ),
    "loss_scale": "write `scaler.get_scale()`",
    "cur_scale": "write `scaler.get_scale()`",
}
_HALF = (
    "remove `.half()`: a scaler does not accept weights in half precision, and autocast casts where useful"
)

_OTHERS = frozenset([MODEL, AMP, LOSS_SCALER])


class Member(Struct):
    """An expression that changes with the uses of apex in the file; recipe: what to write there."""

    node: ast.expr
    recipe: str


def members(uses: Sequence[Use], names: SemanticModel, objects: Objects) -> list[Member]:
    """The steps of the optimizers that apex is given, and the clipping of their gradients, in source order.

    Args:
        uses: those of `amp.initialize`, `amp.scale_loss` and `FP16_Optimizer`.
    """
    functions = objects.functions
    calls = [use for use in uses if use.role is Role.CALL and id(use.statement) in functions.owners]
    owned = [(functions.owners[id(use.statement)], use) for use in calls]
    scaled: dict[Function, list[ast.stmt]] = {}  # the statements that scale a loss
    for owner, use in owned:
        if use.candidates[0].endswith(".scale_loss"):
            scaled.setdefault(owner, []).append(use.statement)
    begin = {owner: min(item.lineno for item in statements) for owner, statements in scaled.items()}

    def is_apart(statement: ast.stmt, function: Function) -> bool:
        """Whether a statement stands in a branch of its own, and its function scales losses in others."""
        mine = scaled.get(function, ())
        return bool(mine) and all(functions.apart(item, statement) for item in mine)

    found: dict[ast.expr, Member] = {}
    steps: dict[Function, list[tuple[ast.Attribute, ast.stmt]]] = {}
    for node, call, statement, function in objects.attributes(*_METHODS, *_STATE):
        kinds = objects.kinds(node.value)
        wrapped = WRAPPER in kinds
        if not kinds or kinds <= _OTHERS or is_apart(statement, function):
            continue
        if not wrapped and statement.lineno < begin.get(function, 0) and not functions.loops(statement):
            continue  # before all of training
        if call is not None and node.attr == "step":
            steps.setdefault(function, []).append((node, statement))
        if call is not None and node.attr in _METHODS and (wrapped or node.attr == "step"):
            argument = ast.unparse(call.args[0]) if call.args else "loss"
            recipe = _METHODS[node.attr].format(optimizer=ast.unparse(node.value), argument=argument)
            found[call] = Member(call, recipe)
        elif wrapped and node.attr in _STATE and isinstance(node.ctx, ast.Load):
            found[node] = Member(node, _STATE[node.attr])
    clipping = [
        (functions.owners[id(use.statement)], use.statement, use.call)
        for use in names.uses
        if use.call is not None and use.role is Role.CALL and use.candidates[0] in _CLIPPING
    ]
    masters = {owner: [*filter(_of_masters, owner.statements)] for owner, _, _ in clipping}
    for function, statement, call in clipping:
        around = [item for item in masters[function] if item is statement or functions.apart(item, statement)]
        if around or is_apart(statement, function) or statement.lineno < begin.get(function, 0):
            continue  # apex clips them, or these are not scaled
        optimizer = _stepped(statement, steps.get(function, []), functions)
        if optimizer is not None:
            found[call] = Member(call, _CLIP.format(optimizer=ast.unparse(optimizer)))
    wrapping = {owner for owner, use in owned if use.candidates[0].endswith(f".{WRAPPER}")}
    found.update((call, Member(call, _HALF)) for owner in wrapping for call in _halves(owner))
    return sorted(found.values(), key=lambda item: (item.node.lineno, item.node.col_offset))


def _of_masters(statement: ast.stmt) -> bool:
    """Whether a statement clips through apex itself."""
    names = ("master_params", "clip_master_grads")
    return any(last_name(call.func) in names for call in own(statement, ast.Call))


def _stepped(
    statement: ast.stmt, steps: Sequence[tuple[ast.Attribute, ast.stmt]], functions: Functions
) -> ast.expr | None:
    """The optimizer that steps after its gradients are clipped; None: there is none."""
    for node, step in steps[bisect_left(steps, statement.lineno, key=lambda item: item[1].lineno) :]:
        common = common_block([functions.spots[id(statement)], functions.spots[id(step)]])
        if common is not None and common[0].index < common[1].index:
            return node.value
    return None


def _halves(function: Function) -> Iterator[ast.Call]:
    """`model.half()` where `FP16_Optimizer` is made of an optimizer of that model's parameters."""
    methods = [(call, call.func) for _, call in function.calls if isinstance(call.func, ast.Attribute)]
    trained = {
        key_of(method.value) for _, method in methods if method.attr in ("parameters", "named_parameters")
    } - {None}
    for call, method in methods:
        if method.attr == "half" and not call.args and key_of(method.value) in trained:
            yield call
