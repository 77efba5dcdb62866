"""From the test of an `if` to a formula about library versions and names."""

from __future__ import annotations

import ast
import re

from torchmigrate.names import guard_names
from torchmigrate.names.guard_helpers import against, helper_call, requirement
from torchmigrate.names.guards import (
    FALSE,
    UNKNOWN,
    Formula,
    HasName,
    Known,
    VersionTest,
    all_of,
    any_of,
    negate,
)
from torchmigrate.names.members import is_property
from torchmigrate.names.model import Const, Flag, Instance, Local, Qual, Value, VersionOf
from torchmigrate.names.version_values import (
    Evaluate,
    last_name,
    literal,
    makes_version,
    sole,
    unknown_name,
    unpack_version,
    version_attribute,
    version_call,
    version_of,
    version_text,
)

__all__ = ["catches_missing", "evaluate_special", "parse_test", "unpack_version"]

_OPERATORS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


def parse_test(node: ast.expr, evaluate: Evaluate) -> Formula:
    """What a test says about library versions and names; `UNKNOWN` if nothing.

    `evaluate` gives the value of a name, attribute or call at the place of the test.
    """
    if isinstance(node, ast.BoolOp):
        parts = [parse_test(value, evaluate) for value in node.values]
        if all(part is UNKNOWN for part in parts):  # most tests
            return UNKNOWN
        return all_of(parts) if isinstance(node.op, ast.And) else any_of(parts)
    if isinstance(node, ast.UnaryOp):
        return negate(parse_test(node.operand, evaluate)) if isinstance(node.op, ast.Not) else UNKNOWN
    if isinstance(node, ast.Compare):
        if len(node.ops) == 1:
            return _comparison(node.left, node.ops[0], node.comparators[0], evaluate)
        lefts = [node.left, *node.comparators]
        pairs = zip(lefts, node.ops, node.comparators, strict=False)
        return all_of(_comparison(left, op, right, evaluate) for left, op, right in pairs)
    if isinstance(node, ast.Call):
        return _call(node, evaluate)
    if isinstance(node, (ast.Name, ast.Attribute)):
        return _name(node, evaluate)
    if isinstance(node, ast.Constant):
        return Known(bool(node.value))
    if isinstance(node, ast.NamedExpr):
        return parse_test(node.value, evaluate)
    return UNKNOWN


def evaluate_special(node: ast.expr, evaluate: Evaluate) -> Value | None:
    """The value of an expression that is about versions or the presence of names; None for all others.

    `getattr(torch, "x", None)` is both the name, not surely bound, and the flag that it exists. The
    value of `Version("1.8")` is a `Const` with a `VersionLiteral`. `evaluate` is never asked about `node`
    itself.
    """
    if isinstance(node, ast.Call):
        return _special_call(node, evaluate)
    version: VersionOf | None = None
    if isinstance(node, ast.Attribute):
        version = version_attribute(node, evaluate)
    elif isinstance(node, (ast.Subscript, ast.ListComp, ast.GeneratorExp, ast.Tuple, ast.List)):
        version = version_of(node, evaluate)
    elif isinstance(node, (ast.Compare, ast.BoolOp, ast.UnaryOp)):
        formula = parse_test(node, evaluate)
        return None if formula is UNKNOWN or isinstance(formula, Known) else (Flag(formula),)
    return (version,) if version else None


def _special_call(node: ast.Call, evaluate: Evaluate) -> Value | None:
    formula = _call(node, evaluate)
    if formula is not UNKNOWN:
        if isinstance(formula, HasName) and last_name(node.func) == "getattr":
            return Qual(formula.qualified, sure=False, via="getattr"), Flag(formula)
        return (Flag(formula),)
    version = version_call(node, evaluate)
    if version:
        return (version,)
    if makes_version(last_name(node.func)):
        written = literal(node, evaluate)
        return (Const(written),) if written else None
    return None


# ---- names and presence -----------------------------------------------------------------------------


def _name(node: ast.Name | ast.Attribute, evaluate: Evaluate) -> Formula:
    value = evaluate(node)
    only = sole(value)
    if isinstance(only, Flag):
        return only.formula
    if isinstance(only, Local):
        return _own_test(only.node, evaluate) if is_property(only.node) else UNKNOWN
    if len(value) > 1:
        return _maybe_none(value)
    if "torch" in last_name(node).lower() or isinstance(only, Qual):
        name = unknown_name(node, evaluate)
        promise = guard_names.constant_test(name) if name else None
        if promise:
            return VersionTest(*promise)
    return UNKNOWN


def _maybe_none(value: Value) -> Formula:
    """`vmap` after `try: from torch.func import vmap / except ImportError: vmap = None`."""
    names = {candidate.name for candidate in value if isinstance(candidate, Qual)}
    presence = HasName(next(iter(names))) if len(names) == 1 else None
    for candidate in value:
        none = isinstance(candidate, Const) and candidate.value is None
        if not isinstance(candidate, Qual) and not none and candidate != Flag(presence or UNKNOWN):
            return UNKNOWN
    return presence or UNKNOWN


