"""From the test of an `if` to a formula about library versions and names."""

from __future__ import annotations

import ast
import re
from functools import cache

from torchmigrate.patterns import pattern
from torchmigrate.semantics.formulas import (
    FALSE,
    TRUE,
    UNKNOWN,
    Formula,
    HasName,
    Known,
    VersionTest,
    all_of,
    any_of,
    both,
    is_certain,
    negate,
)
from torchmigrate.semantics.guards import spellings as guard_names
from torchmigrate.semantics.guards.formulas import lower_bound
from torchmigrate.semantics.guards.functions import (
    Inside,
    answering,
    entered,
    is_property,
    may_answer,
    may_refuse,
    own_test,
    text_of,
    what_it_demands,
)
from torchmigrate.semantics.guards.helpers import (
    OPERATOR_FUNCTIONS,
    against,
    helper_call,
    requirement,
    specifier,
)
from torchmigrate.semantics.guards.marks import mark
from torchmigrate.semantics.guards.version_values import (
    Evaluate,
    last_name,
    literal,
    makes_version,
    sole,
    takes_versions_apart,
    unknown_name,
    unpack_version,
    version_attribute,
    version_call,
    version_of,
    version_text,
)
from torchmigrate.semantics.model import (
    OPAQUE,
    Const,
    Flag,
    Foreign,
    Instance,
    Local,
    Mark,
    Parameters,
    QualifiedName,
    Value,
    VersionOf,
    Via,
)

__all__ = [
    "catches_missing",
    "demanded_by",
    "evaluate_special",
    "mark_of",
    "may_mark",
    "parse_test",
    "unpack_version",
]

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
    if isinstance(node, ast.IfExp):
        test = parse_test(node.test, evaluate)
        sides = parse_test(node.body, evaluate), parse_test(node.orelse, evaluate)
        return any_of((both(test, sides[0]), both(negate(test), sides[1])))
    if isinstance(node, ast.NamedExpr):
        return parse_test(node.value, evaluate)
    return UNKNOWN


def evaluate_special(node: ast.expr, evaluate: Evaluate) -> Value | None:
    """The value of an expression that is about versions or the presence of names; None for all others.

    `getattr(torch, "x", None)` is both the name, not surely bound, and the flag that it exists. The
    value of `Version("1.8")` is a `Const` with a `VersionLiteral`. `evaluate` is never called with `node`
    itself.
    """
    if isinstance(node, ast.Call):
        return _special_call(node, evaluate)
    version: VersionOf | None = None
    if isinstance(node, ast.Lambda):
        return (Local("<lambda>", node),)
    if isinstance(node, (ast.Attribute, ast.BoolOp)):
        listed = _listed(node, evaluate)
        if listed is not None:
            return (listed,)
    if isinstance(node, ast.Attribute):
        version = version_attribute(node, evaluate)
    elif isinstance(node, (ast.Subscript, ast.ListComp, ast.GeneratorExp, ast.Tuple, ast.List)):
        version = version_of(node, evaluate)
    elif isinstance(node, (ast.Compare, ast.BoolOp, ast.UnaryOp)) or _chooses_flag(node):
        formula = parse_test(node, evaluate)
        return None if formula is UNKNOWN or isinstance(formula, Known) else (Flag(formula),)
    return (version,) if version else None


def _chooses_flag(node: ast.expr) -> bool:
    """`True if hasattr(torch, "linalg") else False`"""
    sides = (node.body, node.orelse) if isinstance(node, ast.IfExp) else ()
    return any(isinstance(side, ast.Constant) and isinstance(side.value, bool) for side in sides)


def mark_of(node: ast.expr, evaluate: Evaluate) -> Formula:
    """Under which test that runs which a decorator marks; `UNKNOWN` if it says nothing."""
    return mark(node, evaluate, parse_test, _value)


def _value(node: ast.expr, evaluate: Evaluate) -> Value:
    """The value of any expression, also of one that is about versions."""
    return evaluate_special(node, evaluate) or evaluate(node)


