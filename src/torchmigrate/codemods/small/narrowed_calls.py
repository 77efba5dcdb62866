"""TM207, TM208, TM212 to TM214, TM216, TM218: calls that are refused for what is around or given to them.

The cases of the rules rewrite them; here is only which calls are meant.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext
from torchmigrate.source.trees import walk

# The largest number of each dtype, and the smallest one that it takes: uint8 still takes negative ones.
_LIMITS = {
    "uint8": (-255, 255),
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "short": (-(2**15), 2**15 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int": (-(2**31), 2**31 - 1),
    "ByteTensor": (-255, 255),
    "CharTensor": (-(2**7), 2**7 - 1),
    "ShortTensor": (-(2**15), 2**15 - 1),
    "IntTensor": (-(2**31), 2**31 - 1),
}
_TURNED = frozenset(["t", "permute", "transpose"])


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """The findings of the hits that the rule is about."""
    meant = _MEANT[rule.name]
    chosen = [hit for hit in hits if hit.use.call is not None and meant(hit, hit.use.call, file)]
    yield from file.fixes.findings(chosen)


# ---- modules are fused while they train -------------------------------------------------------------------


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


# ---- a clone that is looked at in another shape -----------------------------------------------------------


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


# ---- numbers that the dtype has not -----------------------------------------------------------------------


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


# ---- the release of NCCL, compared with a number ----------------------------------------------------------


def _compared_with_number(hit: RuleMatch, call: ast.Call, file: FileContext) -> bool:
    """Whether it is an operand of an operator, with an integer on the other side."""
    around = file.names.parents.get(call)
    if isinstance(around, ast.Compare):
        return any(_is_integer(other) for other in (around.left, *around.comparators))
    return isinstance(around, ast.BinOp) and (_is_integer(around.left) or _is_integer(around.right))


def _is_integer(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int


# ---- a part of a block mask ---------------------------------------------------------------


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


# ---- what is written into a tensor that was expanded ------------------------------------------------------


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


# ---- integers between bounds that are none ----------------------------------------------------------------


def _clamped_by_float(hit: RuleMatch, call: ast.Call, file: FileContext) -> bool:
    """Whether a bound is written there, and a float."""
    given = [*call.args, *(item.value for item in call.keywords if item.arg in ("min", "max"))]
    return any(_is_float(item) for item in given)


def _is_float(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp):
        return _is_float(node.operand)
    return isinstance(node, ast.Constant) and isinstance(node.value, float)


_MEANT: dict[str, Callable[[RuleMatch, ast.Call, FileContext], bool]] = {
    "fuse-modules-in-training": _fused_in_training,
    "clone-keeps-strides": _turned_and_viewed,
    "integers-out-of-range": _out_of_range,
    "nccl-version-tuple": _compared_with_number,
    "expanded-masked-fill": _into_expanded,
    "clamp-integers-by-floats": _clamped_by_float,
    "sliced-block-mask": _sliced_mask,
}
