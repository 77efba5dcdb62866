"""What calls give: of library functions, of objects, and of the file's own functions and classes."""

from __future__ import annotations

import ast
from collections.abc import Callable

from torchmigrate.semantics.model import OPAQUE, Candidate, Instance, Items, Local, QualifiedName, Value
from torchmigrate.semantics.values import types
from torchmigrate.semantics.values.objects import MODULE, TENSOR, is_a
from torchmigrate.semantics.values.slots import UNKNOWN, believed, join_values, stated, unsure
from torchmigrate.semantics.values.types import TENSORS
from torchmigrate.semantics.walk.chains import Chains

REGISTERS = frozenset(["register_buffer", "register_parameter", "add_module", "register_module"])
PLAIN_CALLS = frozenset("enumerate filter zip iter next list tuple reversed sorted super".split())
# Functions that give back their first argument, or one like it.
_PASSING = frozenset(
    """
    copy.copy copy.deepcopy torch.nn.utils.weight_norm torch.nn.utils.spectral_norm
    torch.nn.utils.remove_weight_norm torch.nn.utils.parametrizations.weight_norm
    torch.nn.utils.parametrizations.spectral_norm torch.nn.utils.parametrizations.orthogonal torch.compile
    torch.nn.SyncBatchNorm.convert_sync_batchnorm torch.amp.GradScaler.scale torch.cuda.amp.GradScaler.scale
    tqdm.tqdm tqdm.trange tqdm.auto.tqdm tqdm.notebook.tqdm tqdm.std.tqdm
    """.split()
)


class Calls(Chains):
    """Evaluates what calls give, once their function and arguments have been walked."""

    __slots__ = ()

    def call_value(self, node: ast.Call, callee: Value, values: list[Value]) -> Value:
        """What calling something known gives. values: of the positional arguments."""
        if len(callee) == 1:
            return self._one_call(callee[0], node, values)
        joined: Value = ()
        for item in callee:
            joined = join_values(joined, self._one_call(item, node, values))
        return joined or UNKNOWN

    def _one_call(self, item: Candidate, node: ast.Call, values: list[Value]) -> Value:
        if isinstance(item, QualifiedName):
            return self._library_call(item, node, values)
        if isinstance(item, Instance):
            return self._object_call(item)
        if isinstance(item, Local):
            if isinstance(item.node, ast.ClassDef):
                return self.made(item)
            return self.result_of(item.node)
        return UNKNOWN

    def _library_call(self, item: QualifiedName, node: ast.Call, values: list[Value]) -> Value:
        if item.stated:
            return stated(
                self._library_call(QualifiedName(item.name, True, item.via, item.receiver), node, values)
            )
        name, receiver = item.name, item.receiver
        if receiver is not None:
            return (
                _items_call(receiver, name[len("items.") :]) if isinstance(receiver, Items) else (receiver,)
            )
        known = _KNOWN.get((name, item.sure))
        if known is not None:
            return known
        special = _BY_ARGUMENTS.get(name)
        if special is not None:
            return (types.with_sure(special(node, values), item.sure),)
        if name in _PASSING:
            return values[0] if values else UNKNOWN
        if name == "torch.nn.Sequential" and values and self._gives(values[-1]) == TENSOR:
            return (Instance(name, item.sure, None, TENSOR),)
        result = types.call_result(name, item.sure)
        if isinstance(result, Instance) and "ool" in name and _asks_indices(node):
            # `return_indices=True`: a function gives them, a layer will.
            if result.cls == TENSOR:
                return (Instance(TENSORS, item.sure),)
            return (Instance(result.cls, item.sure, None, TENSORS),)
        value = UNKNOWN if result is OPAQUE else (result,)
        if "ool" not in name and name != "torch.nn.Sequential":
            _KNOWN[name, item.sure] = value
        return value

    def _gives(self, value: Value) -> str:
        """The class of what calling a value gives, if that is sure."""
        if len(value) == 1 and isinstance(value[0], Instance):
            given = self._object_call(value[0])
            if types.level(given) == types.SURE:
                return TENSOR
        return ""

    def _object_call(self, item: Instance) -> Value:
        if item.stated:
            return stated(self._object_call(believed(item)))
        if item.gives:
            return (Instance(item.gives, item.sure),)
        if item.local is None:
            result = types.object_call(item.cls, item.sure)
            return UNKNOWN if result is OPAQUE else (result,)
        if not item.cls or not is_a(item.cls, MODULE):
            return UNKNOWN
        info = self.classes.get(item.local.node)
        forward = info.find("forward") if info is not None else UNKNOWN
        if forward is None:
            return (types.object_call(item.cls, item.sure),)
        value = self._one_call(forward[0], _NO_CALL, []) if len(forward) == 1 else UNKNOWN
        return value if value is not UNKNOWN else (types.MAYBE_TENSOR,)

    def plain_call(self, name: str, node: ast.Call, values: list[Value]) -> Value:
        if name == "super":
            return self._super()
        if not values:
            return UNKNOWN
        if name == "zip":
            parts = tuple(map(types.elements, values))
            known = any(part is not UNKNOWN and part != UNKNOWN for part in parts)
            return (Items(((Items(parts),),), many=True),) if known else UNKNOWN
        each = types.elements(values[-1] if name == "filter" else values[0])
        if each == UNKNOWN:
            return UNKNOWN
        if name == "next":
            return each
        if name == "enumerate":
            return (Items(((Items(((types.NUMBER,), each)),),), many=True),)
        return (Items((each,), many=True),)

    def _super(self) -> Value:
        """`super()`: an object of the class's bases."""
        owner = self.frame.owner
        if owner is None or self.frame.self_name is None:
            return UNKNOWN
        for parent in owner.parents:
            if parent is None:
                break
            if not isinstance(parent, str):
                return (Instance(parent.library, parent.certain, Local(parent.name, parent.node)),)
            if parent == owner.library:
                return (Instance(owner.library, owner.certain),)
        return UNKNOWN

    def register(self, node: ast.Call, values: list[Value]) -> None:
        """Note what `self.register_buffer("name", x)`, or another of `REGISTERS`, makes an attribute."""
        func, owner = node.func, self.frame.owner
        if (
            not isinstance(func, ast.Attribute)
            or func.attr not in REGISTERS
            or owner is None
            or not isinstance(func.value, ast.Name)
            or func.value.id != self.frame.self_name
            or not node.args
        ):
            return
        first = node.args[0]
        if not isinstance(first, ast.Constant) or not isinstance(first.value, str):
            return
        value = values[1] if len(values) > 1 else UNKNOWN
        if func.attr in ("register_buffer", "register_parameter"):
            value = (Instance(TENSOR),)
        if owner.find(func.attr) is not None or (owner.certain and not owner.is_a(MODULE)):
            value = UNKNOWN  # a method of its own, which may keep anything
        owner.store(first.value, value if owner.is_a(MODULE) and owner.certain else unsure(value))


