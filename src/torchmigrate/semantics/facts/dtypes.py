"""What kind of value an expression surely is: a tensor and its dtype, or a number.

The resolver says what is a tensor. The dtype is followed from where a tensor is made: a cast, a factory or a
comparison.
"""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING, TypeGuard

from torchmigrate.evidence.kinds import SHAPE
from torchmigrate.patterns import pattern
from torchmigrate.semantics.facts.devices import CPU, CUDA, Devices
from torchmigrate.semantics.facts.dimensions import Ranks
from torchmigrate.semantics.facts.file_facts import FileFacts
from torchmigrate.semantics.facts.sparse import SPARSE, Sparse
from torchmigrate.semantics.flow.domain import NOTHING, OPEN, UNKNOWN, Domain, Sentinel, Values
from torchmigrate.semantics.flow.steps import EACH, Path
from torchmigrate.semantics.model import Const, SemanticModel, Value
from torchmigrate.semantics.values.slots import UNKNOWN as UNTOLD
from torchmigrate.semantics.values.slots import stated
from torchmigrate.semantics.values.types import A_NUMBER, SURE, is_number, level

if TYPE_CHECKING:
    from torchmigrate.evidence.kinds import Seen

TENSOR, NUMBER, INTEGER = "tensor", "number", "integer"
INT = "int"  # of Python or NumPy, or a truth value; only where it was seen, or written
PYTHON_INT = frozenset([NUMBER, INT])  # what a recorded one is; NumPy's was none to torch 1.4
RANKS = {0: "scalar", 1: "vector", 2: "matrix", 3: "matrices"}  # tensors by their numbers of dimensions
INTEGERS = frozenset(["uint8", "int8", "int16", "int32", "int64"])
KINDS = frozenset(
    [
        TENSOR,
        NUMBER,
        INT,
        INTEGER,
        SPARSE,
        CPU,
        CUDA,
        "bool",
        "floating",
        "bfloat16",
        "complex",
        *INTEGERS,
        *RANKS.values(),
    ]
)  # "integer" is any of INTEGERS; what is "bfloat16" is "floating" too

_DTYPES = {
    "uint8": "uint8", "int8": "int8", "int16": "int16", "short": "int16", "int32": "int32", "int": "int32",
    "int64": "int64", "long": "int64", "bool": "bool", "float": "floating", "float32": "floating",
    "double": "floating", "float64": "floating", "half": "floating", "float16": "floating",
    "bfloat16": "bfloat16", "Byte": "uint8", "Char": "int8", "Short": "int16", "Int": "int32",
    "Long": "int64", "Bool": "bool", "Float": "floating", "Double": "floating", "Half": "floating",
    "complex32": "complex", "chalf": "complex", "complex64": "complex", "cfloat": "complex",
    "complex128": "complex", "cdouble": "complex",
}  # fmt: skip
# Methods without arguments that only tensors have; of any object, since it must be one.
_CASTS = {"byte": "uint8", "char": "int8", "short": "int16", "int": "int32", "long": "int64"} | {
    "bool": "bool", "float": "floating", "double": "floating", "half": "floating", "bfloat16": "bfloat16",
}  # fmt: skip
_TRUTH = frozenset(
    "eq ne lt gt le ge greater less isnan isinf isfinite isclose logical_and logical_or logical_not "
    "logical_xor".split()
)
_INDICES = frozenset("argmax argmin argsort randint randperm nonzero bincount searchsorted bucketize".split())
_KEEP = frozenset(
    "view reshape unsqueeze squeeze t transpose permute expand expand_as repeat contiguous clone detach cpu "
    "cuda flatten index_select narrow masked_select flip roll view_as requires_grad_ pin_memory abs "
    "gather take repeat_interleave diagonal tril triu unfold chunk split unbind select".split()
)
# What these give is complex, whatever they are given.
_COMPLEX = frozenset(
    [f"torch.fft.{name}" for name in "fft ifft rfft ihfft fft2 ifft2 rfft2 fftn ifftn rfftn".split()]
    + ["torch.complex", "torch.polar", "torch.view_as_complex"]
)
_COMPLEX_CALLS = frozenset(name.rpartition(".")[2] for name in _COMPLEX) | {"stft"}
# Those of integers have another dtype than what they are of.
_SUMS = frozenset(("sum", "mean", "prod"))
# Methods that give a pair, whose second one holds indices.
_WITH_INDICES = frozenset("topk sort max min kthvalue mode median cummax cummin".split())
_ONE_OR_PAIR = frozenset(["max", "min", "median", "mode"])
_LIKE = frozenset("zeros_like ones_like empty_like full_like new_zeros new_ones new_empty".split())
# `x @= y` gives `x` another tensor, and so did `x **= y` before torch 1.11.
_NOT_IN_PLACE = (ast.MatMult, ast.Pow)
_COUNTS = frozenset("dim numel ndimension nelement".split())
# Names that stand for integers wherever they are used.
_WHOLE_NAME = pattern(
    r"stride|dilation|padding|kernel_size|(vocab|beam|batch)_size|num_[a-z]\w*|n_(words|classes)"
)
_STATED_NUMBER = stated(A_NUMBER)


