"""Rules about some of the uses of their symbols only, for what is around them or given to them.

The cases of the rules rewrite them; here is only which uses are meant.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.findings import Finding
from torchmigrate.match.matching import given_by, signature_of
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.patterns import pattern
from torchmigrate.rewrite.context import FileContext
from torchmigrate.semantics.facts.dtypes import TENSOR
from torchmigrate.semantics.flow.forward import Forward
from torchmigrate.source.trees import walk

# The smallest number that each dtype takes, and the largest one: uint8 still takes negative ones.
_LIMITS = {
    **dict.fromkeys(("uint8", "ByteTensor"), (-255, 255)),
    **dict.fromkeys(("int8", "CharTensor"), (-(2**7), 2**7 - 1)),
    **dict.fromkeys(("int16", "short", "ShortTensor"), (-(2**15), 2**15 - 1)),
    **dict.fromkeys(("int32", "int", "IntTensor"), (-(2**31), 2**31 - 1)),
}
_TURNED = frozenset(["t", "permute", "transpose"])
_SCRIPTS = ("torch.jit.script", "torch.jit.trace", "torch.jit.load", "torch.jit.freeze")
_PARAMETERS = ("torch.nn.Parameter", "torch.nn.parameter.Parameter")
_HOOKS = ("saved_tensors_hooks", "save_on_cpu", "disable_saved_tensors_hooks")
_MODE = "torch.utils._python_dispatch.TorchDispatchMode"
_MODES = frozenset([_MODE, "torch.utils.flop_counter.FlopCounterMode"])
# Methods and attributes that only read `x.data`.
_READS = frozenset(
    "cpu cuda clone detach device dim dtype float is_cuda item long ndim ndimension nelement numel numpy "
    "requires_grad shape size tolist type".split()
)
_FSDP = "torch.distributed.fsdp.FullyShardedDataParallel"
_STATES = frozenset(
    [f"{_FSDP}.{name}" for name in ("optim_state_dict", "full_optim_state_dict", "sharded_optim_state_dict")]
    + ["torch.load"]
)
_ENCODER_LAYER, _BATCH_FIRST = "torch.nn.TransformerEncoderLayer", 8  # the position of `batch_first`
# An address that is not read as it is meant. An absolute path is, or a drive of Windows, which is part of the
# path there; what Windows makes of backslashes is not known. After the start of an f-string the path may
# follow.
_PATH = pattern(r"file:(?!//(?:/|[A-Za-z]:|\Z)|/(?!/)|/?\Z|\\)")
_COMPOSE = frozenset(["torchvision.transforms.Compose", "torchvision.transforms.v2.Compose"])
_TO_TENSOR = frozenset(
    f"torchvision.transforms.{name}" for name in ("ToTensor", "PILToTensor", "v2.ToTensor", "v2.ToImage")
)
_TO_IMAGE = frozenset(["torchvision.transforms.ToPILImage", "torchvision.transforms.v2.ToPILImage"])
_LOSSES = frozenset(["torch.nn.BCELoss", "torch.nn.BCEWithLogitsLoss", "torch.nn.HuberLoss"])
_LOSS_FUNCTIONS = frozenset(
    f"torch.nn.functional.{name}"
    for name in ("binary_cross_entropy", "binary_cross_entropy_with_logits", "huber_loss")
)
_KEEP = frozenset("cuda to view reshape squeeze unsqueeze detach clone requires_grad_".split())
_MOST = 16  # expressions that a value goes to
_GET_LR_MARK, _EPOCH = "_get_lr_called_within_step", "last_epoch"


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """The findings of the hits that the rule is about."""
    meant = _MEANT.get(rule.name)
    if meant is not None:
        hits = [hit for hit in hits if meant(hit, file)]
    else:
        calls = _CALLS_MEANT[rule.name]
        hits = [hit for hit in hits if hit.use.call is not None and calls(hit, hit.use.call, file)]
    # A rule without a fix is also about what is only compared.
    yield from file.fixes.findings(hits) if rule.cases else (file.fixes.finding(hit, None) for hit in hits)


def _given(hit: RuleMatch, name: str) -> ast.expr | None:
    """What is given for a parameter of the rule's signature; None: nothing that is written there."""
    return given_by(signature_of(hit.rule, hit.symbol), hit.use).expression(name)


