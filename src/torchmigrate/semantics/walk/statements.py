"""Statements without blocks: assignments, deletions, assertions, expressions."""

from __future__ import annotations

import ast
from dataclasses import replace

from torchmigrate.semantics.guards.formulas import UNKNOWN as UNKNOWN_TEST
from torchmigrate.semantics.guards.formulas import TryWorked, negate
from torchmigrate.semantics.guards.helpers import demanded
from torchmigrate.semantics.guards.tests import mark_of, parse_test
from torchmigrate.semantics.model import (
    ASSIGNMENT,
    BindingKind,
    Flag,
    Guards,
    Instance,
    QualifiedName,
    Use,
    Value,
)
from torchmigrate.semantics.values.narrowing import narrowed
from torchmigrate.semantics.values.operators import augmented
from torchmigrate.semantics.values.slots import UNKNOWN
from torchmigrate.semantics.walk.definitions import Definitions
from torchmigrate.source.trees import children

# Expressions that may be about versions, or about whether a name is there.
_MAY_BE_SPECIAL = frozenset(
    [
        ast.Call,
        ast.Attribute,
        ast.Subscript,
        ast.ListComp,
        ast.GeneratorExp,
        ast.Tuple,
        ast.List,
        ast.Compare,
        ast.BoolOp,
        ast.UnaryOp,
        ast.Lambda,
    ]
)
# Expressions that may be a library name, or give one of theirs.
_GIVE_NAMES = frozenset([ast.Name, ast.Attribute, ast.IfExp, ast.BoolOp])
# Calls after which nothing runs: those that end a program, and those that end a test.
_ENDS: dict[str, tuple[str, ...]] = {
    "exit": ("sys", "pytest"),
    "_exit": ("os",),
    "skipTest": ("self",),
    "fail": ("self", "pytest"),
    "skip": ("pytest",),
    "xfail": ("pytest",),
}


def _results(node: ast.expr) -> set[ast.expr]:
    """The expressions of which one is what an expression gives."""
    found: set[ast.expr] = set()
    waiting = [node]
    while waiting:
        node = waiting.pop()
        found.add(node)
        if isinstance(node, ast.IfExp):
            waiting += [node.body, node.orelse]
        elif isinstance(node, ast.BoolOp):
            waiting += node.values
    return found