def _is_size(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        called, given = node.func, len(node.args) + len(node.keywords)
        if isinstance(called, ast.Name):
            return called.id == "len" and given == 1
        if not isinstance(called, ast.Attribute):
            return False
        return given == (1 if called.attr == "size" else 0) and called.attr in (*_COUNTS, "size")
    if isinstance(node, ast.Subscript) and not isinstance(node.slice, (ast.Slice, ast.Tuple)):
        held = node.value.func if isinstance(node.value, ast.Call) and not node.value.args else node.value
        return isinstance(held, ast.Attribute) and held.attr == (
            "size" if held is not node.value else "shape"
        )
    return False


def is_whole(node: ast.expr) -> bool:
    """Whether an expression is an integer of Python: written out, a size, or by a name that says so."""
    if isinstance(node, ast.Constant):
        return type(node.value) is int
    if isinstance(node, ast.BinOp) and isinstance(
        node.op, (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)
    ):
        return is_whole(node.left) and is_whole(node.right)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return is_whole(node.operand)
    named = node.value if isinstance(node, ast.Subscript) else node
    name = named.attr if isinstance(named, ast.Attribute) else getattr(named, "id", "")
    return _is_size(node) or (isinstance(name, str) and _WHOLE_NAME.fullmatch(name) is not None)


def is_augmented_in_place(node: ast.AST | None) -> TypeGuard[ast.AugAssign]:
    """Whether a statement is one such as `x += y`, which changes a tensor in place."""
    return isinstance(node, ast.AugAssign) and not isinstance(node.op, _NOT_IN_PLACE)


class ValueFacts:
    """Answers about the expressions of one file."""

    def __init__(self, names: SemanticModel, around: FileFacts) -> None:
        self.names = names
        self.around = around
        flow = around.flow
        self._dtypes = names.once(Dtypes, lambda: Dtypes(flow))
        self._sparse = names.once(Sparse, lambda: Sparse(flow))
        self.devices = names.once(Devices, lambda: Devices(flow))
        self.rank = names.once(Ranks, lambda: Ranks(flow)).rank

    def of(self, node: ast.expr, wanted: frozenset[str] = KINDS) -> frozenset[str]:
        """All that an expression surely is, of `KINDS`; of those that are not `wanted`, some may be left out.

        "sparse" is what it may be; "cpu", "cuda" and "uint8" hold in all calls of the file.
        """
        value = self.names.values.get(id(node), UNTOLD)
        if is_number(value) and not _is_truth(value):
            return frozenset() if value == _STATED_NUMBER else frozenset([NUMBER])
        if value == UNTOLD and self.is_size(node):
            return frozenset([NUMBER])
        found = {TENSOR} if level(value) == SURE else set()
        dtype = self.dtype(node) if self._dtypes.can_be(wanted - found) else None
        if dtype is not None:
            found |= {TENSOR, dtype}
            if dtype in INTEGERS:
                found.add(INTEGER)
            if dtype == "bfloat16":
                found.add("floating")
        elif self._dtypes.can_be(wanted & {"uint8"}) and self._dtypes.is_surely(node, "uint8"):
            found |= {TENSOR, "uint8"}
        if SPARSE in wanted and self._is_sparse(node):
            found.add(SPARSE)
        found |= {
            device for device in (CPU, CUDA) if device in wanted and self.devices.is_surely(node, device)
        }
        if not wanted.isdisjoint(RANKS.values()) and (rank := self.rank(node)) in RANKS:
            found.add(RANKS[rank])
        return frozenset(found)

    def _is_sparse(self, node: ast.expr) -> bool:
        return SPARSE in self._sparse.of(node) or (
            bool(self.names.seen) and SPARSE in self.seen(node, once=True)
        )

    def seen(self, node: ast.expr, *, once: bool = False) -> frozenset[str]:
        """All that an expression was in every run that was recorded, of `KINDS`; nothing without such.

        once: in at least one of them.
        """
        runs = [_kinds_of(seen) for seen in self.names.seen.get(id(node), ()) if not seen.is_none]
        if not runs:
            return frozenset()
        return frozenset().union(*runs) if once else frozenset.intersection(*runs)

    def of_operand(self, node: ast.expr, wanted: frozenset[str]) -> frozenset[str]:
        """As `of`; where the text tells at most that an operand is a tensor, what it was in every run."""
        found = self.of(node, wanted)
        told = found & wanted or found - {TENSOR} or self.dtype(node) is not None
        return found if told else found | (self.seen(node) & wanted)

    def depths(self, node: ast.expr) -> frozenset[int | None]:
        """How many dimensions an expression had in the runs that were recorded; None: not known of one."""
        return frozenset(seen.depth for seen in self.names.seen.get(id(node), ()))

    def rank_seen(self, node: ast.expr) -> int | None:
        """How many dimensions a tensor had in every run that was recorded; None: not known, or several."""
        found = self.depths(node)
        return next(iter(found)) if len(found) == 1 else None

    def shapes(self, function: ast.AST) -> frozenset[str]:
        """Whether the first two arguments had the same shape, or another, wherever `function` was called."""
        seen = self.names.seen.get(id(function), ())
        return frozenset(each.name for each in seen if each.what == SHAPE)

    def is_size(self, node: ast.expr) -> bool:
        """Whether an expression is a number of elements or dimensions, whatever it is that has them."""
        return _is_size(node) and "len" not in self.names.module.bindings

    def is_tensor(self, node: ast.expr) -> bool:
        return level(self.names.values.get(id(node), UNTOLD)) == SURE

    def dtype(self, node: ast.expr) -> str | None:
        """The dtype of a tensor ("floating" for all but bfloat16); None if it is not known, or no tensor."""
        return self._dtypes.only(node)

    def made(self, node: ast.Call) -> str | None:
        """The dtype that a call gives to its result, whatever it is of: `.byte()`, `dtype=torch.uint8`."""
        return self._dtypes.start(node)


class Dtypes(Domain[str]):
    """The dtypes of tensors."""

    def can_be(self, wanted: frozenset[str]) -> bool:
        """Whether any tensor of the file may be of a kind, by the origins that the file has."""
        if TENSOR in wanted:
            return bool(self.flow.names.uses)
        return not self._possible.isdisjoint(wanted) or (
            INTEGER in wanted and not self._possible.isdisjoint(INTEGERS)
        )

    @cached_property
    def _possible(self) -> frozenset[str]:
        """By what the file calls and names, so that most files need no more."""
        names = self.flow.names
        found = {_CASTS[name] for name in names.called if name in _CASTS}
        for use in names.uses:
            for name in use.candidates:
                last = name.rpartition(".")[2]
                if last in _DTYPES:
                    found.add(_DTYPES[last])
                elif last.endswith("Tensor"):
                    found.add(_DTYPES.get(last[: -len("Tensor")], "floating"))
                elif last == "tensor":
                    found |= {"int64", "bool"}
        if not names.called.isdisjoint(_INDICES | _WITH_INDICES | {"arange"}):
            found.add("int64")
        if "==" in names.called or not names.called.isdisjoint(_TRUTH | {*_CASTS}):
            found.add("bool")
        if not found.isdisjoint(INTEGERS | {"bool"}):
            found.add("int64")  # sums
        if not names.called.isdisjoint(_COMPLEX_CALLS):
            found.add("complex")
        return frozenset({*found, "floating"})

    def start(self, node: ast.AST) -> str | None:
        if not isinstance(node, ast.Call):
            return None
        function = node.func
        attr = function.attr if isinstance(function, ast.Attribute) else ""
        name = self.flow.names.qualified(function) or ""
        if name.startswith("torch.") and name.endswith("Tensor") and name != "torch.Tensor":
            return _DTYPES.get(name.rpartition(".")[2][: -len("Tensor")])
        method = name.startswith("torch.Tensor.")
        if attr in _CASTS and not node.args and not node.keywords and (method or not name):
            return _CASTS[attr]
        given = _keyword(node, "dtype")
        if attr in ("to", "type") and (method or not name):
            cast = self._dtype_named(given or (node.args[0] if len(node.args) == 1 else node))
            # Whatever it is called on: a module has no integers.
            return cast if method or cast in INTEGERS or cast == "bool" else None
        if not name.startswith("torch."):
            return None
        last = name.rpartition(".")[2]
        if last in _TRUTH:
            return "bool"
        if given is not None:
            return self._dtype_named(given)
        if last == "stft":
            return "complex" if _constant(_keyword(node, "return_complex") or node) is True else None
        if last in _INDICES and (method or name == f"torch.{last}"):
            return "int64"
        return None if method else self._made(node, name)

    def _made(self, node: ast.Call, name: str) -> str | None:
        """The dtype of what a function makes of no tensor."""
        if name in _COMPLEX:
            return "complex"
        if name in ("torch.zeros", "torch.ones", "torch.empty", "torch.rand", "torch.randn"):
            return "floating"
        if name == "torch.arange" and node.args and not _has_star(node):
            return "int64" if all(isinstance(_constant(item), int) for item in node.args) else None
        if name == "torch.tensor" and node.args:
            types = {type(value) for value in _leaves(node.args[0])}
            return (
                {int: "int64", bool: "bool", float: "floating"}.get(types.pop()) if len(types) == 1 else None
            )
        return None

    def through(self, node: ast.AST) -> Values[str]:
        if isinstance(node, ast.Call):
            return self._called(node)
        if isinstance(node, ast.Compare):
            return _BOOL if len(node.ops) == 1 and self._compares(node) else _UNKNOWN
        if isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):
            return self.of(node.operand)
        if isinstance(node, ast.BinOp):
            return self._combined(node)
        if isinstance(node, ast.Subscript):
            return self.of(node.value)
        if isinstance(node, ast.AugAssign) and is_augmented_in_place(node):
            return self.of(node.target)  # changed in place, it keeps its dtype
        if isinstance(node, ast.Attribute) and node.attr in ("data", "T", "mT"):
            return self.of(node.value)
        return _UNKNOWN

    def part(self, node: ast.AST, path: Path) -> Values[str]:
        if isinstance(node, ast.Call) and path[0] in (0, 1) and self._gives_pair(node):
            if path[0] == 1:
                return frozenset(["int64"])
            name = self.flow.names.qualified(node.func) or ""
            method = isinstance(node.func, ast.Attribute) and (not name or name.startswith("torch.Tensor."))
            of = node.func.value if method and isinstance(node.func, ast.Attribute) else node.args[:1]
            return self.of(of) if isinstance(of, ast.expr) else self.join(*of) or _UNKNOWN
        return self.of(node)

    def _gives_pair(self, node: ast.Call) -> bool:
        """Whether a call gives values with their indices, and not one tensor, or an array of NumPy."""
        name = self.flow.names.qualified(node.func) or ""
        method = isinstance(node.func, ast.Attribute) and (not name or name.startswith("torch.Tensor."))
        last = node.func.attr if isinstance(node.func, ast.Attribute) else name.rpartition(".")[2]
        if last not in _WITH_INDICES or not (method or name.startswith("torch.")):
            return False
        if last not in _ONE_OR_PAIR:
            return bool(name) or not self.flow.imported(node.func)
        # `torch.max(a, b)` and `x.max()` give one tensor.
        given = _keyword(node, "dim") or next(iter(node.args[0 if method else 1 :]), None)
        return given is not None and bool(name) and type(_constant(given)) is int

    def _compares(self, node: ast.Compare) -> bool:
        if level(self.flow.names.values.get(id(node), UNTOLD)) == SURE:
            return True
        known = [self.of(item) for item in (node.left, node.comparators[0])]
        return any(found and UNKNOWN not in found for found in known)

    def _called(self, node: ast.Call) -> Values[str]:
        function = node.func
        name = self.flow.names.qualified(function) or ""
        last = name.rpartition(".")[2]
        method = name.startswith("torch.Tensor.") or (not name and isinstance(function, ast.Attribute))
        if method and isinstance(function, ast.Attribute):
            last, receiver = function.attr, function.value
            if last == "type_as" and node.args:
                return self.of(node.args[0])
            if last in _KEEP or last in _LIKE or last.startswith("masked_fill"):
                kept = self.of(receiver)
                return _each(kept, {"complex": "floating"}, keep=True) if last == "abs" else kept
            if last in ("max", "min") and not node.args and not node.keywords:
                return self.of(receiver)
            if last == "to" and self._moves(node):
                return self.of(receiver)
            return self._sum(receiver) if last in _SUMS else _UNKNOWN
        if not name.startswith("torch.") or not node.args:
            return _UNKNOWN
        first = node.args[0]
        if name in ("torch.cat", "torch.stack"):
            return self.of(first, (EACH,))
        if name in _OF_TWO and len(node.args) == 2 and not node.keywords:
            # What is compared there is a tensor, as no other comparison is allowed; a dimension has no dtype.
            other = _BOOL if isinstance(node.args[1], ast.Compare) else self.of(node.args[1])
            return _UNKNOWN if INT in other else _each_promoted(self.of(first), other)
        if last in _LIKE or name in ("torch.tril", "torch.triu", "torch.flip", "torch.clone"):
            return self.of(first)
        return self._sum(first) if last in _SUMS else _UNKNOWN

    def _moves(self, node: ast.Call) -> bool:
        """Whether `x.to(...)` gets nothing but a device."""
        given = node.args[0] if len(node.args) == 1 else _keyword(node, "device")
        if given is None or any(item.arg not in ("device", "non_blocking", "copy") for item in node.keywords):
            return False
        if getattr(given, "attr", getattr(given, "id", "")) == "device":
            return True
        made = self.flow.only_origin(given)
        if isinstance(made, ast.Call):
            return self.flow.names.qualified(made.func) == "torch.device"
        return isinstance(made, ast.Constant) and isinstance(made.value, str)

    def _sum(self, node: ast.expr) -> Values[str]:
        """The dtype of the sum, product or mean of a tensor; a mean of integers is an error."""
        return _each(self.of(node), {**dict.fromkeys([*INTEGERS, "bool"], "int64"), "complex": "complex"})

    def _dtype_named(self, node: ast.expr) -> str | None:
        name = node.value if isinstance(node, ast.Constant) else self.flow.names.qualified(node)
        if not isinstance(name, str) or not name.startswith("torch."):
            return None
        last = name.rpartition(".")[2]
        return _DTYPES.get(last[: -len("Tensor")] if last.endswith("Tensor") else last)

    def _combined(self, node: ast.BinOp) -> Values[str]:
        numbers = [
            (self.of(one), _constant(other))
            for one, other in ((node.left, node.right), (node.right, node.left))
        ]
        for known, number in numbers:
            if isinstance(number, int) and known and UNKNOWN not in known:
                if isinstance(node.op, ast.Div):
                    return _each(known, {item: item for item in ("complex", "floating", "bfloat16")})
                return known if isinstance(number, bool) else _each(known, {"bool": "int64"}, keep=True)
        return _each_promoted(numbers[0][0], numbers[1][0], divided=isinstance(node.op, ast.Div))


