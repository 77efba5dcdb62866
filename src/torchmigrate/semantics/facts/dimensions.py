"""How many dimensions a tensor has, followed from the calls that make it."""

from __future__ import annotations

import ast
from functools import cached_property

from torchmigrate.patterns import pattern
from torchmigrate.semantics.flow.domain import UNKNOWN, Domain, Values
from torchmigrate.semantics.flow.steps import EACH, Path, Step

_A_NUMBER = -1  # of Python: arithmetic with a tensor has the dimensions of the tensor
_FACTORIES = frozenset("zeros ones empty rand randn".split())
_SHAPED = frozenset("view reshape permute".split())
_MATRICES = frozenset("eye mm addmm vander cov".split())
# Of all elements, if no dimension is given.
_REDUCTIONS = frozenset("sum mean prod max min std var norm argmax argmin all any median logsumexp".split())
_SAME = frozenset("contiguous clone detach float double half long int bool byte cuda cpu to type".split())
_RESHAPES_ITSELF = ("unsqueeze_", "squeeze_", "resize_", "resize_as_", "set_")
_LOSSES = pattern(
    r"torch\.nn\.(functional\.\w*(loss|entropy\w*|kl_div)|(?!AdaptiveLogSoftmaxWithLoss)\w+Loss)"
)
_MOST_OF_LOSS = 4  # arguments: later ones may say that a loss has an element for each sample
_UNKNOWN: Values[int] = frozenset([UNKNOWN])


class Ranks(Domain[int]):
    """The numbers of dimensions of tensors."""

    def rank(self, node: ast.expr) -> int | None:
        """The number of dimensions of a tensor; None if it is not known, or no tensor."""
        found = self.of(node) - {_A_NUMBER}
        (only,) = found if len(found) == 1 else (None,)
        if not isinstance(only, int) or (self._reshaped and self._reshaped & self.flow.origins(node)):
            return None
        return only

    def start(self, node: ast.AST) -> int | None:
        if isinstance(node, ast.Constant):
            return _A_NUMBER if type(node.value) in (int, float) else None
        if not isinstance(node, ast.Call):
            return None
        owner, _, last = (self.flow.names.qualified(node.func) or "").rpartition(".")
        if last in _MATRICES and owner in ("torch", "torch.Tensor"):
            return 2
        if not owner and isinstance(node.func, ast.Attribute) and node.func.attr in ("mm", "addmm"):
            return 2  # of whatever is a tensor
        if owner == "torch.Tensor":
            if last in _REDUCTIONS:
                return 0 if not node.args and not node.keywords else None
            return sizes_given(node) if last in _SHAPED else None
        if owner == "torch" and last in _FACTORIES:
            return sizes_given(node)
        if owner == "torch" and last in _REDUCTIONS:
            plain = len(node.args) == 1 and not isinstance(node.args[0], ast.Starred) and not node.keywords
            return 0 if plain else None
        if owner == "torch" and last == "arange":
            return 1
        return _nesting(node.args[0]) if owner == "torch" and last == "tensor" and node.args else None

    def through(self, node: ast.AST) -> Values[int]:
        if isinstance(node, (ast.BinOp, ast.AugAssign)) and not isinstance(node.op, ast.MatMult):
            sides = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.target, node.value)
            one, other = map(self.of, sides)
            known = {max(a, b) for a in one if isinstance(a, int) for b in other if isinstance(b, int)}
            return frozenset([*known, *(item for item in one | other if not isinstance(item, int))])
        if isinstance(node, ast.Call) and self._is_loss(node):
            return frozenset([0])
        like = shaped_like(node)
        return self.of(like) if like is not None else _UNKNOWN

    def part(self, node: ast.AST, path: Path) -> Values[int]:
        if not all(isinstance(key, int) or key is EACH for key in path):
            return _UNKNOWN
        ranks = self.of(node)
        return frozenset(
            rank if not isinstance(rank, int) else rank - len(path) if rank >= len(path) else UNKNOWN
            for rank in ranks
        )

    def _is_loss(self, call: ast.Call) -> bool:
        """Whether a call gives the mean or the sum of a loss: of a function, or of a layer."""
        for step in self.flow.origins(call.func):
            layer = step.node if isinstance(step.node, ast.Call) and not step.path else None
            name = self.flow.names.qualified(layer.func if layer is not None else call.func) or ""
            given = [*call.keywords, *(layer.keywords if layer is not None else ())]
            if (
                _LOSSES.fullmatch(name) is None
                or name.startswith("torch.nn.functional.") is (layer is not None)
                or (layer is not None and len(layer.args) > 1)
                or len(call.args) >= _MOST_OF_LOSS
                or any(item.arg in (None, "reduction", "reduce") for item in given)
            ):
                return False
        return True

    @cached_property
    def _reshaped(self) -> frozenset[Step]:
        """What makes the tensors that the file gives other dimensions in place."""
        places = [place for name in _RESHAPES_ITSELF for place in self.flow.index.attributes(name)]
        return frozenset().union(*[self.flow.origins(place.value) for place in places])


def shaped_like(node: ast.AST) -> ast.expr | None:
    """The operand whose shape an expression has: `x` of `x.data`, `x.cpu()`, `-x` and `x / 2`."""
    if isinstance(node, ast.Attribute):
        return node.value if node.attr == "data" else None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.value if node.func.attr in _SAME else None
    if isinstance(node, ast.UnaryOp):
        return node.operand if isinstance(node.op, ast.USub) else None
    if isinstance(node, ast.BinOp):
        numbers = [isinstance(side, ast.Constant) for side in (node.left, node.right)]
        return node.left if numbers[1] else node.right if numbers[0] else None
    return None


def _nesting(node: ast.expr) -> int | None:
    """How deep the lists are in which a number stands."""
    if isinstance(node, ast.UnaryOp):
        node = node.operand
    if isinstance(node, ast.Constant):
        return 0 if isinstance(node.value, (int, float, complex)) else None
    if not isinstance(node, (ast.List, ast.Tuple)) or not node.elts:
        return None
    inner = _nesting(node.elts[0])
    return None if inner is None else inner + 1


def sizes_given(node: ast.Call) -> int | None:
    """How many sizes are given; a single argument that is not a number may hold any number of them."""
    sizes = node.args
    if len(sizes) == 1 and isinstance(sizes[0], (ast.Tuple, ast.List)):
        sizes = sizes[0].elts
    elif len(sizes) == 1 and not _is_number(sizes[0]):
        return None
    if not sizes or any(isinstance(item, ast.Starred) for item in sizes):
        return None
    return len(sizes)


def _is_number(node: ast.expr) -> bool:
    return isinstance(node.operand if isinstance(node, ast.UnaryOp) else node, ast.Constant)