def _made(node: ast.expr | None, file: FileContext) -> ast.AST | None:
    return file.flow.only_origin(node) if node is not None else None


def _reached(node: ast.AST, file: FileContext) -> list[ast.AST]:
    """An expression, and those that its value goes to, also as a tensor of another shape or device."""
    forward = file.once(Forward, lambda: Forward(file.flow))
    seen = [node]
    for place in seen:
        outer = file.names.parents.get(place)
        called = file.names.parents.get(outer) if isinstance(outer, ast.Attribute) else None
        kept = isinstance(outer, ast.Attribute) and outer.attr in _KEEP and isinstance(called, ast.Call)
        further = [*forward.of(place), *([called] if kept and called is not None else ())]
        if len(seen) < _MOST:
            seen += [item for item in further if item not in seen]
    return seen


# ---- what is around a use ---------------------------------------------------------------------------------


def _decorates_class(hit: RuleMatch, file: FileContext) -> bool:
    return isinstance(hit.use.decorates, ast.ClassDef)


def _lacks_device_context(hit: RuleMatch, file: FileContext) -> bool:
    """Whether the file does not know the attribute that has the default device since torch 2.3."""
    return "device_context" not in file.source.text


def _keeps_data(hit: RuleMatch, file: FileContext) -> bool:
    """Whether `x.data` is kept or changed, and not only read at once."""
    parent = hit.place.parents(hit.use.node)
    if isinstance(parent, ast.Attribute):
        return parent.attr not in _READS
    return not isinstance(parent, ast.Subscript) or not isinstance(parent.ctx, ast.Load)


def _steps_without_backward(hit: RuleMatch, file: FileContext) -> bool:
    """Whether the function takes a step of an optimizer, and nothing in it computes gradients."""
    function = hit.use.scope.node
    names = file.once(
        (_steps_without_backward, function),
        lambda: {node.attr for node in walk(function) if isinstance(node, ast.Attribute)},
    )
    return "step" in names and not any("backward" in name for name in names)


def _in_test(hit: RuleMatch, file: FileContext) -> bool:
    return file.once(_in_test, lambda: _is_test(file))


def _is_test(file: FileContext) -> bool:
    stem = file.source.path.stem
    modules = [item.name for item in file.names.nodes(ast.alias)]
    modules += [item.module or "" for item in file.names.nodes(ast.ImportFrom)]
    tests = ("pytest", "unittest", "torch.testing._internal")
    return (
        stem.startswith("test_")
        or stem.endswith("_test")
        or any(f"{module}.".startswith(f"{test}.") for module in modules for test in tests)
    )


def _within_hooks(hit: RuleMatch, file: FileContext) -> bool:
    """Whether a checkpoint runs under hooks for saved tensors, as far as the function shows it."""
    outer = file.names.parents.get(hit.use.node)
    while outer is not None:
        if isinstance(outer, ast.With) and any(
            isinstance(item.context_expr, ast.Call)
            and hit.place.qualified(item.context_expr.func)
            in [f"torch.autograd.graph.{name}" for name in _HOOKS]
            for item in outer.items
        ):
            return True
        outer = file.names.parents.get(outer)
    return False