_OF_TWO = frozenset(f"torch.{name}" for name in ("max", "min", "maximum", "minimum"))
_BOOL: Values[str] = frozenset(["bool"])
_UNKNOWN: Values[str] = frozenset([UNKNOWN])


def _each_promoted(left: Values[str], right: Values[str], *, divided: bool = False) -> Values[str]:
    return frozenset(_promoted(one, other, divided) for one in left for other in right)


def _promoted(one: str | Sentinel, other: str | Sentinel, divided: bool) -> str | Sentinel:
    """The dtype of an operation of two tensors."""
    both = {one, other}
    if "complex" in both and (divided or not both & {UNKNOWN, OPEN}):
        return "complex"
    if UNKNOWN in both:
        return UNKNOWN
    if OPEN in both:
        return OPEN
    if divided:
        return "floating"
    if len(both) == 1:
        return one
    if both == {"bfloat16", "floating"}:
        return "floating"
    return "uint8" if both == {"bool", "uint8"} else UNKNOWN


def _each(values: Values[str], made: dict[str, str], *, keep: bool = False) -> Values[str]:
    """What is made of each value; of others nothing is known, unless they are kept."""
    return NOTHING.union(
        *[
            [made.get(value, value if keep else UNKNOWN) if isinstance(value, str) else value]
            for value in values
        ]
    )


