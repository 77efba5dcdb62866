"""What a file uses of apex.amp: every place, read into what it means."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct, field

from torchmigrate.codemods.apex.objects import AMP, SCALERS, Objects
from torchmigrate.codemods.base.unclear import Unclear
from torchmigrate.patterns import pattern
from torchmigrate.semantics.flow.forward import Forward
from torchmigrate.semantics.flow.functions import Function, Functions, key_of
from torchmigrate.semantics.model import Binding, Const, QualifiedName, Role, SemanticModel, Use, Via
from torchmigrate.source.trees import walk

_AMP = "apex.amp"
_FP16 = "apex.fp16_utils"
_TO_NUMBER = f"{_FP16}.to_python_float"
_NATIVE = ("torch.amp", "torch.cuda.amp", "torch.autocast", "torch.cpu.amp")
_INITIALIZE = (
    "models",
    "optimizers",
    "enabled",
    "opt_level",
    "cast_model_type",
    "patch_torch_functions",
    "keep_batchnorm_fp32",
    "master_weights",
    "loss_scale",
    "cast_model_outputs",
    "num_losses",
    "verbosity",
    "min_loss_scale",
    "max_loss_scale",
)
_SCALE_LOSS = ("loss", "optimizers", "loss_id", "model", "delay_unscale", "delay_overflow_check")
_SAVES = pattern(r"checkpoint|resum|restor|restart|(?:^|_)states?(?:_|$)", re.IGNORECASE)
_HALF = frozenset("einsum matmul mm mv bmm addmm addbmm baddbmm conv1d conv2d conv3d linear".split())
_WEIGHTS = "the weights stay in single precision: remove the call"
_MASTERS = "there are no master parameters: remove the call, and step through the scaler"
_SCALERS = 'the loss is scaled by `torch.amp.GradScaler("cuda")`'
_FP16_UTILS = {
    "BN_convert_float": _WEIGHTS,
    "FP16Model": _WEIGHTS,
    "convert_module": _WEIGHTS,
    "convert_network": _WEIGHTS,
    "network_to_half": _WEIGHTS,
    "tofp16": _WEIGHTS,
    "prep_param_lists": _MASTERS,
    "model_grads_to_master_grads": _MASTERS,
    "master_params_to_model_params": _MASTERS,
    "FP16_Optimizer": f"{_SCALERS}, and the optimizer inside stays",
    "LossScaler": _SCALERS,
    "DynamicLossScaler": _SCALERS,
    "to_python_float": "use `.item()`",
    "clip_grad_norm": "use `torch.nn.utils.clip_grad_norm_` after `scaler.unscale_(optimizer)`",
}
_EXPORTS = frozenset(
    (*_FP16_UTILS, "fp16util", "fp16_optimizer", "loss_scaler", "init", "initialize", "scale_loss")
) | frozenset(
    "master_params state_dict load_state_dict disable_casts half_function bfloat16_function float_function "
    "promote_function register_half_function register_bfloat16_function register_float_function "
    "register_promote_function amp frontend handle".split()
)


NO_OPTIONS: Mapping[ast.expr, dict[str, ast.expr]] = {}


class BothBackends(Unclear):
    """The file can do without apex already."""


class Initialize(Struct):
    """A call of `amp.initialize`."""

    call: ast.Call
    statement: ast.stmt
    function: Function
    models: list[ast.expr]
    optimizers: list[ast.expr]
    given: dict[str, ast.expr]
    gone: list[ast.stmt] = field(default_factory=list)  # where there are several, one for each branch
    more: list[Initialize] = field(default_factory=list)  # those that follow, for other objects


class Scaled(Struct):
    """A `with amp.scale_loss(loss, optimizer) as scaled:` statement.

    backward: the calls `scaled.backward()` under it; others: the other statements under it, for which
    gradients are scaled.
    """

    call: ast.Call
    statement: ast.With
    function: Function
    loss: ast.expr
    delayed: bool  # whether `delay_unscale` is given
    backward: list[ast.Call]
    others: list[ast.stmt]


class Place(Struct):
    """An expression that is another one with a scaler; value: an argument, or what it is set to.

    kind: "saved" (`amp` itself, for its state), "scale", "state_dict" or "load_state_dict".
    """

    node: ast.expr
    statement: ast.stmt
    function: Function
    value: ast.expr | None = None
    kind: str = ""


class Uses(Struct):
    """Everything of apex.amp in one file."""

    initialize: list[Initialize] = field(default_factory=list)
    scaled: list[Scaled] = field(default_factory=list)
    master: list[Place] = field(default_factory=list)  # `amp.master_params(optimizer)`
    put: list[Place] = field(default_factory=list)
    sets: list[Place] = field(default_factory=list)  # statements that set the scale
    tests: list[ast.expr] = field(default_factory=list)  # `amp` itself, as in `amp is not None`
    disabled: list[Place] = field(default_factory=list)  # `with amp.disable_casts():`
    gone: list[ast.stmt] = field(default_factory=list)
    receivers: dict[ast.arg, Function] = field(default_factory=dict)  # parameters that are given `amp`
    imports: list[Use] = field(default_factory=list)
    numbers: list[Place] = field(default_factory=list)  # `to_python_float(x)`
    every: list[Use] = field(default_factory=list)
    keywords: dict[ast.expr, dict[str, ast.expr]] = field(default_factory=dict)  # of `**options`

    @property
    def places(self) -> list[tuple[Function, ast.stmt]]:
        """The statements that need a scaler, each with its function."""
        every: list[Scaled | Place] = [*self.scaled, *self.master, *self.put]
        return [(item.function, item.statement) for item in every]


def concerned(names: SemanticModel) -> list[Use]:
    """The uses of apex.amp and apex.fp16_utils in a file."""
    return [
        use for use in names.uses if any(_of_amp(name) for name in use.candidates) and not is_foreign(use)
    ]


def is_foreign(use: Use) -> bool:
    """Whether a name that a star import of apex could give is none that apex has."""
    if use.via is not Via.STAR or use.role is Role.IMPORT:
        return False
    return not any(name.split(".")[2:3] and name.split(".")[2] in _EXPORTS for name in use.candidates)


def _of_amp(name: str) -> bool:
    return f"{name}.".startswith((f"{_AMP}.", f"{_FP16}.")) or (
        name.startswith("apex.") and name.endswith(".FP16_Optimizer")
    )


def read(names: SemanticModel, objects: Objects) -> Uses:
    """Read every use.

    Raises:
        Unclear: one of them cannot be rewritten.
    """
    functions = objects.functions
    found = Uses(every=concerned(names))
    for use in found.every:
        for item in use.call.keywords if use.call is not None else ():
            given, complete = objects.flow.keywords(item.value) if item.arg is None else ({}, False)
            if complete:
                found.keywords[item.value] = {name: value for name, (_, value) in given.items()}
    for use in names.uses:
        if any(f"{name}.".startswith(tuple(f"{item}." for item in _NATIVE)) for name in use.candidates):
            line = getattr(use.node, "lineno", use.statement.lineno)
            raise BothBackends(f"the file also uses `{use.candidates[0]}` (line {line})", line=line)
    found.numbers += _numbers(found.every, functions)
    numbers = {id(item.node.func) for item in found.numbers}  # type: ignore[attr-defined]
    for use in found.every:
        if id(use.node) in numbers:
            continue
        if use.candidates == (_FP16,) and use.role is Role.IMPORT and use.via is Via.STAR:
            _read_star(use, names, found)
        else:
            _read_one(use, objects, found)
    _read_parameters(names, objects, found)
    _check_names(found.scaled)
    return found


def given_amp(names: SemanticModel, objects: Objects) -> Iterator[tuple[ast.Name, ast.arg]]:
    """The places that read a parameter which is given `amp`, with that parameter."""
    for node in names.nodes(ast.Name):
        if isinstance(node.ctx, ast.Load):
            argument = objects.parameter(node)
            if argument is not None and objects.kinds(node) == {AMP}:
                yield node, argument


def _read_parameters(names: SemanticModel, objects: Objects, found: Uses) -> None:
    """Read the uses of `amp` where it is a parameter."""
    for node, argument in given_amp(names, objects):
        outer = names.parents.get(node)
        statement = objects.functions.statement_of(node)
        function = objects.functions.owners[id(statement)]
        if objects.flow.index.home_of(argument) is not function.node:
            raise Unclear.at(node.lineno, "`amp` is a parameter of another function")
        found.receivers[argument] = function
        if isinstance(outer, ast.Attribute):
            call = names.parents.get(outer)
            called = call if isinstance(call, ast.Call) and call.func is outer else None
            _read_call(outer.attr, f"{_AMP}.{outer.attr}", called, statement, function, found)
        else:
            found.tests.append(node)


def _numbers(every: Sequence[Use], functions: Functions) -> Iterator[Place]:
    """The calls of `to_python_float`, which is `.item()` whatever the precision is."""
    for use in every:
        call = use.call
        named = use.candidates == (_TO_NUMBER,) and (use.sure or use.via is Via.STAR) and not use.in_fstring
        if call is None or not named or use.role is not Role.CALL:
            continue
        if len(call.args) == 1 and not call.keywords and not isinstance(call.args[0], ast.Starred):
            yield Place(call, use.statement, functions.owners[id(use.statement)], call.args[0])


def _read_star(use: Use, names: SemanticModel, found: Uses) -> None:
    """`from apex.fp16_utils import *` goes if nothing else of it is used.

    Raises:
        Unclear: something is.
    """
    numbers = {id(item.node.func) for item in found.numbers}  # type: ignore[attr-defined]
    for node in walk(names.tree):
        if isinstance(node, ast.Name) and node.id in _FP16_UTILS and id(node) not in numbers:
            raise Unclear.at(
                node.lineno,
                f"`{node.id}` is from `apex.fp16_utils`, which is older than amp; with "
                f"`torch.amp`, {_FP16_UTILS[node.id]}",
            )
    found.imports.append(use)


def _read_scales(use: Use, objects: Objects, found: Uses) -> None:
    """Read what is done with `amp._amp_state.loss_scalers[0]`."""
    parents, functions = objects.flow.names.parents, objects.functions
    line = use.statement.lineno
    unclear = Unclear.at(line, f"cannot analyze what is done with `{use.candidates[0]}`")
    item = parents.get(use.node)
    if not isinstance(item, ast.Subscript) or use.in_fstring:
        raise unclear
    holders: list[ast.AST] = [item]
    if isinstance(parents.get(item), ast.Assign):
        holders = list(Forward(objects.flow).of(item))
        found.gone.append(use.statement)
    for holder in holders:
        node = parents.get(holder)
        if not isinstance(node, ast.Attribute) or node.attr not in ("loss_scale", "_loss_scale"):
            raise unclear
        outer, statement = parents.get(node), functions.statement_of(node)
        function = functions.owners[id(statement)]
        if isinstance(outer, ast.Call) and outer.func is node:
            found.put.append(Place(outer, statement, function, kind="scale"))
        elif isinstance(node.ctx, ast.Load):
            found.put.append(Place(node, statement, function, kind="scale"))
        elif isinstance(outer, ast.Assign) and len(outer.targets) == 1:
            found.sets.append(Place(node, statement, function, outer.value))
            found.gone.append(outer)
        else:
            raise unclear


def _read_one(use: Use, objects: Objects, found: Uses) -> None:
    functions = objects.functions
    name, line = use.candidates[0], use.statement.lineno
    if len(use.candidates) > 1 or not _is_library(use) or use.in_fstring or use.role is Role.STRING:
        raise Unclear.at(line, f"`{name.rpartition('.')[2]}` may be something else")
    short = name.removeprefix(f"{_AMP}.").removeprefix("frontend.").removeprefix("handle.")
    if not f"{name}.".startswith(f"{_AMP}."):
        unused = use.binding is not None and not use.binding.uses
        if use.role is Role.IMPORT and (unused or name in (_FP16, _TO_NUMBER)):
            found.imports.append(use)  # a use that keeps it is unclear itself
            return
        raise Unclear.at(line, f"`{name}` is older than amp, and keeps the weights in half precision")
    if use.role is Role.IMPORT:
        found.imports.append(use)
        return
    if name == _AMP:
        if isinstance(use.node, ast.expr) and _is_saved(use.node, functions):
            function = functions.owners[id(use.statement)]
            found.put.append(Place(use.node, use.statement, function, kind="saved"))
        else:
            _read_object(use, objects, found)
        return
    if short == "__dict__":
        test = functions.around.get(id(use.node))
        if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.In):
            found.tests.append(test)  # `"load_state_dict" in amp.__dict__`
            return
    if SCALERS.fullmatch(name):
        _read_scales(use, objects, found)
        return
    call = use.call if use.role is Role.CALL else None
    if short == "register_half_function" and call is not None and isinstance(use.statement, ast.Expr):
        module, *names = call.args
        known = objects.flow.imported(module) in ("torch", "torch.nn.functional") and not call.keywords
        if known and len(names) == 1 and getattr(names[0], "value", "") in _HALF:
            found.gone.append(use.statement)  # as autocast does
            return
    _read_call(short, name, call, use.statement, functions.owners[id(use.statement)], found)


def _read_object(use: Use, objects: Objects, found: Uses) -> None:
    """Read a place where `amp` is passed on, or tested."""
    assert isinstance(use.node, ast.expr), "not an import"
    around = objects.functions.around.get(id(use.node))
    call = objects.functions.around.get(id(around)) if isinstance(around, ast.keyword) else around
    if isinstance(call, ast.Call) and call.func is not use.node and objects.called(call) is not None:
        return  # the parameter is read itself
    found.tests.append(use.node)


def _read_call(
    short: str, name: str, call: ast.Call | None, statement: ast.stmt, function: Function, found: Uses
) -> None:
    line = statement.lineno
    if call is None:
        if short in ("initialize", "scale_loss", "master_params", "state_dict", "load_state_dict"):
            raise Unclear.at(line, f"`amp.{short}` is passed on as a function")
        raise Unclear.at(line, f"`{name}` has no equivalent in `torch.amp`")
    if short == "disable_casts" and isinstance(statement, ast.With):
        found.disabled.append(Place(call, statement, function))
    elif short == "initialize":
        found.initialize.append(_initialize(call, statement, function, found.keywords))
    elif short == "scale_loss":
        found.scaled.append(_scaled(call, statement, function))
    elif short == "master_params" and len(call.args) == 1 and not call.keywords:
        found.master.append(Place(call, statement, function, call.args[0]))
    elif (short == "state_dict" and not call.args) or (
        short == "load_state_dict" and len(call.args) == 1 and not call.keywords
    ):
        found.put.append(Place(call.func, statement, function, kind=short))
    else:
        raise Unclear.at(line, f"`{name}` has no equivalent in `torch.amp`")


def _is_saved(node: ast.expr, functions: Functions) -> bool:
    """Whether `amp` is handed on for its state: in a dict with a model, or to what saves states."""
    around = functions.around.get(id(node))
    if isinstance(around, ast.Dict):
        return any(getattr(key, "value", None) in ("model", "optimizer") for key in around.keys)
    call = functions.around.get(id(around)) if isinstance(around, ast.keyword) else around
    if not isinstance(call, ast.Call) or call.func is node:
        return False
    return _SAVES.search(ast.unparse(call.func).rpartition(".")[2]) is not None


def _is_library(use: Use) -> bool:
    """Whether a name is the library's, or its stand-in where the library is not installed."""
    if use.via not in (Via.IMPORT, Via.ALIAS):
        return False
    return use.sure or all(_stands_for(origin) for origin in use.origins)


