"""Which statements go under one `with torch.no_grad():`, and whether they may."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from torchmigrate.codemods.base.unclear import Unclear
from torchmigrate.codemods.volatile.values import NONE, Computed, Labels, own_nodes
from torchmigrate.patterns import pattern
from torchmigrate.rewrite.placing import inside_one
from torchmigrate.semantics.flow.mentions import Spot, blocks
from torchmigrate.semantics.model import Scope
from torchmigrate.source.trees import walk

_MOST = 250  # statements: more do not fit into a few blocks of a few lines
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_TRAINS = frozenset("backward step zero_grad fit train_epoch train_one_epoch train_step".split())
_LEARNS = pattern(r"optim|fit|learn|^train_|^grad$|closure", re.IGNORECASE)
# Calls that compute nothing that autograd could record, whatever they are called on.
_HARMLESS = frozenset(
    """
    len int float bool str print range enumerate zip list tuple dict set sorted reversed min max sum abs
    round open isinstance getattr hasattr iter next map filter type format join append extend insert
    update add write flush close split strip eval train size dim item numpy tolist numel data from_numpy
    zeros ones empty full arange LongTensor FloatTensor ByteTensor Tensor tensor Variable cuda cpu time
    perf_counter info debug warning items keys values get pop copy_ resize_ fill_ zero_ transpose_ t
    contiguous add_scalar add_image save_image makedirs savefig imshow set_description set_postfix tqdm
    is_available seek xrange
    """.split()
)
_MODULES = frozenset(["np", "numpy", "math", "time", "os", "sys", "random", "plt", "logging", "json", "cv2"])


class Extent(Struct):
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


_Group = tuple[Labels, list[Spot]]


def extents(computed: Sequence[_Group], made: Sequence[_Group]) -> Iterator[list[Extent]]:
    """The extents that hold every statement that computes, the most readable choice first.

    First, all statements that compute from one source are in one extent, with the statement that made it;
    then only statements that already follow each other. Neighbours are one.

    Args:
        computed: these statements, with the sources.
        made: those that made the sources.
    """
    if len(computed) > _MOST:
        raise Unclear("the results are used in too many places")
    computing = NONE.union(*(labels for labels, _ in computed))
    yield _apart(_joined([*computed, *((labels & computing, spots) for labels, spots in made)]))
    yield _apart(computed)


def _joined(groups: Sequence[_Group]) -> list[_Group]:
    """The groups, those with a common source as one."""
    found: list[_Group] = []
    for labels, spots in groups:
        apart = [group for group in found if not group[0] & labels]
        for have, there in found:
            if have & labels:
                labels, spots = labels | have, [*there, *spots]
        found = [*apart, (labels, spots)] if labels else found
    return found


def _apart(groups: Sequence[_Group]) -> list[Extent]:
    """One extent for each group; those that touch are one."""
    todo = [_extent(labels, spots) for labels, spots in groups]
    found: list[Extent] = []
    while todo:
        one = todo.pop(0)
        other = next((item for item in found if _touch(one, item)), None)
        if other is None:
            found.append(one)
        else:
            found.remove(other)
            todo.insert(0, _extent(one.labels | other.labels, [one.first, one.last, other.first, other.last]))
    return found


def _extent(labels: Labels, spots: Sequence[Spot]) -> Extent:
    inside = sorted(inside_one(spots), key=lambda spot: spot.index)
    return Extent(inside[0].block, inside[0], inside[-1], labels)


def _touch(one: Extent, other: Extent) -> bool:
    """Whether two extents overlap, or follow each other."""
    if one.block is other.block:
        return one.first.index <= other.last.index + 1 and other.first.index <= one.last.index + 1
    return one.holds(other.first) or other.holds(one.first)


def check_extent(extent: Extent, computed: Computed, scope: Scope, *, always: bool) -> None:
    """Make sure that nothing in an extent needs the gradients that it would not record.

    Args:
        computed: what is computed from the sources.
        always: whether gradients are never recorded there; otherwise the same flag that made the variable
            volatile decides.

    Raises:
        Unclear: something does, or may.
    """
    inside = list(_all(extent.statements))
    others: dict[ast.AST, int] = {}
    touched = computed.in_statements()
    for statement in inside:
        line = statement.lineno
        if isinstance(statement, (ast.AsyncFor, ast.AsyncWith)):
            raise Unclear.at(line, "other code runs in between")
        for node in own_nodes(statement):
            if isinstance(node, (ast.Yield, ast.YieldFrom, ast.Await)):
                raise Unclear.at(line, "a generator would leak `no_grad` to its caller")
            if isinstance(node, ast.Call) and _last(node.func) in _TRAINS and always:
                raise Unclear.at(
                    line, f"`{_last(node.func)}()` is called between the statements that use the variable"
                )
        for part in _parts(statement) if statement in touched else [statement]:
            others.update((node, line) for node in own_nodes(part) if _records(node, statement))
    others = {node: line for node, line in others.items() if not computed.labels(node)}
    needed = _needed(others, computed, scope, set(inside))
    if needed:
        raise Unclear(
            f"line {min(needed)} may need gradients, and is between the statements that use the variable",
            line=min(needed),
        )


def _needed(others: Mapping[ast.AST, int], computed: Computed, scope: Scope, inside: set[ast.stmt]) -> Labels:
    """The lines of some expressions that leave the function, or may be trained outside of an extent."""
    if not others:
        return NONE
    values = Computed(computed.flow, computed.function, others, but=computed)
    found = NONE.union(*(labels for _, labels in values.leaves(scope).values()))
    if any(
        isinstance(node, ast.Call) and (_last(node.func) in _TRAINS or _LEARNS.search(_last(node.func)))
        for statement in computed.function.statements
        for node in own_nodes(statement)
    ):
        outside = [item for item in values.in_statements().items() if item[0] not in inside]
        found = found.union(*(labels for _, labels in outside))
    return found


def _parts(statement: ast.stmt) -> list[ast.expr]:
    """The values that `a, b = ...` gives apart from each other."""
    value = getattr(statement, "value", None)
    return value.elts if isinstance(statement, ast.Assign) and isinstance(value, ast.Tuple) else []


def _records(node: ast.AST, statement: ast.stmt) -> bool:
    """Whether an expression may record gradients."""
    if isinstance(node, ast.BinOp):
        return isinstance(statement, (ast.Assign, ast.AugAssign)) and "loss" in ast.unparse(statement)
    return isinstance(node, ast.Call) and not _is_harmless(node)


def _all(statements: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements, and those of their blocks; what is defined there is not run there."""
    for statement in statements:
        if not isinstance(statement, _FUNCTIONS):
            yield statement
            for block in blocks(statement):
                yield from _all(block)


def stored_names(statements: Sequence[ast.stmt]) -> set[str]:
    """The names that some statements bind."""
    return {
        node.id
        for statement in statements
        for node in walk(statement)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    }


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _is_harmless(call: ast.Call) -> bool:
    if _last(call.func) in _HARMLESS:
        return True
    root = call.func
    while isinstance(root, (ast.Attribute, ast.Call, ast.Subscript)):
        if isinstance(root, ast.Attribute) and root.attr == "data":
            return True  # what is computed from a tensor's data is not part of a graph
        root = root.func if isinstance(root, ast.Call) else root.value
    return isinstance(root, ast.Name) and root.id in _MODULES