def _presence(node: ast.expr, evaluate: Evaluate) -> Formula:
    """What `node is not None` says."""
    if isinstance(node, (ast.Call, ast.Name, ast.Attribute, ast.NamedExpr)):
        formula = parse_test(node, evaluate)
        # A test that gives True or False is never None; a name that may be missing is.
        if isinstance(formula, HasName) and not _is_hasattr(node):
            return formula
    return UNKNOWN


def _is_hasattr(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and last_name(node.func) == "hasattr"


def _member(owner: ast.expr, name: ast.expr, evaluate: Evaluate) -> Formula:
    """The attribute called `name` of `owner` exists."""
    only = sole(evaluate(name)) if isinstance(name, (ast.Constant, ast.Name, ast.Attribute)) else None
    attribute = only.value if isinstance(only, Const) else None
    if not isinstance(attribute, str):
        return UNKNOWN
    if isinstance(owner, ast.Call):  # getattr(getattr(torch, "compiler", None), "disable", None)
        inner = _call(owner, evaluate) if last_name(owner.func) == "getattr" else UNKNOWN
        return HasName(f"{inner.qualified}.{attribute}") if isinstance(inner, HasName) else UNKNOWN
    holder = sole(evaluate(owner))
    if isinstance(holder, Qual):
        return HasName(f"{holder.name}.{attribute}")
    if isinstance(holder, Instance):
        return HasName(f"{holder.cls}.{attribute}")
    return UNKNOWN


# ---- calls ------------------------------------------------------------------------------------------


def _call(node: ast.Call, evaluate: Evaluate) -> Formula:
    name, arguments = last_name(node.func), node.args
    if name == "hasattr":
        return _member(arguments[0], arguments[1], evaluate) if len(arguments) == 2 else UNKNOWN
    if name == "getattr":
        default = arguments[2] if len(arguments) == 3 else None
        if isinstance(default, ast.Constant) and default.value in (None, False):
            return _member(arguments[0], arguments[1], evaluate)
        return UNKNOWN
    if name in ("bool", "callable"):
        return parse_test(arguments[0], evaluate) if len(arguments) == 1 else UNKNOWN
    if name == "startswith":
        return _starts_with(node, evaluate)
    spelled = name.lower()
    if not arguments and not node.keywords:
        only = sole(evaluate(node.func)) if isinstance(node.func, (ast.Name, ast.Attribute)) else None
        return _own_test(only.node, evaluate) if isinstance(only, Local) else UNKNOWN
    if "version" in spelled or "torch" in spelled:
        return helper_call(node, evaluate)
    if not arguments:
        return UNKNOWN
    if name.endswith("RequirementCache") or name == "_RequirementAvailable":
        return requirement(arguments[0])
    if guard_names.asks_for_module(name):
        asked = arguments[0].value if isinstance(arguments[0], ast.Constant) else None
        return HasName(asked) if isinstance(asked, str) else UNKNOWN
    return UNKNOWN


def _own_test(function: ast.AST, evaluate: Evaluate) -> Formula:
    """What a function of this file that only returns a test says."""
    body = function.body if isinstance(function, ast.FunctionDef) else []
    if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        body = body[1:]  # its docstring
    if len(body) != 1 or not isinstance(body[0], ast.Return) or body[0].value is None:
        return UNKNOWN

    def elsewhere(node: ast.expr) -> Value:
        # Not again what this file defines: functions may call each other in circles.
        value = evaluate(node)
        return () if any(isinstance(item, Local) for item in value) else value

    formula = parse_test(body[0].value, elsewhere)
    return UNKNOWN if isinstance(formula, Known) else formula  # another class may return something else


# ---- comparisons ------------------------------------------------------------------------------------


def _comparison(left: ast.expr, op: ast.cmpop, right: ast.expr, evaluate: Evaluate) -> Formula:
    if isinstance(op, (ast.In, ast.NotIn)):
        formula = _membership(left, right, evaluate)
        return negate(formula) if isinstance(op, ast.NotIn) else formula
    if isinstance(right, ast.Constant) and (right.value is None or isinstance(right.value, bool)):
        if right.value is None:
            formula = negate(_presence(left, evaluate))
        else:
            formula = parse_test(left, evaluate)
            formula = formula if right.value else negate(formula)
        return negate(formula) if isinstance(op, (ast.IsNot, ast.NotEq)) else formula
    sign = _OPERATORS.get(type(op))
    if sign is None:
        return UNKNOWN
    written = literal(right, evaluate)
    if written:
        version = version_of(left, evaluate)
    elif isinstance(right, ast.Constant) and isinstance(right.value, str):
        return _unlike_a_version(left, sign, right.value, evaluate)
    else:
        written = literal(left, evaluate)
        version = version_of(right, evaluate) if written else None
        sign = _MIRRORED[sign]
    return against(version, sign, written) if version else UNKNOWN


def _unlike_a_version(left: ast.expr, sign: str, text: str, evaluate: Evaluate) -> Formula:
    """`torch.__version__ == "parrots"`: another framework that poses as torch."""
    if sign not in ("==", "!=") or not text.isalpha():
        return UNKNOWN
    version = version_of(left, evaluate)
    return Known(sign == "!=") if version and version.part in ("full", "text") else UNKNOWN


def _membership(left: ast.expr, right: ast.expr, evaluate: Evaluate) -> Formula:
    if isinstance(right, (ast.Tuple, ast.List, ast.Set)):
        version = None if isinstance(left, ast.Constant) else version_of(left, evaluate)
        if version is None:
            return UNKNOWN
        options = [against(version, "==", literal(element, evaluate)) for element in right.elts]
        return UNKNOWN if UNKNOWN in options else any_of(options)
    if not isinstance(left, ast.Constant) or not isinstance(left.value, str):
        return UNKNOWN
    if isinstance(right, ast.Call) and last_name(right.func) in ("dir", "vars") and len(right.args) == 1:
        return _member(right.args[0], left, evaluate)
    if isinstance(right, ast.Attribute) and right.attr in ("__dict__", "__all__"):
        return _member(right.value, left, evaluate)
    version = version_of(right, evaluate)
    if version is None:
        return _parameter(right, left.value, evaluate)
    if version.part not in ("full", "text"):
        return UNKNOWN
    if left.value.isalpha() and len(left.value) >= _LONGER_THAN_MARKS:
        return FALSE
    written = version_text(left.value)
    if written is None or written.pre or len(written.release) < 2:
        return UNKNOWN
    return VersionTest(version.library, "contains", written.release)


# `"parrots" in torch.__version__`: another framework; "dev", "alpha", "cu" and "git" are in those of torch.
_LONGER_THAN_MARKS = 6


def _parameter(asked: ast.expr, name: str, evaluate: Evaluate) -> Formula:
    """`"out" in inspect.signature(torch.f).parameters`, or in what a helper lists of a function."""
    node = asked
    while True:
        if isinstance(node, ast.Call) and node.args:
            listed = _LISTS_PARAMETERS.search(last_name(node.func)) is not None and len(node.args) == 1
            function = sole(evaluate(node.args[0])) if listed else None
            break
        if isinstance(node, ast.Call):  # .keys()
            node = node.func
        elif isinstance(node, ast.Attribute) and node.attr == "__code__":
            function = sole(evaluate(node.value))
            break
        elif isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
        else:
            return UNKNOWN
    if not isinstance(function, Qual) or not name.isidentifier():
        return UNKNOWN
    return HasName(f"{function.name.removesuffix('.__init__')}({name})")


# inspect.signature, getfullargspec, and helpers such as get_func_args or parameter_names.
_LISTS_PARAMETERS = re.compile("signature|arg|param", re.IGNORECASE)

_PREFIX = re.compile(r"\d+(?:\.\d+)*(\.?)")


def _starts_with(node: ast.Call, evaluate: Evaluate) -> Formula:
    """`torch.__version__.startswith("1.")`, or with a tuple of prefixes."""
    if not isinstance(node.func, ast.Attribute) or len(node.args) != 1:
        return UNKNOWN
    given = node.args[0]
    prefixes = given.elts if isinstance(given, ast.Tuple) else [given]
    texts = [prefix.value if isinstance(prefix, ast.Constant) else None for prefix in prefixes]
    matches = [_PREFIX.fullmatch(text) if isinstance(text, str) else None for text in texts]
    if not all(matches):
        return UNKNOWN
    version = version_of(node.func.value, evaluate)
    if version is None or version.part not in ("full", "text"):
        return UNKNOWN
    options = []
    for match in matches:
        assert match is not None
        release = tuple(int(number) for number in match[0].strip(".").split("."))
        options.append(VersionTest(version.library, "series" if match[1] else "startswith", release))
    return any_of(options)


# ---- try ---------------------------------------------------------------------------------------------

_MISSING = frozenset(
    (
        "ImportError",
        "ModuleNotFoundError",
        "AttributeError",
        "RuntimeError",
        "TypeError",
        "Exception",
        "BaseException",
    )
)


def catches_missing(node: ast.Try) -> bool:
    """Whether a handler of this `try` would run where an import or an attribute is missing."""
    for handler in node.handlers:
        if handler.type is None:
            return True
        kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        for kind in kinds:
            name = kind.id if isinstance(kind, ast.Name) else getattr(kind, "attr", "")
            if name in _MISSING:
                return True
    return False
