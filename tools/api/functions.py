"""Functions and methods: what a `def` binds, and what it sets once it is called."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from api import literals, marks, signatures
from api.bound import Bound, value
from api.scope import Patch, Scope
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
    """Names that a function of a module sets in it, and on its classes, once it is called."""
    for part in ast.walk(function):
        if isinstance(part, ast.Global):
            for name in part.names:
                scope.names.setdefault(name, value())
        elif (
            isinstance(part, ast.Call)
            and isinstance(part.func, ast.Name)
            and part.func.id == "setattr"
            and len(part.args) == 3
            and isinstance(part.args[0], ast.Name)
            and part.args[0].id in scope.names
            and literals.text(part.args[1], scope.known()) is None
        ):
            if scope.is_own_module(part.args[0]):
                scope.open = True
            else:
                scope.patches.append(Patch(scope.qualify(part.args[0]), "", value()))


def function_bound(scope: Scope, node: marks.Function, decorators: Sequence[str]) -> Bound:
    """What a `def` binds: a property is a value, any other a function."""
    bound = Bound(
        EntryKind.FUNCTION, gone=marks.only_raises(node), deprecated=marks.deprecation(node, scope.known())
    )
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
    called = None if scope.stub else marks.handed_on(node)
    if called is not None:
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
