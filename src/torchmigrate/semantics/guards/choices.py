"""Alternatives of one choice: an old name on one side of an `if`, and on the other what replaces it.

`if WITH_PT20: s = value.untyped_storage() / else: s = value.storage()`: nothing is known of the test, but the
code has an answer for either kind of release.
"""

from __future__ import annotations

import ast
import re
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator

from torchmigrate.patterns import pattern
from torchmigrate.semantics.formulas import UNKNOWN, is_certain
from torchmigrate.semantics.libraries import LIBRARY_ROOTS
from torchmigrate.semantics.model import Binding, BindingKind, Role, Scope, SemanticModel, Use
from torchmigrate.source.trees import block_of, children, walk

Place = tuple[int, int]  # line and column, as in the syntax tree
# A test, whether it holds on the side of the use, and from where to where the other side goes.
Side = tuple[ast.expr, bool, list[tuple[Place, Place]]]
_FAR = 200  # nodes between a use and the choice that it stands in
_MOST = 20  # uses on the other side that are looked at
_DEEPEST = 5  # parts of a test in each other
# Modules that the resolver knows so well that no test of them counts as a choice between releases.
_KNOWN_ROOTS = LIBRARY_ROOTS | sys.stdlib_module_names
# Tests of where tensors are, or whether something is given, are about no release.
_DEVICES = pattern(r"cuda|gpu|cpu|device|mps|xpu|npu|tpu|xla", re.IGNORECASE)
_ASKS = frozenset(("hasattr", "getattr"))
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_COMPARED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
_VERSION = pattern(r"v?\d+(\.\w+)*\+?\Z")


