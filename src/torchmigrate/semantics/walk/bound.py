"""Which names a block of statements binds, read off the statements without looking into nested scopes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

from torchmigrate.source.trees import walk


def bound_names(statements: Iterable[ast.stmt], into: set[str] | None = None) -> set[str]:
    """Names bound by the statements themselves (not by functions, classes and lambdas inside them).

    Attributes that are set are there as `a.b`, names that are declared global also as `global a`: no name can
    be spelled like that. `global` and `nonlocal` names are included: the caller
    knows which of them it declared.
    """
    names: set[str] = set() if into is None else into
    for statement in statements:
        handler = _HANDLERS.get(statement.__class__)
        if handler is not None:
            handler(statement, names)
    return names


def walrus_names(node: ast.AST) -> set[str]:
    """Names bound by `:=` anywhere below `node`; slow, so only for sources that hold one."""
    return {
        inner.target.id
        for inner in walk(node)
        if isinstance(inner, ast.NamedExpr) and isinstance(inner.target, ast.Name)
    }


def stored_names(names: Iterable[str], holder: str) -> list[str]:
    """The rest of the bound names that begin with `holder`; for "self.": the attributes that are set."""
    return [name[len(holder) :] for name in names if name.startswith(holder)]


def target_names(target: ast.AST, into: set[str]) -> None:
    """Names bound by an assignment target; `a.b` for an attribute `b` of a name `a`, which no name can be."""
    kind = target.__class__
    if kind is ast.Name:
        into.add(target.id)  # type: ignore[attr-defined]
    elif kind is ast.Attribute:
        if target.value.__class__ is ast.Name:  # type: ignore[attr-defined]
            into.add(f"{target.value.id}.{target.attr}")  # type: ignore[attr-defined]
    elif kind is ast.Tuple or kind is ast.List:
        for item in target.elts:  # type: ignore[attr-defined]
            target_names(item, into)
    elif kind is ast.Starred:
        target_names(target.value, into)  # type: ignore[attr-defined]


def _assign(node: ast.Assign, into: set[str]) -> None:
    for target in node.targets:
        target_names(target, into)


def _single(node: ast.AugAssign | ast.AnnAssign, into: set[str]) -> None:
    target_names(node.target, into)


def only_augmented(block: Iterable[ast.stmt], name: str) -> bool:
    """Whether statements rebind a name only as in `name += x`, if at all."""
    plain: list[ast.stmt] = []
    targets: set[str] = set()
    for statement in block:
        kind = statement.__class__
        inner = _BLOCKS.get(kind)
        if inner is not None:
            if kind is ast.For or kind is ast.AsyncFor:
                target_names(statement.target, targets)  # type: ignore[attr-defined]
            for field in inner:
                part = getattr(statement, field)
                if part and not only_augmented(part, name):
                    return False
        elif kind is not ast.AugAssign:
            plain.append(statement)
    return name not in targets and name not in bound_names(plain)


def _delete(node: ast.Delete, into: set[str]) -> None:
    for target in node.targets:
        target_names(target, into)


def _for(node: ast.For | ast.AsyncFor, into: set[str]) -> None:
    target_names(node.target, into)
    bound_names(node.body, into)
    bound_names(node.orelse, into)


def _branches(node: ast.If | ast.While, into: set[str]) -> None:
    bound_names(node.body, into)
    bound_names(node.orelse, into)


def _with(node: ast.With | ast.AsyncWith, into: set[str]) -> None:
    for item in node.items:
        if item.optional_vars is not None:
            target_names(item.optional_vars, into)
    bound_names(node.body, into)


def _try(node: ast.Try, into: set[str]) -> None:
    bound_names(node.body, into)
    for handler in node.handlers:
        if handler.name:
            into.add(handler.name)
        bound_names(handler.body, into)
    bound_names(node.orelse, into)
    bound_names(node.finalbody, into)


def _match(node: ast.Match, into: set[str]) -> None:
    for case in node.cases:
        into.update(pattern_names(case.pattern))
        bound_names(case.body, into)


def pattern_names(pattern: ast.pattern) -> list[str]:
    """Names captured by a match pattern, in source order."""
    names: list[str] = []
    for node in walk(pattern):
        if isinstance(node, (ast.MatchAs, ast.MatchStar)):
            if node.name:
                names.append(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            names.append(node.rest)
    return names


def _definition(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, into: set[str]) -> None:
    into.add(node.name)


def _global(node: ast.Global, into: set[str]) -> None:
    into.update([f"global {name}" for name in node.names])


def _import(node: ast.Import, into: set[str]) -> None:
    for alias in node.names:
        into.add(alias.asname or alias.name.partition(".")[0])


def _import_from(node: ast.ImportFrom, into: set[str]) -> None:
    for alias in node.names:
        if alias.name != "*":
            into.add(alias.asname or alias.name)


def _type_alias(node: ast.AST, into: set[str]) -> None:
    target_names(node.name, into)  # type: ignore[attr-defined]


# The blocks of those statements that are looked into one by one.
_BLOCKS = {
    ast.If: ("body", "orelse"),
    ast.For: ("body", "orelse"),
    ast.AsyncFor: ("body", "orelse"),
    ast.While: ("body", "orelse"),
}
_HANDLERS: dict[type, Callable[..., None]] = {
    ast.Assign: _assign,
    ast.AugAssign: _single,
    ast.AnnAssign: _single,
    ast.Delete: _delete,
    ast.For: _for,
    ast.AsyncFor: _for,
    ast.If: _branches,
    ast.While: _branches,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.Try: _try,
    ast.Match: _match,
    ast.FunctionDef: _definition,
    ast.AsyncFunctionDef: _definition,
    ast.ClassDef: _definition,
    ast.Global: _global,
    ast.Import: _import,
    ast.ImportFrom: _import_from,
}
if hasattr(ast, "TryStar"):
    _HANDLERS[ast.TryStar] = _try
if hasattr(ast, "TypeAlias"):  # Python 3.12
    _HANDLERS[ast.TypeAlias] = _type_alias
