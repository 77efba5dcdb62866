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

_CLIPPING = frozenset({"clip_grad_norm_", "clip_grad_norm", "clip_grad_value_"})
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
_Scaled = dict[Function, list[ast.stmt]]  # the statements of each function that scale a loss, in order


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
    scaled: _Scaled = {}
    for use in calls:
        if use.candidates[0].endswith(".scale_loss"):
            scaled.setdefault(functions.owners[id(use.statement)], []).append(use.statement)
    for statements in scaled.values():
        statements.sort(key=lambda item: item.lineno)
    found: dict[int, Member] = {}
    steps: list[tuple[ast.Attribute, ast.stmt, Function]] = []
    for node, call, statement, function in objects.attributes(*_METHODS, *_STATE):
        kinds = objects.kinds(node.value)
        wrapped = WRAPPER in kinds
        if not kinds or kinds <= _OTHERS or _elsewhere(statement, scaled, function, functions):
            continue
        if not wrapped and _before_all(statement, scaled, function, functions):
            continue
        if call is not None and node.attr == "step":
            steps.append((node, statement, function))
        if call is not None and node.attr in _METHODS and (wrapped or node.attr == "step"):
            argument = ast.unparse(call.args[0]) if call.args else "loss"
            recipe = _METHODS[node.attr].format(optimizer=ast.unparse(node.value), argument=argument)
            found[id(call)] = Member(call, recipe)
        elif wrapped and node.attr in _STATE and isinstance(node.ctx, ast.Load):
            found[id(node)] = Member(node, _STATE[node.attr])
    for call, optimizer in _clipping(names, functions, scaled, steps):
        found[id(call)] = Member(call, _CLIP.format(optimizer=optimizer))
    for call in _halves(calls, functions):
        found[id(call)] = Member(call, _HALF)
    return sorted(found.values(), key=lambda item: (item.node.lineno, item.node.col_offset))


def _elsewhere(statement: ast.stmt, scaled: _Scaled, function: Function, functions: Functions) -> bool:
    """Whether a statement stands in a branch of its own, where the function scales its loss in another."""
    mine = scaled.get(function, ())
    return bool(mine) and all(functions.apart(item, statement) for item in mine)


def _before_all(statement: ast.stmt, scaled: _Scaled, function: Function, functions: Functions) -> bool:
    """Whether a statement runs before a loss is scaled, and not again."""
    looped = functions.loops(statement)
    return function in scaled and not looped and statement.lineno < scaled[function][0].lineno


def _of_masters(statement: ast.stmt) -> bool:
    """Whether a statement clips through apex itself."""
    return any(
        (getattr(call.func, "attr", None) or getattr(call.func, "id", ""))
        in ("master_params", "clip_master_grads")
        for call in own(statement, ast.Call)
    )


def _clipping(
    names: SemanticModel,
    functions: Functions,
    scaled: _Scaled,
    steps: Sequence[tuple[ast.Attribute, ast.stmt, Function]],
) -> Iterator[tuple[ast.Call, str]]:
    """The calls that clip gradients before one of the steps, each with the optimizer."""
    masters = {function: [*filter(_of_masters, function.statements)] for function in functions.every}
    mine: dict[Function, list[tuple[ast.Attribute, ast.stmt]]] = {}
    for node, statement, owner in steps:
        mine.setdefault(owner, []).append((node, statement))
    lines = {owner: [statement.lineno for _, statement in items] for owner, items in mine.items()}
    for use in names.uses:
        call, name = use.call, use.candidates[0]
        if call is None or name.rpartition(".")[2] not in _CLIPPING or use.role is not Role.CALL:
            continue
        if not name.startswith("torch.nn.utils.") or _of_masters(use.statement):
            continue
        function = functions.owners.get(id(use.statement))
        if function is None or _elsewhere(use.statement, scaled, function, functions):
            continue
        if any(functions.apart(item, use.statement) for item in masters[function]):
            continue  # in the branch without apex
        begin = scaled.get(function, ())
        if begin and call.lineno < begin[0].lineno:
            continue
        later = bisect_left(lines.get(function, []), use.statement.lineno)
        for node, statement in mine.get(function, [])[later:]:
            common = common_block([functions.spots[id(use.statement)], functions.spots[id(statement)]])
            if common is not None and common[0].index < common[1].index:
                yield call, ast.unparse(node.value)
                break


def _halves(uses: Sequence[Use], functions: Functions) -> Iterator[ast.Call]:
    """`model.half()` where `FP16_Optimizer` is made of an optimizer of that model's parameters."""
    made = [use.statement for use in uses if use.candidates[0].endswith(f".{WRAPPER}")]
    for function in {id(owner): owner for owner in (functions.owners[id(item)] for item in made)}.values():
        methods = [(call, call.func) for _, call in function.calls if isinstance(call.func, ast.Attribute)]
        trained = {
            key_of(method.value) for _, method in methods if method.attr in ("parameters", "named_parameters")
        } - {None}
        for call, method in methods:
            if method.attr == "half" and not call.args and key_of(method.value) in trained:
                yield call
