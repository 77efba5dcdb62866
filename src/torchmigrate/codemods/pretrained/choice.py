"""Which builders of torchvision an expression may be: through variables, tables, attributes and partials.

Separate from `semantics.flow`, because it goes back from a call to everything that may be called, in any
order of statements: tables are filled anywhere.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator

from msgspec import Struct

from torchmigrate.codemods.compile.kinds import ModelKinds
from torchmigrate.codemods.pretrained.tables import (
    namespace_of,
    parameter_names,
    sets_another,
    target_of,
    values_in,
)
from torchmigrate.semantics.flow.tree_index import TreeIndex
from torchmigrate.semantics.model import Binding, Scope, Via
from torchmigrate.semantics.public_names import public_name
from torchmigrate.source.text import Source
from torchmigrate.source.trees import walk

_STEPS = 400  # variables and entries of tables that are followed from one expression
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_ADDS = frozenset(["update", "setdefault", "__setitem__", "append", "extend", "insert", "register"])


class Choice(Struct, frozen=True):
    """What an expression may be.

    symbols: builders, by their public names. whole: nothing else. rebound: on the way is a name with several
    values, or a function of the file. by_keyword: it is not known what a positional argument is for.
    partials: the calls of `functools.partial` that the builders went through.
    """

    symbols: tuple[str, ...] = ()
    whole: bool = True
    rebound: bool = False
    by_keyword: bool = False
    partials: tuple[ast.Call, ...] = ()


class _Unknown(Exception):
    """An expression that may be anything."""


# An expression that stands for itself, and the scope that it is in; or a builder's name.
_Leaf = tuple[ast.expr, Scope] | str


class ModelChoices:
    """Answers about one file."""

    def __init__(self, local: TreeIndex, source: Source) -> None:
        self.local = local
        self.kinds = ModelKinds(local.names, source)
        self._rebound = False
        self._wrapped = False
        self._steps = 0
        self._open: set[int] = set()  # bindings that are being followed, by id
        self._uses = {id(use.node): use for use in local.names.uses}
        self._scopes: dict[ast.AST, Scope] = {}

    def of(self, node: ast.expr, builders: Collection[str]) -> Choice:
        """The choice that an expression is among some builders."""
        symbols: list[str] = []
        partials: list[ast.Call] = []
        whole = True
        self._rebound = self._wrapped = False
        self._steps = 0
        pending: list[_Leaf | None] = list(self._safely(node, self.scope_at(node)))
        while pending:
            leaf = pending.pop(0)
            if isinstance(leaf, tuple) and self.is_partial(leaf[0], leaf[1]):
                call = leaf[0]
                assert isinstance(call, ast.Call), "just looked"
                partials.append(call)
                pending = [*self._safely(call.args[0], leaf[1]), *pending]
                continue
            found = self._builders(leaf, builders)
            symbols += found
            whole = whole and bool(found)
        by_keyword = self._wrapped or any(len(call.args) > 1 for call in partials)
        known = tuple(dict.fromkeys(symbols))
        return Choice(known, whole and bool(known), self._rebound, by_keyword, tuple(partials))

    def scope_at(self, node: ast.AST) -> Scope:
        """The scope that an expression is evaluated in."""
        if node not in self._scopes:
            above = (self.kinds.scopes.get(id(outer)) for outer in self.local.around(node))
            self._scopes[node] = next(filter(None, above), self.local.names.module)
        return self._scopes[node]

    def is_partial(self, node: ast.AST, scope: Scope) -> bool:
        """Whether an expression is `functools.partial(function, ...)` with nothing starred."""
        return (
            isinstance(node, ast.Call)
            and bool(node.args)
            and not any(isinstance(argument, ast.Starred) for argument in node.args)
            and self.kinds.qualified(node.func, scope) == ("functools.partial",)
        )

    def _builders(self, leaf: _Leaf | None, builders: Collection[str]) -> list[str]:
        if leaf is None:
            return []
        if isinstance(leaf, str):
            names = [public_name(leaf)]
        else:
            names = [public_name(name) for name in self._named(leaf[0])]
        return names if names and all(name in builders for name in names) else []

    def _named(self, node: ast.expr) -> tuple[str, ...]:
        """The library name that an expression surely is, if any."""
        use = self._uses.get(id(node))
        if use is None or use.method:
            return ()
        if use.via is Via.GETATTR and isinstance(node, ast.Call):  # as sure as the module in it
            module = self._uses.get(id(node.args[0]))
            return use.candidates if module is not None and module.sure else ()
        return use.candidates if use.sure else ()

    def _safely(self, node: ast.expr, scope: Scope) -> list[_Leaf | None]:
        """The leaves of an expression; None for an unknown part."""
        try:
            return list(self._leaves(node, scope))
        except _Unknown:
            return [None]

    def _leaves(self, node: ast.expr, scope: Scope) -> Iterator[_Leaf | None]:
        self._steps += 1
        if self._steps > _STEPS:
            raise _Unknown
        if isinstance(node, ast.IfExp):
            yield from self._safely(node.body, scope)
            yield from self._safely(node.orelse, scope)
        elif isinstance(node, ast.NamedExpr):
            yield from self._leaves(node.value, scope)
        elif isinstance(node, ast.Name):
            yield from self._of_name(node, scope)
        elif isinstance(node, ast.Subscript):
            yield from self._of_subscript(node, scope)
        elif isinstance(node, ast.Attribute):
            yield from self._of_attribute(node, scope)
        elif _is_method(node, "get") and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield from self._items(node.func.value, node.args[0] if node.args else None, scope)
            for default in node.args[1:]:
                yield from self._safely(default, scope)
        else:
            yield node, scope

    def _of_name(self, node: ast.Name, scope: Scope) -> Iterator[_Leaf | None]:
        held = self.kinds.holder(node.id, scope)
        if held is None:
            raise _Unknown
        bindings = held.bindings[node.id]
        self._rebound = self._rebound or len(bindings) > 1
        for binding in bindings:
            if binding.is_import:
                yield node, scope
            else:
                yield from self._once(binding)
        yield from self._added(self.local.named(node.id), held)

    def _once(self, binding: Binding) -> Iterator[_Leaf | None]:
        """What a binding gives, unless it is a part of what it gives: `f = wrap(f)`."""
        if binding.id in self._open:
            yield None
            return
        self._open.add(binding.id)
        try:
            yield from list(self._bound(binding))
        finally:
            self._open.discard(binding.id)

    def _bound(self, binding: Binding) -> Iterator[_Leaf | None]:
        """What one binding gives to its name."""
        node, statement, scope = target_of(binding), binding.statement, binding.scope
        outer = self.local.parent(node)
        number = None
        if isinstance(outer, (ast.Tuple, ast.List)) and isinstance(node, ast.expr):
            number = outer.elts.index(node)
            node, outer = outer, self.local.parent(outer)
        if isinstance(outer, (ast.For, ast.comprehension)) and outer.target is node:
            yield from self._elements(outer.iter, number, scope)
        elif isinstance(statement, ast.Assign) and outer is statement:
            if number is None:
                yield from self._safely(statement.value, scope)
            else:
                yield from self._items(statement.value, ast.Constant(number), scope)
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None and number is None:
            yield from self._safely(statement.value, scope)
        elif isinstance(statement, ast.FunctionDef) and node is statement:
            yield from self._passed_on(statement)
        elif isinstance(statement, ast.FunctionDef) and isinstance(node, ast.arg):
            yield from self._parametrized(statement, node.arg)
        elif not isinstance(statement, ast.AnnAssign):
            yield None

    def _passed_on(self, function: ast.FunctionDef) -> Iterator[_Leaf | None]:
        """What a function calls that only passes its keywords on: `return build(*args, **kwargs)`."""
        self._wrapped = self._rebound = True
        keywords = function.args.kwarg.arg if function.args.kwarg is not None else None
        returns = [node for node in walk(function) if isinstance(node, ast.Return)]
        inner = any(node is not function and isinstance(node, _FUNCTIONS) for node in walk(function))
        if keywords is None or function.decorator_list or inner or not returns:
            yield None
            return
        receivers = []
        for mention in self.local.named(keywords):
            outer = self.local.parent(mention)
            if function not in self.local.around(mention):
                continue
            if isinstance(outer, ast.keyword) and outer.arg is None:
                receivers.append(self.local.parent(outer))
            elif not sets_another(outer):
                yield None
        for statement in returns:
            if isinstance(statement.value, ast.Call) and statement.value in receivers:
                receivers.remove(statement.value)
                yield from self._safely(statement.value.func, self.scope_at(statement))
            else:
                yield None
        if receivers:
            yield None

    def _parametrized(self, function: ast.FunctionDef, name: str) -> Iterator[_Leaf | None]:
        """What `pytest.mark.parametrize` gives to a parameter of a test."""
        scope = self.scope_at(function)
        for mark in function.decorator_list:
            if not isinstance(mark, ast.Call) or len(mark.args) < 2:
                continue
            names = parameter_names(mark.args[0])
            if name in names and self.kinds.qualified(mark.func, scope) == ("pytest.mark.parametrize",):
                number = names.index(name) if len(names) > 1 else None
                yield from self._elements(mark.args[1], number, scope)
                return
        yield None

    def _added(self, mentions: Iterable[ast.expr], held: Scope) -> Iterator[_Leaf | None]:
        """What is put into a table after it was made; None if that is not known."""
        for mention in mentions:
            outer = self.local.parent(mention)
            if (
                isinstance(mention, ast.Name)
                and self.kinds.holder(mention.id, self.scope_at(mention)) is not held
            ):
                continue
            if isinstance(outer, ast.Attribute) and outer.attr in _ADDS:
                yield None
            elif isinstance(outer, ast.Subscript) and isinstance(outer.ctx, ast.Store):
                statement = self.local.parent(outer)
                yield _one_entry(statement, self.scope_at(mention))
            elif isinstance(outer, ast.AugAssign) and outer.target is mention:
                yield None

    def _of_attribute(self, node: ast.Attribute, scope: Scope) -> Iterator[_Leaf | None]:
        """`self.table`, `Class.table`: what the class, or its methods, give to the attribute."""
        owner = self._class_of(node.value, scope)
        if owner is None:
            yield node, scope
            return
        held = self.kinds.scopes.get(id(owner))
        bindings = held.bindings.get(node.attr, []) if held is not None else []
        for binding in bindings:
            yield from self._once(binding)
        stores = [
            mention
            for mention in self.local.attributes(node.attr)
            if isinstance(mention.ctx, ast.Store) and self._class_of(mention.value, scope) is owner
        ]
        for store in stores:
            statement = self.local.parent(store)
            if isinstance(statement, ast.Assign) and store in statement.targets:
                yield from self._safely(statement.value, self.scope_at(store))
            else:
                yield None
        if not bindings and not stores:
            raise _Unknown
        if any(scope.kind == "class" and node.attr in scope.bindings for scope in self._others(held)):
            yield None  # a subclass may have its own
        if held is not None:
            yield from self._added(self.local.attributes(node.attr), held)

    def _others(self, held: Scope | None) -> Iterator[Scope]:
        return (scope for scope in self.local.names.scopes if scope is not held)

    def _class_of(self, node: ast.expr, scope: Scope) -> ast.ClassDef | None:
        """The class of this file whose attribute `node.x` is."""
        if not isinstance(node, ast.Name):
            return None
        if node.id in ("self", "cls"):
            return next((outer for outer in self.local.around(node) if isinstance(outer, ast.ClassDef)), None)
        found = self.kinds.definition(node, scope)
        return found if isinstance(found, ast.ClassDef) else None

    def _of_subscript(self, node: ast.Subscript, scope: Scope) -> Iterator[_Leaf | None]:
        inner = node.value
        module = namespace_of(inner)
        if module is not None:
            owner = self.kinds.qualified(module, scope)
            if len(owner) == 1 and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
                yield f"{owner[0]}.{node.slice.value}"
            else:
                yield None
            return
        yield from self._items(inner, node.slice, scope)

    def _items(self, table: ast.expr, key: ast.expr | None, scope: Scope) -> Iterator[_Leaf | None]:
        """What `table[key]` may be."""
        for leaf in self._safely(table, scope):
            if not isinstance(leaf, tuple):
                yield None
                continue
            entries = values_in(leaf[0], key)
            if entries is None:
                yield None
                continue
            for entry in entries:
                yield from self._safely(entry, leaf[1])

    def _elements(self, iterable: ast.expr, number: int | None, scope: Scope) -> Iterator[_Leaf | None]:
        """What a loop's variable may be; number: its place, if the loop unpacks its elements."""
        called = iterable.func if isinstance(iterable, ast.Call) and not iterable.args else None
        if isinstance(called, ast.Attribute) and (called.attr, number) in (("values", None), ("items", 1)):
            yield from self._items(called.value, None, scope)
            return
        if number is None:
            yield from self._items(iterable, None, scope)
            return
        for leaf in self._safely(iterable, scope):
            rows = values_in(leaf[0], None) if isinstance(leaf, tuple) else None
            if rows is None or not isinstance(leaf, tuple):
                yield None
                continue
            for row in rows:
                yield from self._items(row, ast.Constant(number), leaf[1])


def _one_entry(statement: ast.AST | None, scope: Scope) -> _Leaf | None:
    """What `table[key] = value` adds, as a table of its own."""
    if not isinstance(statement, ast.Assign):
        return None
    return ast.Dict(keys=[ast.Constant(None)], values=[statement.value]), scope


def _is_method(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == name
