"""The body of a module or class, statement by statement: which names it leaves bound, and to what.

Nothing is evaluated. Of branches every one counts, since which one runs depends on the build and the
platform; only `if TYPE_CHECKING` never does.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from api import marks
from api.assignments import assign, export
from api.bound import Bound, alias
from api.classes import read_class
from api.functions import define
from api.loops import run_call, run_loop
from api.scope import Scope
from api.walk import TRY
from torchmigrate.versions.surface_model import EntryKind

_PATH_ORDER = (ast.Lt, ast.LtE, ast.NotIn, ast.IsNot)


def run(scope: Scope, body: Iterable[ast.stmt]) -> None:
    for statement in body:
        _statement(scope, statement)


def _statement(scope: Scope, node: ast.stmt) -> None:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            define(scope, node)
        case ast.ClassDef():
            scope.bind(node.name, read_class(node, scope, run))
        case ast.Import():
            _imports(scope, node)
        case ast.ImportFrom():
            _imports_from(scope, node)
        case ast.Assign():
            for target in node.targets:
                assign(scope, target, node.value)
        case ast.AnnAssign():
            if node.value is not None:
                assign(scope, node.target, node.value)
            elif isinstance(node.target, ast.Name) and (scope.stub or scope.outer is not None):
                scope.names.setdefault(node.target.id, Bound(EntryKind.VALUE, instance=not scope.stub))
        case ast.AugAssign():
            if isinstance(node.target, ast.Name):
                if node.target.id == "__all__":
                    export(scope, node.value)
                elif node.target.id in scope.constants:
                    whole = ast.BinOp(scope.constants[node.target.id], node.op, node.value)
                    scope.constants[node.target.id] = whole
        case ast.Delete():
            for target in node.targets:
                if isinstance(target, ast.Name):
                    scope.names.pop(target.id, None)
        case ast.If():
            _conditional(scope, node)
        case _ if isinstance(node, TRY):
            raising = [h for h in node.handlers if h.body and isinstance(h.body[-1], ast.Raise)]
            handlers = [h.body for h in node.handlers if h not in raising]
            _branches(scope, [[*node.body, *node.orelse], *handlers])
            run(scope, node.finalbody)
        case ast.For():
            run_loop(node, scope, run)
        case ast.While():
            _branches(scope, [node.body, node.orelse])
        case ast.With():
            for item in node.items:
                if item.optional_vars is not None:
                    assign(scope, item.optional_vars, None)
            run(scope, node.body)
        case ast.Match():
            _branches(scope, [case.body for case in node.cases])
        case ast.Expr(value=ast.Call() as call):
            run_call(call, scope)


def _conditional(scope: Scope, node: ast.If) -> None:
    test, negated = node.test, False
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, negated = test.operand, not negated
    if marks.last_name(test).lstrip("_") == "TYPE_CHECKING":
        checked, runtime = (node.orelse, node.body) if negated else (node.body, node.orelse)
        if _is_lazy(runtime):  # the table of its names has all that these imports have
            is_open = scope.open
            run(scope, checked)
            scope.open = is_open
            return
        run(scope, checked if scope.stub else runtime)
        return
    if _is_main(test):
        run(scope, node.orelse)
        return
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], _PATH_ORDER):
        negated = not negated
    paths = [node.body, node.orelse]
    _branches(scope, paths[::-1] if negated else paths)


def _branches(scope: Scope, paths: Sequence[Sequence[ast.stmt]]) -> None:
    """Reads every path from the same start; a name has what the first path gives it, unless that is vague."""
    before = dict(scope.names)
    merged: dict[str, list[Bound]] = {}
    for path in paths:
        _become(scope, before)
        run(scope, path)
        for name, bound in scope.names.items():
            merged.setdefault(name, []).append(bound)
    _become(scope, {name: _best(found, before.get(name)) for name, found in merged.items()})


def _become(scope: Scope, names: dict[str, Bound]) -> None:
    """In place: a module in a cycle of imports looks at these names meanwhile."""
    scope.names.clear()
    scope.names.update(names)


def _imports(scope: Scope, node: ast.Import) -> None:
    for name in node.names:
        if scope.stub and name.asname != name.name:
            scope.constants.setdefault(name.asname or name.name, ast.Constant(None))
            continue
        if name.asname:
            scope.bind(name.asname, alias(name.name))
        else:
            top = name.name.partition(".")[0]
            scope.bind(top, alias(top))


def _imports_from(scope: Scope, node: ast.ImportFrom) -> None:
    source = scope.source(node)
    if source.startswith("pytorch."):  # exists inside Meta only
        return
    for name in node.names:
        if name.name == "*":
            found, whole = scope.reader.star(source)
            for key, bound in found:
                scope.bind(key, bound)
            scope.open = scope.open or not whole
        elif not scope.stub or name.asname == name.name:
            scope.bind(name.asname or name.name, alias(f"{source}.{name.name}"))


def _is_lazy(body: Iterable[ast.stmt]) -> bool:
    """Whether a module loads its names when they are needed, as those of transformers do."""
    return any(
        isinstance(node, ast.Name) and node.id == "_LazyModule" for part in body for node in ast.walk(part)
    )


def _is_main(test: ast.expr) -> bool:
    """`__name__ == "__main__"`: never while a module is imported."""
    return (
        isinstance(test, ast.Compare)
        and isinstance(test.left, ast.Name)
        and test.left.id == "__name__"
        and isinstance(test.ops[0], ast.Eq)
    )


def _best(found: Sequence[Bound], before: Bound | None) -> Bound:
    """The most telling of what several branches bind."""
    changed = [bound for bound in found if bound is not before] or list(found)
    telling = [bound for bound in changed if bound.kind is not EntryKind.VALUE and not bound.gone]
    if not telling and before is not None and before.kind is not EntryKind.VALUE and before in found:
        return before
    best = (telling or [bound for bound in changed if not bound.gone] or changed)[0]
    if best.kind is EntryKind.ALIAS:
        others = [bound for bound in telling if bound.kind is not EntryKind.ALIAS]
        best.fallback = others[0] if others else best.fallback
    return best