def _called_in_mode(hit: RuleMatch, file: FileContext) -> bool:
    """Whether what is compiled is called within a dispatch mode of the file."""
    decorated, statement = hit.use.decorates, hit.use.statement
    name: str | None = None
    if isinstance(decorated, ast.FunctionDef):
        name = decorated.name
    elif isinstance(statement, ast.Assign) and statement.value is hit.use.call:
        name = getattr(statement.targets[0], "id", None) if len(statement.targets) == 1 else None
    classes = {
        node.name
        for node in file.names.nodes(ast.ClassDef)
        if any(hit.place.qualified(base) == _MODE for base in node.bases)
    }
    return name is not None and any(
        isinstance(node, ast.Call) and getattr(node.func, "id", None) == name
        for statement in file.names.nodes(ast.With)
        if any(_is_mode(item.context_expr, classes, hit) for item in statement.items)
        for one in statement.body
        for node in walk(one)
    )


def _is_mode(node: ast.expr, classes: set[str], hit: RuleMatch) -> bool:
    function = node.func if isinstance(node, ast.Call) else None
    known = isinstance(function, ast.Name) and function.id in classes
    return known or (function is not None and hit.place.qualified(function) in _MODES)


def _saved_with_function(hit: RuleMatch, call: ast.Call, file: FileContext) -> bool:
    """Whether the same block sets a local function on the tensor before: `x.attribute = lambda ...`."""
    saved = call.args[0] if call.args else None
    if not isinstance(saved, ast.Name) or TENSOR not in file.facts.of(saved):
        return False
    return any(
        isinstance(statement, ast.Assign)
        and isinstance(statement.value, ast.Lambda)
        and any(
            isinstance(target, ast.Attribute) and getattr(target.value, "id", None) == saved.id
            for target in statement.targets
        )
        for statement in hit.use.block[: hit.use.block.index(hit.use.statement)]
    )


def _outside_step(hit: RuleMatch, file: FileContext) -> bool:
    """Whether `scheduler.get_lr()` does not ask as `step` does.

    That tells the scheduler so, says at which epoch it is, or stores the rates: `x._last_lr = x.get_lr()`.
    """
    statement, text = hit.use.statement, file.source.text
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    if "_enable_get_lr_call" in text or any(getattr(target, "attr", "") == "_last_lr" for target in targets):
        return False
    if not isinstance(hit.use.node, ast.Attribute) or not (_GET_LR_MARK in text or _EPOCH in text):
        return True
    scheduler = ast.dump(hit.use.node.value)
    marks = [
        (file.source.span(node)[0], target.attr == _EPOCH or getattr(node.value, "value", False) is True)
        for node in walk(hit.use.scope.node)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Attribute)
        and target.attr in (_GET_LR_MARK, _EPOCH)
        and ast.dump(target.value) == scheduler
    ]
    before = [mark for mark in marks if mark[0] < hit.use.start]
    return not before or not max(before)[1]


# ---- what is given to a call ------------------------------------------------------------------------------


def _flags_set(hit: RuleMatch, file: FileContext) -> bool:
    """Whether a flag is not None, which only holds a place: `F.kl_div(x, y, None, None, "sum")`."""
    given = given_by(signature_of(hit.rule, hit.symbol), hit.use, hit.place.keywords)
    values = [given.expression(name) for name in hit.rule.parameters if given.state(name) == "given"]
    return not all(isinstance(value, ast.Constant) and value.value is None for value in values)


def _scripted(hit: RuleMatch, file: FileContext) -> bool:
    """Whether the model is made by `torch.jit`: there, or as the one value of a name."""
    made = _made(_given(hit, "model"), file)
    return isinstance(made, ast.Call) and hit.place.qualified(made.func) in _SCRIPTS


def _several_devices(hit: RuleMatch, file: FileContext) -> bool:
    """Whether `device_ids` is a list with more than one element that the file writes out."""
    made = _made(_given(hit, "device_ids"), file)
    return (
        isinstance(made, (ast.List, ast.Tuple))
        and len(made.elts) > 1
        and not any(isinstance(item, ast.Starred) for item in made.elts)
    )


