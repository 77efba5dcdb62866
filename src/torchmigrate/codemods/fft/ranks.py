"""How many dimensions tensors have, where the code says it: `b, c, h, w = x.shape`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from torchmigrate.codemods.fft.calls import Transform
from torchmigrate.codemods.fft.shapes import operation
from torchmigrate.semantics.flow.domain import UNKNOWN, Domain, Values
from torchmigrate.semantics.flow.values import ValueFlow
from torchmigrate.source.trees import walk

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_MORE = {"rfft": 1, "fft": 0, "ifft": 0, "irfft": -1}  # dimensions than the input
_KEEP = frozenset("clone contiguous detach cuda cpu requires_grad_ flip permute transpose".split())
_SHAPED = frozenset(["view", "reshape", "permute"])
_UNKNOWN: Values[int] = frozenset([UNKNOWN])


class Ranks(Domain[int]):
    """The numbers of dimensions that tensors have.

    Args:
        transforms: the calls of the old functions.
    """

    def __init__(self, flow: ValueFlow, transforms: Mapping[ast.AST, Transform]) -> None:
        super().__init__(flow)
        self._transforms = transforms
        self._unpacked: dict[str, list[tuple[ast.Name, ast.stmt, int]]] = {}

    def is_last(self, node: ast.expr, dim: int | float | None) -> bool:
        """Whether a dimension of a tensor, which has it, surely is its last one."""
        if dim is None or dim < 0:
            return dim == -1
        return {rank for rank in self.of(node) if not isinstance(rank, int) or rank > dim} == {dim + 1}

    def is_before_last(self, node: ast.expr, dim: int) -> bool:
        """Whether a dimension of a pair surely is not its last one."""
        return dim == 0 or all(isinstance(rank, int) and dim < rank - 1 for rank in self.of(node))

    def start(self, node: ast.AST) -> int | None:
        if not isinstance(node, ast.Name):
            return None
        around = self.flow.index.reaching_around(node)
        seen = around.of(node)
        if node.id not in self._unpacked:
            self._unpacked[node.id] = list(self._sizes_unpacked(node.id))
        for owner, statement, count in self._unpacked[node.id]:
            if seen and around.of(owner) == seen and self._is_reached(statement, node):
                return count
        return None

    def through(self, node: ast.AST) -> Values[int]:
        if isinstance(node, ast.Subscript):
            items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            return self.of(node.value) if all(isinstance(item, ast.Slice) for item in items) else _UNKNOWN
        if not isinstance(node, ast.Call) or any(isinstance(item, ast.Starred) for item in node.args):
            return _UNKNOWN
        transform = self._transforms.get(node)
        if transform is not None:
            if transform.kind == "stft":
                return frozenset([3, 4])
            more = _MORE.get(transform.kind)
            ranks = self.of(transform.input) if more is not None else _UNKNOWN
            return frozenset(rank + (more or 0) if isinstance(rank, int) else rank for rank in ranks)
        qualified = self.flow.names.qualified(node.func)
        name, operands = operation(node, qualified)
        if name == "cat" and node.args and isinstance(node.args[0], (ast.List, ast.Tuple)):
            return self.of(node.args[0].elts[0]) if node.args[0].elts else _UNKNOWN
        if not isinstance(node.func, ast.Attribute) or qualified not in (None, f"torch.Tensor.{name}"):
            return _UNKNOWN
        if name in _SHAPED and len(node.args) > 1:
            return frozenset([len(node.args)])
        return self.of(operands[0]) if name in _KEEP else _UNKNOWN

    def _sizes_unpacked(self, name: str) -> Iterator[tuple[ast.Name, ast.stmt, int]]:
        """Where the sizes of a variable are unpacked, of `x.shape` or `x.size()`, and how many there are."""
        parents = self.flow.names.parents
        for owner in self.flow.index.named(name):
            sizes = parents.get(owner)
            if not isinstance(sizes, ast.Attribute) or sizes.attr not in ("shape", "size"):
                continue
            value = sizes if sizes.attr == "shape" else parents.get(sizes)
            statement = parents.get(value) if value is not None else None
            if not isinstance(statement, ast.Assign) or statement.value is not value:
                continue
            if isinstance(value, ast.Call) and (value.args or value.keywords):
                continue
            target = statement.targets[0]
            starred = any(isinstance(item, ast.Starred) for item in walk(target))
            if isinstance(target, (ast.Tuple, ast.List)) and not starred:
                yield owner, statement, len(target.elts)

    def _is_reached(self, statement: ast.stmt, name: ast.Name) -> bool:
        """Whether a statement runs in every call in which a name is read."""
        parents = self.flow.names.parents
        function = parents.get(statement)
        if not isinstance(function, _FUNCTIONS):
            return False  # in a branch, which may be about this number
        if statement.lineno < name.lineno:
            return True
        leaves = (ast.Return, ast.Raise)
        return not any(
            isinstance(inner, leaves) and parents.get(inner) is not function for inner in walk(function)
        )