class Choices:
    """Answers for one file, computed on demand."""

    def __init__(self, names: SemanticModel) -> None:
        self.names = names
        self._by_name: dict[str, list[Use]] | None = None
        self._wanted: dict[object, list[tuple[Place, Use]]] = {}

    def has_other_side(
        self, use: Use, key: object, old: Iterable[str], wanted: Callable[[str, Use], bool]
    ) -> bool:
        """Whether the other side of a choice around `use` has the new code for the same objects.

        Args:
            key: stands for `wanted`, whose answers are kept.
            old: the names of what is used.
            wanted: whether a use is the new code by one of its names.
        """
        found = self._wanted.get(key)
        if found is None:
            found = self._wanted[key] = self._places(wanted)
        if not found:
            return False
        objects = _objects(use)
        if len(found) <= _MOST and not any(_same(use, objects, other) for _, other in found):
            return False  # without looking at what is around
        members = frozenset(name.rpartition(".")[2] for name in old)
        for test, side, others in self._sides(use.node):
            for low, high in others:
                begin, end = bisect_left(found, (low,)), bisect_left(found, (high,))
                # Those nearest to the use first.
                near = found[begin:end][-_MOST:] if low < _start(use.node) else found[begin:end][:_MOST]
                for _, other in near:
                    if _same(use, objects, other) and self._is_choice(test, side, members, other, use):
                        return True
        return False

    def _places(self, wanted: Callable[[str, Use], bool]) -> list[tuple[Place, Use]]:
        """Where the new code stands, in source order."""
        if self._by_name is None:
            self._by_name = {}
            for use in self.names.uses:
                if not use.in_string and use.role is not Role.STRING and hasattr(use.node, "lineno"):
                    for name in use.candidates:
                        self._by_name.setdefault(name, []).append(use)
        found = {
            id(use): (_start(use.node), use)
            for name, uses in self._by_name.items()
            for use in uses
            if wanted(name, use)
        }
        return sorted(found.values(), key=lambda item: item[0])

    # ---- choices around a place ------------------------------------------------------------------------

    def _sides(self, node: ast.AST) -> Iterator[Side]:
        """The choices that a node stands in."""
        parents = self.names.parents
        for _ in range(_FAR):
            outer = parents.get(node)
            if outer is None:
                return
            if isinstance(outer, ast.IfExp) and node is not outer.test:
                side = node is outer.body
                other = outer.orelse if side else outer.body
                yield outer.test, side, [(_start(other), _end(other))]
            elif isinstance(outer, ast.BoolOp) and isinstance(outer.op, ast.Or):
                # `hasattr(torch, "old") and torch.old(x) or hasattr(torch, "new") and torch.new(x)`
                if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
                    operands = (other for other in outer.values if other is not node)
                    yield node.values[0], True, [(_start(other), _end(other)) for other in operands]
            elif isinstance(outer, ast.If) and node is not outer.test:
                side = any(node is item for item in outer.body)
                mine, others = (outer.body, outer.orelse) if side else (outer.orelse, outer.body)
                ranges = [_range(others)] if others else []
                if _leaves(mine):
                    ranges += self._rest(outer)
                if ranges:
                    yield outer.test, side, ranges
            if isinstance(node, ast.stmt):
                yield from _left_before(node, block_of(outer, node))
            node = outer

    def _rest(self, node: ast.If) -> list[tuple[Place, Place]]:
        """The statements after an `if` in its block, and those after the `if` that it is an `elif` of."""
        found: ast.stmt = node
        for _ in range(_FAR):
            outer = self.names.parents.get(found)
            if outer is None:
                break
            if isinstance(outer, ast.If) and outer.orelse == [found]:
                found = outer
                continue
            block = block_of(outer, found)
            after = _end(found)
            return [(after, _end(block[-1]))] if block and block[-1] is not found else []
        return []

    # ---- tests -----------------------------------------------------------------------------------------

    def _is_choice(self, test: ast.expr, side: bool, old: frozenset[str], other: Use, use: Use) -> bool:
        """Whether a test may tell releases apart, and is not one that the guards understand."""
        new = {name.rpartition(".")[2] for name in other.candidates}
        if side or not isinstance(test, ast.BoolOp):
            asked = _asked(test)
            if asked and not asked.isdisjoint(old | new):
                return True
        said = self.names.guarded.said(test)
        if said is not UNKNOWN and (isinstance(test, (ast.BoolOp, ast.Compare)) or is_certain(said)):
            return False  # of a helper that also asks something else the author knows both answers
        return _may_tell(test, use.scope)


def _may_tell(test: ast.expr, scope: Scope, depth: int = 0) -> bool:
    """Whether a test may be one of releases: a flag, the answer of a function or a number that is compared,
    out of another module of the project. Of what this file makes itself all is known that there is."""
    if depth > _DEEPEST:
        return False
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _may_tell(test.operand, scope, depth + 1)
    if isinstance(test, ast.BoolOp):
        return all(_may_tell(part, scope, depth + 1) for part in test.values)
    if isinstance(test, ast.Compare):
        rest = [item for item in (test.left, *test.comparators) if not _is_version(item)]
        compared = all(isinstance(op, _COMPARED) for op in test.ops)
        return compared and len(rest) == 1 == len(test.comparators) and _may_tell(rest[0], scope, depth + 1)
    node = test
    while isinstance(node, (ast.Attribute, ast.Call, ast.Subscript)):
        if isinstance(node, ast.Call):
            given = [*node.args, *(keyword.value for keyword in node.keywords)]
            if not all(isinstance(item, ast.Constant) for item in given):
                return False
            node = node.func
            continue
        if isinstance(node, ast.Attribute) and _DEVICES.search(node.attr):
            return False
        node = node.value
    if not isinstance(node, ast.Name) or _DEVICES.search(node.id):
        return False
    bound = _bindings(node.id, scope)
    if (
        len(bound) == 1
        and bound[0].kind is BindingKind.ASSIGNMENT
        and isinstance(bound[0].statement, ast.Assign)
    ):
        return _may_tell(bound[0].statement.value, bound[0].scope, depth + 1)  # `NEW = compat.NEW`
    return bool(bound) and all(
        item.is_import and item.target is not None and item.target.partition(".")[0] not in _KNOWN_ROOTS
        for item in bound
    )