def _special_call(node: ast.Call, evaluate: Evaluate) -> Value | None:
    name = last_name(node.func)
    if _is_plain(name):  # most are; all that follows would come to the same
        listed = None if node.args else _listed(node, evaluate)
        if listed is not None:
            return (listed,)
        answer = _answered(node, evaluate) or UNKNOWN
        return None if answer is UNKNOWN else (Flag(answer),)
    marked = mark_of(node, evaluate) if may_mark(name) else UNKNOWN
    if marked is not UNKNOWN:
        return (Mark(marked),)
    listed = _listed(node, evaluate)
    if listed is not None:
        return (listed,)
    formula = _unlisted_call(node, evaluate)
    if formula is not UNKNOWN:
        if isinstance(formula, HasName) and name == "getattr":
            return QualifiedName(formula.qualified, sure=False, via=Via.GETATTR), Flag(formula)
        return (Flag(formula),)
    version = version_call(node, evaluate)
    if version:
        return (version,)
    if makes_version(name):
        written = literal(node, evaluate)
        return (Const(written),) if written else None
    return None


@cache
def _is_plain(name: str) -> bool:
    """Whether a call says nothing by the name of its function: only what that is in this file may."""
    lowered = name.lower()
    return not (
        name in _CALLS
        or name in _COLLECTS
        or "version" in lowered
        or "torch" in lowered
        or takes_versions_apart(name)
        or guard_names.asks_for_module(name)
        or _is_requirement(name)
        or may_mark(name)
        or _lists_parameters(name)
    )


_MARKS = pattern("skip|xfail|require|implement_for|run_?if", re.IGNORECASE)


@cache  # the same few names repeat
def may_mark(name: str) -> bool:
    """Whether a function may make a decorator that decides whether something runs."""
    return _MARKS.search(name) is not None


# ---- names and presence -----------------------------------------------------------------------------


def _name(node: ast.Name | ast.Attribute, evaluate: Evaluate) -> Formula:
    value = evaluate(node)
    only = sole(value)
    if isinstance(only, Flag):
        return only.formula
    if isinstance(only, Const) and _is_held(node, evaluate):
        return Known(bool(only.value))  # what a function is given, or takes where nothing is given
    listed = _listed(node, evaluate) if isinstance(node, ast.Attribute) else only
    if isinstance(listed, Parameters):
        return _has_defaults(listed)
    if isinstance(only, Local):
        return _own_test(only.node, None, evaluate) if is_property(only.node) else UNKNOWN
    if len(value) > 1:
        return _maybe_none(value)
    if "torch" in last_name(node).lower() or isinstance(only, QualifiedName):
        name = unknown_name(node, evaluate)
        promise = guard_names.constant_test(name) if name else None
        if promise:
            return VersionTest(*promise)
    return UNKNOWN


def _is_held(node: ast.expr, evaluate: Evaluate) -> bool:
    """Whether this is a parameter, or a local name, of a function that only answers a test."""
    return isinstance(evaluate, Inside) and isinstance(node, ast.Name) and node.id in evaluate.held


def _maybe_none(value: Value) -> Formula:
    """`vmap` after `try: from torch.func import vmap / except ImportError: vmap = None`."""
    names = {candidate.name for candidate in value if isinstance(candidate, QualifiedName)}
    presence = HasName(next(iter(names))) if len(names) == 1 else None
    for candidate in value:
        none = isinstance(candidate, Const) and candidate.value is None
        if not isinstance(candidate, QualifiedName) and not none and candidate != Flag(presence or UNKNOWN):
            return UNKNOWN
    return presence or UNKNOWN


def _presence(node: ast.expr, evaluate: Evaluate) -> Formula:
    """What `node is not None` says."""
    if isinstance(node, (ast.Call, ast.Name, ast.Attribute, ast.NamedExpr)):
        only = sole(evaluate(node)) if _is_held(node, evaluate) else None
        if isinstance(only, Const):
            return Known(only.value is not None)
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
    if isinstance(holder, QualifiedName):
        return HasName(f"{holder.name}.{attribute}")
    if isinstance(holder, Instance):
        return HasName(f"{holder.cls}.{attribute}")
    return UNKNOWN


# ---- calls ------------------------------------------------------------------------------------------


def _call(node: ast.Call, evaluate: Evaluate) -> Formula:
    listed = _listed(node, evaluate)
    return _unlisted_call(node, evaluate) if listed is None else _has_defaults(listed)


