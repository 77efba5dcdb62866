"""Which spectra surely are those of real signals, and so are conjugate symmetric.

`torch.irfft` only read a part of the spectrum and took the rest from that. The functions of `torch.fft`
give the same for a symmetric spectrum only: not for one that was filtered with weights or masks.
"""

from __future__ import annotations

import ast

from msgspec import Struct

from torchmigrate.codemods.base.operations import number
from torchmigrate.codemods.fft.calls import Transform, transformed_dimensions
from torchmigrate.codemods.fft.layouts import Layouts
from torchmigrate.codemods.fft.model import Layout
from torchmigrate.codemods.fft.products import product
from torchmigrate.semantics.flow.domain import UNKNOWN, Domain, Sentinel, Values
from torchmigrate.semantics.flow.reaching import Seen
from torchmigrate.semantics.flow.steps import Step, Steps

_COPIES = frozenset(["clone", "contiguous", "detach"])
_ASKED = frozenset("size dim numel ndimension clone abs pow sum mean norm".split())
_SAME = frozenset(["torch.view_as_complex", "torch.view_as_real"])
_VIEWS = _SAME | {"torch.unbind"}
_PURE = frozenset(
    f"torch.{name}" for name in "stack cat abs sqrt pow atan2 norm sum mean mul add sub div".split()
)


class Spectrum(Struct, frozen=True):
    """The spectrum of real signals: over how many dimensions, one-sided or not, and the signals."""

    count: int
    onesided: bool
    signals: frozenset[ast.expr]


_OTHER = Spectrum(0, False, frozenset())  # one of other signals, or it is not known
_UNKNOWN: Values[Spectrum] = frozenset([UNKNOWN])
_NONE: Seen = frozenset()


