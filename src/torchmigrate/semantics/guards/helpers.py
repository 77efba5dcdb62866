"""Comparisons of a version with a literal, written out or in a function that only its name explains."""

from __future__ import annotations

import ast

from torchmigrate.patterns import pattern
from torchmigrate.semantics.formulas import UNKNOWN, Formula, HasName, VersionTest, all_of, negate
from torchmigrate.semantics.guards import spellings as guard_names
from torchmigrate.semantics.guards.version_values import (
    Evaluate,
    VersionLiteral,
    last_name,
    literal,
    sole,
    unknown_name,
    version_of,
    version_text,
)
from torchmigrate.semantics.model import QualifiedName, VersionOf

_OPERATORS = ("<", "<=", ">", ">=", "==", "!=")
_OPERATOR_ARGUMENTS = ("op", "operation", "operator", "comparison")
OPERATOR_FUNCTIONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}


def against(version: VersionOf, op: str, written: VersionLiteral | None) -> Formula:
    """The comparison of a version with a literal; `UNKNOWN` where they do not go together."""
    part = _compared_part(version.part, written.kind, op) if written else None
    if written is None or part is None:
        return UNKNOWN
    if part in ("major", "minor", "micro", "digit"):
        if written.kind == "number" and written.release[1:] == (0,):  # `float(v.split(".")[1]) < 7.0`
            written = VersionLiteral(written.release[:1], "number")
        if len(written.release) != 1:
            return UNKNOWN
    if part == "number" and written.release[0] >= 100:  # versions packed into one number, such as 10800
        return UNKNOWN
    if written.pre:
        # A release is never the pre-release itself; of another series it surely is not.
        if op in ("==", "!="):
            if part not in ("full", "text"):
                return UNKNOWN
            near = all_of((VersionTest(version.library, "series", written.release[:2]), UNKNOWN))
            return near if op == "==" else negate(near)
        op = {">": ">=", "<=": "<"}.get(op, op)
    return VersionTest(version.library, op, written.release, part)


def _compared_part(part: str, kind: str, op: str) -> str | None:
    """How a part of a version compares with a kind of literal: a part of `VersionTest`, or None."""
    if part in ("full", "text"):
        as_text = "text" if part == "text" else "full"
        return {"text": as_text, "version": "full", "tuple": "full", "number": "number"}.get(kind)
    if part == "decimal":
        return {"number": "decimal", "text": "text", "version": "full"}.get(kind)
    if part == "float":
        return "float" if kind in ("number", "text") else None
    if part.startswith("parts"):
        if kind == "strings":
            return part if op in ("==", "!=") else None
        return {"tuple": part, "version": "full"}.get(kind)
    if kind == "number" or (kind == "text" and (part in ("major", "digit") or op in ("==", "!="))):
        return part if part in ("major", "minor", "micro", "digit") else None
    return None  # as text, minor "15" < "8"


def helper_call(node: ast.Call, evaluate: Evaluate) -> Formula:
    """A function that is understood by its name alone."""
    name = unknown_name(node.func, evaluate)
    if name is None or any(keyword.arg is None for keyword in node.keywords):
        return UNKNOWN
    promise = guard_names.helper_test(name)
    if promise:
        return against(VersionOf(promise[0]), promise[1], version_arguments(node.args, evaluate))
    bounds = {keyword.arg: keyword.value for keyword in node.keywords}
    library = guard_names.bounds_helper(name)
    if library and not node.args:
        return _between(VersionOf(library), bounds, evaluate)
    library = guard_names.operator_helper(name)
    if library and node.args:
        op = next((value for key, value in bounds.items() if key in _OPERATOR_ARGUMENTS), None)
        if op is not None and len(bounds) == len(node.args) == 1:  # ("v2.0.0", op="ge")
            return _operator_call(VersionOf(library), [op, *node.args], evaluate)
        return _operator_call(VersionOf(library), node.args, evaluate)
    compares = guard_names.two_sided_helper(name)
    if compares is None or len(node.args) < 2:
        return UNKNOWN
    version = _which_version(node.args[0], evaluate)
    if version is None:
        return UNKNOWN
    if compares == "compare":
        return _operator_call(version, node.args[1:], evaluate)
    if compares != "check":
        return against(version, compares, version_arguments(node.args[1:], evaluate))
    if len(node.args) > 2 or any(keyword.arg in ("pinned", "exact") for keyword in node.keywords):
        return UNKNOWN
    text = node.args[1].value if isinstance(node.args[1], ast.Constant) else None
    if isinstance(text, str) and text[:1] in ("<", ">", "=", "!"):
        return specifier(version, text)
    return against(version, ">=", version_arguments(node.args[1:], evaluate))


