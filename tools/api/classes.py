"""Classes: members, fields, attributes of instances, and what leaves a class open."""

from __future__ import annotations

import ast
import re

from api import literals, marks, walk
from api.bound import Bound, Field, value
from api.scope import Run, Scope
from api.signatures import default_text
from torchmigrate.versions.surface_model import EntryKind

# A warning in a constructor may be about how it is called.
_OF_CLASS = re.compile(r"deprecat|removed|renamed|instead", re.I)
_DYNAMIC = ("__getattr__", "__getattribute__")


def read_class(node: ast.ClassDef, outer: Scope, run: Run) -> Bound:
    """What a class statement binds."""
    inner = Scope(f"{outer.name}.{node.name}", outer.package, outer.reader, outer, outer.stub)
    run(inner, node.body)
    bound = Bound(EntryKind.CLASS, deprecated=marks.deprecation(node, outer.texts_for(node)), open=inner.open)
    bases = [outer.qualify(base) or "?" for base in node.bases if not isinstance(base, ast.Starred)]
    bound.bases = tuple(bases) if len(bases) == len(node.bases) else (*bases, "?")
    for keyword in node.keywords:
        if keyword.arg == "metaclass":
            bound.metaclass = outer.qualify(keyword.value) or "?"
    bound.members = inner.names
    outer.patches += inner.patches
    if any(name in bound.members for name in _DYNAMIC):
        bound.open = True
    for name in ("__init__", "__new__"):
        made = bound.members.get(name)
        if made is not None:
            bound.gone = bound.gone or made.gone
            said = made.deprecated
            if said is not None and said.warns and (bound.deprecated is None or not bound.deprecated.warns):
                bound.deprecated = said if _OF_CLASS.search(said.said) else bound.deprecated
            bound.parameters += made.parameters
    bound.fields = _fields(node, bound, outer)
    _slots(inner, bound)
    _instance_attributes(node, inner, bound)
    return bound


def _fields(node: ast.ClassDef, bound: Bound, outer: Scope) -> list[Field] | None:
    """The fields that a constructor is made from, if one is."""
    keyword_only = False
    dataclass = None
    for decorator in node.decorator_list:
        if marks.last_name(decorator) in ("dataclass", "_dataclass", "dataclass_slots", "_union_dataclass"):
            dataclass = decorator
    if isinstance(dataclass, ast.Call):
        for keyword in dataclass.keywords:
            given = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
            if keyword.arg == "init" and given is False:
                return None
            keyword_only = keyword_only or (keyword.arg == "kw_only" and given is True)
    if dataclass is None and not any(base.endswith(".NamedTuple") for base in bound.bases):
        return None
    fields = []
    for statement in node.body:
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        annotation = ast.unparse(statement.annotation).strip("'\"")
        if "ClassVar" in annotation:
            continue
        if marks.last_name(statement.annotation) == "KW_ONLY":
            bound.members.pop(statement.target.id, None)
            keyword_only = True
            continue
        if isinstance(statement.value, ast.Call) and marks.last_name(statement.value) == "field":
            bound.members[statement.target.id].instance = True  # may be on the class, if it has a default
        fields.append(_field(statement.target.id, statement.value, keyword_only))
    return fields


def _field(name: str, node: ast.expr | None, keyword_only: bool) -> Field:
    if not (isinstance(node, ast.Call) and marks.last_name(node) == "field"):
        return Field(name, default_text(node) if node is not None else None, keyword_only)
    field = Field(name, None, keyword_only)
    for keyword in node.keywords:
        flag = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
        if keyword.arg == "default":
            field.default = default_text(keyword.value)
        elif keyword.arg == "default_factory":
            field.default = "..."
        elif keyword.arg == "init":
            field.given = flag is not False
        elif keyword.arg == "kw_only":
            field.keyword_only = flag is True
    return field


def _slots(inner: Scope, bound: Bound) -> None:
    slots = inner.constants.get("__slots__")
    if slots is None:
        return
    names = literals.strings(slots, inner.known())
    if names is None:
        one = literals.text(slots, inner.known())
        names = [one] if one is not None else []
    for name in names:
        bound.members.setdefault(name, value())


def _instance_attributes(node: ast.ClassDef, inner: Scope, bound: Bound) -> None:
    """What the methods set on `self`."""
    for method in _methods(node.body):
        arguments = [*method.args.posonlyargs, *method.args.args]
        if not arguments:
            continue
        own = arguments[0].arg
        kind = inner.names.get(method.name)
        if kind is not None and kind.bind == "static":
            continue
        on_class = kind is not None and kind.bind == "class" and method.name != "__new__"
        for statement in walk.statements(method.body):
            for target in walk.stored(statement):
                if isinstance(target, ast.Attribute) and _is_own(target.value, own):
                    bound.members.setdefault(target.attr, Bound(EntryKind.VALUE, instance=True))
                bound.open = bound.open or _is_dict(target, own)
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) and not on_class:
                _set_by_call(statement.value, own, inner, bound)


def _methods(body: list[ast.stmt]) -> list[marks.Function]:
    found: list[marks.Function] = []
    for statement in body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found.append(statement)
        elif isinstance(statement, (ast.If, ast.Try, ast.With)):
            for name in ("body", "orelse", "finalbody"):
                found += _methods(getattr(statement, name, []))
    return found


def _is_own(node: ast.expr, own: str) -> bool:
    return isinstance(node, ast.Name) and node.id == own


def _is_dict(node: ast.expr, own: str) -> bool:
    """`self.__dict__` and `self.__dict__[name]`, where something is stored."""
    if isinstance(node, ast.Subscript):
        node = node.value
    return isinstance(node, ast.Attribute) and node.attr == "__dict__" and _is_own(node.value, own)


def _set_by_call(call: ast.Call, own: str, inner: Scope, bound: Bound) -> None:
    """`setattr(self, "x", ...)`, `object.__setattr__(self, "x", ...)`, `super().__setattr__("x", ...)`."""
    name = marks.last_name(call.func)
    if name == "update" and isinstance(call.func, ast.Attribute) and _is_dict(call.func.value, own):
        bound.open = True
    if name not in ("setattr", "__setattr__") or not call.args:
        return
    arguments = call.args
    if _is_own(arguments[0], own):
        arguments = arguments[1:]
    elif not (isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Call)):
        return
    key = literals.text(arguments[0], inner.known()) if arguments else None
    if key is None:
        bound.open = bound.open or name == "setattr"
    else:
        bound.members.setdefault(key, Bound(EntryKind.VALUE, instance=True))
