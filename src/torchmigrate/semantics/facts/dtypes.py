"""What kind of value an expression surely is: a tensor and its dtype, or a number.

The resolver says what is a tensor. The dtype is read from where the tensor is made: by a cast, a factory, a
comparison, or a name that is bound to nothing but tensors of one dtype.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, TypeGuard

from torchmigrate.evidence.kinds import SHAPE
from torchmigrate.semantics.facts.answers import Answers
from torchmigrate.semantics.facts.dimensions import plain_rank
from torchmigrate.semantics.facts.file_facts import FileFacts
from torchmigrate.semantics.facts.sparse import Variables, is_sparse
from torchmigrate.semantics.model import BindingKind, Const, Scope, SemanticModel, Value
from torchmigrate.semantics.values.slots import UNKNOWN, stated
from torchmigrate.semantics.values.types import A_NUMBER, SURE, is_number, level
from torchmigrate.source.trees import walk

if TYPE_CHECKING:
    from torchmigrate.evidence.kinds import Seen

TENSOR, NUMBER, INTEGER, SPARSE, MATRIX = "tensor", "number", "integer", "sparse", "matrix"
INT = "int"  # of Python, or a truth value; only where it was seen, or written
INTEGERS = frozenset(["uint8", "int8", "int16", "int32", "int64"])
KINDS = frozenset(
    [TENSOR, NUMBER, INT, INTEGER, SPARSE, MATRIX, "bool", "floating", "bfloat16", "complex", *INTEGERS]
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
    "cuda flatten index_select narrow masked_select flip roll view_as requires_grad_ pin_memory abs".split()
)
# What these give is complex, whatever they are given.
_COMPLEX = frozenset(
    [f"torch.fft.{name}" for name in "fft ifft rfft ihfft fft2 ifft2 rfft2 fftn ifftn rfftn".split()]
    + ["torch.complex", "torch.polar", "torch.view_as_complex"]
)
# Those of integers have another dtype than what they are of.
_SUMS = frozenset(("sum", "mean", "prod"))
_LIKE = frozenset("zeros_like ones_like empty_like full_like new_zeros new_ones new_empty".split())
# `x @= y` gives `x` another tensor, and so did `x **= y` before torch 1.11.
_NOT_IN_PLACE = (ast.MatMult, ast.Pow)
_DEEPEST = 12
_COUNTS = frozenset("dim numel ndimension nelement".split())
_STATED_NUMBER = stated(A_NUMBER)


def _is_size(node: ast.expr) -> bool:
    """Whether an expression is a number of elements or dimensions, whatever it is that has them."""
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


def is_augmented_in_place(node: ast.AST | None) -> TypeGuard[ast.AugAssign]:
    """Whether a statement is one such as `x += y`, which changes a tensor in place."""
    return isinstance(node, ast.AugAssign) and not isinstance(node.op, _NOT_IN_PLACE)


class ValueFacts:
    """Answers about the expressions of one file."""

    def __init__(self, names: SemanticModel, around: FileFacts) -> None:
        self.names = names
        self.around = around
        self._variables = Answers(self._bound, None)
        self._sparse: Variables = {}

    def of(self, node: ast.expr, scope: Scope) -> frozenset[str]:
        """All that an expression surely is, of `KINDS`; "sparse" is what it may be."""
        value = self.names.values.get(id(node), UNKNOWN)
        if is_number(value) and not _is_truth(value):
            return frozenset() if value == _STATED_NUMBER else frozenset([NUMBER])
        if value == UNKNOWN and _is_size(node) and "len" not in self.names.module.bindings:
            return frozenset([NUMBER])
        found = {TENSOR} if level(value) == SURE else set()
        dtype = self.dtype(node, scope)
        if dtype is not None:
            found |= {TENSOR, dtype}
            if dtype in INTEGERS:
                found.add(INTEGER)
            if dtype == "bfloat16":
                found.add("floating")
        sparse = is_sparse(node, scope, self.around, self._sparse)
        if sparse or (self.names.seen and SPARSE in self.seen(node, once=True)):
            found.add(SPARSE)
        if plain_rank(node, scope, self.around) == 2:
            found.add(MATRIX)
        return frozenset(found)

    def seen(self, node: ast.expr, *, once: bool = False) -> frozenset[str]:
        """All that an expression was in every run that was recorded, of `KINDS`; nothing without such.

        once: in at least one of them.
        """
        runs = [_kinds_of(seen) for seen in self.names.seen.get(id(node), ()) if not seen.is_none]
        if not runs:
            return frozenset()
        return frozenset().union(*runs) if once else frozenset.intersection(*runs)

    def depths(self, node: ast.expr) -> frozenset[int | None]:
        """How many dimensions an expression had in the runs that were recorded; None: not known of one."""
        return frozenset(seen.depth for seen in self.names.seen.get(id(node), ()))

    def shapes(self, function: ast.AST) -> frozenset[str]:
        """Whether the first two arguments had the same shape, or another, wherever `function` was called."""
        seen = self.names.seen.get(id(function), ())
        return frozenset(each.name for each in seen if each.what == SHAPE)

    def is_tensor(self, node: ast.expr) -> bool:
        return level(self.names.values.get(id(node), UNKNOWN)) == SURE

    def dtype(self, node: ast.expr, scope: Scope, depth: int = 0) -> str | None:
        """The dtype of a tensor ("floating" for those but bfloat16), None if it is not known, or no tensor.

        depth: how deep in an expression; what is very deep is not known.
        """
        if depth > _DEEPEST:
            return None
        if isinstance(node, ast.Name):
            return self._named(node.id, scope)
        if isinstance(node, ast.Call):
            return self._called(node, scope, depth)
        if isinstance(node, ast.Compare):
            return "bool" if len(node.ops) == 1 and self.is_tensor(node) else None
        if isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):
            return self.dtype(node.operand, scope, depth + 1)
        if isinstance(node, ast.BinOp):
            return self._combined(node, scope, depth)
        if isinstance(node, ast.Subscript) and self.is_tensor(node.value):
            return self.dtype(node.value, scope, depth + 1)
        if isinstance(node, ast.Attribute) and node.attr in ("data", "T", "mT"):
            return self.dtype(node.value, scope, depth + 1)
        return None

    def _named(self, name: str, scope: Scope) -> str | None:
        held: Scope | None = scope
        while held is not None:
            if name in held.bindings and not (held.kind == "class" and held is not scope):
                return self._variables((held, name))
            held = held.parent
        return None

    def _bound(self, variable: tuple[Scope, str]) -> str | None:
        """The dtype of all that a variable of a scope is bound to; None where that is not one."""
        scope, name = variable
        values: dict[int, ast.expr] = {}
        for binding in scope.bindings[name]:
            statement = binding.statement
            if is_augmented_in_place(statement):
                continue  # a tensor is changed in place, and keeps its dtype
            if binding.kind is not BindingKind.ASSIGNMENT or not isinstance(statement, ast.Assign):
                return None
            if not any(target is binding.node for target in statement.targets):
                return None
            values[id(statement.value)] = statement.value
        if any(
            isinstance(inner, ast.Name) and inner.id == name
            for value in values.values()
            for inner in walk(value)
        ):
            return None
        found = {self.dtype(value, scope) for value in values.values()}
        return found.pop() if len(found) == 1 else None

    def _called(self, node: ast.Call, scope: Scope, depth: int) -> str | None:
        function = node.func
        attr = function.attr if isinstance(function, ast.Attribute) else ""
        name = self.around.qualified(function) or ""
        if name.startswith("torch.") and name.endswith("Tensor") and name != "torch.Tensor":
            return _DTYPES.get(name.rpartition(".")[2][: -len("Tensor")])
        method = name.startswith("torch.Tensor.")
        if attr in _CASTS and not node.args and not node.keywords and (method or not name):
            return _CASTS[attr]
        if not name.startswith("torch."):
            return None
        last = name.rpartition(".")[2]
        if last in _TRUTH:
            return "bool"
        given = _keyword(node, "dtype")
        if given is not None:
            return self._dtype_named(given)
        if last == "stft":
            return "complex" if _constant(_keyword(node, "return_complex") or node) is True else None
        if method:
            assert isinstance(function, ast.Attribute) or not attr, "methods are attributes"
            return self._method(node, last, scope, depth)
        return self._made(node, name, last, scope, depth)

    def _method(self, node: ast.Call, last: str, scope: Scope, depth: int) -> str | None:
        receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
        if receiver is None:
            return None
        if last in ("to", "type") and len(node.args) == 1:
            return self._dtype_named(node.args[0])
        if last in ("type_as", "masked_fill", "masked_fill_") and node.args:
            other = node.args[0] if last == "type_as" else receiver
            return self.dtype(other, scope, depth + 1)
        if last in _INDICES:
            return "int64"
        if last in _KEEP or last in _LIKE:
            kept = self.dtype(receiver, scope, depth + 1)
            return "floating" if last == "abs" and kept == "complex" else kept
        return self._sum(receiver, scope, depth) if last in _SUMS else None

    def _sum(self, node: ast.expr, scope: Scope, depth: int) -> str | None:
        """The dtype of the sum, product or mean of a tensor; a mean of integers is an error."""
        of = self.dtype(node, scope, depth + 1)
        return "int64" if of in INTEGERS or of == "bool" else of if of == "complex" else None

    def _made(self, node: ast.Call, name: str, last: str, scope: Scope, depth: int) -> str | None:
        if name in _COMPLEX:
            return "complex"
        if name in ("torch.zeros", "torch.ones", "torch.empty", "torch.rand", "torch.randn"):
            return "floating"
        if last in _INDICES and name == f"torch.{last}":
            return "int64"
        if name == "torch.arange" and node.args and not _has_star(node):
            return "int64" if all(isinstance(_constant(item), int) for item in node.args) else None
        if name == "torch.tensor" and node.args:
            types = {type(value) for value in _leaves(node.args[0])}
            return (
                {int: "int64", bool: "bool", float: "floating"}.get(types.pop()) if len(types) == 1 else None
            )
        if (
            name in ("torch.cat", "torch.stack")
            and node.args
            and isinstance(node.args[0], (ast.List, ast.Tuple))
        ):
            found = {self.dtype(item, scope, depth + 1) for item in node.args[0].elts}
            return found.pop() if len(found) == 1 else None
        if last in _LIKE and node.args:
            return self.dtype(node.args[0], scope, depth + 1)
        if last in _SUMS and node.args:
            return self._sum(node.args[0], scope, depth)
        return None

    def _dtype_named(self, node: ast.expr) -> str | None:
        name = node.value if isinstance(node, ast.Constant) else self.around.qualified(node)
        if not isinstance(name, str) or not name.startswith("torch."):
            return None
        last = name.rpartition(".")[2]
        return _DTYPES.get(last[: -len("Tensor")] if last.endswith("Tensor") else last)

    def _combined(self, node: ast.BinOp, scope: Scope, depth: int) -> str | None:
        one, other = (self.dtype(side, scope, depth + 1) for side in (node.left, node.right))
        if isinstance(node.op, ast.Div):
            if "complex" in (one, other):
                return "complex"
            return "floating" if one and other else None
        if one is not None and other is not None:
            both = {one, other}
            if len(both) == 1:
                return one
            if "complex" in both:
                return "complex"
            if both == {"bfloat16", "floating"}:
                return "floating"
            return "uint8" if both == {"bool", "uint8"} else None
        known, unknown = (one, node.right) if one is not None else (other, node.left)
        if known is None or not isinstance(_constant(unknown), int):
            return None
        if isinstance(_constant(unknown), bool) or known != "bool":
            return known
        return "int64"  # promoted by the number


def _kinds_of(seen: Seen) -> frozenset[str]:
    """The kinds of something that was seen."""
    if seen.is_number:
        return frozenset([NUMBER, INT] if seen.name == "int" else [NUMBER])
    if seen.is_truth_value:
        return frozenset([INT])
    if seen.what != TENSOR:
        return frozenset()
    found = {TENSOR}
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
