"""Statements without blocks: assignments, deletions, assertions, expressions."""

from __future__ import annotations

import ast

from torchmigrate.semantics.formulas import UNKNOWN as UNKNOWN_TEST
from torchmigrate.semantics.formulas import TryWorked, negate
from torchmigrate.semantics.guards.functions import may_check
from torchmigrate.semantics.guards.tests import may_mark, parse_test
from torchmigrate.semantics.model import (
    ASSIGNMENT,
    VIA_IMPORT,
    BindingKind,
    Const,
    Flag,
    Instance,
    QualifiedName,
    Use,
    Value,
)
from torchmigrate.semantics.values.classes import MAKES_OBJECTS, SETUP
from torchmigrate.semantics.values.operators import augmented
from torchmigrate.semantics.values.slots import UNKNOWN, join_values
from torchmigrate.semantics.walk.annotations import Annotations
from torchmigrate.semantics.walk.assignments import Assignments
from torchmigrate.semantics.walk.bindings import Bindings
from torchmigrate.semantics.walk.expressions import Expressions
from torchmigrate.semantics.walk.lookups import Lookups
from torchmigrate.semantics.walk.state import State
from torchmigrate.semantics.walk.tests import Tests
from torchmigrate.source.trees import children, last_name, walk

_NONE: Value = (Const(None),)
# Expressions that may be about versions, or about whether a name is there.
# What may be a test that is given a name: `new = TORCH_IS_NEW and cuda`, `pytestmark = skipif(...)`.
_MAY_BE_TESTS = frozenset([ast.Attribute, ast.BoolOp, ast.Compare, ast.IfExp, ast.Name, ast.UnaryOp])
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
        ast.IfExp,
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
_MAY_END = frozenset([*_ENDS, "quit"])
_MAKES_OR_SETS_UP = frozenset((*SETUP, *MAKES_OBJECTS))


def _results(node: ast.expr) -> set[ast.expr]:
    """The expressions that `node` may evaluate to."""
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


