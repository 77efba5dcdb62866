"""A domain: what a family of rules knows about values, followed through the value flow."""

from __future__ import annotations

import ast
from collections.abc import Hashable
from typing import Generic, TypeVar

from torchmigrate.semantics.flow.answers import Answers
from torchmigrate.semantics.flow.steps import Path, Step, Steps
from torchmigrate.semantics.flow.values import ValueFlow

T = TypeVar("T", bound=Hashable)


class Sentinel:
    """A value that is not known."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


UNKNOWN = Sentinel("UNKNOWN")  # it may be anything
OPEN = Sentinel(
    "OPEN"
)  # others may call the function with anything; what the file's own calls give is there too
Values = frozenset[T | Sentinel]
NOTHING: frozenset[Sentinel] = frozenset()
_UNKNOWN: frozenset[Sentinel] = frozenset([UNKNOWN])
_OPEN: frozenset[Sentinel] = frozenset([OPEN])


class Domain(Generic[T]):
    """What the values of one file are. A family knows its origins, and what operations make of values.

    An expression has a set of values, with `UNKNOWN` if a way to it is not known. The sets only grow while
    ways are followed, so that loops and recursion come to an end.

    most: of how many values an expression may be one; what may be more is unknown.
    """

    most = 8

    def __init__(self, flow: ValueFlow) -> None:
        self.flow = flow
        self._answers: Answers[Step, Values[T]] = Answers(self._work, NOTHING, restless=_UNKNOWN)

    def of(self, node: ast.AST, path: Path = ()) -> Values[T]:
        """All that an expression, or an item of it, may be."""
        return self._answers(Step(node, path))

    def only(self, node: ast.AST) -> T | None:
        """What an expression is in every run, whatever ways lead to it; None: it may be several things."""
        found = self.of(node)
        (only,) = found if len(found) == 1 else (UNKNOWN,)
        return None if isinstance(only, Sentinel) else only

    def is_only(self, node: ast.AST, value: T) -> bool:
        """Whether an expression is this in every run, whatever ways lead to it: enough for a fix."""
        return self.of(node) == {value}

    def is_surely(self, node: ast.AST, value: T) -> bool:
        """Whether an expression is this in every run that the file shows: enough for a finding."""
        return self.of(node) - _OPEN == {value}

    def forget(self) -> None:
        """Compute all values anew, since `start` or `steps` have changed."""
        self._answers.clear()

    # ---- what a family says ----------------------------------------------------------------------------

    def start(self, node: ast.AST) -> T | None:
        """The value of an origin; None: follow where the expression comes from."""
        return None

    def through(self, node: ast.AST) -> Values[T]:
        """What an operation, a call or an attribute gives, from its operands (`of`)."""
        return _UNKNOWN

    def part(self, node: ast.AST, path: Path) -> Values[T]:
        """What an item of a value is, where the items are not written out."""
        return _UNKNOWN

    def steps(self, step: Step) -> Steps:
        """The steps that are followed; a domain of one function takes fewer."""
        return self.flow.steps(step)

    # ---- how ways come together ----------------------------------------------------------------------------

    def join(self, *nodes: ast.AST) -> Values[T]:
        """Any of what some expressions may be."""
        return self._bounded(NOTHING.union(*[self.of(node) for node in nodes]))

    def _work(self, step: Step) -> Values[T]:
        node, path = step.node, step.path
        if node is None:
            return _OPEN if step.open else _UNKNOWN
        if not path:
            if isinstance(node, ast.Constant) and node.value is None:
                return NOTHING  # no object at all, until another one is given
            found = self.start(node)
            if found is not None:
                return frozenset([found])
        steps = self.steps(step)
        if steps:
            return self._bounded(NOTHING.union(*[self._answers(each) for each in steps]))
        if path:
            return self.part(node, path)
        return self.through(node)

    def _bounded(self, values: Values[T]) -> Values[T]:
        return values if len(values) <= self.most else _UNKNOWN