def _state_first(hit: RuleMatch, call: ast.Call, file: FileContext) -> bool:
    """Whether a call surely has the order of torch 2.0: by a keyword, or by its first two arguments."""
    if not call.args or any(isinstance(item, ast.Starred) for item in call.args[:2]):
        return False
    if len(call.args) == 1:  # the model would be given twice in the new order
        return any(item.arg == "model" for item in call.keywords)
    made = [
        {step.node.func for step in file.flow.origins(item) if isinstance(step.node, ast.Call)}
        for item in call.args[:2]
    ]
    states, models = ({file.names.qualified(function) for function in each} for each in made)
    return not _STATES.isdisjoint(states) or _FSDP in models


def _sequence_first(hit: RuleMatch, file: FileContext) -> bool:
    """Whether the layer of an encoder is made without `batch_first=True`."""
    made = _made(_given(hit, "encoder_layer"), file)
    if not isinstance(made, ast.Call) or file.names.qualified(made.func) != _ENCODER_LAYER:
        return False
    given = {item.arg: item.value for item in made.keywords}
    if None in given or len(made.args) > _BATCH_FIRST or any(isinstance(a, ast.Starred) for a in made.args):
        return False
    return "batch_first" not in given or file.around.value(given["batch_first"]) is False


def _relative_file(hit: RuleMatch, file: FileContext) -> bool:
    """Whether an address that is written in the call is `file://...` without an absolute path."""
    node = _given(hit, "init_method")
    while isinstance(node, (ast.JoinedStr, ast.BinOp)):
        node = node.left if isinstance(node, ast.BinOp) else next(iter(node.values), None)
    text = node.value if isinstance(node, ast.Constant) else None
    return isinstance(text, str) and _PATH.match(text) is not None


def _padded_by_kernel(hit: RuleMatch, file: FileContext) -> bool:
    """Whether the output of a circular convolution keeps its size with the padding of torch before 1.5."""
    given = given_by(signature_of(hit.rule, hit.symbol), hit.use)
    expressions = [given.expression(name) for name in ("kernel_size", "padding", "dilation")]
    sizes = [file.around.value(item) if item is not None else None for item in expressions]
    kernel, padding, dilation = (size if type(size) is int else None for size in sizes)
    plain = given.state("dilation") == "absent" or dilation == 1
    return plain and kernel is not None and padding == kernel - 1


def _resizes_tensor(hit: RuleMatch, file: FileContext) -> bool:
    """Whether a transform follows one that makes tensors in a `Compose`."""
    return hit.use.call in file.once(_COMPOSE, lambda: set(_of_tensors(file)))


def _of_tensors(file: FileContext) -> Iterator[ast.AST]:
    """The transforms that follow one that makes tensors."""
    for call in file.names.nodes(ast.Call):
        if file.names.qualified(call.func) not in _COMPOSE or not call.args:
            continue
        made, is_tensor = file.flow.only_origin(call.args[0]), False
        for item in made.elts if isinstance(made, (ast.List, ast.Tuple)) else ():
            name = file.names.qualified(item.func) if isinstance(item, ast.Call) else None
            if is_tensor:
                yield item
            is_tensor = name in _TO_TENSOR or (is_tensor and name is not None and name not in _TO_IMAGE)


def _needs_gradient(hit: RuleMatch, file: FileContext) -> bool:
    """Whether `out` is a name for a tensor that needs a gradient."""
    out = _given(hit, "out")
    made = _made(out, file)
    if not isinstance(out, ast.Name) or not isinstance(made, ast.Call):
        return False
    if any(item.arg == "requires_grad" and hit.place.value(item.value) is True for item in made.keywords):
        return True
    if isinstance(made.func, ast.Attribute) and made.func.attr == "requires_grad_":
        return not made.args and not made.keywords
    return hit.place.qualified(made.func) in _PARAMETERS