def _bindings(name: str, scope: Scope) -> list[Binding]:
    """What binds a name in the scope that it is looked up in."""
    held: Scope | None = scope
    while held is not None:
        if name in held.bindings and (held.kind != "class" or held is scope):
            return held.bindings[name]
        held = held.parent
    return []


def _is_version(node: ast.expr) -> bool:
    if isinstance(node, (ast.Tuple, ast.List)):
        return all(map(_is_version, node.elts))
    if isinstance(node, ast.Call):  # Version("2.0")
        return len(node.args) == 1 and _is_version(node.args[0])
    value = node.value if isinstance(node, ast.Constant) else None
    return isinstance(value, (int, float)) or (isinstance(value, str) and _VERSION.match(value) is not None)


def _asked(test: ast.expr) -> set[str]:
    """The names that `hasattr` and `getattr` ask for."""
    return {
        node.args[1].value
        for node in walk(test)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _ASKS
        if len(node.args) > 1
        and isinstance(node.args[1], ast.Constant)
        and isinstance(node.args[1].value, str)
    }


# ---- what is alike --------------------------------------------------------------------------------------


def _objects(use: Use) -> set[str]:
    """What a use is about, as source: the object of a method, and what is given to a call."""
    nodes: list[ast.AST] = []
    if use.method and isinstance(use.node, ast.Attribute):
        nodes.append(use.node.value)
    if use.call is not None:
        nodes += [*use.call.args, *(keyword.value for keyword in use.call.keywords)]
    found: set[str] = set()
    while nodes:
        node = nodes.pop()
        root = node
        while isinstance(root, ast.Attribute):
            root = root.value
        if isinstance(root, ast.Name) and isinstance(node, (ast.Name, ast.Attribute)):
            found.add(ast.unparse(node))
        else:
            nodes += children(node)
    return found


def _same(use: Use, objects: set[str], other: Use) -> bool:
    """Whether two uses are about the same object, or one of the same."""
    if use.method and other.method and isinstance(use.node, ast.Attribute):
        mine, theirs = use.node.value, other.node
        return isinstance(theirs, ast.Attribute) and ast.dump(mine) == ast.dump(theirs.value)
    if (use.call is None) is not (other.call is None) or not objects:
        return True
    return use.call is None or not objects.isdisjoint(_objects(other))


# ---- blocks ---------------------------------------------------------------------------------------------


def _left_before(node: ast.stmt, block: list[ast.stmt]) -> Iterator[Side]:
    """The choices before a statement in its block whose one side leaves the block, the nearest first."""
    at = bisect_left(block, (node.lineno, node.col_offset), key=lambda item: (item.lineno, item.col_offset))
    for earlier in reversed(block[max(0, at - _MOST) : at]):
        while isinstance(earlier, ast.If):
            if _leaves(earlier.body):
                yield earlier.test, False, [_range(earlier.body)]
            if _leaves(earlier.orelse) and not isinstance(earlier.orelse[0], ast.If):
                yield earlier.test, True, [_range(earlier.orelse)]
            if len(earlier.orelse) != 1:
                break
            earlier = earlier.orelse[0]


def _leaves(block: list[ast.stmt]) -> bool:
    return bool(block) and isinstance(block[-1], _LEAVES)


def _range(block: list[ast.stmt]) -> tuple[Place, Place]:
    return _start(block[0]), _end(block[-1])


def _start(node: ast.AST) -> Place:
    marks = getattr(node, "decorator_list", None)
    if marks:
        return marks[0].lineno, 0
    return node.lineno, node.col_offset  # type: ignore[attr-defined]


def _end(node: ast.AST) -> Place:
    return node.end_lineno, node.end_col_offset  # type: ignore[attr-defined]