def _unlisted_call(node: ast.Call, evaluate: Evaluate) -> Formula:
    """What a call says that lists no parameters."""
    name, arguments = last_name(node.func), node.args
    if name == "hasattr":
        return _member(arguments[0], arguments[1], evaluate) if len(arguments) == 2 else UNKNOWN
    if name == "get" and isinstance(node.func, ast.Attribute) and len(arguments) == 1:
        return _parameter_of(_listed(node.func.value, evaluate), arguments[0], evaluate)
    if name == "getattr":
        default = arguments[2] if len(arguments) == 3 else None
        if isinstance(default, ast.Constant) and default.value in (None, False):
            return _member(arguments[0], arguments[1], evaluate)
        return UNKNOWN
    if name in ("any", "all") and len(arguments) == 1:
        tests = _each(arguments[0], evaluate)
        return UNKNOWN if tests is None else any_of(tests) if name == "any" else all_of(tests)
    if name == "contains" and arguments and isinstance(node.func, ast.Attribute):
        return _specified(arguments[0], node.func.value, evaluate)
    if name in ("bool", "callable"):
        return parse_test(arguments[0], evaluate) if len(arguments) == 1 else UNKNOWN
    if name == "startswith":
        return _starts_with(node, evaluate)
    answer = _answered(node, evaluate)
    if answer is None:
        return UNKNOWN if _is_plain(name) else _named_call(node, evaluate)
    # Of one that is elsewhere the name may tell more than what it does.
    if is_certain(answer) or _is_plain(name) or not isinstance(sole(evaluate(node.func)), Foreign):
        return answer
    named = _named_call(node, evaluate)
    return answer if named is UNKNOWN else named


def _named_call(node: ast.Call, evaluate: Evaluate) -> Formula:
    """What the name of a function says of a call."""
    name, arguments = last_name(node.func), node.args
    spelled = name.lower()
    if not arguments and not node.keywords:
        return UNKNOWN
    if "version" in spelled or "torch" in spelled:
        return helper_call(node, evaluate)
    if not arguments:
        return UNKNOWN
    if _is_requirement(name):
        return requirement(arguments[0])
    if guard_names.asks_for_module(name):
        asked = arguments[0].value if isinstance(arguments[0], ast.Constant) else None
        return HasName(asked) if isinstance(asked, str) else UNKNOWN
    return UNKNOWN


# Functions with a meaning of their own.
_CALLS = frozenset(("hasattr", "get", "getattr", "any", "all", "contains", "bool", "callable", "startswith"))


def _is_requirement(name: str) -> bool:
    return name.endswith("RequirementCache") or name == "_RequirementAvailable"


def _answered(node: ast.Call, evaluate: Evaluate) -> Formula | None:
    """What a call says because of what its function is: one of this file, or of `operator`; else None."""
    func, arguments = node.func, node.args
    callee = evaluate(func) if isinstance(func, (ast.Name, ast.Attribute)) else ()
    if len(callee) == 1 and callee[0] is OPAQUE:  # most
        return None
    own = answering(callee, evaluate)
    if own is not None:
        function, meant = own
        formula = _own_test(function, node, meant, lambda item: _value(item, evaluate))
        if formula is not UNKNOWN:
            return formula
    if len(arguments) == 2:
        sign = _operator(func, sole(callee), evaluate)
        if sign is not None:
            return _compared(arguments[0], sign, arguments[1], evaluate)
    return None


def _each(node: ast.expr, evaluate: Evaluate) -> list[Formula] | None:
    """The tests in `[v in torch.__version__ for v in ("1.6", "1.7")]`, or in a list; None: not known."""
    if isinstance(node, (ast.List, ast.Tuple)):
        return [parse_test(item, evaluate) for item in node.elts]
    if not isinstance(node, (ast.GeneratorExp, ast.ListComp)) or len(node.generators) != 1:
        return None
    loop = node.generators[0]
    if not isinstance(loop.iter, (ast.List, ast.Tuple, ast.Set)) or not isinstance(loop.target, ast.Name):
        return None
    if loop.ifs or len(loop.iter.elts) > _MOST_TESTS:
        return None
    name = loop.target.id
    return [parse_test(node.elt, Inside(evaluate, {name: evaluate(item)})) for item in loop.iter.elts]


_MOST_TESTS = 20  # that are written out from one comprehension


def _own_test(
    function: ast.AST, call: ast.Call | None, evaluate: Evaluate, value: Evaluate | None = None
) -> Formula:
    """What a function of the project says that only answers a test. value: of an argument."""
    if not may_answer(function):
        return UNKNOWN

    def default(node: ast.expr) -> Value:
        return _value(node, evaluate)

    inside = entered(function, call, evaluate, value or default, default)
    if inside is None:
        return UNKNOWN
    return own_test(function, inside, parse_test, lambda node: _value(node, inside))