def _is_target(hit: RuleMatch, call: ast.Call, file: FileContext) -> bool:
    """Whether a loss that needs floats gets the result of a call as its target."""
    outer = [(place, file.names.parents.get(place)) for place in _reached(call, file)]
    return any(
        isinstance(used, ast.Call) and place in used.args[1:2] and _is_loss(used.func, file)
        for place, used in outer
    )


def _is_loss(node: ast.expr, file: FileContext) -> bool:
    """Whether an expression is one of the losses, as a function or an object."""
    made = file.flow.origins(node)
    return file.names.qualified(node) in _LOSS_FUNCTIONS or (
        bool(made)
        and all(
            isinstance(step.node, ast.Call) and file.names.qualified(step.node.func) in _LOSSES
            for step in made
        )
    )


def _fused_in_training(hit: RuleMatch, call: ast.Call, file: FileContext) -> bool:
    """Whether the last change of the model's mode, in the same block before, is `model.train()`."""
    given = next((item.value for item in call.keywords if item.arg == "model"), None)
    model = call.args[0] if call.args else given
    if not isinstance(model, (ast.Name, ast.Attribute)):
        return False
    training = False
    for statement in hit.use.block:
        if statement is hit.use.statement:
            return training
        said = _mode(statement, ast.unparse(model))
        training = training if said is None else said
    return False


def _mode(statement: ast.stmt, model: str) -> bool | None:
    """Whether a model trains after a statement; None: it says nothing of that."""
    made = any(
        isinstance(node, (ast.Name, ast.Attribute))
        and isinstance(node.ctx, ast.Store)
        and ast.unparse(node) in (model, model.partition(".")[0])
        for node in walk(statement)
    )
    said: bool | None = False if made else None
    for node in walk(statement):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("train", "eval")
            and ast.unparse(node.func.value) == model
        ):
            plain = isinstance(statement, ast.Expr) and statement.value is node and not node.keywords
            told = not node.args or (isinstance(node.args[0], ast.Constant) and node.args[0].value is True)
            said = node.func.attr == "train" and plain and told
    return said


def _turned_and_viewed(hit: RuleMatch, call: ast.Call, file: FileContext) -> bool:
    """Whether it is the clone of `x.t().clone().view(...)`."""
    if call.args or call.keywords or not isinstance(call.func, ast.Attribute):
        return False
    turned = call.func.value
    if not (
        isinstance(turned, ast.Call)
        and isinstance(turned.func, ast.Attribute)
        and turned.func.attr in _TURNED
    ):
        return False
    around = file.names.parents.get(call)
    if not isinstance(around, ast.Attribute) or around.attr != "view":
        return False
    used = file.names.parents.get(around)
    if not isinstance(used, ast.Call) or used.func is not around or len(used.args) != 1:
        return False  # `.view(2, -1)` may fit the strides
    shape = used.args[0]
    return isinstance(shape, ast.UnaryOp) and ast.unparse(shape) == "-1"


def _out_of_range(hit: RuleMatch, call: ast.Call, file: FileContext) -> bool:
    """Whether one of the integers that are written there is none of the dtype."""
    given = {item.arg: item.value for item in call.keywords}
    dtype = given.get("dtype") or (call.args[1] if len(call.args) > 1 else None)
    word = hit.symbol.rpartition(".")[2] if dtype is None else ast.unparse(dtype).rpartition(".")[2]
    data = call.args[0] if call.args else given.get("data")
    limits = _LIMITS.get(word)
    if limits is None or data is None or (dtype is None and isinstance(data, ast.Constant)):
        return False  # `torch.ByteTensor(300)` is a size
    return any(not limits[0] <= number <= limits[1] for number in _integers(data))


def _integers(node: ast.expr) -> Iterator[int]:
    """The integers of a number, or of lists and tuples of them, as far as they are written there."""
    if isinstance(node, (ast.List, ast.Tuple)):
        for item in node.elts:
            yield from _integers(item)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield from (-number for number in _integers(node.operand))
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield node.value