def _stands_for(binding: Binding) -> bool:
    if binding.is_import:
        return (binding.target or "").partition(".")[0] == "apex"
    return all(
        (isinstance(item, Const) and item.value in (None, False))
        or (isinstance(item, QualifiedName) and _of_amp(item.name))
        for item in binding.value
    )


def bound(
    call: ast.Call, parameters: Sequence[str], options: Mapping[ast.expr, dict[str, ast.expr]] = NO_OPTIONS
) -> dict[str, ast.expr]:
    """The arguments of a call by parameter; options: what `**options` gives, where that is known.

    Raises:
        Unclear: not all are plain.
    """
    found: dict[str, ast.expr] = {}
    plain = not any(isinstance(item, ast.Starred) for item in call.args) and len(call.args) <= len(parameters)
    keywords = [
        pair for item in call.keywords for pair in options.get(item.value, {item.arg: item.value}).items()
    ]
    if not plain or any(name not in parameters for name, _ in keywords):
        raise Unclear.at(call.lineno, "cannot analyze the arguments of the call")
    found.update(zip(parameters, call.args, strict=False))
    found.update((name, value) for name, value in keywords if name is not None)
    return found


def is_none(node: ast.expr | None) -> bool:
    """Whether an argument is not given, or None."""
    return node is None or (isinstance(node, ast.Constant) and node.value is None)


