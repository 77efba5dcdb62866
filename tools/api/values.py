"""What the right side of an assignment is."""

from __future__ import annotations

import ast

from api import literals, marks, signatures
from api.bound import Bound, Deprecation, Field, alias, value
from api.scope import Scope
from torchmigrate.versions.surface_model import EntryKind


def bound_of(node: ast.expr, scope: Scope) -> Bound:
    """What a name becomes when it is assigned `node`."""
    if isinstance(node, (ast.Name, ast.Attribute)):
        target = scope.qualify(node)
        return alias(target) if target and _may_alias(target, scope) else value()
    if isinstance(node, ast.Lambda):
        drop = scope.outer is not None
        return Bound(EntryKind.FUNCTION, signatures=(signatures.of_arguments(node.args, drop),))
    if isinstance(node, ast.Call):
        return _of_call(node, scope)
    if isinstance(node, ast.IfExp):
        first, second = bound_of(node.body, scope), bound_of(node.orelse, scope)
        return second if first.kind is EntryKind.VALUE else first
    if isinstance(node, ast.NamedExpr):
        return bound_of(node.value, scope)
    return value()


def _may_alias(target: str, scope: Scope) -> bool:
    """A builtin constant is a value; `None` is no name of something else."""
    return not target.startswith("builtins.") or target[9:10].islower() or target.endswith("Error")


def _of_call(node: ast.Call, scope: Scope) -> Bound:
    function = marks.last_name(node.func)
    if "add_docstr" in function and len(node.args) >= 2:
        return _documented(node, scope)
    if function == "boolean_dispatch":
        for keyword in node.keywords:
            if keyword.arg == "if_false":
                return Bound(EntryKind.FUNCTION, like=scope.qualify(keyword.value))
    if function == "Config" and scope.outer_module().endswith("config"):
        return _setting(node, scope)
    if function in ("namedtuple", "NamedTuple"):
        return _named_tuple(node, scope)
    if function in ("Enum", "IntEnum", "Flag") and len(node.args) >= 2:
        return _enum(node, scope)
    if function == "cast" and len(node.args) == 2:
        return bound_of(node.args[1], scope)
    if function == "type" and len(node.args) == 3:
        return Bound(EntryKind.CLASS, open=True)
    if function == "property":
        return value()
    if function == "getattr" and len(node.args) >= 2:
        name = literals.text(node.args[1], scope.known())
        target = scope.qualify(node.args[0])
        return alias(f"{target}.{name}") if name and target else value()
    if function in ("staticmethod", "classmethod") and len(node.args) == 1:
        bind = "static" if function == "staticmethod" else "class"
        return Bound(EntryKind.FUNCTION, like=scope.qualify(node.args[0]), bind=bind)
    if function == "partial":
        return Bound(EntryKind.FUNCTION)
    decorates = isinstance(node.func, ast.Call) or marks.is_deprecating(node.func)
    if decorates and len(node.args) == 1 and not node.keywords:
        like = scope.qualify(node.args[0])
        if like:  # a decorator, called on a function
            said = marks.from_decorators([node.func], scope.known())
            return Bound(EntryKind.FUNCTION, like=like, deprecated=said)
    return Bound(EntryKind.VALUE, made_by=scope.qualify(node.func))


def _setting(node: ast.Call, scope: Scope) -> Bound:
    """`Config(alias="torch.compiler.config.verbose", deprecated=True, deprecation_message="...")`."""
    given = {keyword.arg: keyword.value for keyword in node.keywords}
    bound = value()
    alias_of = given.get("alias")
    if alias_of is not None:
        bound.target = literals.text(alias_of, scope.known()) or ""
    flag = given.get("deprecated")
    if isinstance(flag, ast.Constant) and flag.value is True:
        message = given.get("deprecation_message")
        text = marks.text_of(message, scope.known()) if message is not None else ""
        bound.deprecated = Deprecation(marks.sentence(text) or "deprecated")
    return bound


def _documented(node: ast.Call, scope: Scope) -> Bound:
    """`eigh = _add_docstr(_linalg.linalg_eigh, r\"\"\"linalg.eigh(A, UPLO='L', *, out=None) ...\"\"\")`."""
    target = scope.qualify(node.args[0])
    doc = docstring(node.args[1])
    name = target.rpartition(".")[2]
    found: tuple[str, ...] = ()
    for short in (name, name.partition("_")[2], name.removeprefix("special_"), name.removeprefix("linalg_")):
        found = found or (signatures.from_docstring(doc, short) if short else ())
    return Bound(
        EntryKind.FUNCTION, signatures=found, like=target, deprecated=marks.from_docstring(doc, name)
    )


def docstring(node: ast.expr) -> str:
    """The text of a docstring argument, whatever formats it."""
    texts = [
        part for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str)
    ]
    first = min(texts, key=lambda part: (part.lineno, part.col_offset), default=None)
    return str(first.value) if first is not None else ""


def _named_tuple(node: ast.Call, scope: Scope) -> Bound:
    bound = Bound(EntryKind.CLASS, bases=("typing.NamedTuple",))
    listed = node.args[1] if len(node.args) > 1 else None
    if listed is None:
        bound.open = True
        return bound
    names = literals.strings(listed, scope.known())
    if names is None:
        words = literals.text(listed, scope.known())
        names = words.replace(",", " ").split() if words is not None else None
    if names is None:
        pairs = literals.items(listed, scope.known()) or []
        firsts = [
            literals.text(pair.elts[0], {}) for pair in pairs if isinstance(pair, ast.Tuple) and pair.elts
        ]
        names = [first for first in firsts if first is not None]
    bound.open = not names
    count = 0
    for keyword in node.keywords:
        if keyword.arg == "defaults" and isinstance(keyword.value, (ast.Tuple, ast.List)):
            count = len(keyword.value.elts)
    start = len(names) - count
    bound.fields = [Field(name, "..." if index >= start else None) for index, name in enumerate(names)]
    bound.members = {name: value() for name in names}
    return bound


def _enum(node: ast.Call, scope: Scope) -> Bound:
    names = literals.strings(node.args[1], scope.known())
    bound = Bound(EntryKind.CLASS, bases=("enum.Enum",), open=names is None)
    bound.members = {name: value() for name in names or ()}
    return bound
