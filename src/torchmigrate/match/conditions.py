"""Whether the arguments of a use are what a rule or a case asks for."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct, field

from torchmigrate.catalogue.model import Condition
from torchmigrate.evidence.kinds import OTHER
from torchmigrate.match.context import MatchContext
from torchmigrate.match.signature import RECEIVER, Argument, Bound, Signature
from torchmigrate.semantics.facts.dtypes import INT
from torchmigrate.semantics.facts.file_facts import NOT_CONSTANT
from torchmigrate.semantics.model import Use
from torchmigrate.source.trees import walk

_TYPES: dict[type, str] = {
    str: "str", int: "int", float: "float", bool: "bool", type(None): "none", tuple: "tuple", list: "list",
}  # fmt: skip
_DISPLAYS: dict[type, str] = {
    ast.List: "list",
    ast.ListComp: "list",
    ast.Tuple: "tuple",
    ast.JoinedStr: "str",
}

_PREDICATES = frozenset(["all", "any", "bool", "callable", "hasattr", "isinstance", "issubclass"])


class ArgumentValue(Struct, frozen=True):
    """What the use gives to the parameters, and to the metavariables of a pattern.

    captures: metavariable -> what it stands for; a list for `*$xs` and `**$kw`.
    """

    signature: Signature | None
    arguments: Sequence[Argument]
    bound: Bound
    receiver: ast.expr | None = None
    captures: Mapping[str, ast.expr | list[ast.AST]] = field(default_factory=dict)

    def state(self, name: str) -> str:
        """Of a parameter: "given", "absent" or "unknown"."""
        if name in self.captures or name in self.bound.given:
            return "given" if self.captures.get(name) != [] else "absent"
        return "absent" if self.bound.understood else "unknown"

    def expression(self, name: str) -> ast.expr | None:
        """The one expression that is given; None if there is none, or several."""
        if name in self.captures:
            captured = self.captures[name]
            return captured if isinstance(captured, ast.expr) else None
        indices = self.bound.given.get(name, ())
        if len(indices) != 1:
            return None
        if indices[0] == RECEIVER:
            return self.receiver
        argument = self.arguments[indices[0]]
        return None if argument.star else argument.value

    def is_positional(self, name: str) -> bool:
        """Whether the one argument for a parameter is given without its name."""
        indices = self.bound.given.get(name, ())
        if len(indices) != 1 or indices[0] == RECEIVER:
            return False
        argument = self.arguments[indices[0]]
        return not argument.star and argument.keyword is None

    def default(self, name: str) -> ast.expr | None:
        """The default of an absent parameter."""
        parameter = self.signature.by_name.get(name) if self.signature else None
        return parameter.default if parameter else None


def all_hold(
    conditions: Mapping[str, Condition], given: ArgumentValue, place: MatchContext, *, finding: bool = False
) -> bool:
    """Whether every condition surely holds, as a fix needs it.

    For a `finding`, an argument whose value is not known counts as different from any literal: `{not: v}`
    leaves out only what surely is `v`.
    """
    return all(
        holds(condition, name, given, place, finding=finding)
        or (finding and condition.kind in ("not-value", "not-prefix") and _is_unknown(name, given, place))
        for name, condition in conditions.items()
    )


def _is_unknown(name: str, given: ArgumentValue, place: MatchContext) -> bool:
    node = given.expression(name) if given.state(name) == "given" else None
    return node is not None and place.shown(node) is NOT_CONSTANT


def holds(
    condition: Condition, name: str, given: ArgumentValue, place: MatchContext, *, finding: bool = False
) -> bool:
    """Whether a condition on one parameter surely holds. The default counts for an absent argument.

    finding: decide for a finding, for which one of the recorded runs is enough.
    """
    if condition.kind == "any":
        return True
    state = given.state(name)
    if condition.kind in ("given", "absent"):
        return state == condition.kind
    if state == "unknown":
        return False
    if condition.kind == "positional":
        return given.is_positional(name)
    node = given.expression(name) if state == "given" else given.default(name)
    if node is None:
        return False
    if condition.kind == "object":
        return state == "given" and not _is_own(node)
    if condition.kind == "name":
        called = place.qualified(node) if state == "given" else _dotted(node)
        return called is not None and called in condition.values
    if condition.kind == "call":
        if not isinstance(node, ast.Call) or state != "given":
            return False
        # What asks for a gradient itself is another thing than what a plain factory returns.
        if any(keyword.arg in (None, "requires_grad") for keyword in node.keywords):
            return False
        called = place.qualified(node.func)
        return called is not None and called in condition.values
    if condition.kind == "is":
        return state == "given" and _is(node, condition, place, once=finding)
    if condition.kind == "other-shape":
        return state == "given" and _differs(node, given.expression(str(condition.values[0])), place)
    if condition.kind == "keys":
        return not _keys(node).isdisjoint(condition.values)
    if condition.kind == "takes":
        taken = place.parameters(node) if state == "given" else None
        return taken is not None and _count(taken) in condition.values
    read = place.shown if finding else place.value
    value = read(node) if state == "given" else literal(node)
    if condition.kind == "type":
        return _type(node, value, place) in condition.values
    if condition.kind == "not-type":
        return _type(node, value, place) not in condition.values
    if value is NOT_CONSTANT:
        return False
    if condition.kind == "literal":
        return True
    found = any(same(value, wanted) for wanted in condition.values)
    if condition.kind == "value":
        return found
    if condition.kind == "not-value":
        return not found
    if condition.kind == "matches":
        return isinstance(value, str) and re.search(str(condition.values[0]), value) is not None
    if condition.kind == "not-prefix":
        return not (isinstance(value, str) and value.startswith(tuple(map(str, condition.values))))
    raise ValueError(f"unknown kind of condition: {condition.kind}")


def _type(node: ast.expr, value: object, place: MatchContext) -> str | None:
    """The type of a literal, or of an expression that always gives a bool; None: not known."""
    if value is not NOT_CONSTANT:
        return _TYPES.get(type(value))
    return "bool" if _is_bool(node, place) else _DISPLAYS.get(type(node))


def _is_bool(node: ast.expr, place: MatchContext) -> bool:
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Not)
    if isinstance(node, ast.Compare):
        return all(isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in node.ops)
    if isinstance(node, ast.BoolOp):
        return all(_is_bool(item, place) or type(place.value(item)) is bool for item in node.values)
    if not isinstance(node, ast.Call):
        return False
    called = place.qualified(node.func)
    return (called is not None and called.endswith(".is_available")) or (
        isinstance(node.func, ast.Name) and node.func.id in _PREDICATES
    )


def _is(node: ast.expr, condition: Condition, place: MatchContext, *, once: bool) -> bool:
    """Whether an expression is of a kind by what the file says, or else by what was seen.

    once: decide for a finding, for which one run is enough.
    """
    if not place.kinds(node, frozenset(map(str, condition.values))).isdisjoint(condition.values):
        return True
    if INT in condition.values and type(place.value(node)) in (int, bool):
        return True
    if place.seen(node, once).isdisjoint(condition.values):
        return False
    if once:
        place.use.seen = True
    else:
        place.use.seen_for_fix = True
    return True


def _differs(node: ast.expr, other: ast.expr | None, place: MatchContext) -> bool:
    """Whether the arguments of a call had different shapes in a run that was recorded.

    That is known of the first two; of others the numbers of dimensions are, which must differ in every run.
    Where they did in a call of the same function before, that may have ended a run which did not come to this
    one.
    """
    if other is None or not place.recorded:
        return False
    told = place.shapes(place.use.node)
    one, two = place.depths(node), place.depths(other)
    differs = OTHER in told
    if not told and one and two and None not in one | two:
        differs = one.isdisjoint(two)
    if not differs and (told or not one | two):
        differs = any(OTHER in place.shapes(call.func) for call in _calls_before(place.use))
    if differs:
        place.use.seen_for_fix = True
    return differs


def _calls_before(use: Use) -> Iterator[ast.Call]:
    """The calls of the same function that are statements before that of a use in its block."""
    wanted = ast.dump(use.node)
    for statement in use.block:
        if statement is use.statement:
            return
        call = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(call, ast.Call) and ast.dump(call.func) == wanted:
            yield call


def _keys(node: ast.expr) -> set[object]:
    """The strings that are keys of a dict, as far as it is written there: `{"a": 1}` or `dict(a=1)`."""
    if isinstance(node, ast.Dict):
        return {
            key.value for key in node.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)
        }
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict":
        return {keyword.arg for keyword in node.keywords if keyword.arg is not None}
    return set()


def _count(parameters: ast.arguments) -> int:
    """How many parameters `inspect.signature` sees."""
    plain = (*parameters.posonlyargs, *parameters.args, *parameters.kwonlyargs)
    return len(plain) + (parameters.vararg is not None) + (parameters.kwarg is not None)


def _is_own(node: ast.expr) -> bool:
    """`self` or `super()`: what is called on it is part of a class of the same kind."""
    if isinstance(node, ast.Name):
        return node.id == "self"
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"


def literal(node: ast.expr) -> object:
    """The value of a literal (numbers with a sign, strings, tuples and lists included)."""
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return NOT_CONSTANT


def same(one: object, other: object) -> bool:
    """Whether two literals are equal. Unlike in Python, True is not 1; a list is equal to a tuple."""
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return bool(one == other)


def is_plain(node: ast.expr) -> bool:
    """A literal, a name or an attribute of one: may be written twice, and evaluated or not, at no risk."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) or literal(node) is not NOT_CONSTANT


def binds_or_waits(node: ast.AST) -> bool:
    """Whether an expression must stay where it is in the order of evaluation."""
    return any(
        isinstance(inner, (ast.Await, ast.NamedExpr, ast.Yield, ast.YieldFrom)) for inner in walk(node)
    )


def names_in(node: ast.AST) -> set[str]:
    """The names that an expression reads or binds."""
    return {inner.id for inner in walk(node) if isinstance(inner, ast.Name)}


def _dotted(node: ast.expr) -> str | None:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else None