def _initialize(
    call: ast.Call, statement: ast.stmt, function: Function, options: Mapping[ast.expr, dict[str, ast.expr]]
) -> Initialize:
    given = bound(call, _INITIALIZE, options)
    line = call.lineno
    holds = isinstance(statement, (ast.Expr, ast.Assign, ast.Return)) and statement.value is call
    plain = isinstance(statement, ast.Expr)
    if not holds or len(getattr(statement, "targets", [call])) > 1 or "models" not in given:
        raise Unclear.at(line, "the result of `amp.initialize` is not assigned")
    for name in ("cast_model_type", "patch_torch_functions", "cast_model_outputs"):
        if not is_none(given.get(name)):
            raise Unclear.at(line, f"`{name}` has no equivalent in `torch.amp`")
    models = _each(given["models"])
    optimizers = [] if is_none(given.get("optimizers")) else _each(given["optimizers"])
    if plain and any(key_of(item) is None for item in (*models, *optimizers)):
        raise Unclear.at(line, "the arguments are not plain names")
    return Initialize(call, statement, function, models, optimizers, given)


def _each(node: ast.expr) -> list[ast.expr]:
    return list(node.elts) if isinstance(node, (ast.List, ast.Tuple)) else [node]


def _scaled(call: ast.Call, statement: ast.stmt, function: Function) -> Scaled:
    given = bound(call, _SCALE_LOSS)
    line = call.lineno
    item = None
    if isinstance(statement, ast.With):
        item = next((item for item in statement.items if item.context_expr is call), None)
    if item is None or not isinstance(statement, ast.With):
        raise Unclear.at(
            line,
            "the code enters `amp.scale_loss` without `with`: call `scaler.scale(...)` on "
            "the loss, without `__enter__` and `__exit__`",
        )
    if not isinstance(item.optional_vars, ast.Name) or "loss" not in given:
        raise Unclear.at(line, "`amp.scale_loss` has no name for the scaled loss")
    rest = [part for part in statement.items if part is not item]
    name = item.optional_vars.id
    calls = [call for inner in statement.body for call in backwards(inner, name)]
    if any(getattr(node, "id", "") == name for part in rest for node in walk(part)):
        raise Unclear.at(line, f"another item of the `with` uses `{name}`")
    others = [inner for inner in statement.body if not any(True for _ in backwards(inner, name))]
    for inner in others:
        if not calls or not _may_stay(inner, name):
            raise Unclear.at(
                inner.lineno,
                "only the backward pass and code for scaled gradients may be under "
                "`amp.scale_loss`: move this after it, with `scaler.scale(loss)` instead of the scaled "
                "loss",
            )
    later = given.get("delay_unscale")
    delayed = later is not None and not (isinstance(later, ast.Constant) and later.value is False)
    return Scaled(call, statement, function, given["loss"], delayed, calls, others)