def demanded_by(node: ast.Call, evaluate: Evaluate) -> Formula:
    """What holds after a call, since the function of the project that is called raises otherwise.

    `UNKNOWN` if nothing is known of it. The formula has only conditions that hold on all later releases, too.
    """
    func = node.func
    if not isinstance(func, ast.Name) and not (
        isinstance(func, ast.Attribute) and isinstance(func.value, (ast.Name, ast.Attribute))
    ):
        return UNKNOWN
    own = answering(evaluate(func), evaluate)
    if own is None or not isinstance(own[0], ast.FunctionDef) or not may_refuse(own[0]):
        return UNKNOWN
    function, meant = own
    inside = entered(
        function, node, meant, lambda item: _value(item, evaluate), lambda item: _value(item, meant)
    )
    if inside is None:
        return UNKNOWN
    held = what_it_demands(
        function,
        inside,
        parse_test,
        lambda item: _value(item, inside),
        lambda call: demanded_by(call, inside),
    )
    bound = lower_bound(held)
    return UNKNOWN if bound is TRUE else bound


def _operator(function: ast.expr, callee: object, evaluate: Evaluate) -> str | None:
    """The comparison that `operator.ge`, or `OPERATORS[">="]`, stands for."""
    if isinstance(callee, QualifiedName):
        module, _, name = callee.name.rpartition(".")
        return OPERATOR_FUNCTIONS.get(name) if module == "operator" else None
    if isinstance(function, ast.Subscript) and isinstance(function.slice, (ast.Constant, ast.Name)):
        text = text_of(evaluate(function.slice))
        return text if text in _MIRRORED else None
    return None


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
    return UNKNOWN if sign is None else _compared(left, sign, right, evaluate)


def _compared(left: ast.expr, sign: str, right: ast.expr, evaluate: Evaluate) -> Formula:
    """`left` against `right`; one of them is a version that is written in the code."""
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


def _specified(left: ast.expr, right: ast.expr, evaluate: Evaluate) -> Formula:
    """`torch.__version__ in SpecifierSet("<1.8")`."""
    if not isinstance(right, ast.Call) or last_name(right.func) != "SpecifierSet" or not right.args:
        return UNKNOWN
    text, version = right.args[0], version_of(left, evaluate)
    if version is None or not isinstance(text, ast.Constant) or not isinstance(text.value, str):
        return UNKNOWN
    return specifier(VersionOf(version.library), text.value) if version.part in ("full", "text") else UNKNOWN


def _membership(left: ast.expr, right: ast.expr, evaluate: Evaluate) -> Formula:
    specified = _specified(left, right, evaluate)
    if specified is not UNKNOWN:
        return specified
    if isinstance(right, (ast.Tuple, ast.List, ast.Set)):
        version = None if isinstance(left, ast.Constant) else version_of(left, evaluate)
        if version is None:
            return UNKNOWN
        options = [against(version, "==", literal(element, evaluate)) for element in right.elts]
        return UNKNOWN if UNKNOWN in options else any_of(options)
    text = text_of(evaluate(left)) if isinstance(left, (ast.Constant, ast.Name)) else None
    if text is None:
        return UNKNOWN
    if isinstance(right, ast.Call) and last_name(right.func) in ("dir", "vars") and len(right.args) == 1:
        return _member(right.args[0], left, evaluate)
    if isinstance(right, ast.Attribute) and right.attr in ("__dict__", "__all__"):
        return _member(right.value, left, evaluate)
    if text in _IMPORTED_BY_TORCH and evaluate(right) == (QualifiedName("sys.modules"),):
        return HasName(text)
    version = version_of(right, evaluate)
    if version is None:
        return _parameter(right, text, evaluate)
    if version.part not in ("full", "text"):
        return UNKNOWN
    if text.isalpha() and len(text) >= _LONGER_THAN_MARKS:
        return FALSE
    written = version_text(text)
    if written is None or written.pre or len(written.release) < 2:
        return UNKNOWN
    return VersionTest(version.library, "contains", written.release)


# Modules that are in `sys.modules` after `import torch`, in every release that has them.
_IMPORTED_BY_TORCH = frozenset(("torch.amp", "torch.fft", "torch.linalg", "torch.special"))
# `"parrots" in torch.__version__`: another framework; "dev", "alpha", "cu" and "git" are in those of torch.
_LONGER_THAN_MARKS = 6


