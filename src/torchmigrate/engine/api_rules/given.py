"""Whether an argument is given in a way that a function warns about."""

from __future__ import annotations

import ast

from msgspec import Struct

from torchmigrate.match.signature import Signature
from torchmigrate.semantics.model import Scope

# Their values are surely not None, whatever they are.
_SOMETHING = (
    ast.Constant,
    ast.JoinedStr,
    ast.Dict,
    ast.List,
    ast.Tuple,
    ast.Set,
    ast.ListComp,
    ast.Lambda,
    ast.Compare,
    ast.BinOp,
    ast.UnaryOp,
)


class _Literal(Struct, frozen=True):
    value: object


class Given:
    """The test of a deprecated parameter (`DeprecatedParameter.test`).

    name: the parameter. shown: it, or the argument that it is about, `typ='reference'`.
    """

    def __init__(self, test: str) -> None:
        tree = ast.parse(test, mode="eval").body
        self._negated = isinstance(tree, ast.UnaryOp)
        self._compare = tree if isinstance(tree, ast.Compare) else None
        subject = tree.operand if isinstance(tree, ast.UnaryOp) else tree
        subject = subject.left if isinstance(subject, ast.Compare) else subject
        self.name = subject.id if isinstance(subject, ast.Name) else ""
        like = self._compare is not None and isinstance(self._compare.ops[0], (ast.Eq, ast.Is))
        self.shown = (
            f"{self.name}={ast.unparse(self._compare.comparators[0])}"
            if self._compare is not None and like
            else self.name
        )

    def holds(self, argument: ast.expr, scope: Scope) -> bool:
        """Whether the function surely warns of this argument."""
        known = _literal(argument)
        if self._compare is None:
            return known is not None and bool(known.value) is not self._negated
        other = self._compare.comparators[0]
        wanted = _literal(other)
        like = isinstance(self._compare.ops[0], (ast.Eq, ast.Is))
        if known is not None:
            same = wanted is not None and _same(known.value, wanted.value)
            return same if like else not same
        if like or wanted is None or wanted.value is not None:
            return False  # another value than the default, perhaps
        return isinstance(argument, _SOMETHING) or _is_given(argument, scope)


def _is_given(argument: ast.expr, scope: Scope) -> bool:
    """Whether a name, attribute or call is hardly None: not what a function was given or not, or asks for."""
    if isinstance(argument, ast.Name):
        return not _is_optional(argument.id, scope)
    if isinstance(argument, ast.Attribute):
        return not (isinstance(argument.value, ast.Name) and argument.value.id in ("self", "cls"))
    return False


def _is_optional(name: str, scope: Scope) -> bool:
    """Whether a name may be a parameter of the function around, and None by default."""
    around: Scope | None = scope
    while around is not None:
        if isinstance(around.node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            if name in around.bindings:
                return True
        elif name in around.bindings:
            return False
        around = around.parent
    return True


def _literal(node: ast.expr) -> _Literal | None:
    try:
        return _Literal(ast.literal_eval(node))
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def _same(one: object, other: object) -> bool:
    return one is other if other is None or isinstance(other, bool) else one == other


def argument_of(call: ast.Call, name: str, signatures: tuple[Signature, ...]) -> ast.expr | None:
    """What a call gives for a parameter; None: nothing, or unknown."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    if len(signatures) != 1 or any(isinstance(item, ast.Starred) for item in call.args):
        return None
    for place, parameter in enumerate(signatures[0].positional):
        if parameter.name == name:
            return call.args[place] if place < len(call.args) else None
    return None
