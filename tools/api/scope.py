"""The body of a module or class, statement by statement: which names it leaves bound, and to what.

Nothing is evaluated. Of branches every one counts, since which one runs depends on the build and the platform;
only `if TYPE_CHECKING` never does.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from api import literals, marks, signatures
from api.bound import Bound, alias, value
from torchmigrate.versions.surface_model import EntryKind


class Reader(Protocol):
    """What a body asks about other modules."""

    def star(self, source: str) -> tuple[list[tuple[str, Bound]], bool]:
        """What `from source import *` binds, and whether that is all; of "source.*", what `dir()` lists."""

    def __contains__(self, name: str) -> bool:
        """Whether the library has a module of this name."""


_BUILTINS = frozenset(dir(builtins))
_PROPERTIES = {"property", "cached_property", "classproperty", "lazy_property", "abstractproperty"}
_REPLACING = {"singledispatch", "singledispatchmethod", "custom_op", "custom_function", "vmap", "pytest_fixture"}
_PATH_ORDER = (ast.Lt, ast.LtE, ast.NotIn, ast.IsNot)


@dataclass(slots=True)
class Patch:
    """A name set on a class or module from outside its body; name "": some name that is not known."""

    owner: str
    name: str
    bound: Bound


@dataclass(slots=True)
class Scope:
    """The names of one module or class while its body is read.

    name: qualified name of the module or class.
    package: what relative imports start from.
    stub: of a `.pyi` file, where an import is private unless it says `as`.
    sets_globals: a function in it may have a `global` statement.
    replaced_by: the class whose instance the module puts in its own place.
    """

    name: str
    package: str
    reader: Reader
    outer: Scope | None = None
    stub: bool = False
    names: dict[str, Bound] = field(default_factory=dict)
    constants: dict[str, ast.expr] = field(default_factory=dict)
    exported: list[str] | None = None
    open: bool = False
    sets_globals: bool = True
    replaced_by: str = ""
    patches: list[Patch] = field(default_factory=list)
    _overloads: dict[str, list[str]] = field(default_factory=dict)

    # names

    def bind(self, name: str, bound: Bound) -> None:
        self.names[name] = bound

    def qualify(self, node: ast.expr) -> str:
        """The dotted name that an expression stands for, through the imports; "" if it is something else."""
        if isinstance(node, ast.Attribute):
            head = self.qualify(node.value)
            return f"{head}.{node.attr}" if head else ""
        if isinstance(node, ast.Subscript):
            return self.qualify(node.value)
        if not isinstance(node, ast.Name):
            return ""
        scope: Scope | None = self
        while scope is not None:
            bound = scope.names.get(node.id)
            if bound is not None:
                return bound.target if bound.kind is EntryKind.ALIAS else f"{scope.name}.{node.id}"
            if scope.outer is None and f"{scope.name}.{node.id}" in self.reader:
                return f"{scope.name}.{node.id}"  # a submodule is there once anything has imported it
            scope = scope.outer
        return "builtins." + node.id if node.id in _BUILTINS else ""

    def known(self) -> dict[str, ast.expr]:
        return {**self.outer.known(), **self.constants} if self.outer is not None else self.constants

    # statements

    def run(self, body: Iterable[ast.stmt]) -> None:
        for statement in body:
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self.function(node)
            case ast.ClassDef():
                from api.classes import read_class

                self.bind(node.name, read_class(node, self))
            case ast.Import():
                self.imports(node)
            case ast.ImportFrom():
                self.imports_from(node)
            case ast.Assign():
                for target in node.targets:
                    self.assign(target, node.value)
            case ast.AnnAssign():
                if node.value is not None:
                    self.assign(node.target, node.value)
                elif isinstance(node.target, ast.Name) and (self.stub or self.outer is not None):
                    self.names.setdefault(node.target.id, Bound(EntryKind.VALUE, instance=not self.stub))
            case ast.AugAssign():
                if isinstance(node.target, ast.Name):
                    if node.target.id == "__all__":
                        self.export(node.value)
                    elif node.target.id in self.constants:
                        whole = ast.BinOp(self.constants[node.target.id], node.op, node.value)
                        self.constants[node.target.id] = whole
            case ast.Delete():
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        self.names.pop(target.id, None)
            case ast.If():
                self.conditional(node)
            case ast.Try() | ast.TryStar():
                raising = [h for h in node.handlers if h.body and isinstance(h.body[-1], ast.Raise)]
                handlers = [h.body for h in node.handlers if h not in raising]
                self.branches([[*node.body, *node.orelse], *handlers])
                self.run(node.finalbody)
            case ast.For():
                from api.loops import run_loop

                run_loop(node, self)
            case ast.While():
                self.branches([node.body, node.orelse])
            case ast.With():
                for item in node.items:
                    if item.optional_vars is not None:
                        self.assign(item.optional_vars, None)
                self.run(node.body)
            case ast.Match():
                self.branches([case.body for case in node.cases])
            case ast.Expr(value=ast.Call() as call):
                from api.loops import run_call

                run_call(call, self)

    def conditional(self, node: ast.If) -> None:
        test, negated = node.test, False
        while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test, negated = test.operand, not negated
        if marks.last_name(test) == "TYPE_CHECKING":
            checked, runtime = (node.orelse, node.body) if negated else (node.body, node.orelse)
            self.run(checked if self.stub else runtime)
            return
        if isinstance(test, ast.Compare) and isinstance(test.ops[0], _PATH_ORDER):
            negated = not negated
        paths = [node.body, node.orelse]
        self.branches(paths[::-1] if negated else paths)

    def branches(self, paths: Sequence[Sequence[ast.stmt]]) -> None:
        """Reads every path from the same start; a name has what the first path gives it, unless that is vague."""
        before = dict(self.names)
        merged: dict[str, list[Bound]] = {}
        for path in paths:
            self._become(before)
            self.run(path)
            for name, bound in self.names.items():
                merged.setdefault(name, []).append(bound)
        self._become({name: _best(found, before.get(name)) for name, found in merged.items()})

    def _become(self, names: dict[str, Bound]) -> None:
        """In place: a module in a cycle of imports looks at these names meanwhile."""
        self.names.clear()
        self.names.update(names)

    # definitions

    def function(self, node: marks.Function) -> None:
        decorators = [marks.last_name(mark) for mark in node.decorator_list]
        if any(mark in ("setter", "getter", "deleter") for mark in decorators):
            self.names.setdefault(node.name, value())
            return
        bound = self.function_bound(node, decorators)
        if "overload" in decorators or "_overload" in decorators:
            earlier = self._overloads.setdefault(node.name, [])
            earlier += [signature for signature in bound.signatures if signature not in earlier]
            bound.signatures = tuple(earlier)
        else:
            self._overloads.pop(node.name, None)
        self.bind(node.name, bound)
        if self.outer is None and self.sets_globals:
            for inner in ast.walk(node):
                if isinstance(inner, ast.Global):
                    for name in inner.names:
                        self.names.setdefault(name, value())

    def function_bound(self, node: marks.Function, decorators: Sequence[str]) -> Bound:
        """What a `def` binds: a property is a value, any other a function."""
        bound = Bound(
            EntryKind.FUNCTION, gone=marks.only_raises(node), deprecated=marks.deprecation(node)
        )
        if _PROPERTIES.intersection(decorators):
            bound.kind = EntryKind.VALUE
            return bound
        if self.outer is not None:
            if "staticmethod" in decorators or node.name == "__new__":
                bound.bind = "static" if node.name != "__new__" else "class"
            elif "classmethod" in decorators or node.name in ("__init_subclass__", "__class_getitem__"):
                bound.bind = "class"
        if not _REPLACING.intersection(decorators):
            drop = self.outer is not None and bound.bind != "static"
            bound.signatures = (signatures.of_arguments(node.args, drop_first=drop),)
        called = None if self.stub else marks.handed_on(node)
        if called is not None:
            bound.hands_on = self._called_in(node, called)
        return bound

    def _called_in(self, function: marks.Function, called: ast.expr) -> str:
        for statement in function.body:
            if isinstance(statement, ast.ImportFrom) and isinstance(called, ast.Name):
                for name in statement.names:
                    if (name.asname or name.name) == called.id:
                        return f"{self.source(statement)}.{name.name}"
        found = self.qualify(called)
        if not found and isinstance(called, ast.Name):
            top = self
            while top.outer is not None:
                top = top.outer
            return f"{top.name}.{called.id}"
        return found

    # imports

    def source(self, node: ast.ImportFrom) -> str:
        """The module that a from-import takes names from."""
        if not node.level:
            return node.module or ""
        parts = self.package.split(".")
        parts = parts[: len(parts) - (node.level - 1)]
        return ".".join([*parts, *([node.module] if node.module else [])])

    def imports(self, node: ast.Import) -> None:
        for name in node.names:
            if self.stub and name.asname != name.name:
                self.constants.setdefault(name.asname or name.name, ast.Constant(None))
                continue
            if name.asname:
                self.bind(name.asname, alias(name.name))
            else:
                top = name.name.partition(".")[0]
                self.bind(top, alias(top))

    def imports_from(self, node: ast.ImportFrom) -> None:
        source = self.source(node)
        if source == "__future__" or source.startswith("pytorch."):  # the second exists inside Meta only
            return
        for name in node.names:
            if name.name == "*":
                found, whole = self.reader.star(source)
                for key, bound in found:
                    self.bind(key, bound)
                self.open = self.open or not whole
            elif not self.stub or name.asname == name.name:
                self.bind(name.asname or name.name, alias(f"{source}.{name.name}"))

    # assignments

    def assign(self, target: ast.expr, node: ast.expr | None) -> None:
        from api.values import bound_of

        match target:
            case ast.Name(id="__all__"):
                self.exported = []
                if node is not None:
                    self.export(node)
            case ast.Name():
                if node is not None and not (isinstance(node, ast.Name) and node.id == target.id):
                    self.bind(target.id, bound_of(node, self))
                    self.constants[target.id] = node
                else:
                    self.names.setdefault(target.id, value())
            case ast.Tuple() | ast.List():
                same = isinstance(node, (ast.Tuple, ast.List)) and len(node.elts) == len(target.elts)
                for index, element in enumerate(target.elts):
                    part = node.elts[index] if same and isinstance(node, (ast.Tuple, ast.List)) else None
                    self.assign(element, part)
            case ast.Starred():
                self.assign(target.value, None)
            case ast.Subscript():
                self.assign_item(target, node)
            case ast.Attribute():
                if target.attr == "__class__" and _is_own_module(target.value) and node is not None:
                    self.replaced_by = self.qualify(node)
                    return
                owner = self.qualify(target.value)
                if owner and not target.attr.startswith("__"):
                    bound = bound_of(node, self) if node is not None else value()
                    self.patches.append(Patch(owner, target.attr, bound))

    def assign_item(self, target: ast.Subscript, node: ast.expr | None) -> None:
        """`globals()[name] = ...`, `sys.modules[__name__] = ...`."""
        from api.values import bound_of

        if _is_own_module(target):
            called = node.func if isinstance(node, ast.Call) else node
            self.replaced_by = self.qualify(called) if called is not None else ""
            self.open = self.open or not self.replaced_by
        elif (
            isinstance(target.value, ast.Call)
            and isinstance(target.value.func, ast.Name)
            and target.value.func.id in ("globals", "vars", "locals")
            and not target.value.args
        ):
            name = literals.text(target.slice, self.known())
            if name is None:
                self.open = True
            else:
                self.bind(name, bound_of(node, self) if node is not None else value())

    def export(self, node: ast.expr) -> None:
        """Adds to `__all__`; what cannot be read there is found by its name, or leaves the module open."""
        if self.exported is None:
            self.exported = []
        found = literals.strings(node, self.known())
        if found is not None:
            self.exported += found
        elif isinstance(node, ast.BinOp):
            self.export(node.left)
            self.export(node.right)
        elif isinstance(node, ast.Attribute) and node.attr == "__all__":
            names, whole = self.reader.star(self.qualify(node.value))
            self.exported += [name for name, _ in names]
            self.open = self.open or not whole
        elif isinstance(node, (ast.List, ast.Tuple)):
            for element in node.elts:
                if isinstance(element, ast.Starred):
                    self.export(element.value)
                else:
                    one = literals.text(element, self.known())
                    name = self.qualify(element.value) if isinstance(element, ast.Attribute) else ""
                    self.exported += [one or name.rpartition(".")[2]] if one or name else []
        else:
            self.exported += [name for name in self.names if not name.startswith("_")]


def _is_own_module(node: ast.expr) -> bool:
    """`sys.modules[__name__]`."""
    return (
        isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Attribute)
        and node.value.attr == "modules"
        and isinstance(node.slice, ast.Name)
        and node.slice.id == "__name__"
    )


def _best(found: Sequence[Bound], before: Bound | None) -> Bound:
    """The most telling of what several branches bind."""
    changed = [bound for bound in found if bound is not before] or list(found)
    telling = [bound for bound in changed if bound.kind is not EntryKind.VALUE and not bound.gone]
    if not telling and before is not None and before.kind is not EntryKind.VALUE and before in found:
        return before
    return (telling or [bound for bound in changed if not bound.gone] or changed)[0]
