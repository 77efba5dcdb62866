"""What is a pair of real and imaginary part in a function, and what it is as a complex tensor."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from torchmigrate.codemods.base.operations import number
from torchmigrate.codemods.fft.calls import Transform
from torchmigrate.codemods.fft.model import Helper, Layout, Length, PairPart
from torchmigrate.codemods.fft.ranks import sizes_unpacked
from torchmigrate.codemods.fft.scalars import is_scalar
from torchmigrate.codemods.fft.shapes import (
    adds_dimension,
    dimension,
    ends_with,
    full_slices,
    inside_column,
    is_ellipsis,
    is_last_dimension,
    keeps_last,
    plain_call,
    sliced,
)
from torchmigrate.semantics.flow.answers import Answers
from torchmigrate.semantics.flow.reaching import Definition, Reaching

_DEEPEST = 40  # variables that are computed from each other
_MOST_STEPS = 20_000  # in search of what all the variables of a loop hold that are computed from each other
_ELEMENTWISE = (ast.Add, ast.Sub)
FILLED = frozenset(f"torch.{name}" for name in ("rand", "randn", "zeros", "ones", "empty"))
# Methods that do the same to a pair and to a complex tensor.
_KEEP = frozenset("clone contiguous detach cuda cpu requires_grad_".split())


class Values:
    """Knows the layout of expressions of one function.

    pairs: parameters that hold pairs. helper: what a call of a function of the file multiplies, if it does.
    """

    def __init__(
        self,
        transforms: Mapping[int, Transform],
        found: Reaching,
        parents: Mapping[ast.AST, ast.AST],
        qualified: Callable[[ast.expr], str | None],
        *,
        pairs: frozenset[str] = frozenset(),
        helper: Callable[[ast.Call], Helper | None] = lambda call: None,
    ) -> None:
        self.transforms = transforms
        self.pairs = pairs
        self.helper = helper
        self.reaching = found
        self.parents = parents
        self.qualified = qualified
        self.refused: set[Definition] = set()
        self._known: dict[Definition, Layout | None] = {}
        self._busy: set[Definition] = set()
        self._met_busy = False  # what was answered last follows from what is still open
        self._steps = 0
        self._stfts = Answers(self._is_stft, False)
        self._ranks = Answers(self._rank_of, None)

    def refuse(self, definitions: set[Definition]) -> None:
        """Take some definitions for what they are, not for pairs."""
        self.refused |= definitions
        self._known.clear()

    # ---- layouts ---------------------------------------------------------------------------------------

    def of_definition(self, definition: Definition) -> Layout | None:
        """The layout of what a variable is given."""
        if definition.name in self.pairs and definition.statement is None:
            return Layout.PAIR
        if definition in self.refused or definition.value is None:
            return None
        if definition.name in self.reaching.captured:
            return None
        if definition in self._known:
            return self._known[definition]
        self._steps += 1
        if len(self._busy) >= _DEEPEST or self._steps > _MOST_STEPS:
            self._met_busy = True
            return None
        met, self._met_busy = self._met_busy, False
        self._busy.add(definition)
        found = self.layout(definition.value)
        self._busy.discard(definition)
        if not self._busy or not self._met_busy:
            self._known[definition] = found
        self._met_busy = bool(self._busy) and (met or self._met_busy)
        return found

    def layout(self, node: ast.expr) -> Layout | None:
        """The layout of an expression."""
        if isinstance(node, ast.Name):
            every = self.reaching.of(node)
            seen = every - self._busy
            self._met_busy = self._met_busy or len(seen) < len(every)
            found = {self.of_definition(item) for item in seen}
            return found.pop() if len(found) == 1 else None
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return self.layout(node.operand)
        if isinstance(node, ast.BinOp):
            return self._binary(node)
        if isinstance(node, ast.Subscript):
            return self._subscript(node)
        if isinstance(node, ast.Call):
            return self._call(node)
        return None

    def _binary(self, node: ast.BinOp) -> Layout | None:
        left, right = self.layout(node.left), self.layout(node.right)
        if isinstance(node.op, _ELEMENTWISE):
            return left if left is right else None
        if isinstance(node.op, ast.Mult):
            if left is None:
                left, right = right, left
                scalar = self._is_scalar(node.left)
            else:
                scalar = self._is_scalar(node.right)
            if left is Layout.COLUMN and right is Layout.PAIR:
                return Layout.PAIR
            return left if left is not None and (right is Layout.COLUMN or scalar) else None
        if isinstance(node.op, ast.Div):
            return left if right is Layout.COLUMN or self._is_scalar(node.right) else None
        return None

    def _is_scalar(self, node: ast.expr) -> bool:
        return is_scalar(node, self.reaching, self.qualified)

    def _subscript(self, node: ast.Subscript) -> Layout | None:
        index = node.slice
        if adds_dimension(node):
            return Layout.COLUMN
        if self.layout(node.value) is not Layout.PAIR:
            return None
        if sliced(node) is not None:
            return Layout.PAIR
        plain = isinstance(index, ast.Slice) or isinstance(number(index), int)
        return Layout.PAIR if plain else None

    def _call(self, node: ast.Call) -> Layout | None:
        transform = self.transforms.get(id(node))
        if transform is not None:
            return Layout.PAIR if transform.gives_pairs else None
        if not plain_call(node):
            return None
        if self.helped(node) is not None:
            return Layout.PAIR
        if self.stacked(node) is not None or self.qualified(node.func) == "torch.view_as_real":
            return Layout.PAIR
        if self.qualified(node.func) in FILLED and ends_with(node.args, 2):
            return Layout.PAIR
        length = self.length(node)
        if length is not None:
            return Layout.COLUMN if length.keepdim else None
        if not isinstance(node.func, ast.Attribute):
            return None
        method, value = node.func.attr, node.func.value
        if method == "unsqueeze" and dimension(node, 0) == -1:
            return Layout.COLUMN
        if method in _KEEP and not node.args:
            return self.layout(value)
        if method in ("view", "reshape") and ends_with(node.args, 2):
            return self.layout(value)
        if method == "permute" and keeps_last(node.args):
            return self.layout(value)
        if method == "transpose" and len(node.args) == 2:
            dims = [number(item) for item in node.args]
            negative = all(isinstance(dim, int) and dim <= -2 for dim in dims)
            return self.layout(value) if negative else None
        return None

    def helped(self, node: ast.Call) -> Helper | None:
        """What a call of a function of the file multiplies, one pair at least."""
        found = self.helper(node)
        if found is None or not any(self.layout(item) is Layout.PAIR for item in node.args):
            return None
        return None if found.in_place and not self._is_new(node.args[0]) else found

    def _is_new(self, node: ast.expr) -> bool:
        """Whether nothing else sees a pair, so that it may be changed in place."""
        if id(node) in self.transforms or self.stacked(node) is not None:
            return True
        return isinstance(node, ast.Call) and self.helped(node) is not None

    # ---- what makes pairs and what reads them --------------------------------------------------------------

    def stacked(self, node: ast.expr) -> tuple[ast.expr, ast.expr] | None:
        """Real and imaginary part of `torch.stack((re, im), -1)`, or of a `cat` of columns."""
        if not isinstance(node, ast.Call) or not plain_call(node) or not node.args:
            return None
        name = self.qualified(node.func)
        if name not in ("torch.stack", "torch.cat"):
            return None
        parts = node.args[0]
        if not isinstance(parts, (ast.Tuple, ast.List)) or len(parts.elts) != 2 or len(node.args) > 2:
            return None
        first, second = parts.elts
        if dimension(node, 1, "axis") != -1 and not (
            name == "torch.stack" and is_last_dimension(node, first)
        ):
            return None
        if name == "torch.cat":
            inner = [inside_column(item) for item in (first, second)]
            if inner[0] is None or inner[1] is None:
                return None
            return inner[0], inner[1]
        if isinstance(first, ast.Starred) or isinstance(second, ast.Starred):
            return None
        return None if self.layout(first) or self.layout(second) else (first, second)

    def part(self, node: ast.expr) -> PairPart | None:
        """The pair that an expression takes one part of: `x[..., 0]`."""
        if isinstance(node, ast.Call) and plain_call(node):
            if self._name(node) == "select" and len(self._operands(node)) == 3:
                value, *rest = self._operands(node)
                dim, which = (number(item) for item in rest)
                if self._is_last(value, dim) and which in (0, 1) and self.layout(value) is Layout.PAIR:
                    return PairPart(value, int(which))
            return None
        if not isinstance(node, ast.Subscript):
            return None
        if not isinstance(node.slice, ast.Tuple):  # `x.unbind(-1)[0]`
            unbound, which = self.unbound(node.value), number(node.slice)
            return PairPart(unbound, int(which)) if unbound is not None and which in (0, 1) else None
        *before, last = node.slice.elts
        which = number(last)
        if (
            type(which) is not int
            or which not in (0, 1, -1, -2)
            or self.layout(node.value) is not Layout.PAIR
        ):
            return None
        if is_ellipsis(before[0] if before else None) and not any(map(is_ellipsis, before[1:])):
            return PairPart(node.value, which % 2)
        counted = full_slices(node)
        return PairPart(node.value, which) if counted and self._is_last(node.value, counted) else None

    def unbound(self, node: ast.expr) -> ast.expr | None:
        """The pair of `x.unbind(-1)`."""
        if not isinstance(node, ast.Call) or not plain_call(node) or self._name(node) != "unbind":
            return None
        value, *rest = self._operands(node)
        dim = rest[0] if rest else next((item.value for item in node.keywords if item.arg == "dim"), None)
        return value if self.layout(value) is Layout.PAIR and self._is_last(value, number(dim)) else None

    def length(self, node: ast.expr) -> Length | None:
        """The pair whose absolute values or their squares an expression computes."""
        rooted = self._rooted(node)
        if rooted is not None:
            inner = self.length(rooted)
            return Length(inner.pair, False, inner.keepdim) if inner is not None and inner.squared else None
        if not isinstance(node, ast.Call) or not plain_call(node):
            return None
        name = self._name(node)
        named = {item.arg: item.value for item in node.keywords}
        operands = self._operands(node)
        keep = named.pop("keepdim", None)
        if keep is not None and not (isinstance(keep, ast.Constant) and isinstance(keep.value, bool)):
            return None
        keepdim = isinstance(keep, ast.Constant) and bool(keep.value)
        if not operands:
            return None
        value, *rest = operands
        if name == "sum":
            dim = named.pop("dim", None) or (rest.pop(0) if rest else None)
            pair = self._squared(value)
            if pair is None or rest or named or not self._is_last(pair, number(dim)):
                return None
            return Length(pair, True, keepdim)
        if name in ("norm", "vector_norm") and self.layout(value) is Layout.PAIR:
            order = named.pop("p", None) or named.pop("ord", None) or (rest.pop(0) if rest else None)
            dim = named.pop("dim", None) or (rest.pop(0) if rest else None)
            plain = (order is None or number(order) == 2) and not rest and not named
            return Length(value, False, keepdim) if plain and self._is_last(value, number(dim)) else None
        return None

    def _squared(self, node: ast.expr) -> ast.expr | None:
        """The pair that is squared."""
        found: ast.expr | None = None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and number(node.right) == 2:
            found = node.left
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            alike = isinstance(node.left, ast.Name) and ast.dump(node.left) == ast.dump(node.right)
            found = node.left if alike else None
        elif isinstance(node, ast.Call) and plain_call(node):
            operands = self._operands(node)
            square = self._name(node) == "square" and len(operands) == 1
            if square or (self._name(node) == "pow" and [number(item) for item in operands[1:]] == [2]):
                found = operands[0]
        return found if found is not None and self.layout(found) is Layout.PAIR else None

    def _rooted(self, node: ast.expr) -> ast.expr | None:
        """What the square root is taken of."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            return node.left if number(node.right) == 0.5 else None
        if isinstance(node, ast.Call) and plain_call(node) and not node.keywords:
            operands = self._operands(node)
            if self._name(node) == "sqrt" and len(operands) == 1:
                return operands[0]
            if self._name(node) == "pow" and len(operands) == 2 and number(operands[1]) == 0.5:
                return operands[0]
        return None

    def _name(self, node: ast.Call) -> str:
        """The last part of the name of a function of torch or of a method; "" for anything else."""
        name = self.qualified(node.func)
        if name is not None:
            return name.rpartition(".")[2] if name.startswith("torch.") else ""
        return node.func.attr if isinstance(node.func, ast.Attribute) else ""

    def _operands(self, node: ast.Call) -> list[ast.expr]:
        """The arguments by position, that of a method in front."""
        name = self.qualified(node.func)
        function = name is not None and not name.startswith("torch.Tensor.")
        if function or not isinstance(node.func, ast.Attribute):
            return list(node.args)
        return [node.func.value, *node.args]

    # ---- dimensions ---------------------------------------------------------------------------------------

    def _is_last(self, node: ast.expr, dim: int | float | None) -> bool:
        """Whether a dimension of a tensor surely is its last one."""
        if dim == -1 or dim is None:
            return dim == -1
        rank = self.rank(node)
        return dim == rank - 1 if rank is not None else dim == 3 and self.of_stft(node)

    def of_stft(self, node: ast.expr) -> bool:
        """Whether a pair is the result of `stft`, which has three or four dimensions."""
        if isinstance(node, ast.Name):
            seen = self.reaching.of(node)
            return bool(seen) and False not in [self._stfts(item) for item in seen]
        if not isinstance(node, ast.Call):
            return False
        transform = self.transforms.get(id(node))
        if transform is not None:
            return transform.kind == "stft"
        kept = isinstance(node.func, ast.Attribute) and node.func.attr in _KEEP | {"permute", "transpose"}
        return kept and isinstance(node.func, ast.Attribute) and self.of_stft(node.func.value)

    def _is_stft(self, definition: Definition) -> bool:
        return definition.value is not None and self.of_stft(definition.value)

    def _rank_of(self, definition: Definition) -> int | None:
        return self.rank(definition.value) if definition.value is not None else None

    def rank(self, node: ast.expr) -> int | None:
        """How many dimensions a tensor has, where the code says it."""
        if isinstance(node, ast.Name):
            count = sizes_unpacked(node, self.reaching, self.parents)
            seen = self.reaching.of(node)
            if count is not None or len(seen) != 1:
                return count
            (definition,) = seen
            return self._ranks(definition)
        if isinstance(node, ast.Subscript):
            index = node.slice
            items = index.elts if isinstance(index, ast.Tuple) else [index]
            return self.rank(node.value) if all(isinstance(item, ast.Slice) for item in items) else None
        if not isinstance(node, ast.Call) or any(isinstance(item, ast.Starred) for item in node.args):
            return None
        transform = self.transforms.get(id(node))
        if transform is not None:
            inner = self.rank(transform.input)
            change = {"rfft": 1, "fft": 0, "ifft": 0, "irfft": -1}.get(transform.kind)
            return None if inner is None or change is None else inner + change
        name = self._name(node)
        if name == "cat" and node.args and isinstance(node.args[0], (ast.List, ast.Tuple)):
            return self.rank(node.args[0].elts[0]) if node.args[0].elts else None
        if isinstance(node.func, ast.Attribute) and self.qualified(node.func) in (
            None,
            f"torch.Tensor.{name}",
        ):
            if name in ("view", "reshape", "permute") and len(node.args) > 1:
                return len(node.args)
            return self.rank(node.func.value) if name in _KEEP | {"flip"} else None
        return None


def only_argument(node: ast.Call) -> ast.expr | None:
    """What a call of a function with one parameter is given, by keyword or not; None: that is not plain."""
    given = [*node.args, *(keyword.value for keyword in node.keywords if keyword.arg)]
    plain = len(given) == len(node.args) + len(node.keywords) == 1
    return given[0] if plain and not isinstance(given[0], ast.Starred) else None