def _between(version: VersionOf, bounds: dict[str | None, ast.expr], evaluate: Evaluate) -> Formula:
    """`min_version="1.8", max_version="2.0"`; numbers count as the version that they look like."""
    tests = []
    for name, value in bounds.items():
        op = {"min_version": ">=", "max_version": "<="}.get(name or "")
        written = literal(value, evaluate)
        if op is None or written is None:
            return UNKNOWN
        tests.append(against(version, op, VersionLiteral(written.release, "version", written.pre)))
    return all_of(tests) if tests else UNKNOWN


def version_arguments(arguments: list[ast.expr], evaluate: Evaluate) -> VersionLiteral | None:
    """The version that is given as `"1.10"`, `(1, 10)` or `1, 10`."""
    literals = [literal(argument, evaluate) for argument in arguments]
    first = literals[0] if literals else None
    if first is None or first.kind != "number":
        return first if len(literals) == 1 else None
    numbers: list[int] = []
    for found in literals:
        if found is None or found.kind != "number" or len(found.release) != 1:
            return None
        numbers += found.release
    return VersionLiteral(tuple(numbers), "version")


def _operator_call(version: VersionOf, arguments: list[ast.expr], evaluate: Evaluate) -> Formula:
    """`is_torch_version(">=", "1.9")`, `compare_version("torch", operator.ge, "1.9")`, `...(">=1.9")`."""
    text = arguments[0].value if isinstance(arguments[0], ast.Constant) else None
    if len(arguments) == 1:
        return specifier(version, text) if isinstance(text, str) else UNKNOWN
    if len(arguments) != 2:
        return UNKNOWN
    word = text.strip() if isinstance(text, str) else last_name(arguments[0])
    op = OPERATOR_FUNCTIONS.get(word, word)
    if op not in _OPERATORS:
        return UNKNOWN
    return against(version, op, version_arguments(arguments[1:], evaluate))


def _which_version(node: ast.expr, evaluate: Evaluate) -> VersionOf | None:
    """The first argument of a comparing helper: `torch`, `"torch"` or `torch.__version__`."""
    if isinstance(node, ast.Constant):
        library = guard_names.distribution(node.value)
        return VersionOf(library) if library else None
    if isinstance(node, ast.Name):
        only = sole(evaluate(node))
        if isinstance(only, QualifiedName) and guard_names.distribution(only.name):
            return VersionOf(only.name)
    version = version_of(node, evaluate)
    return VersionOf(version.library) if version and version.part in ("full", "text") else None


_REQUIREMENT = pattern(r"\s*([\w.-]+?)\s*((?:[<>=!~]=?.*)?)")
_CLAUSE = pattern(r"\s*(<=|>=|==|!=|<|>)\s*([\w.+-]+)\s*")


def requirement(node: ast.expr) -> Formula:
    """`RequirementCache("torch>=1.10")`: the module is there, in such a version."""
    text = node.value if isinstance(node, ast.Constant) else None
    match = _REQUIREMENT.fullmatch(text) if isinstance(text, str) else None
    library = guard_names.distribution(match[1]) if match else None
    if match is None or library is None:
        return UNKNOWN
    return specifier(VersionOf(library), match[2]) if match[2] else HasName(library)


def demanded(call: ast.Call, evaluate: Evaluate) -> Formula:
    """What holds after `pytest.importorskip("torch", minversion="2.0")`."""
    first = call.args[0] if call.args else None
    library = guard_names.distribution(first.value) if isinstance(first, ast.Constant) else None
    for keyword in call.keywords:
        if keyword.arg == "minversion" and library is not None:
            return against(VersionOf(library), ">=", literal(keyword.value, evaluate))
    return UNKNOWN


def specifier(version: VersionOf, text: str) -> Formula:
    """`>=1.8,<2.0`."""
    clauses = []
    for clause in text.split(","):
        match = _CLAUSE.fullmatch(clause)
        if match is None:
            return UNKNOWN
        clauses.append(against(version, match[1], version_text(match[2])))
    return all_of(clauses)