def _items_call(item: Items, method: str) -> Value:
    """What a method of a list or dict gives."""
    every = types.elements((Items(item.values, item.many),))
    if item.keyed:
        if method == "values":
            return (Items((every,), many=True),)
        if method == "items":
            return (Items(((Items(((OPAQUE,), every)),),), many=True),)
        return unsure(every) if method in ("get", "pop", "setdefault") else UNKNOWN
    if method == "pop":
        return every
    return (item,) if method == "copy" else UNKNOWN


# ---- results that depend on the arguments -----------------------------------------------------------


def _keywords(node: ast.Call) -> set[str | None]:
    return {keyword.arg for keyword in node.keywords}


def _asks_indices(node: ast.Call) -> bool:
    return any(
        keyword.arg == "return_indices"
        and not (isinstance(keyword.value, ast.Constant) and keyword.value.value is False)
        for keyword in node.keywords
    )


def _along(first: int) -> Callable[[ast.Call, list[Value]], Candidate]:
    """`max`, `min`, `median`, `nanmedian`: with a dimension, the values and their indices.

    first: how many arguments stand before the dimension.
    """

    def result(node: ast.Call, values: list[Value]) -> Candidate:
        names = _keywords(node)
        if None in names or len(values) > first or "dim" in names or "axis" in names:
            other = values[first] if len(values) > first else UNKNOWN
            return Instance(TENSOR) if types.level(other) else Instance(TENSORS)
        return Instance(TENSOR)

    return result


def _either(words: frozenset[str], most: int) -> Callable[[ast.Call, list[Value]], Candidate]:
    """Several tensors if one of these keywords, or more than `most` positional arguments, are given."""

    def result(node: ast.Call, values: list[Value]) -> Candidate:
        several = len(values) > most or bool(_keywords(node) & (words | {None}))
        return Instance(TENSORS) if several else Instance(TENSOR)

    return result


def _where(node: ast.Call, values: list[Value]) -> Candidate:
    return Instance(TENSORS if len(values) == 1 and not node.keywords else TENSOR)


def _type(node: ast.Call, values: list[Value]) -> Candidate:
    return Instance(TENSOR) if values or node.keywords else OPAQUE


_RETURNS = frozenset(["return_inverse", "return_counts"])
_TUPLE = frozenset(["as_tuple"])
_BY_ARGUMENTS: dict[str, Callable[[ast.Call, list[Value]], Candidate]] = {
    "torch.where": _where,
    "torch.nonzero": _either(_TUPLE, 1),
    "torch.Tensor.nonzero": _either(_TUPLE, 0),
    "torch.unique": _either(_RETURNS, 2),
    "torch.unique_consecutive": _either(_RETURNS, 1),
    "torch.Tensor.unique": _either(_RETURNS, 1),
    "torch.Tensor.unique_consecutive": _either(_RETURNS, 0),
    "torch.Tensor.type": _type,
}
for _name in ("max", "min", "median", "nanmedian"):
    _BY_ARGUMENTS[f"torch.{_name}"] = _along(1)
    _BY_ARGUMENTS[f"torch.Tensor.{_name}"] = _along(0)
# Results that depend on the name only, as they come up: at most one for each name of the libraries.
_KNOWN: dict[tuple[str, bool], Value] = {}
_NO_CALL = ast.Call(func=ast.Name(id="forward", ctx=ast.Load()), args=[], keywords=[])
