"""Functions and methods: what a `def` binds, and what it sets once it is called."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from api import literals, marks, signatures, walk
from api.bound import Bound, value
from api.scope import Patch, Scope
from api.values import bound_of
from torchmigrate.versions.surface_model import EntryKind

_PROPERTIES = {
    "property",
    "cached_property",
    "classproperty",
    "lazy_property",
    "abstractproperty",
    "dependent_property",
}
_REPLACING = {
    "singledispatch",
    "singledispatchmethod",
    "custom_op",
    "custom_function",
    "vmap",
    "pytest_fixture",
}
# They take arguments in old forms as well and pass them on in the new one; `inspect` does not see it.
_CONVERTING = {
    "_api_bc_check",  # torch.distributed.checkpoint
    "handle_legacy_interface",  # torchvision.models
    "kwonly_to_pos_or_kw",
}
_ANYTHING = "(*args, **kwargs)"


def define(scope: Scope, node: marks.Function) -> None:
    decorators = [marks.last_name(mark) for mark in node.decorator_list]
    if any(mark in ("setter", "getter", "deleter") for mark in decorators):
        scope.names.setdefault(node.name, value())
        return
    bound = function_bound(scope, node, decorators)
    if "overload" in decorators or "_overload" in decorators:
        earlier = scope.overloads.setdefault(node.name, [])
        earlier += [signature for signature in bound.signatures if signature not in earlier]
        bound.signatures = tuple(earlier)
    else:
        scope.overloads.pop(node.name, None)
    scope.bind(node.name, bound)
    if scope.outer is None and scope.sets_globals:
        _effects(scope, node)


def _effects(scope: Scope, function: marks.Function) -> None:
    """What a function of a module sets in it, in other modules and on classes, once it is called."""
    inner = Scope(scope.name, scope.package, scope.reader, scope, scope.stub)
    written: dict[str, list[str]] = {}  # of a loop over names, by its variable
    for statement in walk.statements(function.body):
        match statement:
            case ast.Global():
                for name in statement.names:
                    scope.names.setdefault(name, value())
            case ast.For(target=ast.Name(id=variable)):
                names = literals.strings(statement.iter, scope.known())
                if names is not None:
                    written[variable] = names
            case ast.Assign():
                _set_attribute(statement, scope, inner)
            case ast.Expr(
                value=ast.Call(func=ast.Name(id="setattr"), args=[ast.Name(id=owner), _, _]) as call
            ):
                if owner in scope.names:
                    _set_by_call(call, scope, inner, written)


def _set_attribute(node: ast.Assign, scope: Scope, inner: Scope) -> None:
    """`torchaudio.load = ...` in a function; a local name is kept for what follows."""
    target = node.targets[0]
    if isinstance(target, ast.Name):
        inner.bind(target.id, bound_of(node.value, inner))
    elif isinstance(target, ast.Attribute):
        owner = scope.qualify(target.value)
        if owner in scope.reader and not target.attr.startswith("__"):
            scope.patches.append(Patch(owner, target.attr, bound_of(node.value, inner)))


def _set_by_call(node: ast.Call, scope: Scope, inner: Scope, written: dict[str, list[str]]) -> None:
    owner, key, result = node.args
    name = literals.text(key, scope.known())
    names = [name] if name is not None else written.get(key.id if isinstance(key, ast.Name) else "")
    if names is None:
        if scope.is_own_module(owner):
            scope.open = True
        else:
            scope.patches.append(Patch(scope.qualify(owner), "", value()))
        return
    for name in names:
        inner.constants = {key.id: ast.Constant(name)} if isinstance(key, ast.Name) else {}
        scope.patches.append(Patch(scope.qualify(owner), name, bound_of(result, inner)))


def function_bound(scope: Scope, node: marks.Function, decorators: Sequence[str]) -> Bound:
    """What a `def` binds: a property is a value, any other a function."""
    texts = scope.texts_for(node)
    bound = Bound(EntryKind.FUNCTION, gone=marks.only_raises(node), deprecated=marks.deprecation(node, texts))
    if bound.deprecated is not None and bound.deprecated.by:
        by = scope.qualify(ast.parse(bound.deprecated.by, mode="eval").body)
        bound.deprecated = replace(bound.deprecated, by=by)
    if _PROPERTIES.intersection(decorators):
        bound.kind = EntryKind.VALUE
        return bound
    if scope.outer is not None:
        if "staticmethod" in decorators or node.name == "__new__":
            bound.bind = "static" if node.name != "__new__" else "class"
        elif "classmethod" in decorators or node.name in ("__init_subclass__", "__class_getitem__"):
            bound.bind = "class"
    if not _REPLACING.intersection(decorators):
        drop = scope.outer is not None and bound.bind != "static"
        bound.signatures = (signatures.of_arguments(node.args, drop_first=drop),)
        if _CONVERTING.intersection(decorators):
            bound.signatures += (_ANYTHING,)
    bound.parameters = tuple(dict.fromkeys(marks.deprecated_parameters(node, texts)))
    bound.makes = _made(scope, node)
    called = None if scope.stub else marks.handed_on(node)
    if isinstance(called, ast.Attribute) and called.attr == "__getattribute__":
        bound.hands_on = called.attr  # of a stand-in for a module: it has what the module has
    elif called is not None:
        bound.hands_on = _called_in(scope, node, called)
    return bound


def _called_in(scope: Scope, function: marks.Function, called: ast.expr) -> str:
    for statement in function.body:
        if isinstance(statement, ast.ImportFrom) and isinstance(called, ast.Name):
            for name in statement.names:
                if (name.asname or name.name) == called.id:
                    return f"{scope.source(statement)}.{name.name}"
    found = scope.qualify(called)
    if not found and isinstance(called, ast.Name):
        top = scope
        while top.outer is not None:
            top = top.outer
        return f"{top.name}.{called.id}"
    return found


def _made(scope: Scope, function: marks.Function) -> Bound | None:
    """The inner function that a function returns."""
    last = function.body[-1]
    if not isinstance(last, ast.Return) or not isinstance(last.value, ast.Name):
        return None
    for statement in function.body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)) and statement.name == last.value.id:
            text = signatures.of_arguments(statement.args)
            said = marks.deprecation(statement, scope.known())
            return Bound(EntryKind.FUNCTION, signatures=(text,), deprecated=said)
    return None