class Statements(Definitions):
    """Walks one statement of a block."""

    __slots__ = ()

    def _children(self, statement: ast.stmt) -> None:
        for child in children(statement):
            if isinstance(child, ast.expr):
                self.eval(child)

    def _expr(self, node: ast.Expr) -> bool:
        value = node.value
        self.eval(value)
        if not isinstance(value, ast.Call):
            return False
        owner = value.func.value if isinstance(value.func, ast.Attribute) else None
        if isinstance(owner, ast.Name) and owner.id == "__all__" and value.args:
            self._export(value.args[0])
        self._demand(value)
        return self.ends(value)

    def _demand(self, call: ast.Call) -> None:
        """What `pytest.importorskip("torch", minversion="2.0")` asks for holds in what follows."""
        func = call.func
        name = func.id if isinstance(func, ast.Name) else func.attr if isinstance(func, ast.Attribute) else ""
        if name == "importorskip":
            test = demanded(call, self.peek)
            if test is not UNKNOWN_TEST:
                self.guards = Guards(formula=test, outer=self.guards)

    def ends(self, call: ast.Call) -> bool:
        """Whether nothing runs after a call: `sys.exit()`, `self.skipTest(...)`, `pytest.skip(...)`."""
        func = call.func
        if isinstance(func, ast.Name):
            name = func.id
            if name in _ENDS and self.peek(func) == (QualifiedName(f"pytest.{name}"),):
                return True
            if name not in ("exit", "quit"):
                return False
            builtin = not self.lookup(name)[1]  # not a function of the file that has the name
            return builtin or self.peek(func) == (QualifiedName("sys.exit"),)
        if not isinstance(func, ast.Attribute) or not isinstance(func.value, ast.Name):
            return False
        return func.attr in _ENDS and func.value.id in _ENDS[func.attr]

    def _assign(self, node: ast.Assign) -> None:
        value = self._taken(node.value)
        if isinstance(node.value, ast.Call):
            self._demand(node.value)
        kind = node.value.__class__
        if kind in _MAY_BE_SPECIAL:
            if not value or value[0].__class__ is not Instance:
                special = self._special(node.value)
                if special is not None:
                    value = special
                elif value is UNKNOWN and (kind is ast.Tuple or kind is ast.List):
                    value = self.peek(node.value)
        elif isinstance(node.value, ast.Constant) and isinstance(node.value.value, bool):
            value = self._flag(node.value.value) or value
        for target in node.targets:
            self.assign(target, value, ASSIGNMENT, node.value)
            if isinstance(target, ast.Name) and target.id == "pytestmark":
                self._mark_all(node.value)
            if isinstance(target, ast.Name) and target.id == "__all__":
                self._export(node.value)

    def _taken(self, node: ast.expr) -> Value:
        """The value of what is assigned; names of libraries in it know where they were taken from."""
        first = len(self.uses)
        value = self.eval(node)
        if value is UNKNOWN or len(self.uses) == first or node.__class__ not in _GIVE_NAMES:
            return value
        results = _results(node)
        places: dict[str, tuple[Use, ...]] = {}
        for use in self.uses[first:]:
            if use.via == "import" and use.node in results:
                for name in use.candidates:
                    places[name] = (*places.get(name, ()), use)
        return tuple(
            replace(item, taken=places[item.name])
            if isinstance(item, QualifiedName) and item.name in places
            else item
            for item in value
        )

    def _mark_all(self, node: ast.expr) -> None:
        """`pytestmark = ...`: the marks of every test of a module or class."""
        items = node.elts if isinstance(node, (ast.List, ast.Tuple)) else [node]
        tests = [mark_of(item, self.peek) for item in items]
        self.frame.marks = (*self.frame.marks_outside, *(test for test in tests if test is not UNKNOWN_TEST))

    def _flag(self, value: bool) -> Value | None:
        """`HAS_X = True` in a branch or a try body, `False` in the other or the handler: a flag of which."""
        if self.branch_test is not UNKNOWN_TEST:
            return (Flag(self.branch_test if value else negate(self.branch_test)),)
        if not self.tries:
            return None
        guard, part = self.tries[-1]
        worked: Flag = Flag(TryWorked(guard))
        if (part == "body") == value:
            return (worked,)
        return (Flag(negate(TryWorked(guard))),)

    def _aug_assign(self, node: ast.AugAssign) -> None:
        value = self.eval(node.value)
        target = node.target
        if isinstance(target, ast.Name):
            held = self.lookup(target.id)
            for binding in held[1]:
                if binding.is_import:
                    binding.uses.append(self.offset(target))
            self.bind(target.id, augmented(held[0], node.op, value), ASSIGNMENT, target)
            if target.id == "__all__":
                self._export(node.value)
        elif isinstance(target, ast.Attribute):
            self.assign(target, augmented(self.eval(target), node.op, value), ASSIGNMENT)
        else:
            self.eval(target)

    def _ann_assign(self, node: ast.AnnAssign) -> None:
        promised = self.annotation(node.annotation)
        value = self._taken(node.value) if node.value is not None else UNKNOWN
        if node.value is not None:
            value = self._special(node.value) or value
            if value == UNKNOWN:
                value = promised
            self.assign(node.target, value, ASSIGNMENT, node.value)
        elif isinstance(node.target, ast.Name):
            self.bind(node.target.id, promised, ASSIGNMENT, node.target)

    def _export(self, node: ast.expr) -> None:
        for item in ast.walk(node):
            if isinstance(item, ast.Constant) and isinstance(item.value, str) and self.frame.parent is None:
                self.exports.add(item.value)

    def _delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name):
                for binding in self.lookup(target.id)[1]:
                    if binding.is_import:
                        binding.uses.append(self.offset(target))
                self.new_binding(target.id, BindingKind.DELETION, target)
                self.frame.env.remove(target.id)
            else:
                self.eval(target)

    def _assert(self, node: ast.Assert) -> None:
        """What is asserted holds in the rest of the block."""
        self.eval(node.test)
        if node.msg is not None:
            self.eval(node.msg)
        self.narrow(narrowed(node.test, self)[0])
        test = parse_test(node.test, self.peek)
        if test is not UNKNOWN_TEST:
            self.guards = Guards(formula=test, outer=self.guards)

    def _leave(self, node: ast.stmt) -> bool:
        self._children(node)
        return True

    def _global(self, node: ast.Global) -> None:
        self.frame.scope.globals.update(node.names)

    def _nonlocal(self, node: ast.Nonlocal) -> None:
        self.frame.scope.nonlocals.update(node.names)
