"""Which statements go under one `with torch.no_grad():`, and whether they may."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from torchmigrate.codemods.base.unclear import Unclear
from torchmigrate.codemods.volatile.flow import NONE, STORES, Flow, FreeNames, Labels
from torchmigrate.patterns import pattern
from torchmigrate.rewrite.placing import inside_one
from torchmigrate.semantics.flow.mentions import Spot, blocks
from torchmigrate.source.trees import children, walk

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


def extents(flow: Flow, computed: Sequence[tuple[Spot, Labels]]) -> Iterator[list[Extent]]:
    """The extents that hold every statement that computes, the most readable choice first.

    First, all statements that compute from one source are in one extent, with the statement that made it;
    then without that statement; then only statements that already follow each other. Neighbours are one.

    Args:
        computed: these statements, with the sources.
    """
    if len(computed) > _MOST:
        raise Unclear("the results are used in too many places")
    groups: list[tuple[Labels, list[Spot]]] = []
    for spot, labels in computed:
        groups = _joined(groups, labels, [spot])
    computing = NONE.union(*(labels for labels, _ in groups))
    complete = groups
    for spot, labels in flow.made.values():
        if labels & computing:
            complete = _joined(complete, labels & computing, [spot])
    yield _apart(complete)
    yield _apart(groups)
    yield _apart([(labels, [spot]) for spot, labels in computed])


def _apart(groups: Sequence[tuple[Labels, list[Spot]]]) -> list[Extent]:
    """One extent for each group; those that touch are one."""
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
    inside = sorted(inside_one(spots), key=lambda spot: spot.index)
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
    if not _trains(body):
        outside &= _escaping(body, flow.free_names)
    for statement in _all(extent.statements):
        if isinstance(statement, _FUNCTIONS):
            continue
        line = f"line {statement.lineno}"
        touched = id(statement) in flow.computed or id(statement) in flow.made
        records = False
        for node in own_nodes(statement):
            if isinstance(node, (ast.Yield, ast.YieldFrom, ast.Await)):
                raise Unclear(f"{line}: a generator would leak `no_grad` to its caller")
            if isinstance(node, ast.Call):
                name = _last(node.func)
                if name in _TRAINS and always:
                    raise Unclear(
                        f"{line}: `{name}()` is called between the statements that use the variable"
                    )
                records = records or not _is_harmless(node)
            elif isinstance(node, ast.BinOp) and isinstance(statement, (ast.Assign, ast.AugAssign)):
                records = records or "loss" in ast.unparse(statement)
        others = flow.others.get(id(statement), ())
        if any(
            isinstance(node, ast.Call) and not _is_harmless(node) for item in others for node in walk(item)
        ):
            raise Unclear(f"{line} also computes something else that may need gradients")
        if isinstance(statement, (ast.AsyncFor, ast.AsyncWith)):
            raise Unclear(f"{line}: other code runs in between")
        if not touched and records and not _stays(statement, outside):
            raise Unclear(f"{line} may need gradients, and is between the statements that use the variable")


def _stays(statement: ast.stmt, outside: set[str]) -> bool:
    """Whether what a statement computes is not used outside of the extent."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in STORES:
        return getattr(call.func.value, "id", "self") not in outside | {"self"}
    if isinstance(statement, (ast.If, ast.While, ast.For, ast.With, ast.Try, ast.Assert, ast.Expr)):
        return True  # its own expressions only
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, (ast.AugAssign, ast.AnnAssign)):
        targets = [statement.target]
    else:
        return False
    return all(
        isinstance(node, (ast.Name, ast.Tuple, ast.List, ast.Starred, ast.expr_context))
        and getattr(node, "id", None) not in outside
        for target in targets
        for node in walk(target)
    )


def _trains(body: Sequence[ast.stmt]) -> bool:
    """Whether something in a function computes gradients, or hands what it has to a call that may."""
    return any(
        isinstance(node, ast.Call) and (_last(node.func) in _TRAINS or _LEARNS.search(_last(node.func)))
        for statement in body
        for node in walk(statement)
    )


def _escaping(body: Sequence[ast.stmt], free_names: FreeNames) -> set[str]:
    """The names of a function that may hold a part of what it returns, stores or yields."""
    found: set[str] = set()
    flows: list[tuple[set[str], set[str]]] = []
    for statement in _all(body):
        if isinstance(statement, _FUNCTIONS):
            found |= free_names(statement)
        elif isinstance(statement, (ast.Global, ast.Nonlocal)):
            found.update(statement.names)
        elif isinstance(statement, ast.Return):
            found |= _names(statement)
        elif isinstance(statement, (ast.For, ast.AsyncFor)):
            flows.append((_names(statement.target), _names(statement.iter)))
        for node in own_nodes(statement):
            if isinstance(node, (ast.Yield, ast.YieldFrom)):
                found |= _names(node)
            elif isinstance(node, ast.NamedExpr):
                flows.append(({node.target.id}, _names(node.value)))
            elif isinstance(node, ast.withitem) and node.optional_vars is not None:
                flows.append((_names(node.optional_vars), _names(node.context_expr)))
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                flows.append((_names(node.func.value), _names(node)))  # `x.append(y)`
        for node in walk(statement):
            if isinstance(node, ast.Lambda):
                found |= free_names(node)
        if isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign)) and statement.value is not None:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            for target in targets:
                if any(isinstance(node, ast.Attribute) for node in walk(target)):
                    found |= _names(statement.value)
                flows.append((_names(target), _names(statement.value)))
    while more := [sources for targets, sources in flows if targets & found and not sources <= found]:
        found.update(*more)
    return found


def _names(node: ast.AST) -> set[str]:
    return {inner.id for inner in walk(node) if isinstance(inner, ast.Name)}


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
        todo.extend(children(node))
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
        for child in children(node):
            if not isinstance(child, (ast.stmt, ast.Lambda)):
                yield child
                todo.append(child)


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
