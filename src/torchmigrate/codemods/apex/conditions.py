"""Conditions made of tests of the file: nodes without a place in it are new, the others stay as they are."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping

from torchmigrate.rewrite.code import with_parts
from torchmigrate.source.trees import walk

WITHOUT = "O0"


def negation(test: ast.expr) -> ast.expr:
    """That a test does not hold."""
    return ast.UnaryOp(ast.Not(), test)


def as_bool(test: ast.expr) -> ast.expr:
    """A test as a bool."""
    return ast.Call(ast.Name("bool", ast.Load()), [test], [])


def mixes(level: ast.expr) -> ast.expr:
    """That an opt level is not the one without mixed precision."""
    return ast.Compare(level, [ast.NotEq()], [ast.Constant(WITHOUT)])


def implies(test: ast.expr | None, other: ast.expr) -> bool:
    """Whether a test says that a level is one with mixed precision, as `other` (`mixes`) does."""
    parts = conjuncts(test) if test is not None else ()
    return any(
        isinstance(part, ast.Compare)
        and isinstance(part.ops[0], ast.Eq)
        and getattr(part.comparators[0], "value", WITHOUT) != WITHOUT
        and ast.dump(mixes(part.left)) == ast.dump(other)
        for part in parts
    )


def every_one(tests: Iterable[ast.expr]) -> ast.expr | None:
    """The conjunction of some tests, each once; None if there are none."""
    tests = list(tests)
    if len(tests) < 2:
        return tests[0] if tests else None
    found = {ast.dump(part): part for test in tests for part in conjuncts(test)}
    parts = list(found.values())
    return ast.BoolOp(ast.And(), parts) if len(parts) > 1 else parts[0]


def conjuncts(test: ast.expr) -> Iterator[ast.expr]:
    """The parts of a condition that all have to hold; itself, if it has none."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        yield from test.values
    else:
        yield test


def renamed(test: ast.expr, names: Mapping[str, ast.expr]) -> ast.expr | None:
    """A condition with other expressions in the place of names; None: what it calls may differ elsewhere."""
    if any(isinstance(node, ast.Call) and getattr(node.func, "id", "") != "bool" for node in walk(test)):
        return None

    def given(node: ast.expr) -> ast.expr | None:
        if isinstance(node, ast.Constant):
            return node
        return names.get(node.id) if isinstance(node, ast.Name) else None

    return with_parts(test, given)