def _check_names(scaled: Sequence[Scaled]) -> None:
    """The scaled loss is no longer a variable.

    Raises:
        Unclear: it is read elsewhere.
    """
    inside = {id(node) for item in scaled for node in walk(item.statement)}
    for item in scaled:
        target = next(part.optional_vars for part in item.statement.items if part.context_expr is item.call)
        name = getattr(target, "id", "")
        for node in walk(item.function.node):
            if isinstance(node, ast.Name) and node.id == name and id(node) not in inside:
                raise Unclear.at(
                    node.lineno,
                    f"`{name}` is used outside of `amp.scale_loss`: use "
                    "`scaler.scale(...)` of the loss there",
                )


def _may_stay(statement: ast.stmt, name: str) -> bool:
    """Whether a statement under `amp.scale_loss` is the same after the backward pass of the scaler."""
    for node in walk(statement):
        if isinstance(node, (ast.Return, ast.Break, ast.Continue, ast.Yield, ast.YieldFrom, ast.Await)):
            return False
        if isinstance(node, ast.Name) and node.id == name:
            return False
        if isinstance(node, ast.Attribute) and node.attr in ("backward", "step", "zero_grad"):
            return False
    return True


def backwards(statement: ast.stmt, name: str) -> Iterator[ast.Call]:
    """The call `name.backward(...)` that a statement is."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    function = call.func if isinstance(call, ast.Call) else None
    if isinstance(call, ast.Call) and isinstance(function, ast.Attribute) and function.attr == "backward":
        if getattr(function.value, "id", "") != name:
            return
        yield call
