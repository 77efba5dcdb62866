"""Which spectra surely are those of real signals, and so are conjugate symmetric.

`torch.irfft` only read a part of the spectrum and took the rest from that. The functions of `torch.fft`
give the same for a symmetric spectrum only: not for one that was filtered with weights or masks.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from msgspec import Struct

from torchmigrate.codemods.base.operations import number
from torchmigrate.codemods.fft.calls import Transform, transformed_dimensions
from torchmigrate.codemods.fft.products import product
from torchmigrate.codemods.fft.scalars import is_scalar
from torchmigrate.codemods.fft.values import Values, only_argument
from torchmigrate.semantics.flow.reaching import Definition, Seen

_DEEPEST = 40
_COPIES = frozenset(["clone", "contiguous", "detach"])
_ASKED = frozenset("size dim numel ndimension clone abs pow sum mean norm".split())
_VIEWS = frozenset(["torch.unbind", "torch.view_as_complex", "torch.view_as_real"])
_PURE = frozenset(
    f"torch.{name}" for name in "stack cat abs sqrt pow atan2 norm sum mean mul add sub div".split()
)


class Spectrum(Struct, frozen=True):
    """The spectrum of real signals: over how many dimensions, one-sided or not, and the signals."""

    count: int
    onesided: bool
    signals: tuple[ast.expr, ...]

    def with_(self, other: Spectrum | None) -> Spectrum | None:
        """That of a sum or product of both."""
        if other is None or (self.count, self.onesided) != (other.count, other.onesided):
            return None
        return Spectrum(self.count, self.onesided, (*self.signals, *other.signals))


def is_exact(transform: Transform, values: Values) -> bool:
    """Whether the new call gives what the old one gave, for any input that this one can have."""
    if transform.kind != "irfft":
        return True
    count, onesided = transformed_dimensions(transform), transform.onesided()
    if count == 1 and onesided:
        return True  # both leave the imaginary parts of the first and of the last number alone
    spectrum = of(transform.input, values)
    if spectrum is None or (spectrum.count, spectrum.onesided) != (count, onesided):
        return False
    sizes = transform.value("signal_sizes")
    nothing = isinstance(sizes, (ast.Tuple, ast.List)) and not sizes.elts
    if not onesided or sizes is None or nothing or (isinstance(sizes, ast.Constant) and sizes.value is None):
        return True  # a last size that is odd has no number in the middle
    return any(_ends_like(sizes, signal, values) for signal in spectrum.signals)


def of(node: ast.expr, values: Values, depth: int = 0) -> Spectrum | None:
    """The spectrum that an expression surely is; None: that is not known."""
    if depth > _DEEPEST:
        return None
    if isinstance(node, ast.Name):
        seen = values.reaching.of(node)
        return _of_definitions(node.id, seen, values, depth)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return of(node.operand, values, depth + 1)
    if isinstance(node, ast.BinOp):
        return _of_operation(node, values, depth)
    if not isinstance(node, ast.Call):
        return None
    transform = values.transforms.get(id(node))
    if transform is not None:
        count, onesided = transformed_dimensions(transform), transform.onesided()
        if transform.kind != "rfft" or count is None or onesided is None:
            return None
        return Spectrum(count, onesided, (transform.input,))
    if values.helped(node) is not None:
        return _joined(of(item, values, depth + 1) for item in node.args)
    stacked = values.stacked(node)
    if stacked is not None:
        statement: ast.AST | None = node
        while statement is not None and not isinstance(statement, ast.stmt):
            statement = values.parents.get(statement)
        made = product(*stacked, statement, values) if isinstance(statement, ast.stmt) else None
        if made is None:
            return None
        return _joined(_of_definitions(name, seen, values, depth + 1) for name, seen in made.keys)
    if values.qualified(node.func) in ("torch.view_as_complex", "torch.view_as_real"):
        given = only_argument(node)
        return of(given, values, depth + 1) if given is not None else None
    if isinstance(node.func, ast.Attribute) and node.func.attr in _COPIES and not node.args:
        return of(node.func.value, values, depth + 1)
    return None


def _of_operation(node: ast.BinOp, values: Values, depth: int) -> Spectrum | None:
    if isinstance(node.op, (ast.Add, ast.Sub)):
        return _joined(of(item, values, depth + 1) for item in (node.left, node.right))
    if isinstance(node.op, (ast.Mult, ast.Div)):
        if is_scalar(node.right, values.reaching, values.qualified):
            return of(node.left, values, depth + 1)
        if isinstance(node.op, ast.Mult) and is_scalar(node.left, values.reaching, values.qualified):
            return of(node.right, values, depth + 1)
    return None


def _joined(found: Iterable[Spectrum | None]) -> Spectrum | None:
    first: Spectrum | None = None
    for number_, item in enumerate(found):
        first = item if number_ == 0 else first.with_(item) if first is not None else None
        if first is None:
            return None
    return first


def _of_definitions(name: str, seen: Seen, values: Values, depth: int) -> Spectrum | None:
    if not seen or name in values.reaching.captured:
        return None
    if not all(_is_only_read(item, values) for item in values.reaching.reads(seen)):
        return None
    return _joined(
        of(value, values, depth + 1) if (value := _value(item)) is not None else None for item in seen
    )


def _value(definition: Definition) -> ast.expr | None:
    if definition.unpacked is not None:
        several, index, count = definition.unpacked
        fits = isinstance(several, (ast.Tuple, ast.List)) and len(several.elts) == count
        return several.elts[index] if fits and isinstance(several, (ast.Tuple, ast.List)) else None
    return definition.value


def _is_only_read(node: ast.expr, values: Values, depth: int = 0) -> bool:
    """Whether a use of a spectrum surely neither changes it, nor gives it to something that may."""
    parent = values.parents.get(node)
    view = False
    if isinstance(parent, ast.Subscript) and parent.value is node:
        if not isinstance(parent.ctx, ast.Load):
            return False
        view, node, parent = True, parent, values.parents.get(parent)
    if isinstance(parent, (ast.BinOp, ast.UnaryOp, ast.Return)):
        return True
    if isinstance(parent, ast.Attribute):
        call = values.parents.get(parent)
        if isinstance(call, ast.Call) and id(call) in values.transforms:
            return True
        called = isinstance(call, ast.Call) and call.func is parent
        return parent.attr in _ASKED if called else parent.attr in ("shape", "dtype", "device")
    if isinstance(parent, (ast.List, ast.Tuple, ast.keyword)):
        parent = values.parents.get(parent)
        if isinstance(parent, ast.Return):
            return True
    if isinstance(parent, ast.Call):
        if id(parent) in values.transforms or values.qualified(parent.func) in _PURE:
            return True
        helper = values.helped(parent)
        if helper is not None:
            return not helper.in_place
        if values.qualified(parent.func) not in _VIEWS:
            return False
        view, parent = True, values.parents.get(parent)
        if isinstance(parent, ast.Call) and id(parent) in values.transforms:
            return True
    if not isinstance(parent, ast.Assign) or not view or depth > _DEEPEST:
        return False
    made = frozenset(values.reaching.made_by(parent))
    return bool(made) and all(_is_only_read(item, values, depth + 1) for item in values.reaching.reads(made))


def _ends_like(sizes: ast.expr, signal: ast.expr, values: Values) -> bool:
    """Whether the last of some sizes surely is the last of a signal."""
    if isinstance(sizes, ast.Name):
        value = _only_value(sizes, values)
        return value is not None and not isinstance(value, ast.Name) and _ends_like(value, signal, values)
    if isinstance(sizes, ast.Subscript) and isinstance(sizes.slice, ast.Slice):
        return sizes.slice.upper is sizes.slice.step is None and _is_shape(sizes.value, signal, values)
    if not isinstance(sizes, (ast.Tuple, ast.List)) or isinstance(sizes.elts[-1], ast.Starred):
        return False
    last = sizes.elts[-1]
    if isinstance(last, ast.Name):
        seen = values.reaching.of(last)
        definition = next(iter(seen)) if len(seen) == 1 else None
        if definition is not None and definition.unpacked is not None:
            shape, index, count = definition.unpacked
            return index == count - 1 and _is_shape(shape, signal, values)
        value = definition.value if definition is not None else None
        if value is None:
            return False
        last = value
    if isinstance(last, ast.Subscript):
        return number(last.slice) == -1 and _is_shape(last.value, signal, values)
    if isinstance(last, ast.Call) and isinstance(last.func, ast.Attribute) and last.func.attr == "size":
        fits = len(last.args) == 1 and number(last.args[0]) == -1
        return fits and _is_same(last.func.value, signal, values)
    return False


def _only_value(name: ast.Name, values: Values) -> ast.expr | None:
    seen = values.reaching.of(name)
    return next(iter(seen)).value if len(seen) == 1 else None


def _is_shape(node: ast.expr, signal: ast.expr, values: Values) -> bool:
    """`x.shape` and `x.size()`, also without the first ones."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        return node.slice.upper is node.slice.step is None and _is_shape(node.value, signal, values)
    if isinstance(node, ast.Call) and not node.args and not node.keywords:
        owner = node.func
        return (
            isinstance(owner, ast.Attribute)
            and owner.attr == "size"
            and _is_same(owner.value, signal, values)
        )
    return isinstance(node, ast.Attribute) and node.attr == "shape" and _is_same(node.value, signal, values)


def _is_same(one: ast.expr, other: ast.expr, values: Values) -> bool:
    """Whether two names mean the same value."""
    if not isinstance(one, ast.Name) or not isinstance(other, ast.Name) or one.id != other.id:
        return False
    return values.reaching.of(one) == values.reaching.of(other)
