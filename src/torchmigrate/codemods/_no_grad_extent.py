"""Which statements go under one `with torch.no_grad():`, and whether they may."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torchmigrate.codemods._mentions import Spot, blocks
from torchmigrate.codemods._no_grad_flow import Flow, Labels
from torchmigrate.codemods._no_grad_sites import Unclear
from torchmigrate.codemods._placing import together

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_TRAINS = frozenset("backward step zero_grad fit train_epoch train_one_epoch train_step".split())
# Calls that compute nothing that autograd could record, whatever they are called on.
_HARMLESS = frozenset(
    """
    len int float bool str print range enumerate zip list tuple dict set sorted reversed min max sum abs
    round open isinstance getattr hasattr iter next map filter type format join append extend insert
    update add write flush close split strip eval train size dim item numpy tolist numel data from_numpy
    zeros ones empty full arange LongTensor FloatTensor ByteTensor Tensor tensor Variable cuda cpu time
    perf_counter info debug warning items keys values get pop copy_ resize_ fill_ zero_ transpose_ t
    contiguous add_scalar add_image save_image makedirs savefig imshow set_description set_postfix tqdm
    is_available seek
    """.split()
)
_MODULES = frozenset(["np", "numpy", "math", "time", "os", "sys", "random", "plt", "logging", "json", "cv2"])


@dataclass(slots=True)
class Extent:
    """Neighbouring statements of a block, and the sources whose results they compute with."""

    block: list[ast.stmt]
    first: Spot
    last: Spot
    labels: Labels

    @property
    def statements(self) -> list[ast.stmt]:
        return self.block[self.first.index : self.last.index + 1]

    def holds(self, spot: Spot) -> bool:
        """Whether a statement is one of them, or stands in one."""
        inner = spot.within(self.block)
        return inner is not None and self.first.index <= inner.index <= self.last.index


def extents(flow: Flow) -> list[Extent]:
    """The smallest extents that hold every statement that computes; neighbours are one."""
    groups: list[tuple[Labels, list[Spot]]] = []
    for spot, labels in flow.computed.values():
        groups = _joined(groups, labels, [spot])
    computing = frozenset[int]().union(*(labels for labels, _ in groups))
    for spot, labels in flow.made.values():
        if labels & computing:
            groups = _joined(groups, labels & computing, [spot])
    found = [_extent(labels, spots) for labels, spots in groups]
    merged = True
    while merged:
        merged = False
        for one in found:
            other = next((item for item in found if item is not one and _touch(one, item)), None)
            if other is not None:
                spots = [one.first, one.last, other.first, other.last]
                found = [item for item in found if item is not one and item is not other]
                found.append(_extent(one.labels | other.labels, spots))
                merged = True
                break
    return found


def _joined(
    groups: list[tuple[Labels, list[Spot]]], labels: Labels, spots: list[Spot]
) -> list[tuple[Labels, list[Spot]]]:
    apart: list[tuple[Labels, list[Spot]]] = []
    for have, there in groups:
        if have & labels:
            labels, spots = labels | have, [*there, *spots]
        else:
            apart.append((have, there))
    return [*apart, (labels, spots)]


def _extent(labels: Labels, spots: Sequence[Spot]) -> Extent:
    inside = sorted(together(spots), key=lambda spot: spot.index)
    return Extent(inside[0].block, inside[0], inside[-1], labels)


def _touch(one: Extent, other: Extent) -> bool:
    """Whether two extents overlap, or follow each other."""
    if one.block is other.block:
        return one.first.index <= other.last.index + 1 and other.first.index <= one.last.index + 1
    return one.holds(other.first) or other.holds(one.first)


def check_extent(extent: Extent, flow: Flow, body: Sequence[ast.stmt], *, always: bool) -> None:
    """Make sure that nothing in an extent needs the gradients that it would not record.

    Args:
        body: the statements of the function.
        always: whether gradients are never recorded there; otherwise the same flag that made the variable
            volatile decides.

    Raises:
        Unclear: something does, or may.
    """
    outside = _loads(body, set(map(id, extent.statements)))
    for statement in _all(extent.statements):
        if isinstance(statement, _FUNCTIONS):
            continue
        line = f"line {statement.lineno}"
        touched = id(statement) in flow.computed or id(statement) in flow.made
        records = False
        for node in own_nodes(statement):
            if isinstance(node, ast.Yield | ast.YieldFrom | ast.Await):
                raise Unclear(f"{line}: a generator would carry `no_grad` to its caller")
            if isinstance(node, ast.Call):
                name = _last(node.func)
                if name in _TRAINS and always:
                    raise Unclear(f"{line}: `{name}()` is between the statements that compute with it")
                records = records or not _is_harmless(node)
            elif isinstance(node, ast.BinOp) and isinstance(statement, ast.Assign | ast.AugAssign):
                records = records or "loss" in ast.unparse(statement)
        if isinstance(statement, ast.AsyncFor | ast.AsyncWith):
            raise Unclear(f"{line}: other code runs meanwhile")
        if not touched and records and not _stays(statement, outside):
            raise Unclear(f"{line} may need gradients, and is between the statements that compute with it")


def _stays(statement: ast.stmt, outside: set[str]) -> bool:
    """Whether what a statement computes is not used outside of the extent."""
    if isinstance(statement, ast.If | ast.While | ast.For | ast.With | ast.Try | ast.Assert | ast.Expr):
        return True  # its own expressions only
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AugAssign | ast.AnnAssign):
        targets = [statement.target]
    else:
        return False
    return all(
        isinstance(node, ast.Name | ast.Tuple | ast.List | ast.Starred | ast.expr_context)
        and getattr(node, "id", None) not in outside
        for target in targets
        for node in ast.walk(target)
    )


def _loads(body: Sequence[ast.stmt], but: set[int]) -> set[str]:
    """The names that are read in some statements, but not inside of others."""
    found: set[str] = set()
    todo: list[ast.AST] = list(body)
    while todo:
        node = todo.pop()
        if id(node) in but:
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found.add(node.id)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
        todo.extend(ast.iter_child_nodes(node))
    return found


def _all(statements: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements, and those of their blocks; what is defined there is not run there."""
    for statement in statements:
        yield statement
        if not isinstance(statement, _FUNCTIONS):
            for block in blocks(statement):
                yield from _all(block)


def own_nodes(statement: ast.stmt) -> Iterator[ast.AST]:
    """The expressions of a statement, without those of statements and lambdas in it."""
    todo: list[ast.AST] = [statement]
    while todo:
        node = todo.pop()
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, (ast.stmt, ast.Lambda)):
                yield child
                todo.append(child)


def stored_names(statements: Sequence[ast.stmt]) -> set[str]:
    """The names that some statements bind."""
    return {
        node.id
        for statement in statements
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    }


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _is_harmless(call: ast.Call) -> bool:
    if _last(call.func) in _HARMLESS:
        return True
    root = call.func
    while isinstance(root, ast.Attribute | ast.Call | ast.Subscript):
        if isinstance(root, ast.Attribute) and root.attr == "data":
            return True  # what is computed from a tensor's data is no part of a graph
        root = root.func if isinstance(root, ast.Call) else root.value
    return isinstance(root, ast.Name) and root.id in _MODULES
