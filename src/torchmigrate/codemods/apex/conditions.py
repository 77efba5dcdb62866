"""Conditions made of tests of the file: nodes without a place in it are new, the others stay as they are."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import reduce

from torchmigrate.rewrite.code import Code, code

WITHOUT = "O0"
_TIGHT = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant)
_LOOSE = (ast.BoolOp, ast.IfExp, ast.Lambda, ast.NamedExpr)


def negation(test: ast.expr) -> ast.expr:
    """That a test does not hold."""
    return ast.UnaryOp(ast.Not(), test)


def as_bool(test: ast.expr) -> ast.expr:
    """A test as a bool."""
    return ast.Call(ast.Name("bool", ast.Load()), [test], [])


def mixes(level: ast.expr) -> ast.expr:
    """That an opt level is not the one without mixed precision."""
    return ast.Compare(level, [ast.NotEq()], [ast.Constant(WITHOUT)])


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


def code_of(test: ast.expr) -> Code:
    """A condition as new code."""
    if hasattr(test, "lineno"):
        return code("$test", test=test)
    if isinstance(test, ast.BoolOp):
        template = "$one and $other" if isinstance(test.op, ast.And) else "$one or $other"
        return reduce(lambda one, other: code(template, one=one, other=other), map(_operand, test.values))
    if isinstance(test, ast.UnaryOp):
        inner = test.operand
        return code("not $test" if isinstance(inner, _TIGHT) else "not ($test)", test=code_of(inner))
    if isinstance(test, ast.Compare):
        (value,) = test.comparators
        left = "$left != $value" if isinstance(test.left, _TIGHT) else "($left) != $value"
        return code(left, left=code_of(test.left), value=code_of(value))
    if isinstance(test, ast.Call):
        return code("bool($test)", test=code_of(test.args[0]))
    assert isinstance(test, ast.Constant), "all that is made here"
    return code('"O0"' if test.value == WITHOUT else "$value", value=repr(test.value))


def _operand(test: ast.expr) -> Code:
    return code("($test)" if isinstance(test, _LOOSE) else "$test", test=code_of(test))
