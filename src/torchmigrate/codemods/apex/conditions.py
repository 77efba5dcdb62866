"""Conditions made of tests of the file: nodes without a place in it are new, the others stay as they are."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Iterator, Mapping
from functools import reduce

from torchmigrate.rewrite.code import Code, code

WITHOUT = "O0"
_TIGHT = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant)
_KINDS = (ast.BoolOp, ast.UnaryOp, ast.Compare, ast.Call, ast.Attribute, ast.Subscript)
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "$left == $value",
    ast.NotEq: "$left != $value",
    ast.Lt: "$left < $value",
    ast.LtE: "$left <= $value",
    ast.Gt: "$left > $value",
    ast.GtE: "$left >= $value",
    ast.Is: "$left is $value",
    ast.IsNot: "$left is not $value",
    ast.In: "$left in $value",
    ast.NotIn: "$left not in $value",
}
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
        ((operator, value),) = zip(test.ops, test.comparators, strict=True)
        left = (
            code_of(test.left) if isinstance(test.left, _TIGHT) else code("($left)", left=code_of(test.left))
        )
        return code(_COMPARISONS[type(operator)], left=left, value=code_of(value))
    if isinstance(test, ast.Call):
        return code("bool($test)", test=code_of(test.args[0]))
    if isinstance(test, ast.Attribute):
        return code("$object.$name", object=code_of(test.value), name=test.attr)
    if isinstance(test, ast.Subscript):
        return code("$object[$key]", object=code_of(test.value), key=code_of(test.slice))
    if isinstance(test, ast.Name):
        return code("$name", name=test.id)
    assert isinstance(test, ast.Constant), "all that is made here"
    return code('"O0"' if test.value == WITHOUT else "$value", value=repr(test.value))


def renamed(test: ast.expr, names: Mapping[str, ast.expr]) -> ast.expr | None:
    """A condition with other expressions in the place of names; None: it cannot be written with them."""
    if isinstance(test, (ast.Constant, ast.Name)):
        return names.get(test.id, test) if isinstance(test, ast.Name) else test
    made = copy.copy(test)
    vars(made).pop("lineno", None)  # it is new code
    for name, value in ast.iter_fields(test):
        parts = value if isinstance(value, list) else [value]
        new = [renamed(item, names) if isinstance(item, ast.expr) else item for item in parts]
        if None in new:
            return None
        setattr(made, name, new if isinstance(value, list) else new[0])
    plain = not isinstance(test, ast.Call) or getattr(test.func, "id", "") == "bool"
    plain = plain and (not isinstance(test, ast.Compare) or len(test.ops) == 1)
    plain = plain and (not isinstance(test, ast.UnaryOp) or isinstance(test.op, ast.Not))
    return made if plain and isinstance(test, _KINDS) else None


def _operand(test: ast.expr) -> Code:
    return code("($test)" if isinstance(test, _LOOSE) else "$test", test=code_of(test))
