"""Where the state of functional models goes: through variables, attributes, functions and transforms.

Separate from `semantics.flow`, because it follows values of the whole file to a fixed point, with kinds that
only functorch has.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from contextlib import suppress

from torchmigrate.codemods.base.unclear import Unclear
from torchmigrate.codemods.functional_state.calls import Calls
from torchmigrate.codemods.functional_state.cells import Cell
from torchmigrate.codemods.functional_state.kinds import STATE, Def, Kind, Many, Model, State, merged
from torchmigrate.rewrite.code import code
from torchmigrate.semantics.model import Scope
from torchmigrate.source.trees import walk

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
_ROUNDS = 25
_HARMLESS = frozenset(("no_grad", "enable_grad", "inference_mode", "staticmethod", "classmethod", "wraps"))


class Expressions(Calls):
    """Reads expressions."""

    def _read(self, node: ast.expr, scope: Scope, wanted: Kind) -> Kind:
        if isinstance(node, ast.Name):
            cell = self.cell(node.id, scope)
            if isinstance(node.ctx, ast.Load) and self._is_state(wanted):
                self.put(cell, wanted)
            return self.cells.get(cell)
        if isinstance(node, ast.Attribute):
            return self._attribute(node, scope, wanted)
        if isinstance(node, ast.Call):
            return self._call(node, scope, wanted)
        if isinstance(node, (ast.Tuple, ast.List)):
            return self._display(node, scope, wanted)
        if isinstance(node, ast.Lambda):
            self.functions[id(node)] = node
            inner = self.scopes[id(node)]
            cell = ("result", id(node), "")
            self.put(cell, self.read(node.body, inner, self.cells.get(cell)))
            return Def(node)
        if isinstance(node, ast.IfExp):
            self.read(node.test, scope)
            return merged(self.read(node.body, scope, wanted), self.read(node.orelse, scope, wanted))
        if isinstance(node, _COMPREHENSIONS):
            return self._comprehension(node, scope, wanted)
        if isinstance(node, ast.Subscript):
            return self._subscript(node, scope)
        self._plain(node, scope)
        return None

    def _attribute(self, node: ast.Attribute, scope: Scope, wanted: Kind) -> Kind:
        owner = self.owner(node, scope)
        if owner is not None:
            self.visited.add(id(node))
            cell = ("attribute", id(owner), node.attr)
            if self._is_state(wanted):
                self.put(cell, wanted)
            return self.cells.get(cell)
        if self.tracked(self.read(node.value, scope)):
            self.fail(node, "no longer exists")
        return None

    def _display(self, node: ast.Tuple | ast.List, scope: Scope, wanted: Kind) -> Kind:
        if isinstance(wanted, State):
            if isinstance(node, ast.List) and not node.elts:
                self.writer.replace(node, code("{}"), self.final)
                return STATE
            if not node.elts:
                self.writer.replace(node, code("{}"), self.final)
                return STATE
            for item in node.elts:
                self.read(item, scope)
            return None
        if any(isinstance(item, ast.Starred) for item in node.elts):
            self._plain(node, scope)
            return None
        wants = wanted.items if isinstance(wanted, Many) and len(wanted.items) == len(node.elts) else ()
        items = tuple(
            self.read(item, scope, wants[number] if wants else None) for number, item in enumerate(node.elts)
        )
        return Many(items) if any(items) else None

    def _subscript(self, node: ast.Subscript, scope: Scope) -> Kind:
        held = self.read(node.value, scope)
        index = node.slice
        if isinstance(held, State):
            if isinstance(index, ast.Name) and self.cell(index.id, scope) in self.keys:
                self.writer.replace(
                    index, code("$key", key=self.keys[self.cell(index.id, scope)]), self.final
                )
                return None
            self._plain(index, scope) if isinstance(index, ast.Slice) else self.read(index, scope)
            if not isinstance(node.ctx, ast.Load):
                self.fail(node, "is changed in place")
            self.writer.listed(node.value, self.final)
            return None
        if isinstance(held, Many):
            try:
                number = ast.literal_eval(index)
            except ValueError:
                number = None
            if isinstance(number, int) and -len(held.items) <= number < len(held.items):
                return held.items[number]
            if self.tracked(held):
                self.fail(node, "takes one of several objects")
            return None
        if self.tracked(held):
            self.fail(node, "takes a part of a function")
        if isinstance(index, ast.Slice):
            self._plain(index, scope)
        elif self.tracked(self.read(index, scope)):
            self.fail(index, "is not an index")
        return None


class Flow(Expressions):
    """Follows what some calls make through the whole file.

    `run` finds out what every variable holds, then checks every use and collects the edits.
    """

    def run(self) -> None:
        """Find out everything.

        Raises:
            Unclear: the state is used in a way that is not understood.
        """
        self._explore()
        self.final = True
        self.used.clear()
        self._body(self.names.tree.body, self.names.module)
        self._check_functions()
        self._check_attributes()

    def _explore(self) -> None:
        for _ in range(_ROUNDS):
            self.changed = False
            self._body(self.names.tree.body, self.names.module)
            if not self.changed:
                break

    def models(self) -> list[ast.Name | ast.Attribute]:
        """Every mention of a functional model, as far as they can be found out."""
        with suppress(Unclear):  # a variable that holds different things ends it early
            self._explore()
        found: list[ast.Name | ast.Attribute] = []
        for node in walk(self.names.tree):
            if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
                with suppress(Unclear):
                    if isinstance(self.read(node, self.scope_of(node)), Model):
                        found.append(node)
        return found

    def scope_of(self, node: ast.AST) -> Scope:
        return next(self.scopes[id(item)] for item in self.local.around(node) if id(item) in self.scopes)

    def _check_functions(self) -> None:
        for node in self.functions.values():
            if self.tracked(Def(node)) and id(node) not in self.used:
                name = getattr(node, "name", "a lambda")
                raise Unclear(f"`{name}` uses the parameters, but other files or unknown code may call it")

    def _check_attributes(self) -> None:
        for (kind, _, name), held in self.cells.items():
            if kind == "attribute" and self.tracked(held):
                for mention in self.local.attributes(name):
                    if id(mention) not in self.visited:
                        raise Unclear(f"`.{name}` is used in a way that cannot be analyzed", mention)

    def _body(self, block: Sequence[ast.stmt], scope: Scope) -> None:
        for statement in block:
            self._statement(statement, scope)

    def _statement(self, node: ast.stmt, scope: Scope) -> None:
        if isinstance(node, _FUNCTIONS):
            self._function(node, scope)
        elif isinstance(node, ast.ClassDef):
            self._class(node, scope)
        elif isinstance(node, ast.Assign):
            self._assign(node, scope)
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self._bind(node.target, node.value, scope)
        elif isinstance(node, ast.Return):
            self._return(node, scope)
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            self._for(node, scope)
        else:
            for name, value in ast.iter_fields(node):
                if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                    self._body(value, scope)
                    continue
                for item in value if isinstance(value, list) else [value]:
                    if isinstance(item, ast.expr):
                        kind = self.read(item, scope)
                        fine = name == "test" or isinstance(node, (ast.Delete, ast.Expr))
                        if self.tracked(kind) and not fine:
                            self.fail(item, "is used in a way that cannot be analyzed")
                    elif isinstance(item, (ast.ExceptHandler, ast.match_case)):
                        self._body(item.body, scope)
                    elif isinstance(item, ast.withitem) and self.tracked(self.read(item.context_expr, scope)):
                        self.fail(item.context_expr, "is not a context manager")

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> None:
        inner = self.scopes.get(id(node))
        if inner is None:
            return
        self.functions[id(node)] = node
        known = all(_decorator_name(mark) in _HARMLESS for mark in node.decorator_list)
        static = any(_decorator_name(mark) == "staticmethod" for mark in node.decorator_list)
        if isinstance(scope.node, ast.ClassDef):
            if known:
                self.put(("attribute", id(scope.node), node.name), Def(node, 0 if static else 1))
        elif known:
            self.put(self.cell(node.name, scope), Def(node))
        for argument, default in defaults(node.args):
            self.read(default, scope, self.cells.get(("variable", id(inner), argument.arg)))
        for mark in node.decorator_list:
            self.read(mark, scope)
        self._body(node.body, inner)

    def _class(self, node: ast.ClassDef, scope: Scope) -> None:
        inner = self.scopes.get(id(node))
        if inner is not None:
            self._body(node.body, inner)

    def _assign(self, node: ast.Assign, scope: Scope) -> None:
        if len(node.targets) == 1:
            if isinstance(node.value, ast.Call) and id(node.value) in self.makes:
                self.made[id(node.value)] = node
            self._bind(node.targets[0], node.value, scope)
            return
        kind = self.read(node.value, scope)
        if self.tracked(kind):
            self.fail(node.value, "is assigned to several targets")

    def _bind(self, target: ast.expr, value: ast.expr, scope: Scope) -> None:
        wanted = self._wanted(target, scope)
        kind = self.read(value, scope, wanted)
        if isinstance(kind, State) and isinstance(target, (ast.Tuple, ast.List)):
            self.writer.values(value, self.final)
            kind = None
        self._store(target, kind, scope)

    def _wanted(self, target: ast.expr, scope: Scope) -> Kind:
        """What a target holds according to everybody else."""
        cell = self._target_cell(target, scope)
        if cell is not None:
            return self.cells.get(cell)
        if isinstance(target, (ast.Tuple, ast.List)):
            if any(isinstance(item, ast.Starred) for item in target.elts):
                return None
            items = tuple(self._wanted(item, scope) for item in target.elts)
            return Many(items) if any(map(self._is_state, items)) else None
        return None

    def _target_cell(self, target: ast.expr, scope: Scope) -> Cell | None:
        if isinstance(target, ast.Name):
            return self.cell(target.id, scope)
        if isinstance(target, ast.Attribute):
            owner = self.owner(target, scope)
            if owner is not None:
                self.visited.add(id(target))
                return ("attribute", id(owner), target.attr)
        return None

    def _store(self, target: ast.expr, kind: Kind, scope: Scope) -> None:
        if isinstance(target, ast.Name) and not self._is_read(target.id):
            return
        cell = self._target_cell(target, scope)
        if cell is not None:
            if self.final and self._is_state(self.cells.get(cell)) and kind is None:
                self.fail(target, "holds the state of a model and other values")
            if isinstance(kind, Model) and self.writer.is_submodule(target):
                self.fail(target, "would register the parameters of the copy")
            self.put(cell, kind)
        elif isinstance(target, (ast.Tuple, ast.List)):
            items = kind.items if isinstance(kind, Many) else (None,) * len(target.elts)
            if len(items) != len(target.elts) or any(isinstance(item, ast.Starred) for item in target.elts):
                if self.tracked(kind):
                    self.fail(target, "unpacks something that cannot be analyzed")
                return
            for item, part in zip(target.elts, items, strict=True):
                self._store(item, part, scope)
        else:
            if isinstance(target, ast.Subscript) and self.tracked(self.read(target.value, scope)):
                self.fail(target, "is changed in place")
            if self.tracked(kind):
                self.fail(target, "cannot be analyzed")

    def _return(self, node: ast.Return, scope: Scope) -> None:
        if node.value is None:
            return
        here: Scope | None = scope
        while here is not None and here.kind != "function":
            here = here.parent
        cell = ("result", id(here.node) if here else 0, "")
        if isinstance(node.value, ast.Call) and id(node.value) in self.makes:
            self.made[id(node.value)] = node
        kind = self.read(node.value, scope, self.cells.get(cell))
        self.put(cell, kind)

    def _for(self, node: ast.For | ast.AsyncFor, scope: Scope) -> None:
        appended = self._appended(node, scope)
        if appended is not None:
            self._keyed(node.target, node.iter, scope, appended)
        else:
            kind = self.read(node.iter, scope)
            if isinstance(kind, State):
                self.writer.values(node.iter, self.final)
            elif self.tracked(kind):
                self.fail(node.iter, "is iterated")
        self._store(node.target, None, scope)
        self._body(node.body, scope)
        self._body(node.orelse, scope)

    def _appended(self, node: ast.For | ast.AsyncFor, scope: Scope) -> str | None:
        """The key under which a loop collects the state of a model, if that is what it does."""
        for statement in node.body:
            call = statement.value if isinstance(statement, ast.Expr) else None
            if (
                isinstance(call, ast.Call)
                and isinstance(call.func, ast.Attribute)
                and call.func.attr == "append"
            ):
                holder = call.func.value
                if isinstance(holder, ast.Name) and self.cells.get(self.cell(holder.id, scope)) == STATE:
                    key = self.writer.key()
                    self.writer.append(call, key, self.final)
                    return key
        return None


def defaults(arguments: ast.arguments) -> list[tuple[ast.arg, ast.expr]]:
    """The parameters that have a default, with it."""
    plain = [*arguments.posonlyargs, *arguments.args]
    found = list(zip(plain[len(plain) - len(arguments.defaults) :], arguments.defaults, strict=True))
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if default is not None:
            found.append((argument, default))
    return found


def _decorator_name(node: ast.expr) -> str:
    function = node.func if isinstance(node, ast.Call) else node
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