class Statements:
    """Walks one statement of a block."""

    __slots__ = ("annotations", "assignments", "bindings", "expressions", "lookups", "state", "tests")

    def __init__(
        self,
        state: State,
        lookups: Lookups,
        bindings: Bindings,
        annotations: Annotations,
        tests: Tests,
        expressions: Expressions,
        assignments: Assignments,
    ) -> None:
        self.state = state
        self.lookups = lookups
        self.bindings = bindings
        self.annotations = annotations
        self.tests = tests
        self.expressions = expressions
        self.assignments = assignments

    def visit_children(self, statement: ast.stmt) -> None:
        for child in children(statement):
            if isinstance(child, ast.expr):
                self.expressions.eval(child)

    def visit_expr(self, node: ast.Expr) -> bool:
        value = node.value
        self.expressions.eval(value)
        if not isinstance(value, ast.Call):
            return False
        owner = value.func.value if isinstance(value.func, ast.Attribute) else None
        if isinstance(owner, ast.Name) and owner.id == "__all__" and value.args:
            self._export(value.args[0])
        name = last_name(value.func)
        if name in _MAKES_OR_SETS_UP:
            self._note_base(value.func)
        elif name != "importorskip" and may_check(name):
            self.state.asked.append(value)
        return name in _MAY_END and self.ends(value)

    def _note_base(self, func: ast.expr) -> None:
        """Note that a method calls what it overrides: `super().__init__()`, `Base.__init__(self)`."""
        frame = self.state.frame
        node, owner = frame.scope.node, frame.owner
        if owner is None or not isinstance(func, ast.Attribute) or not isinstance(node, ast.FunctionDef):
            return
        if node.name == func.attr and self.state.block is node.body:
            owner.calls_base.add(node.name)

    def ends(self, call: ast.Call) -> bool:
        """Whether nothing runs after a call: `sys.exit()`, `self.skipTest(...)`, `pytest.skip(...)`."""
        func = call.func
        if isinstance(func, ast.Name):
            name = func.id
            if name in _ENDS and self.lookups.peek(func) == (QualifiedName(f"pytest.{name}"),):
                return True
            if name not in ("exit", "quit"):
                return False
            builtin = not self.lookups.lookup(name)[1]  # not a function of the file that has the name
            return builtin or self.lookups.peek(func) == (QualifiedName("sys.exit"),)
        if not isinstance(func, ast.Attribute) or not isinstance(func.value, ast.Name):
            return False
        return func.attr in _ENDS and func.value.id in _ENDS[func.attr]

    def visit_assign(self, node: ast.Assign) -> None:
        value = self._taken(node.value)
        kind = node.value.__class__
        called = last_name(node.value.func) if isinstance(node.value, ast.Call) else ""
        if kind in _MAY_BE_TESTS or (called and may_mark(called)):
            self.state.asked.append(node.value)
        if kind in _MAY_BE_SPECIAL:
            if not value or value[0].__class__ is not Instance:
                special = self.assignments.special(node.value)
                if special is not None:
                    value = special
                elif value is UNKNOWN and (kind is ast.Tuple or kind is ast.List):
                    value = self.lookups.peek(node.value)
        elif isinstance(node.value, ast.Constant) and isinstance(node.value.value, bool):
            value = self._flag(node.value.value) or value
        for target in node.targets:
            self.assignments.assign(target, value, ASSIGNMENT, node.value)
            if isinstance(target, ast.Name) and target.id == "__all__":
                self._export(node.value)

    def _taken(self, node: ast.expr) -> Value:
        """The value of what is assigned; names of libraries in it know where they were taken from."""
        state = self.state
        first = len(state.uses)
        value = self.expressions.eval(node)
        if value is UNKNOWN or len(state.uses) == first or node.__class__ not in _GIVE_NAMES:
            return value
        results = _results(node)
        places: dict[str, tuple[Use, ...]] = {}
        for use in state.uses[first:]:
            if use.via is VIA_IMPORT and use.node in results:
                for name in use.candidates:
                    places[name] = (*places.get(name, ()), use)
        return tuple(
            QualifiedName(item.name, item.sure, item.via, item.receiver, item.stated, places[item.name])
            if isinstance(item, QualifiedName) and item.name in places
            else item
            for item in value
        )

    def _flag(self, value: bool) -> Value | None:
        """`HAS_X = True` in a branch or a try body, `False` in the other or the handler: a flag for which of
        them ran."""
        state = self.state
        if state.branch_test is not None:
            asked, wanted = state.branch_test
            test = parse_test(asked, self.lookups.peek)
            if test is not UNKNOWN_TEST:
                return (Flag(test if value is wanted else negate(test)),)
        if not state.tries:
            return None
        guard, part = state.tries[-1]
        state.flagged.append(guard)
        worked: Flag = Flag(TryWorked(guard))
        if (part == "body") == value:
            return (worked,)
        return (Flag(negate(TryWorked(guard))),)

    def visit_aug_assign(self, node: ast.AugAssign) -> None:
        value = self.expressions.eval(node.value)
        target = node.target
        if isinstance(target, ast.Name):
            held = self.lookups.lookup(target.id)
            for binding in held[1]:
                if binding.is_import:
                    binding.uses.append(self.state.offset(target))
            self.bindings.bind(target.id, augmented(held[0], node.op, value), ASSIGNMENT, target)
            if target.id == "__all__":
                self._export(node.value)
        elif isinstance(target, ast.Attribute):
            self.assignments.assign(
                target, augmented(self.expressions.eval(target), node.op, value), ASSIGNMENT
            )
        else:
            self.expressions.eval(target)

    def visit_ann_assign(self, node: ast.AnnAssign) -> None:
        promised = self.annotations.annotation(node.annotation)
        value = self._taken(node.value) if node.value is not None else UNKNOWN
        if node.value is not None:
            value = self.assignments.special(node.value) or value
            if value == UNKNOWN:
                value = promised
            self.assignments.assign(node.target, value, ASSIGNMENT, node.value)
        elif isinstance(node.target, ast.Name):
            self.bindings.bind(node.target.id, promised, ASSIGNMENT, node.target)

    def _export(self, node: ast.expr) -> None:
        state = self.state
        for item in walk(node):
            if isinstance(item, ast.Constant) and isinstance(item.value, str) and state.frame.parent is None:
                state.exports.add(item.value)

    def visit_delete(self, node: ast.Delete) -> None:
        state = self.state
        for target in node.targets:
            if isinstance(target, ast.Name):
                for binding in self.lookups.lookup(target.id)[1]:
                    if binding.is_import:
                        binding.uses.append(state.offset(target))
                self.bindings.new_binding(target.id, BindingKind.DELETION, target)
                state.frame.env.remove(target.id)
            else:
                self.expressions.eval(target)

    def visit_assert(self, node: ast.Assert) -> None:
        """What is asserted holds in the rest of the block."""
        state = self.state
        self.expressions.eval(node.test)
        if node.msg is not None:
            self.expressions.eval(node.msg)
        self.tests.narrow(self.tests.narrowed(node.test)[0])
        state.asked.append(node.test)

    def visit_return(self, node: ast.Return) -> bool:
        value = _NONE if node.value is None else self.expressions.eval(node.value)
        frame = self.state.frame
        frame.returned = join_values(frame.returned, value)
        return True

    def leave(self, node: ast.stmt) -> bool:
        self.visit_children(node)
        return True

    def visit_global(self, node: ast.Global) -> None:
        self.state.frame.scope.globals.update(node.names)

    def visit_nonlocal(self, node: ast.Nonlocal) -> None:
        self.state.frame.scope.nonlocals.update(node.names)
