"""What a file uses of apex.amp: every place, read into what it means."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from msgspec import Struct, field

from torchmigrate.codemods.apex.objects import AMP, SCALERS, Objects
from torchmigrate.codemods.base.unclear import Unclear
from torchmigrate.match.signature import arguments_of, bind, parse_signature
from torchmigrate.patterns import pattern
from torchmigrate.semantics.flow.forward import Forward
from torchmigrate.semantics.flow.functions import Function, Functions, key_of
from torchmigrate.semantics.flow.values import ValueFlow
from torchmigrate.semantics.model import Binding, Const, QualifiedName, Role, SemanticModel, Use, Via
from torchmigrate.source.trees import walk

_FP16 = "apex.fp16_utils"
_TO_NUMBER = f"{_FP16}.to_python_float"
_NATIVE = ("torch.amp", "torch.cuda.amp", "torch.autocast", "torch.cpu.amp")
_INITIALIZE = (
    "(models, optimizers=None, enabled=True, opt_level='O1', cast_model_type=None, "
    "patch_torch_functions=None, keep_batchnorm_fp32=None, master_weights=None, loss_scale=None, "
    "cast_model_outputs=None, num_losses=1, verbosity=1, min_loss_scale=None, max_loss_scale=2**24)"
)
_SCALE_LOSS = (
    "(loss, optimizers=None, loss_id=0, model=None, delay_unscale=False, delay_overflow_check=False)"
)
_SAVES = pattern(r"checkpoint|resum|restor|restart|(?:^|_)states?(?:_|$)", re.IGNORECASE)
_HALF = frozenset("einsum matmul mm mv bmm addmm addbmm baddbmm conv1d conv2d conv3d linear".split())
# What `from apex.amp import *` and `from apex.fp16_utils import *` may give.
_EXPORTS = frozenset(
    """BN_convert_float FP16Model convert_module convert_network network_to_half tofp16 prep_param_lists
    model_grads_to_master_grads master_params_to_model_params FP16_Optimizer LossScaler DynamicLossScaler
    to_python_float clip_grad_norm fp16util fp16_optimizer loss_scaler init initialize scale_loss
    master_params state_dict load_state_dict disable_casts half_function bfloat16_function float_function
    promote_function register_half_function register_bfloat16_function register_float_function
    register_promote_function amp frontend handle""".split()
)


MAKE = (
    'create `scaler = torch.amp.GradScaler("cuda", enabled=...)` where `amp.initialize` is called, and '
    "pass it to"
)


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
    name: str
    loss: ast.expr
    delayed: bool  # whether `delay_unscale` is given
    backward: list[ast.Call]
    others: list[ast.stmt]


class Place(Struct):
    """An expression that changes with apex.

    kind: "saved" (`amp` itself, for its state), "scale", "state_dict", "load_state_dict", "master"
    (`amp.master_params(optimizer)`), "number" (`to_python_float(x)`), or "set" (the scale, set).
    value: the argument, or what it is set to.
    """

    kind: str
    node: ast.expr
    statement: ast.stmt
    function: Function
    value: ast.expr | None = None


class Uses(Struct):
    """Everything of apex.amp in one file."""

    every: list[Use]
    initialize: list[Initialize] = field(default_factory=list)
    scaled: list[Scaled] = field(default_factory=list)
    others: list[Place] = field(default_factory=list)
    tests: list[ast.expr] = field(default_factory=list)  # `amp` itself, as in `amp is not None`
    gone: list[ast.stmt] = field(default_factory=list)
    receivers: dict[ast.arg, Function] = field(default_factory=dict)  # parameters that are given `amp`
    imports: list[Use] = field(default_factory=list)

    def of(self, *kinds: str) -> list[Place]:
        """The places of some kinds."""
        return [item for item in self.others if item.kind in kinds]

    @property
    def places(self) -> list[tuple[Function, ast.stmt]]:
        """The statements that need a scaler, each with its function."""
        every: list[Scaled | Place] = [*self.scaled, *self.others]
        idle = self.of("number", "set")
        return [(item.function, item.statement) for item in every if item not in idle]


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
    return f"{name}.".startswith((f"{AMP}.", f"{_FP16}.")) or (
        name.startswith("apex.") and name.endswith(".FP16_Optimizer")
    )


def given_amp(names: SemanticModel, objects: Objects) -> Iterator[tuple[ast.Name, ast.arg]]:
    """The places that read a parameter which is given `amp`, with that parameter."""
    for node in names.nodes(ast.Name):
        if isinstance(node.ctx, ast.Load):
            argument = objects.parameter(node)
            if argument is not None and objects.kinds(node) == {AMP}:
                yield node, argument


def read(names: SemanticModel, objects: Objects) -> Uses:
    """Read every use.

    Raises:
        Unclear: one of them cannot be rewritten.
    """
    for use in names.uses:
        if any(f"{name}.".startswith(tuple(f"{item}." for item in _NATIVE)) for name in use.candidates):
            line = getattr(use.node, "lineno", use.statement.lineno)
            raise BothBackends(f"the file also uses `{use.candidates[0]}` (line {line})", line=line)
    reader = _Reader(objects, Uses(concerned(names)))
    for use in reader.found.every:
        reader.use(use)
    for node, argument in given_amp(names, objects):
        reader.parameter(node, argument)
    reader.check_names()
    return reader.found


class _Reader:
    def __init__(self, objects: Objects, found: Uses) -> None:
        self.objects = objects
        self.flow = objects.flow
        self.functions = objects.functions
        self.parents = objects.flow.names.parents
        self.found = found

    def use(self, use: Use) -> None:
        """Read one use."""
        name, call = use.candidates[0], use.call if use.role is Role.CALL else None
        single = len(use.candidates) == 1 and not use.in_fstring and use.role is not Role.STRING
        if not _of_amp(name) or not f"{name}.".startswith(f"{AMP}."):
            self._older(use, name, call if single and (use.sure or use.via is Via.STAR) else None)
            return
        if not single or not _is_library(use):
            raise Unclear.at(use.statement.lineno, f"`{name.rpartition('.')[2]}` may be something else")
        node = use.node
        if use.role is Role.IMPORT:
            self.found.imports.append(use)
        elif isinstance(node, ast.expr) and name == AMP:
            self._object(node)
        elif isinstance(node, ast.expr) and SCALERS.fullmatch(name):
            self._scales(node, name)
        else:
            short = name.removeprefix(f"{AMP}.").removeprefix("frontend.").removeprefix("handle.")
            test = self.functions.around.get(id(node))
            if short == "__dict__" and isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.In):
                self.found.tests.append(test)  # `"load_state_dict" in amp.__dict__`
            elif (
                short == "register_half_function" and call is not None and self._is_half(use.statement, call)
            ):
                self.found.gone.append(use.statement)  # as autocast does
            else:
                self._member(short, name, call, use.statement)

    def _older(self, use: Use, name: str, call: ast.Call | None) -> None:
        """Read what is older than amp: an import that goes, or `to_python_float`, which is `.item()`."""
        unused = use.binding is not None and not use.binding.uses
        plain = call is not None and not call.keywords and len(call.args) == 1
        if use.role is Role.IMPORT and (unused or name in (_FP16, _TO_NUMBER)):
            self.found.imports.append(use)  # a use that keeps it is unclear itself
        elif name == _TO_NUMBER and call is not None and plain and not isinstance(call.args[0], ast.Starred):
            self._add("number", call, call.args[0])
        else:
            raise Unclear.at(use.statement.lineno, f"`{name}` is older than amp: replace it first")

    def _add(self, kind: str, node: ast.expr, value: ast.expr | None = None) -> None:
        statement = self.functions.statement_of(node)
        function = self.functions.owners[id(statement)]
        self.found.others.append(Place(kind, node, statement, function, value))

    def parameter(self, node: ast.Name, argument: ast.arg) -> None:
        """Read a use of `amp` where it is a parameter."""
        outer = self.parents.get(node)
        statement = self.functions.statement_of(node)
        function = self.functions.owners[id(statement)]
        if self.flow.index.home_of(argument) is not function.node:
            raise Unclear.at(node.lineno, "`amp` is a parameter of another function")
        self.found.receivers[argument] = function
        if isinstance(outer, ast.Attribute):
            call = self.parents.get(outer)
            called = call if isinstance(call, ast.Call) and call.func is outer else None
            self._member(outer.attr, f"{AMP}.{outer.attr}", called, statement)
        else:
            self.found.tests.append(node)

    def _object(self, node: ast.expr) -> None:
        """Read a place where `amp` is saved, passed on, or tested."""
        around = self.parents.get(node)
        call = self.parents.get(around) if isinstance(around, ast.keyword) and around else around
        if isinstance(around, ast.Dict):
            saved = any(getattr(key, "value", None) in ("model", "optimizer") for key in around.keys)
        elif isinstance(call, ast.Call) and call.func is not node:
            saved = _SAVES.search(ast.unparse(call.func).rpartition(".")[2]) is not None
            if not saved and self.objects.called(call) is not None:
                return  # the parameter is read itself
        else:
            saved = False
        if saved:
            self._add("saved", node)
        else:
            self.found.tests.append(node)

    def _scales(self, node: ast.expr, name: str) -> None:
        """Read what is done with `amp._amp_state.loss_scalers[0]`."""
        unclear = Unclear.at(node.lineno, f"cannot analyze what is done with `{name}`")
        item = self.parents.get(node)
        if not isinstance(item, ast.Subscript):
            raise unclear
        holders: list[ast.AST] = [item]
        if isinstance(made := self.parents.get(item), ast.Assign):
            holders = list(Forward(self.flow).of(item))
            self.found.gone.append(made)
        for holder in holders:
            scale = self.parents.get(holder)
            if not isinstance(scale, ast.Attribute) or scale.attr not in ("loss_scale", "_loss_scale"):
                raise unclear
            outer = self.parents.get(scale)
            if isinstance(outer, ast.Call) and outer.func is scale:
                self._add("scale", outer)
            elif isinstance(scale.ctx, ast.Load):
                self._add("scale", scale)
            elif isinstance(outer, ast.Assign) and len(outer.targets) == 1:
                self._add("set", scale, outer.value)
                self.found.gone.append(outer)
            else:
                raise unclear

    def _is_half(self, statement: ast.stmt, call: ast.Call) -> bool:
        """Whether autocast runs a function in half precision without being told to."""
        if not isinstance(statement, ast.Expr) or len(call.args) != 2 or call.keywords:
            return False
        known = self.flow.imported(call.args[0]) in ("torch", "torch.nn.functional")
        return known and getattr(call.args[1], "value", "") in _HALF

    def _member(self, short: str, name: str, call: ast.Call | None, statement: ast.stmt) -> None:
        line, function = statement.lineno, self.functions.owners[id(statement)]
        known = ("initialize", "scale_loss", "master_params", "state_dict", "load_state_dict")
        if call is None and short in known:
            raise Unclear.at(line, f"`amp.{short}` is passed on as a function")
        only = call.args[0] if call is not None and len(call.args) == 1 and not call.keywords else None
        if call is not None and short == "initialize":
            self.found.initialize.append(_initialize(call, statement, function, self.flow))
        elif call is not None and short == "scale_loss":
            self.found.scaled.append(_scaled(call, statement, function, self.flow))
        elif call is not None and short == "master_params" and only is not None:
            self._add("master", call, only)
        elif call is not None and short in known[3:] and (only is not None) is (short == "load_state_dict"):
            self._add(short, call.func)
        else:
            raise Unclear.at(line, f"the fix does not replace `{name}`: replace it first")

    def check_names(self) -> None:
        """The scaled loss is no longer a variable.

        Raises:
            Unclear: it is read elsewhere.
        """
        inside = {id(node) for item in self.found.scaled for node in walk(item.statement)}
        for item in self.found.scaled:
            for node in walk(item.function.node):
                if isinstance(node, ast.Name) and node.id == item.name and id(node) not in inside:
                    raise Unclear.at(
                        node.lineno,
                        f"`{item.name}` is used outside of `amp.scale_loss`: use `scaler.scale(...)` of the "
                        "loss there",
                    )


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


def _bound(call: ast.Call, signature: str, flow: ValueFlow) -> dict[str, ast.expr]:
    """The arguments of a call by parameter, those of `**options` too.

    Raises:
        Unclear: not all are known.
    """
    arguments = arguments_of(call, flow.keywords)
    found = bind(parse_signature(signature), arguments)
    if not found.understood:
        raise Unclear.at(call.lineno, "cannot analyze the arguments of the call")
    every = ((name, arguments[index].value) for index, name in found.parameter_of().items())
    return {name: value for name, value in every if value is not None}


def is_none(node: ast.expr | None) -> bool:
    """Whether an argument is not given, or None."""
    return node is None or (isinstance(node, ast.Constant) and node.value is None)


def _initialize(call: ast.Call, statement: ast.stmt, function: Function, flow: ValueFlow) -> Initialize:
    given = _bound(call, _INITIALIZE, flow)
    line = call.lineno
    holds = isinstance(statement, (ast.Expr, ast.Assign, ast.Return)) and statement.value is call
    if not holds or len(getattr(statement, "targets", [call])) > 1:
        raise Unclear.at(line, "the result of `amp.initialize` is not assigned")
    for name in ("cast_model_type", "patch_torch_functions", "cast_model_outputs"):
        if not is_none(given.get(name)):
            raise Unclear.at(line, f"`{name}` has no equivalent in `torch.amp`")
    models, optimizers = _each(given["models"]), _each(given.get("optimizers"))
    if isinstance(statement, ast.Expr) and any(key_of(item) is None for item in (*models, *optimizers)):
        raise Unclear.at(line, "the arguments are not plain names")
    return Initialize(call, statement, function, models, optimizers, given)


def _each(node: ast.expr | None) -> list[ast.expr]:
    if node is None or is_none(node):
        return []
    return list(node.elts) if isinstance(node, (ast.List, ast.Tuple)) else [node]


def _scaled(call: ast.Call, statement: ast.stmt, function: Function, flow: ValueFlow) -> Scaled:
    given = _bound(call, _SCALE_LOSS, flow)
    line = call.lineno
    if not isinstance(statement, ast.With) or all(item.context_expr is not call for item in statement.items):
        raise Unclear.at(
            line,
            "the code enters `amp.scale_loss` without `with`: call `scaler.scale(...)` on "
            "the loss, without `__enter__` and `__exit__`",
        )
    if len(statement.items) > 1:
        raise Unclear.at(line, "`amp.scale_loss` needs a `with` of its own")
    target = statement.items[0].optional_vars
    if not isinstance(target, ast.Name):
        raise Unclear.at(line, "`amp.scale_loss` has no name for the scaled loss")
    calls = [call for inner in statement.body for call in backwards(inner, target.id)]
    others = [inner for inner in statement.body if not any(True for _ in backwards(inner, target.id))]
    for inner in others:
        if not calls or not _may_stay(inner, target.id):
            raise Unclear.at(
                inner.lineno,
                "only the backward pass and code for scaled gradients may be under "
                "`amp.scale_loss`: move this after it, with `scaler.scale(loss)` instead of the scaled "
                "loss",
            )
    later = given.get("delay_unscale")
    delayed = later is not None and not (isinstance(later, ast.Constant) and later.value is False)
    return Scaled(call, statement, function, target.id, given["loss"], delayed, calls, others)


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


def the_call(uses: Uses, functions: Functions) -> Initialize:
    """The (only) call of `amp.initialize`.

    Raises:
        Unclear: there is none, or more than one, or nothing is trained with it.
    """
    if not uses.initialize:
        if not uses.places:
            raise Unclear("this file does not use the import")
        function = uses.places[0][0]
        name = "this file" if isinstance(function.node, ast.Module) else f"`{function.name}`"
        raise Unclear(f"this file does not call `amp.initialize`: {MAKE} {name}")
    if len(uses.initialize) > 1 and not _one_of_two(uses, functions) and not _in_a_row(uses, functions):
        line = uses.initialize[1].statement.lineno
        raise Unclear(
            f"line {line} calls `amp.initialize` again; both calls need to share one scaler", line=line
        )
    if not uses.scaled and (uses.places or any(item.optimizers for item in uses.initialize)):
        raise Unclear(
            "the model is initialized here and trained in another file: create the scaler here, and pass "
            "it to the code that scales the loss"
        )
    first = uses.initialize[0]
    if uses.scaled and not any(item.optimizers for item in (first, *first.more)):
        raise Unclear.at(first.statement.lineno, "no optimizer is initialized")
    return first


def _options(item: Initialize, *left_out: str) -> dict[str, str]:
    return {key: ast.dump(value) for key, value in item.given.items() if key not in left_out}


def _in_a_row(uses: Uses, functions: Functions) -> bool:
    """Whether the calls of `amp.initialize` are in one block, with the same options for different objects."""
    first, *more = uses.initialize
    first.more = more
    block = functions.spots[id(first.statement)].block
    options = _options(first, "models", "optimizers")
    objects = [ast.dump(part) for item in uses.initialize for part in (*item.models, *item.optimizers)]
    return len(set(objects)) == len(objects) and all(
        functions.spots[id(item.statement)].block is block
        and _options(item, "models", "optimizers") == options
        for item in more
    )


def _one_of_two(uses: Uses, functions: Functions) -> bool:
    """Whether two calls of `amp.initialize` are in both branches of one `if`, for the same objects."""
    one, other = uses.initialize[0], uses.initialize[-1]
    spots = [functions.spots[id(item.statement)] for item in (one, other)]
    outer = spots[0].outer
    if len(uses.initialize) > 2 or outer is None or outer is not spots[1].outer or not in_place(one):
        return False
    targets = [ast.dump(getattr(item.statement, "targets", [item.statement])[0]) for item in (one, other)]
    levels = [getattr(item.given.get("opt_level"), "value", "O1") for item in (one, other)]
    free = ["loss_scale", "keep_batchnorm_fp32", "verbosity", "master_weights"]
    free += ["opt_level"] if {*levels} <= {"O1", "O2", "O3"} else []
    same = targets[0] == targets[1] and _options(one, *free) == _options(other, *free)
    if not same or not isinstance(outer.statement, ast.If) or spots[0].block is spots[1].block:
        return False
    alone = all(len(spot.block) == 1 for spot in spots)
    one.gone = [outer.statement] if alone else [one.statement, other.statement]
    one.statement = outer.statement
    if len({ast.dump(item.given.get("loss_scale", outer.statement.test)) for item in (one, other)}) > 1:
        one.given["loss_scale"] = outer.statement.test  # for the message about it
    return True


def scale_option(first: Initialize, uses: Uses) -> tuple[str | ast.expr | None, list[str]]:
    """The number that the scaler begins with, if one is given, and what a person should know of it.

    Raises:
        Unclear: the scale is a literal that is none.
    """
    given = first.given.get("loss_scale")
    told: list[str] = []
    for item in uses.of("set"):
        if item.value is not None:
            constant = not any(isinstance(node, (ast.Name, ast.Call)) for node in ast.walk(item.value))
            if constant and item.function is first.function:
                return item.value, told
            told.append(f"line {item.statement.lineno}: the scaler begins with its own scale")
    if given is None or is_none(given) or (isinstance(given, ast.Constant) and given.value == "dynamic"):
        return None, told
    if isinstance(given, ast.Constant):
        try:
            value = float(given.value)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            raise Unclear.at(given.lineno, "the loss scale is not a number") from None
        return str(value), [*told, "the fixed loss scale becomes only the initial scale"]
    return None, [*told, "the scaler determines the loss scale itself, whatever the arguments say"]


def remarks(first: Initialize, uses: Uses) -> list[str]:
    """What a person should know of the rewrite."""
    given = first.given
    found: list[str] = []
    level = given.get("opt_level")
    if isinstance(level, ast.Constant) and level.value in ("O2", "O3"):
        found.append(
            f"{level.value} kept the weights in half precision; under autocast they stay in single precision"
        )
    elif level is not None and not isinstance(level, ast.Constant):
        found.append("O2 and O3, which kept the weights in half precision, now behave like O1")
    if uses.of("saved", "state_dict", "load_state_dict"):
        found.append("the amp state of old checkpoints does not load into the scaler")
    for item in uses.of("saved"):
        found.append(f"line {item.node.lineno}: the called code may only use the state of `amp`")
    options = ("keep_batchnorm_fp32", "loss_scale", "master_weights", "num_losses", "verbosity")
    idle = [
        f"`{ast.unparse(value)}`" for value in map(given.get, options) if isinstance(value, ast.Attribute)
    ]
    if idle:
        found.append(f"the options {' and '.join(idle)} have no use now: remove what is left of them")
    if "max_loss_scale" in given or "min_loss_scale" in given:
        found.append("a scaler does not limit the loss scale")
    if not is_none(given.get("num_losses")):
        found.append("all losses share one scale")
    return found


def elements(node: ast.expr) -> list[ast.expr]:
    """The single targets of an assignment."""
    if isinstance(node, (ast.Tuple, ast.List)):
        return [item for part in node.elts for item in elements(part)]
    return [node]


def in_place(first: Initialize) -> bool:
    """Whether the results of `amp.initialize` get the names of its arguments, or none."""
    statement = first.statement
    if not isinstance(statement, ast.Assign):
        return True
    given = [first.given[name] for name in ("models", "optimizers") if not is_none(first.given.get(name))]
    texts = [[*map(ast.unparse, elements(item))] for item in (statement.targets[0], ast.Tuple(given))]
    return texts[0] == texts[1]
