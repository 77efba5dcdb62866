"""How the tensors of a file hold complex numbers: what is a pair of real and imaginary part, or a column."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from torchmigrate.codemods.base.operations import number
from torchmigrate.codemods.fft.calls import Transform
from torchmigrate.codemods.fft.model import Helper, Layout, Length, PairPart
from torchmigrate.codemods.fft.ranks import Ranks
from torchmigrate.codemods.fft.shapes import (
    adds_dimension,
    dimension,
    ends_with,
    full_slices,
    inside_column,
    is_ellipsis,
    is_last_dimension,
    keeps_last,
    operation,
    plain_call,
    sliced,
)
from torchmigrate.semantics.flow.domain import OPEN, UNKNOWN, Domain, Sentinel, Values
from torchmigrate.semantics.flow.reaching import Definition, Reaching
from torchmigrate.semantics.flow.steps import UNKNOWN_STEP, Each, Path, Step, Steps
from torchmigrate.semantics.flow.values import ValueFlow

PAIR, COLUMN, NUMBER = Layout.PAIR, Layout.COLUMN, Layout.NUMBER
FILLED = frozenset(f"torch.{name}" for name in ("rand", "randn", "zeros", "ones", "empty"))
# Methods that do the same to a pair and to a complex tensor.
_KEEP = frozenset("clone contiguous detach cuda cpu requires_grad_".split())
_SUMS = {(PAIR, PAIR): PAIR, (COLUMN, COLUMN): COLUMN, (NUMBER, NUMBER): NUMBER}
_QUOTIENTS = {
    (PAIR, COLUMN): PAIR,
    (PAIR, NUMBER): PAIR,
    (COLUMN, COLUMN): COLUMN,
    (COLUMN, NUMBER): COLUMN,
    (NUMBER, NUMBER): NUMBER,
}
_OPERATIONS: dict[type[ast.operator], dict[tuple[Layout, Layout], Layout]] = {
    ast.Add: _SUMS,
    ast.Sub: _SUMS,
    ast.Div: _QUOTIENTS,
    ast.Mult: _QUOTIENTS | {(right, left): made for (left, right), made in _QUOTIENTS.items()},
    ast.FloorDiv: {(NUMBER, NUMBER): NUMBER},
    ast.Pow: {(NUMBER, NUMBER): NUMBER},
}
_UNKNOWN: Values[Layout] = frozenset([UNKNOWN])


_CLOSE = frozenset(["clone", "squeeze", "unsqueeze"])  # what leaves both parts where they are
_SIDE_BY_SIDE = FILLED | {"torch.stack", "torch.view_as_real"}  # `cat` may keep another order of dimensions


class LaidOut(Domain[bool]):
    """Whether both parts of every number lie together, as `view_as_complex` needs them."""

    def __init__(self, flow: ValueFlow, transforms: Mapping[ast.AST, Transform]) -> None:
        super().__init__(flow)
        self._transforms = transforms

    def start(self, node: ast.AST) -> bool | None:
        if not isinstance(node, ast.Call):
            return None
        transform = self._transforms.get(node)
        if transform is not None:
            return transform.gives_pairs
        name = self.flow.names.qualified(node.func)
        if name in _SIDE_BY_SIDE or ((node.args or node.keywords) and self.flow.called(node) is None):
            return name in _SIDE_BY_SIDE
        return True if operation(node, name)[0] == "contiguous" else None

    def through(self, node: ast.AST) -> Values[bool]:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CLOSE:
            return self.of(node.func.value)
        return frozenset([False])


class Layouts(Domain[Layout]):
    """The layouts of the expressions of a file.

    Args:
        transforms: the calls of the old functions.
        helpers: what calls of functions of the file multiply.
        pairs: other calls that give pairs.
    """

    _beside_pair: Layout | Sentinel = PAIR  # of a pair and what is not known: that cannot be complex

    def __init__(
        self,
        flow: ValueFlow,
        transforms: Mapping[ast.AST, Transform],
        helpers: Callable[[ast.Call], Helper | None],
        pairs: frozenset[ast.AST] = frozenset(),
    ) -> None:
        super().__init__(flow)
        self.transforms = transforms
        self.helpers = helpers
        self._pairs = pairs
        self.ranks = Ranks(flow, transforms)
        self.laid_out = LaidOut(flow, transforms)
        self.parents = flow.names.parents
        self.qualified = flow.names.qualified

    def layout(self, node: ast.expr) -> Layout | None:
        """The layout of an expression, if it is a pair or a column in every run."""
        found = self.of(node)
        return next((each for each in (PAIR, COLUMN) if found == {each}), None)

    def reaching(self, node: ast.AST) -> Reaching:
        """The definitions of the function around an expression."""
        return self.flow.index.reaching_around(node)

    def steps(self, step: Step) -> Steps:
        """What a function multiplies is read of each of its calls."""
        helped = isinstance(step.node, ast.Call) and self.helpers(step.node) is not None
        return () if helped else super().steps(step)

    # ---- the table -------------------------------------------------------------------------------------

    def start(self, node: ast.AST) -> Layout | None:
        if isinstance(node, ast.expr) and is_number(node):
            return NUMBER
        if isinstance(node, ast.Subscript):
            return COLUMN if adds_dimension(node) else None
        if not isinstance(node, ast.Call):
            return None
        transform = self.transforms.get(node)
        if transform is not None:
            return PAIR if transform.gives_pairs else None
        if not plain_call(node):
            return None
        name = self.qualified(node.func)
        filled = name in FILLED and ends_with(node.args, 2)
        if filled or name == "torch.view_as_real" or node in self._pairs:
            return PAIR
        return COLUMN if inside_column(node) is not None else None

    def through(self, node: ast.AST) -> Values[Layout]:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return self.of(node.operand)
        if isinstance(node, (ast.BinOp, ast.AugAssign)):
            sides = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.target, node.value)
            left, right = map(self.of, sides)
            return frozenset(self._combined(node.op, one, other) for one in left for other in right)
        if isinstance(node, ast.Subscript):
            plain = isinstance(node.slice, ast.Slice) or isinstance(number(node.slice), int)
            return self._kept(node.value) if plain or sliced(node) is not None else _UNKNOWN
        return self._called(node) if isinstance(node, ast.Call) and plain_call(node) else _UNKNOWN

    def _combined(
        self, operator: ast.operator, one: Layout | Sentinel, other: Layout | Sentinel
    ) -> Layout | Sentinel:
        if isinstance(one, Layout) and isinstance(other, Layout):
            return _OPERATIONS.get(type(operator), {}).get((one, other), UNKNOWN)
        return self._beside_pair if PAIR in (one, other) else UNKNOWN

    def part(self, node: ast.AST, path: Path) -> Values[Layout]:
        return self._kept(node) if all(isinstance(key, (int, Each)) for key in path) else _UNKNOWN

    def _kept(self, node: ast.AST, to: Layout = PAIR, *, columns: bool = False) -> Values[Layout]:
        """What an operation makes of a pair, and of a column, which it keeps or not."""
        made: dict[Layout | Sentinel, Layout] = {PAIR: to, **({COLUMN: COLUMN} if columns else {})}
        return frozenset(made.get(each, UNKNOWN) if each is not OPEN else OPEN for each in self.of(node))

    def _called(self, node: ast.Call) -> Values[Layout]:
        helper = self.helpers(node)
        if helper is not None:
            new = not helper.in_place or self._is_new(node.args[0])
            given = [self.of(item) for item in node.args]
            made = {PAIR if new else UNKNOWN for each in given if PAIR in each}
            return frozenset(made | {UNKNOWN}) if all(each - {PAIR} for each in given) else frozenset(made)
        parts = self._stack(node)
        if parts is not None:
            # Of pairs, a stack is something else.
            held = {each for part in parts for each in self.of(part)}
            return frozenset(UNKNOWN if each in (PAIR, COLUMN) else PAIR for each in held)
        length = self._length(node)
        if length is not None:
            return self._kept(length.pair, COLUMN) if length.keepdim else _UNKNOWN
        if not isinstance(node.func, ast.Attribute):
            return _UNKNOWN
        method, value = node.func.attr, node.func.value
        if (method in _KEEP and not node.args) or (method == "permute" and keeps_last(node.args)):
            return self._kept(value, columns=True)
        if method in ("view", "reshape") and ends_with(node.args, 2):
            return self._kept(value, columns=True)
        dims = [number(item) for item in node.args]
        if method in ("squeeze", "unsqueeze"):  # of dimensions from the front, which do not move
            front = len(dims) == 1 and isinstance(dims[0], int) and dims[0] >= 0
            return self._kept(value, columns=True) if front else _UNKNOWN
        negative = len(dims) == 2 and all(isinstance(dim, int) and dim <= -2 for dim in dims)
        return self._kept(value, columns=True) if method == "transpose" and negative else _UNKNOWN

    # ---- what makes pairs and what reads them --------------------------------------------------------------

    def stacked(self, node: ast.expr) -> tuple[ast.expr, ast.expr] | None:
        """Real and imaginary part of `torch.stack((re, im), -1)`, or of a `cat` of columns."""
        return self._stack(node) if self.layout(node) is PAIR else None

    def _stack(self, node: ast.expr) -> tuple[ast.expr, ast.expr] | None:
        """The same as it is written."""
        if not isinstance(node, ast.Call) or not plain_call(node) or not 0 < len(node.args) <= 2:
            return None
        name = self.qualified(node.func)
        parts = node.args[0]
        if not isinstance(parts, (ast.Tuple, ast.List)) or len(parts.elts) != 2:
            return None
        first, second = parts.elts
        is_last = dimension(node, 1, "axis") == -1
        if name == "torch.cat":
            inner = [inside_column(item) for item in (first, second)]
            return (inner[0], inner[1]) if is_last and inner[0] and inner[1] else None
        if name != "torch.stack" or any(isinstance(item, ast.Starred) for item in (first, second)):
            return None
        return (first, second) if is_last or is_last_dimension(node, first) else None

    def helped(self, node: ast.Call) -> Helper | None:
        """What a call of a function of the file multiplies, one pair at least."""
        return self.helpers(node) if self.layout(node) is PAIR else None

    def _is_new(self, node: ast.expr) -> bool:
        """Whether nothing else sees a pair, so that it may be changed in place."""
        if node in self.transforms or self._stack(node) is not None:
            return True
        helper = self.helpers(node) if isinstance(node, ast.Call) else None
        return (
            helper is not None
            and isinstance(node, ast.Call)
            and (not helper.in_place or self._is_new(node.args[0]))
        )

    def part_of(self, node: ast.expr) -> PairPart | None:
        """The pair that an expression takes one part of: `x[..., 0]`."""
        name, operands = self._operation(node)
        if name == "select" and len(operands) == 3:
            value, which = operands[0], number(operands[2])
            is_last = self.ranks.is_last(value, number(operands[1])) and self.layout(value) is PAIR
            return PairPart(value, int(which)) if is_last and which in (0, 1) else None
        if not isinstance(node, ast.Subscript):
            return None
        if not isinstance(node.slice, ast.Tuple):  # `x.unbind(-1)[0]`
            unbound, which = self.unbound(node.value), number(node.slice)
            return PairPart(unbound, int(which)) if unbound is not None and which in (0, 1) else None
        *before, last = node.slice.elts
        which = number(last)
        if type(which) is not int or which not in (0, 1, -1, -2) or self.layout(node.value) is not PAIR:
            return None
        if is_ellipsis(before[0] if before else None) and not any(map(is_ellipsis, before[1:])):
            return PairPart(node.value, which % 2)
        counted = full_slices(node)
        return PairPart(node.value, which) if counted and self.ranks.is_last(node.value, counted) else None

    def unbound(self, node: ast.expr) -> ast.expr | None:
        """The pair of `x.unbind(-1)`."""
        name, operands = self._operation(node)
        if name != "unbind" or not isinstance(node, ast.Call) or not operands:
            return None
        value, dim = operands[0], dimension(node, len(node.args) - len(operands) + 1)
        return value if self.layout(value) is PAIR and self.ranks.is_last(value, dim) else None

    def length(self, node: ast.expr) -> Length | None:
        """The pair whose absolute values or their squares an expression computes."""
        found = self._length(node)
        return found if found is not None and self.layout(found.pair) is PAIR else None

    def _length(self, node: ast.expr) -> Length | None:
        """The same as it is written."""
        rooted = self._rooted(node)
        if rooted is not None:
            inner = self._length(rooted)
            return Length(inner.pair, False, inner.keepdim) if inner is not None and inner.squared else None
        name, operands = self._operation(node)
        if not isinstance(node, ast.Call) or not operands:
            return None
        named = {item.arg: item.value for item in node.keywords}
        keep = named.pop("keepdim", None)
        if keep is not None and not (isinstance(keep, ast.Constant) and isinstance(keep.value, bool)):
            return None
        keepdim = isinstance(keep, ast.Constant) and bool(keep.value)
        value, *rest = operands
        if name == "sum":
            dim = named.pop("dim", None) or (rest.pop(0) if rest else None)
            pair = self._squared(value)
            if pair is None or rest or named or not self.ranks.is_last(pair, number(dim)):
                return None
            return Length(pair, True, keepdim)
        if name in ("norm", "vector_norm"):
            order = named.pop("p", None) or named.pop("ord", None) or (rest.pop(0) if rest else None)
            dim = named.pop("dim", None) or (rest.pop(0) if rest else None)
            plain = (order is None or number(order) == 2) and not rest and not named
            return Length(value, False, keepdim) if plain and self.ranks.is_last(value, number(dim)) else None
        return None

    def _squared(self, node: ast.expr) -> ast.expr | None:
        """The pair that is squared."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            return node.left if number(node.right) == 2 else None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            alike = isinstance(node.left, ast.Name) and ast.dump(node.left) == ast.dump(node.right)
            return node.left if alike else None
        name, operands = self._operation(node)
        exponents = [number(item) for item in operands[1:]]
        return operands[0] if (name, exponents) in (("square", []), ("pow", [2])) else None

    def _rooted(self, node: ast.expr) -> ast.expr | None:
        """What the square root is taken of."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            return node.left if number(node.right) == 0.5 else None
        name, operands = self._operation(node)
        exponents = [number(item) for item in operands[1:]]
        bare = isinstance(node, ast.Call) and not node.keywords
        return operands[0] if bare and (name, exponents) in (("sqrt", []), ("pow", [0.5])) else None

    def _operation(self, node: ast.expr) -> tuple[str, list[ast.expr]]:
        """The name of a function of torch or of a method, and its operands; "" for anything else."""
        if not isinstance(node, ast.Call) or not plain_call(node):
            return "", []
        return operation(node, self.qualified(node.func))


class Local(Layouts):
    """The layouts in one function, of what it makes itself: only that may become complex there.

    Args:
        everywhere: the layouts of the file.
        home: the function, class or module.
        transforms: those that are rewritten.
        takes_pairs: whether the parameters are pairs.
    """

    _beside_pair = UNKNOWN  # as a complex tensor, it may need another shape

    def __init__(
        self,
        everywhere: Layouts,
        home: ast.AST,
        transforms: Mapping[ast.AST, Transform],
        *,
        takes_pairs: bool = False,
    ) -> None:
        super().__init__(everywhere.flow, transforms, everywhere.helpers)
        self.ranks, self.laid_out = everywhere.ranks, everywhere.laid_out
        self.variables = everywhere.flow.index.reaching(home)
        self.refused: set[Definition] = set()
        self._everywhere = everywhere
        self._takes_pairs = takes_pairs

    def refuse(self, definitions: set[Definition]) -> None:
        """Take some definitions for what they are, not for pairs."""
        self.refused |= definitions
        self.forget()

    def of_definition(self, definition: Definition) -> Layout | None:
        """The layout of what a variable is given."""
        if self._is_given(definition):
            return PAIR
        return self.layout(definition.value) if definition.value and self._makes(definition) else None

    def _is_given(self, definition: Definition) -> bool:
        return self._takes_pairs and isinstance(definition.node, ast.arg)

    def _makes(self, definition: Definition) -> bool:
        """Whether a variable is given its value here, and nothing but this function reads it."""
        shared = definition.name in self.variables.captured
        return definition.value is not None and not shared and definition not in self.refused

    def start(self, node: ast.AST) -> Layout | None:
        if isinstance(node, ast.Name):
            seen = self.variables.of(node)
            if seen and all(map(self._is_given, seen)):
                return PAIR
        return NUMBER if self._everywhere.is_only(node, NUMBER) else super().start(node)

    def steps(self, step: Step) -> Steps:
        """Only variables are followed."""
        if not isinstance(step.node, ast.Name):
            return ()
        seen = self.variables.of(step.node)
        own = bool(seen) and all(map(self._makes, seen))
        return self.flow.sources(step.node) if own else (UNKNOWN_STEP,)


def is_number(node: ast.expr) -> bool:
    """Whether an expression is a number of Python, whatever the values of its names."""
    if number(node) is not None:
        return True
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
    head = node.func if isinstance(node, ast.Call) else node
    if isinstance(head, ast.Attribute):
        if isinstance(head.value, ast.Name) and head.value.id == "math":
            return True
        sized = isinstance(node, ast.Call) and head.attr in ("size", "item", "numel")
        return sized and isinstance(node, ast.Call) and (head.attr != "size" or bool(node.args))
    return isinstance(node, ast.Call) and isinstance(head, ast.Name) and head.id in ("len", "int", "float")


def only_argument(node: ast.Call) -> ast.expr | None:
    """What a call of a function with one parameter is given, by keyword or not; None: that is not plain."""
    given = [*node.args, *(keyword.value for keyword in node.keywords if keyword.arg)]
    plain = len(given) == len(node.args) + len(node.keywords) == 1
    return given[0] if plain and not isinstance(given[0], ast.Starred) else None