def _parameter(asked: ast.expr, name: str, evaluate: Evaluate) -> Formula:
    """`"out" in inspect.signature(torch.f).parameters`, or in what a helper lists of a function."""
    listed = _listed(asked, evaluate)
    if listed is None or listed.part == "=" or not name.isidentifier():
        return UNKNOWN
    return HasName(f"{listed.function.removesuffix('.__init__')}({name})")


def _parameter_of(listed: Parameters | None, name: ast.expr, evaluate: Evaluate) -> Formula:
    """`inspect.signature(torch.f).parameters.get("out")`; a default may be anything, None as well."""
    text = text_of(evaluate(name)) if isinstance(name, (ast.Constant, ast.Name)) else None
    if listed is None or listed.part or text is None or not text.isidentifier():
        return UNKNOWN
    return HasName(f"{listed.function.removesuffix('.__init__')}({text})")


def _has_defaults(listed: Parameters) -> Formula:
    """What `torch.f.__kwdefaults__` says as a test: it is None where there are none."""
    return HasName(f"{listed.function}({listed.part})") if listed.part else UNKNOWN


def _listed(node: ast.expr, evaluate: Evaluate) -> Parameters | None:
    """The function whose parameters an expression lists; None if it lists something else."""
    part = ""
    while True:
        if isinstance(node, ast.Name):
            only = sole(evaluate(node))
            return only if isinstance(only, Parameters) else None
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or) and _is_empty(node.values[-1]):
            node = node.values[0]  # `torch.f.__kwdefaults__ or {}`
        elif isinstance(node, ast.Call) and node.args:
            name = last_name(node.func)
            if name in _COLLECTS and len(node.args) == 1:
                node = node.args[0]
                continue
            asked = node.args[1] if name == "getattr" and len(node.args) > 1 else None
            if isinstance(asked, ast.Constant) and asked.value in _DEFAULTS:
                part = _DEFAULTS[asked.value]
            elif len(node.args) > 1 or not _lists_parameters(name):
                return None
            function = sole(evaluate(node.args[0]))
            break
        elif isinstance(node, ast.Call):  # .keys()
            node = node.func
        elif isinstance(node, ast.Attribute) and node.attr in _OF_FUNCTIONS:
            part = _DEFAULTS.get(node.attr, "")
            function = sole(evaluate(node.value))
            break
        elif isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)) and _takes_names(node):
            node = node.generators[0].iter
        else:
            return None
    return Parameters(function.name, part) if isinstance(function, QualifiedName) else None


def _is_empty(node: ast.expr) -> bool:
    """Whether this is `{}`, `()`, `[]`, `dict()` or the like."""
    if isinstance(node, ast.Call):
        return not (node.args or node.keywords) and last_name(node.func) in _COLLECTS
    return not (node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", [node]))


def _takes_names(node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> bool:
    """`[p.name for p in inspect.signature(torch.f).parameters.values()]`"""
    (loop, *others) = node.generators
    elt = node.elt.value if isinstance(node.elt, ast.Attribute) and node.elt.attr == "name" else node.elt
    same = isinstance(elt, ast.Name) and isinstance(loop.target, ast.Name) and elt.id == loop.target.id
    return same and not others and not loop.ifs


@cache
def _lists_parameters(name: str) -> bool:
    """inspect.signature, getfullargspec, and helpers such as get_func_args or parameter_names."""
    return re.search("signature|arg|param", name, re.IGNORECASE) is not None


_DEFAULTS = {"__kwdefaults__": "*", "__defaults__": "="}
_OF_FUNCTIONS = frozenset(("__code__", *_DEFAULTS))
_COLLECTS = frozenset(("list", "tuple", "set", "frozenset", "dict", "sorted"))

_PREFIX = pattern(r"\d+(?:\.\d+)*(\.?)")


def _starts_with(node: ast.Call, evaluate: Evaluate) -> Formula:
    """`torch.__version__.startswith("1.")`, or with a tuple of prefixes."""
    if not isinstance(node.func, ast.Attribute) or len(node.args) != 1:
        return UNKNOWN
    given = node.args[0]
    prefixes = given.elts if isinstance(given, ast.Tuple) else [given]
    texts = [text_of(evaluate(prefix)) for prefix in prefixes]
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
        "NotImplementedError",
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
