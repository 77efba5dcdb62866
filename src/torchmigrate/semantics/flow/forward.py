"""Where values go: the way forward through the value flow."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchmigrate.semantics.flow.steps import UNKNOWN_STEP, Step
from torchmigrate.semantics.flow.values import ValueFlow
from torchmigrate.source.trees import walk

_MOST_BINDINGS = 8  # of a variable that nested functions read
_Def = (ast.FunctionDef, ast.AsyncFunctionDef)


class Forward:
    """The steps forward through the values of one file."""

    def __init__(self, flow: ValueFlow) -> None:
        self._flow = flow
        self._reads: dict[ast.AST, dict[ast.AST, list[ast.Name]]] = {}

    def of(self, node: ast.AST) -> Iterator[ast.AST]:
        """The expressions to which the value of one goes, one step forward: reads of the variable or the
        attribute that it is given to, the parameter that it is an argument for, calls of the function that
        returns it."""
        outer = self._flow.names.parents.get(node)
        if isinstance(outer, ast.keyword):
            outer = self._flow.names.parents.get(outer)
        if isinstance(outer, (ast.IfExp, ast.BoolOp, ast.Await)) and getattr(outer, "test", None) is not node:
            yield outer
        elif isinstance(outer, ast.Attribute):
            call = self._flow.names.parents.get(outer)
            if isinstance(call, ast.Call) and call.func is outer and Step(node) in self._flow.sources(call):
                yield call
        elif isinstance(outer, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and outer.value is node:
            for target in outer.targets if isinstance(outer, ast.Assign) else [outer.target]:
                yield from self._reads_of(target)
            if isinstance(outer, ast.NamedExpr):
                yield outer
        elif isinstance(outer, (ast.Tuple, ast.List)):
            yield from self._reads_of_item(outer, node)
        elif isinstance(outer, ast.Return):
            function = self._flow.index.home_of(outer)
            if isinstance(function, _Def):
                yield from (call for call, _ in self._flow.calls_of(function)[0])
        elif isinstance(outer, ast.Call) and outer.func is not node:
            yield from self._reads_of_argument(outer, node)

    def _reads_of(self, target: ast.AST) -> Iterator[ast.AST]:
        if isinstance(target, ast.Name):
            home = self._flow.index.home_of(target)
            if isinstance(home, ast.ClassDef):
                return
            yield from self._reads_by_target(home).get(target, ())
            scope = self._flow.index.scope_at(home) if not isinstance(home, ast.Lambda) else None
            if scope is not None and len(scope.bindings.get(target.id, ())) <= _MOST_BINDINGS:
                for name in self._flow.index.named(target.id):
                    inner = self._flow.index.home_of(name)
                    if (
                        inner is not home
                        and isinstance(name.ctx, ast.Load)
                        and self._flow.index.binds(name, home)
                    ):
                        yield name
        elif isinstance(target, ast.Attribute) and self._flow.classes.owner_of(target.value) is not None:
            given = {*self._flow.sources(target)} - {UNKNOWN_STEP}
            for other in self._flow.index.attributes(target.attr):
                if isinstance(other.ctx, ast.Load) and not given.isdisjoint(self._flow.sources(other)):
                    yield other

    def _reads_of_item(self, outer: ast.Tuple | ast.List, node: ast.AST) -> Iterator[ast.AST]:
        statement = self._flow.names.parents.get(outer)
        number = next(number for number, item in enumerate(outer.elts) if item is node)
        if isinstance(statement, ast.Assign) and statement.value is outer:
            for target in statement.targets:
                if isinstance(target, (ast.Tuple, ast.List)) and len(target.elts) == len(outer.elts):
                    yield from self._reads_of(target.elts[number])

    def _reads_of_argument(self, call: ast.Call, node: ast.AST) -> Iterator[ast.AST]:
        called = self._flow.entered(call)
        if not isinstance(called, _Def):
            return
        for argument in walk(called.args):
            if isinstance(argument, ast.arg) and Step(node) in self._flow.parameter(argument):
                yield from self._reads_by_target(called).get(argument, ())

    def _reads_by_target(self, home: ast.AST | None) -> dict[ast.AST, list[ast.Name]]:
        key = home or self._flow.names.tree
        found = self._reads.get(key)
        if found is None:
            found = self._reads[key] = {}
            flow = self._flow.index.reaching(home)
            for name, seen in flow.every_read():
                for definition in seen:
                    if definition.node is not None:
                        found.setdefault(definition.node, []).append(name)
        return found
