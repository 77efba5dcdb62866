"""Decorators that decide whether what they mark runs: `@pytest.mark.skipif(...)`, `@implement_for(...)`.

Those of pytest and unittest hold a test. Others are understood by their names, as helper functions are:
`@require_torch_min_version("2.0")`, `@RunIf(min_torch="2.0")`, `@skip_if_torch_lt("2.0")`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from torchmigrate.semantics.formulas import FALSE, TRUE, UNKNOWN, Formula, all_of, negate
from torchmigrate.semantics.guards import spellings as guard_names
from torchmigrate.semantics.guards.functions import (
    Function,
    Parse,
    answering,
    entered,
    may_answer,
    returned,
    text_of,
)
from torchmigrate.semantics.guards.helpers import against, version_arguments
from torchmigrate.semantics.guards.version_values import (
    Evaluate,
    VersionLiteral,
    last_name,
    literal,
    sole,
    unknown_name,
)
from torchmigrate.semantics.model import Foreign, Mark, QualifiedName, Value, VersionOf

_SKIPS = frozenset(("skipif", "skipIf", "skip_if", "xfail"))
_RUNS = frozenset(("skipUnless", "skip_unless"))
_NEVER_RUNS = frozenset(("pytest.mark.skip", "unittest.skip", "unittest.case.skip"))


def mark(
    node: ast.expr, evaluate: Evaluate, parse: Parse, value: Callable[[ast.expr, Evaluate], Value]
) -> Formula:
    """Under which test what a decorator marks runs; `UNKNOWN` if it says nothing of versions and names.

    parse: what a test says. value: the value of any expression.
    """
    function = node.func if isinstance(node, ast.Call) else node
    if not isinstance(function, (ast.Name, ast.Attribute)):
        return UNKNOWN
    held = evaluate(function)
    only = sole(held)
    if isinstance(only, QualifiedName) and only.name in _NEVER_RUNS:
        return FALSE
    if not isinstance(node, ast.Call):
        if isinstance(only, Mark):
            return only.formula
        own = _own(held, None, evaluate, parse, value)
        return _named(function, None, evaluate) if own is None else own
    name = last_name(function)
    if name in _SKIPS or name in _RUNS:
        formula = _condition(node, evaluate, parse)
        if name == "xfail" and formula == TRUE:
            return UNKNOWN  # it runs, and may fail
        return negate(formula) if name in _SKIPS else formula
    own = _own(held, node, evaluate, parse, value)
    return _named(function, node, evaluate) if own is None else own


def _condition(node: ast.Call, evaluate: Evaluate, parse: Parse) -> Formula:
    """The condition of a mark; pytest takes it as a string too, and several of them."""
    first = node.args[:1] or [keyword.value for keyword in node.keywords if keyword.arg == "condition"]
    for given in first:
        test: ast.expr = given
        if isinstance(given, ast.Constant) and isinstance(given.value, str):
            try:
                test = ast.parse(given.value.strip(), mode="eval").body
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                return UNKNOWN
        return parse(test, evaluate)
    return UNKNOWN


def _own(
    held: Value,
    call: ast.Call | None,
    evaluate: Evaluate,
    parse: Parse,
    value: Callable[[ast.expr, Evaluate], Value],
) -> Formula | None:
    """A decorator of the project, or a function that makes one; None where its name has to tell.

    `def old_only(test): return unittest.skipIf(...)(test)`
    """
    own = answering(held, evaluate)
    if own is None:
        return None
    function, meant = own
    result = returned(function)
    inside = None
    if result is not None and isinstance(function, Function) and may_answer(function):
        inside = entered(
            function, call, meant, lambda node: value(node, evaluate), lambda node: value(node, meant)
        )
    unknown = None if isinstance(sole(held), Foreign) else UNKNOWN
    if inside is None or result is None:
        return unknown
    marks = result
    if isinstance(result, ast.Call) and isinstance(result.func, ast.Call):
        marks = result.func  # applied to the parameter
    formula = mark(marks, inside, parse, value) if isinstance(marks, ast.Call) else UNKNOWN
    return unknown if formula is UNKNOWN else formula


def _named(function: ast.expr, call: ast.Call | None, evaluate: Evaluate) -> Formula:
    """A decorator that is understood by its name alone."""
    name = unknown_name(function, evaluate)
    if name is None:
        return UNKNOWN
    given = {keyword.arg: keyword.value for keyword in call.keywords} if call else {}
    arguments = call.args if call else []
    if None in given:
        return UNKNOWN
    if name == "implement_for":
        return _implement_for(arguments, given, evaluate)
    if guard_names.has_limits(name):
        return _limits(given, evaluate)
    promise = guard_names.mark_test(name)
    if promise is None:
        return UNKNOWN
    version: VersionLiteral | None
    if promise.numbers:
        version = VersionLiteral(promise.numbers, "version")
    else:
        texts = [value for key, value in given.items() if key in ("version", "min_version", "max_version")]
        version = version_arguments(arguments[:1] or texts, evaluate)
        if len(arguments) > 1 and version and version.kind != "text":
            version = version_arguments(arguments, evaluate)  # (1, 9) as two numbers
    formula = against(VersionOf(promise.library), promise.op, version)
    return negate(formula) if promise.skips else formula


def _implement_for(
    arguments: list[ast.expr], given: dict[str | None, ast.expr], evaluate: Evaluate
) -> Formula:
    """`implement_for("torch", None, "2.0")`: from the first release on, up to but without the second."""
    names = ("module_name", "from_version", "to_version")
    bounds: dict[str | None, ast.expr] = dict(zip(names, arguments, strict=False))
    bounds.update(given)
    module = bounds.get("module_name")
    library = guard_names.distribution(text_of(evaluate(module))) if module is not None else None
    if library is None:
        return UNKNOWN
    tests = [
        against(VersionOf(library), op, literal(bounds[name], evaluate))
        for name, op in (("from_version", ">="), ("to_version", "<"))
        if name in bounds and not _is_none(bounds[name])
    ]
    return all_of(tests) if tests else UNKNOWN


def _limits(given: dict[str | None, ast.expr], evaluate: Evaluate) -> Formula:
    """`RunIf(min_torch="1.13", max_torch="2.1")`: the second release is the first that is left out."""
    tests = []
    for name, node in given.items():
        limit = guard_names.limit(name or "")
        if limit is not None and not _is_none(node):
            tests.append(against(VersionOf(limit[0]), limit[1], literal(node, evaluate)))
    return all_of(tests) if tests else UNKNOWN


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
