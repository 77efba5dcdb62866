"""What tests say: of the names in them, and of the statements under them."""

from __future__ import annotations

import ast

from torchmigrate.semantics.formulas import TRUE, Formula, all_of
from torchmigrate.semantics.formulas import UNKNOWN as UNKNOWN_TEST
from torchmigrate.semantics.guards.formulas import lower_bound
from torchmigrate.semantics.model import (
    Guards,
    Local,
    Value,
)
from torchmigrate.semantics.values.classes import MAKES_OBJECTS, SETUP
from torchmigrate.semantics.values.frames import Frame
from torchmigrate.semantics.values.narrowing import Narrowed, narrowed
from torchmigrate.semantics.walk.annotations import Annotations
from torchmigrate.semantics.walk.lookups import Lookups
from torchmigrate.semantics.walk.state import State

_MOST_DEMANDS = 8  # of a class or a module: each of its functions is under all of them


class Tests:
    """Reads tests in the current frame."""

    __slots__ = ("annotations", "lookups", "state")

    def __init__(self, state: State, lookups: Lookups, annotations: Annotations) -> None:
        self.state = state
        self.lookups = lookups
        self.annotations = annotations

    @property
    def frame(self) -> Frame:
        """The frame of the names in a test."""
        return self.state.frame

    def peek(self, node: ast.expr) -> Value:
        """The value of a simple expression, without recording a use."""
        return self.lookups.peek(node)

    def made(self, item: Local) -> Value:
        """An object of a class of this file."""
        return self.annotations.made(item)

    def narrowed(self, test: ast.expr) -> tuple[Narrowed, Narrowed]:
        """What names of the current scope hold where a test is true, and where it is false."""
        return narrowed(test, self)

    def narrow(self, known: Narrowed) -> Narrowed:
        """Hold names to what a test says of them; what they held before."""
        if not known:
            return known
        env = self.state.frame.env
        kept = {name: env[name] for name in known}
        env.apply(known)
        return kept

    def note_test(self, first: ast.stmt, last: ast.stmt, outer: Guards) -> None:
        """Remember what the guards within `outer` say of some statements, if that is anything."""
        state = self.state
        tests: list[Formula] = []
        guards: Guards | None = state.guards
        while guards is not None and guards is not outer:
            if guards.formula is not None and guards.formula is not UNKNOWN_TEST:
                tests.append(guards.formula)
            guards = guards.outer
        if tests:
            state.tested.append((first, last, all_of(tests)))

    def note(self, node: ast.expr, test: Formula) -> None:
        """Remember what the test of an `if`, an `assert` or a conditional expression says."""
        self.state.tests[id(node)] = test
        guards: Guards | None = self.state.guards
        while guards is not None:
            if guards.attempt is not None and guards.part == "handler":
                guards.attempt.asks = True
            guards = guards.around

    def demand(self, test: Formula) -> None:
        """Remember a test without which a class gives no objects, or a module cannot be imported.

        It holds in the methods of the class if `__init__` or `setUp` fails otherwise, and in all functions of
        the module if that does. It must be in the block of that method, or of the module, itself.
        """
        state = self.state
        node, owner = state.frame.scope.node, state.frame.owner
        if isinstance(node, ast.Module) and state.block is node.body:
            # Tests that reject new releases are reported where they stand.
            bound = lower_bound(test)
            if bound is not TRUE and len(state.demanded) < _MOST_DEMANDS:
                state.demanded.append(bound)
        elif isinstance(node, ast.FunctionDef) and owner is not None and state.block is node.body:
            known = owner.constructed if node.name in MAKES_OBJECTS else owner.refused
            if node.name in (*SETUP, *MAKES_OBJECTS) and len(known) < _MOST_DEMANDS:
                known.append(test)
