"""What is computed from some expressions of a function, and where that goes.

Made for the old `Variable(x, volatile=True)`: whatever was computed from it recorded no gradients. A value
leaves autograd at `.data`, `.item()`, `.size()` and similar names. What only picks or moves (`x[0]`,
`x.cuda()`, `zip(xs, ys)`) computes nothing that could be recorded: its result needs no gradient if the object
does not.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping

from torchmigrate.semantics.flow.domain import NOTHING, UNKNOWN, Domain, Values
from torchmigrate.semantics.flow.functions import Function
from torchmigrate.semantics.flow.steps import EACH, VALUE, Path, Step, Steps
from torchmigrate.semantics.flow.values import ValueFlow
from torchmigrate.semantics.model import Scope
from torchmigrate.source.trees import children, walk

Labels = frozenset[int]  # numbers of the expressions that something is computed from

NONE: Labels = frozenset()
RETURNED = "it is returned"
BACKWARD = "`backward()` is called on the result"
STORED = "it is stored in "
_Def = (ast.FunctionDef, ast.AsyncFunctionDef)
_PLAIN_ATTRIBUTES = frozenset("data shape dtype device is_cuda requires_grad volatile grad_fn ndim".split())
_PLAIN_METHODS = frozenset(
    "item detach numpy tolist size dim numel nelement is_contiguous get_device backward".split()
)
_PLAIN_FUNCTIONS = frozenset(
    "len int float bool str repr print isinstance type id range hasattr callable format".split()
)
_MOVES = frozenset(
    """
    cuda cpu to type float double half long int byte contiguous view t transpose permute unsqueeze squeeze
    expand repeat clone items keys values get pop copy
    """.split()
)
_MOVING_FUNCTIONS = frozenset("enumerate zip list tuple dict set reversed iter next".split())
_COLLECTS = frozenset("append extend insert appendleft setdefault".split())
_STORES = _COLLECTS | frozenset("add update put".split())
_IDENTITY = (ast.Is, ast.IsNot, ast.In, ast.NotIn)


class Computed(Domain[int]):
    """Which of some expressions of a function another one is computed from, as long as it is part of a graph.

    Args:
        sources: the expressions, with their numbers.
        ended: reads of variables that are not followed.
        but: other expressions: what is computed with those is not followed.
    """

    most = 1000

    def __init__(
        self,
        flow: ValueFlow,
        function: Function,
        sources: Mapping[ast.AST, int],
        ended: Collection[ast.AST] = (),
        but: Computed | None = None,
    ) -> None:
        super().__init__(flow)
        self.function = function
        self.home = function.node if isinstance(function.node, _Def) else None
        self.sources, self.ended, self._but = sources, ended, but
        self._given: dict[str, list[ast.expr]] = {}  # to attributes, and to items of containers
        for statement in function.statements:
            for target, value in stores(statement):
                self._given.setdefault(ast.unparse(whole(target)), []).append(value)

    def labels(self, *nodes: ast.AST) -> Labels:
        """The numbers of the sources that one of some expressions is computed from; all of them if it is
        not known."""
        found = NOTHING.union(*[self.of(node) for node in nodes])
        if UNKNOWN in found:
            return frozenset(self.sources.values())
        return frozenset(item for item in found if isinstance(item, int))

    def start(self, node: ast.AST) -> int | None:
        return self.sources.get(node)

    def steps(self, step: Step) -> Steps:
        node = step.node
        if node in self.ended or (isinstance(node, ast.Call) and not step.path):
            return ()
        found = [
            each
            for each in self.flow.steps(step)
            if each.node is not None and self.flow.index.home_of(each.node) is self.home
        ]
        if self._given and isinstance(node, (ast.Name, ast.Attribute)) and not _is_plain(node):
            given = list(self._given_before(node, ast.unparse(node)))
            if given and not found and isinstance(node, ast.Attribute):
                given.append(node.value)
            found += map(Step, given)
        return tuple(found)

    def through(self, node: ast.AST) -> Values[int]:
        if isinstance(node, ast.Call):
            return self._of_call(node)
        if isinstance(node, ast.Attribute):
            return NOTHING if _is_plain(node) else self.of(node.value)
        if isinstance(node, (ast.List, ast.Tuple, ast.Set, ast.Dict)):
            items = self.flow.steps(Step(node, (VALUE if isinstance(node, ast.Dict) else EACH,)))
            return self.join(*[step.node for step in items if step.node is not None], *children(node))
        if isinstance(node, ast.DictComp):
            return self.join(node.key, node.value)
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
            return self.of(node.elt)
        if isinstance(node, ast.withitem):
            return self.of(node.context_expr)
        if (
            isinstance(node, (ast.Name, ast.JoinedStr, ast.Lambda, ast.stmt))
            or (isinstance(node, ast.Compare) and all(isinstance(kind, _IDENTITY) for kind in node.ops))
            or (isinstance(node, ast.BinOp) and _is_text(node.left))
        ):
            return self._mixed(node.target, node.value) if isinstance(node, ast.AugAssign) else NOTHING
        return self._mixed(*children(node))

    def part(self, node: ast.AST, path: Path) -> Values[int]:
        return self.of(node)

    def _of_call(self, node: ast.Call) -> Values[int]:
        function = node.func
        arguments = [*node.args, *(item.value for item in node.keywords)]
        if not isinstance(function, ast.Attribute):
            plain = getattr(function, "id", "") in _PLAIN_FUNCTIONS
            return NOTHING if plain else self._mixed(function, *arguments)
        if function.attr in _PLAIN_METHODS | _COLLECTS or _is_text(function.value):
            return NOTHING
        owner = self.of(function)
        if isinstance(function.value, ast.Name):  # a method may compute with what its object holds
            start = f"{function.value.id}."
            owner |= self.join(
                *(
                    value
                    for key in self._given
                    if key.startswith(start)
                    for value in self._given_before(node, key)
                )
            )
        return (
            NOTHING if function.attr in _STORES and not owner else owner | self._mixed(function, *arguments)
        )

    def _given_before(self, node: ast.expr, key: str) -> Iterator[ast.expr]:
        return (value for value in self._given.get(key, ()) if value.lineno < node.lineno)

    def _mixed(self, *nodes: ast.AST) -> Values[int]:
        """What an operation gives; nothing if an operand comes from nothing but the other expressions."""
        other = self._but is not None and any(
            self._but.labels(node) and not self.labels(node) for node in nodes
        )
        return NOTHING if other else self.join(*nodes)

    # ---- where the values go -----------------------------------------------------------------------------

    def moves(self, call: ast.Call) -> bool:
        """Whether a call that gives something of a source computes nothing."""
        if not isinstance(call.func, ast.Attribute):
            return getattr(call.func, "id", "") in _MOVING_FUNCTIONS
        return call.func.attr in _MOVES and not self.labels(*call.args, *call.keywords)

    def in_statements(self) -> dict[ast.stmt, Labels]:
        """The statements that compute something, with the sources."""
        found: dict[ast.stmt, Labels] = {}
        for statement in self.function.statements:
            labels = NONE
            for node in own_nodes(statement):
                computes = isinstance(node, (ast.BinOp, ast.AugAssign))
                if isinstance(node, ast.Call):
                    computes = node not in self.sources and not self.moves(node)
                labels |= self.labels(node) if computes else NONE
            if labels:
                found[statement] = labels
        return found

    def joined(self) -> Labels:
        """The sources whose first computed result has an argument from elsewhere as well."""
        first: dict[int, bool] = {}
        calls = [
            node
            for statement in self.function.statements
            for node in own_nodes(statement)
            if isinstance(node, ast.Call) and node not in self.sources
        ]
        # In the order in which they end: arguments are computed before the call.
        for call in sorted(calls, key=lambda call: (call.end_lineno or 0, call.end_col_offset or 0)):
            if self.moves(call):
                continue
            others = any(
                isinstance(item, (ast.Name, ast.Attribute, ast.Call)) and not self.labels(item)
                for item in call.args
            )
            given = self.labels(*call.args, *call.keywords)
            for label in self.labels(call):
                first.setdefault(label, others and label in given)
        return frozenset(label for label, others in first.items() if others)

    def leaves(self, scope: Scope) -> dict[str, tuple[int, Labels]]:
        """What happens to values that cannot be followed, with the line and the sources."""
        found: dict[str, tuple[int, Labels]] = {}
        for what, node, value in self._ways_out(scope):
            labels = self.labels(value)
            if labels:
                line, before = found.get(what, (getattr(node, "lineno", 0), NONE))
                found[what] = line, before | labels
        return found

    def _ways_out(self, scope: Scope) -> Iterator[tuple[str, ast.AST, ast.AST]]:
        for statement in self.function.statements:
            if isinstance(statement, ast.Return) and statement.value is not None:
                yield RETURNED, statement, statement.value
            for target, value in stores(statement):
                kept = whole(target)
                if not _is_plain(kept) and not self._makes(kept):
                    yield f"{STORED}`{ast.unparse(target)}`", target, value
            for node in own_nodes(statement):
                if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "backward":
                    yield BACKWARD, node, node.func
                elif isinstance(node, (ast.Yield, ast.YieldFrom, ast.Await)) and node.value is not None:
                    yield "the result is yielded", node, node.value
                elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    if node.id in scope.globals | scope.nonlocals:
                        yield f"`{node.id}` is global", node, node
                elif isinstance(node, (*_Def, ast.ClassDef, ast.Lambda)):
                    for name in walk(node):
                        if isinstance(name, ast.Name) and self.flow.index.home_of(name) is not self.home:
                            yield f"`{name.id}` is used in a nested function", node, name

    def _makes(self, node: ast.AST) -> bool:
        """Whether a variable is given its value in the function."""
        steps = self.flow.sources(node) if isinstance(node, ast.Name) else ()
        return any(each.node and self.flow.index.home_of(each.node) is self.home for each in steps)


def stores(statement: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The attributes, containers and items that a statement gives something to, with what it gives."""
    if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and statement.value is not None:
        for target in statement.targets if isinstance(statement, ast.Assign) else [statement.target]:
            for item in target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]:
                if isinstance(item, (ast.Attribute, ast.Subscript)):
                    yield item, statement.value
    for call in own_nodes(statement):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            name = call.func.attr
            if name in _STORES or (name.endswith("_") and not name.endswith("__")):
                for value in call.args:
                    yield call.func.value, value


def whole(target: ast.expr) -> ast.expr:
    """The container of an item."""
    while isinstance(target, ast.Subscript):
        target = target.value
    return target


def own_nodes(statement: ast.AST) -> Iterator[ast.AST]:
    """A statement and its expressions, without those of statements and lambdas in it."""
    todo: list[ast.AST] = [statement]
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, ast.Lambda):
            todo += [child for child in children(node) if not isinstance(child, ast.stmt)]


def _is_plain(node: ast.AST) -> bool:
    """Whether an expression is an attribute of a variable that is not part of a graph."""
    return isinstance(node, ast.Attribute) and node.attr in _PLAIN_ATTRIBUTES


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