class Spectra(Domain[Spectrum]):
    """The spectra of real signals in a file.

    Args:
        layouts: the layouts of the file.
    """

    def __init__(self, layouts: Layouts) -> None:
        super().__init__(layouts.flow)
        self._layouts = layouts

    def is_exact(self, transform: Transform) -> bool:
        """Whether the new call gives what the old one gave, for any input that this one can have."""
        if transform.kind != "irfft":
            return True
        count, onesided = transformed_dimensions(transform), transform.onesided()
        if count == 1 and onesided:
            return True  # both leave the imaginary parts of the first and of the last number alone
        found = [each for each in self.of(transform.input) if isinstance(each, Spectrum)]
        if len(found) < len(self.of(transform.input)) or not found:
            return False
        if any((each.count, each.onesided) != (count, onesided) for each in found):
            return False
        sizes = transform.value("signal_sizes")
        nothing = isinstance(sizes, (ast.Tuple, ast.List)) and not sizes.elts
        if not onesided or sizes is None or nothing or (isinstance(sizes, ast.Constant) and not sizes.value):
            return True  # a last size that is odd has no number in the middle
        return all(any(self._ends_like(sizes, signal) for signal in each.signals) for each in found)

    def start(self, node: ast.AST) -> Spectrum | None:
        if isinstance(node, ast.Name):
            return None if self._is_only_read(node) else _OTHER
        transform = self._layouts.transforms.get(node)
        if transform is None:
            function = node.func if isinstance(node, ast.Call) else None
            in_place = isinstance(function, ast.Attribute) and function.attr.endswith("_")
            return _OTHER if in_place or isinstance(node, (ast.Attribute, ast.Subscript)) else None
        count, onesided = transformed_dimensions(transform), transform.onesided()
        if transform.kind != "rfft" or count is None or onesided is None:
            return _OTHER
        return Spectrum(count, onesided, frozenset([transform.input]))

    def steps(self, step: Step) -> Steps:
        if step.path and not isinstance(step.node, (ast.Tuple, ast.List)):
            return ()  # of a container, which others may change
        return self._layouts.steps(step)

    def through(self, node: ast.AST) -> Values[Spectrum]:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return self.of(node.operand)
        if isinstance(node, ast.BinOp):
            return self._combined(node)
        if not isinstance(node, ast.Call):
            return _UNKNOWN
        if self._layouts.helpers(node) is not None:
            return self._joined(*node.args)
        stacked = self._layouts.stacked(node)
        if stacked is not None:
            statement = self.flow.index.statement_of(node)
            made = product(*stacked, statement, self._layouts) if statement is not None else None
            return self._joined(*made.pairs) if made is not None else _UNKNOWN
        if self.flow.names.qualified(node.func) in _SAME and len(node.args) == 1:
            return self.of(node.args[0])
        if isinstance(node.func, ast.Attribute) and node.func.attr in _COPIES and not node.args:
            return self.of(node.func.value)
        return _UNKNOWN

    def _combined(self, node: ast.BinOp) -> Values[Spectrum]:
        if isinstance(node.op, (ast.Add, ast.Sub)):
            return self._joined(node.left, node.right)
        if isinstance(node.op, (ast.Mult, ast.Div)):
            if self._layouts.is_only(node.right, Layout.NUMBER):
                return self.of(node.left)
            if isinstance(node.op, ast.Mult) and self._layouts.is_only(node.left, Layout.NUMBER):
                return self.of(node.right)
        return _UNKNOWN

    def _joined(self, *nodes: ast.expr) -> Values[Spectrum]:
        """That of a sum or product."""
        found = self.of(nodes[0])
        for node in nodes[1:]:
            others = self.of(node)
            found = frozenset(_sum(one, other) for one in found for other in others)
        return found

    # ---- what changes a spectrum ---------------------------------------------------------------------------

    def _is_only_read(self, name: ast.Name) -> bool:
        """Whether nothing surely changes what a local variable has, nor is given it and may."""
        found = self._layouts.reaching(name)
        todo = found.reads(found.of(name)) if name.id not in found.captured else []
        seen = set(todo)
        for read in todo:
            made = self._views(read)
            if made is None:
                return False
            more = [each for each in found.reads(made) if each not in seen]
            seen.update(more)
            todo += more
        return bool(todo)

    def _views(self, node: ast.expr) -> Seen | None:
        """The variables that are views of a spectrum because of a use of it; None: the use may change it."""
        parents, qualified, layouts = self._layouts.parents, self._layouts.qualified, self._layouts
        parent = parents.get(node)
        view = False
        if isinstance(parent, ast.Subscript) and parent.value is node:
            if not isinstance(parent.ctx, ast.Load):
                return None
            view, node, parent = True, parent, parents.get(parent)
        if isinstance(parent, (ast.BinOp, ast.UnaryOp, ast.Return)):
            return _NONE
        if isinstance(parent, ast.Attribute):
            call = parents.get(parent)
            called = isinstance(call, ast.Call) and call.func is parent
            read = parent.attr in (_ASKED if called else ("shape", "dtype", "device"))
            return _NONE if read or call in layouts.transforms else None
        if isinstance(parent, (ast.List, ast.Tuple, ast.keyword)):
            parent = parents.get(parent)
            if isinstance(parent, ast.Return):
                return _NONE
        if isinstance(parent, ast.Call):
            if parent in layouts.transforms or qualified(parent.func) in _PURE:
                return _NONE
            helper = layouts.helpers(parent)
            if helper is not None:
                return None if helper.in_place else _NONE
            if qualified(parent.func) not in _VIEWS:
                return None
            view, parent = True, parents.get(parent)
            if parent in layouts.transforms:
                return _NONE
        made = layouts.reaching(node).made_by(parent) if isinstance(parent, ast.Assign) and view else []
        return frozenset(made) or None

    # ---- sizes ---------------------------------------------------------------------------------------------

    def _ends_like(self, sizes: ast.expr, signal: ast.expr) -> bool:
        """Whether the last of some sizes surely is the last of a signal."""
        if isinstance(sizes, ast.Name):
            value = self._only(sizes)[0]
            return value is not None and not isinstance(value, ast.Name) and self._ends_like(value, signal)
        if not isinstance(sizes, (ast.Tuple, ast.List)):
            return self._is_shape(sizes, signal)
        last: ast.expr | None = sizes.elts[-1]
        if isinstance(last, ast.Name):
            last, unpacked = self._only(last)
            if unpacked is not None:
                shape, index, count = unpacked
                return index == count - 1 and self._is_shape(shape, signal)
        if isinstance(last, ast.Subscript):
            return number(last.slice) == -1 and self._is_shape(last.value, signal)
        if isinstance(last, ast.Call) and isinstance(last.func, ast.Attribute) and last.func.attr == "size":
            fits = len(last.args) == 1 and number(last.args[0]) == -1
            return fits and self._is_same(last.func.value, signal)
        return False

    def _only(self, name: ast.Name) -> tuple[ast.expr | None, tuple[ast.expr, int, int] | None]:
        """The one expression that a variable is given, or what it is unpacked from."""
        seen = self._layouts.reaching(name).of(name)
        (only,) = seen if len(seen) == 1 else (None,)
        return (only.value, only.unpacked) if only is not None else (None, None)

    def _is_shape(self, node: ast.expr, signal: ast.expr) -> bool:
        """`x.shape` and `x.size()`, also without the first ones."""
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            return node.slice.upper is node.slice.step is None and self._is_shape(node.value, signal)
        attr = "shape"
        if isinstance(node, ast.Call) and not node.args and not node.keywords:
            node, attr = node.func, "size"
        return isinstance(node, ast.Attribute) and node.attr == attr and self._is_same(node.value, signal)

    def _is_same(self, one: ast.expr, other: ast.expr) -> bool:
        """Whether two names mean the same value."""
        if not isinstance(one, ast.Name) or not isinstance(other, ast.Name) or one.id != other.id:
            return False
        here = self._layouts.reaching(one)
        return here is self._layouts.reaching(other) and here.of(one) == here.of(other)


def _sum(one: Spectrum | Sentinel, other: Spectrum | Sentinel) -> Spectrum | Sentinel:
    """The spectrum of a sum or product of two."""
    if not isinstance(one, Spectrum) or not isinstance(other, Spectrum):
        return UNKNOWN
    if (one.count, one.onesided) != (other.count, other.onesided):
        return _OTHER
    return Spectrum(one.count, one.onesided, one.signals | other.signals)