def _compared_with_number(hit: RuleMatch, call: ast.Call, file: FileContext) -> bool:
    """Whether it is an operand of an operator, with an integer on the other side."""
    around = file.names.parents.get(call)
    if isinstance(around, ast.Compare):
        return any(_is_integer(other) for other in (around.left, *around.comparators))
    return isinstance(around, ast.BinOp) and (_is_integer(around.left) or _is_integer(around.right))


def _is_integer(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int


def _sliced_mask(hit: RuleMatch, call: ast.Call, file: FileContext) -> bool:
    """Whether the mask is `mask[:, :, i]`, at once or by a name that is given no function of its own."""
    given = {item.arg: item.value for item in call.keywords}
    mask = given.get("block_mask") or (call.args[4] if len(call.args) > 4 else None)
    if isinstance(mask, ast.Name) and any(
        isinstance(node.ctx, ast.Store) and getattr(node.value, "id", "") == mask.id
        for node in file.flow.index.attributes("mask_mod")
    ):
        return False
    made = file.flow.only_origin(mask) if mask is not None else None
    return (
        isinstance(made, ast.Subscript)
        and isinstance(made.slice, ast.Tuple)
        and any(isinstance(item, ast.Slice) for item in made.slice.elts)
    )


def _into_expanded(hit: RuleMatch, call: ast.Call, file: FileContext) -> bool:
    """Whether the tensor is what `x.expand(...)` gave, at once or by a name that holds nothing else."""
    if not isinstance(call.func, ast.Attribute):
        return False
    made = file.flow.only_origin(call.func.value)
    return (
        isinstance(made, ast.Call)
        and isinstance(made.func, ast.Attribute)
        and made.func.attr in ("expand", "expand_as")
    )


def _clamped_by_float(hit: RuleMatch, call: ast.Call, file: FileContext) -> bool:
    """Whether a bound is written there, and a float."""
    given = [*call.args, *(item.value for item in call.keywords if item.arg in ("min", "max"))]
    return any(_is_float(item) for item in given)


def _is_float(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp):
        return _is_float(node.operand)
    return isinstance(node, ast.Constant) and isinstance(node.value, float)


# Rule -> whether it is about a use.
_MEANT: dict[str, Callable[[RuleMatch, FileContext], bool]] = {
    "checkpoint-saved-tensor-hooks": _within_hooks,
    "circular-padding": lambda hit, file: not _padded_by_kernel(hit, file),
    "circular-padding-of-kernel": _padded_by_kernel,
    "compile-fullgraph-dispatch-mode": _called_in_mode,
    "ddp-several-devices": _several_devices,
    "encoder-without-nesting": _sequence_first,
    "global-device-context": _lacks_device_context,
    "grad-mode-class": _decorates_class,
    "loss-reduction": _flags_set,
    "onnx-export-torchscript": _scripted,
    "process-group-relative-file": _relative_file,
    "scheduler-get-lr": _outside_step,
    "scoped-library": _in_test,
    "tensor-data": _keeps_data,
    "tensordot-out-gradient": _needs_gradient,
    "transforms-antialias-of-tensors": _resizes_tensor,
    "zero-grad-default": _steps_without_backward,
}
# Rule -> whether it is about a call.
_CALLS_MEANT: dict[str, Callable[[RuleMatch, ast.Call, FileContext], bool]] = {
    "clamp-integers-by-floats": _clamped_by_float,
    "clone-keeps-strides": _turned_and_viewed,
    "expanded-masked-fill": _into_expanded,
    "fsdp-state-before-model": _state_first,
    "fuse-modules-in-training": _fused_in_training,
    "integer-target": _is_target,
    "integers-out-of-range": _out_of_range,
    "nccl-version-tuple": _compared_with_number,
    "saved-tensor-attributes": _saved_with_function,
    "sliced-block-mask": _sliced_mask,
}