def _kinds_of(seen: Seen) -> frozenset[str]:
    """The kinds of something that was seen."""
    if seen.what != TENSOR:
        return frozenset(
            [kind for kind, is_one in ((NUMBER, seen.is_number), (INT, seen.is_integer)) if is_one]
        )
    found = {TENSOR}
    if seen.dimensions in RANKS:
        found.add(RANKS[seen.dimensions])
    dtype = _DTYPES.get(seen.dtype)
    if dtype is not None:
        found.add(dtype)
        if dtype in INTEGERS:
            found.add(INTEGER)
        if dtype == "bfloat16":
            found.add("floating")
    if seen.layout.startswith(SPARSE):
        found.add(SPARSE)
    return frozenset(found)


def _is_truth(value: Value) -> bool:
    return any(isinstance(item, Const) and isinstance(item.value, bool) for item in value)


def _keyword(node: ast.Call, name: str) -> ast.expr | None:
    return next((keyword.value for keyword in node.keywords if keyword.arg == name), None)


def _has_star(node: ast.Call) -> bool:
    return any(isinstance(item, ast.Starred) for item in node.args)


def _constant(node: ast.expr) -> object:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return _constant(node.operand)
    return node.value if isinstance(node, ast.Constant) else None


def _leaves(node: ast.expr) -> list[object]:
    """The numbers in nested lists; None for anything else."""
    if isinstance(node, (ast.List, ast.Tuple)):
        return [leaf for item in node.elts for leaf in _leaves(item)]
    return [_constant(node)]
