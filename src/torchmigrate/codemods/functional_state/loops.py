"""Loops over the state of a model, which get a key or go over its values, and what must not hold a state."""

from __future__ import annotations

import ast

from torchmigrate.codemods.functional_state.cells import AbstractStore, Cell
from torchmigrate.codemods.functional_state.kinds import (
    STATE,
    Kind,
    State,
)
from torchmigrate.semantics.model import Scope
from torchmigrate.source.trees import children, walk


class Comprehensions(AbstractStore):
    """Reads comprehensions."""

    def _comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, scope: Scope, wanted: Kind
    ) -> Kind:
        inner = self.scopes.get(id(node), scope)
        if isinstance(wanted, State) and isinstance(node, ast.ListComp):
            return self.keyed_comprehension(node, scope, node)
        for number, part in enumerate(node.generators):
            kind = self.read(part.iter, inner if number else scope)
            if isinstance(kind, State):
                self.writer.values(part.iter, self.final)
            elif self.tracked(kind):
                self.fail(part.iter, "is iterated")
            for test in part.ifs:
                self.read(test, inner)
        elements = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        for element in elements:
            if self.tracked(self.read(element, inner)):
                self.fail(element, "is collected")
        return None

    def keyed_comprehension(
        self, node: ast.ListComp | ast.GeneratorExp, scope: Scope, whole: ast.expr
    ) -> Kind:
        """`[p - g for p, g in zip(params, grads)]` as a dict with the keys of the first state in it."""
        inner = self.scopes.get(id(node), scope)
        part = node.generators[0]
        if len(node.generators) > 1 or part.ifs or part.is_async:
            self.fail(node, "creates the state of a model in a way that cannot be analyzed")
            return STATE
        key = self.writer.key()
        index = self._keyed(part.target, part.iter, scope, key, node.elt, inner)
        if self.tracked(self.read(node.elt, inner)):
            self.fail(node.elt, "is collected")
        if index is not None:
            self.keys.pop(index, None)
        self.writer.braces(node, whole, key, self.final)
        return STATE

    def _keyed(
        self,
        target: ast.expr,
        source: ast.expr,
        scope: Scope,
        key: str,
        element: ast.expr | None = None,
        inner: Scope | None = None,
    ) -> Cell | None:
        """Make a loop over states one that knows the key; the cell of an index that the key replaces."""
        if isinstance(source, ast.Call) and isinstance(source.func, ast.Name) and not source.keywords:
            name = self.qualified(source.func)
            if name == "zip" and isinstance(target, ast.Tuple) and len(target.elts) == len(source.args):
                done = False
                for item, part in zip(source.args, target.elts, strict=True):
                    kind = self.read(item, scope)
                    if isinstance(kind, State) and not done:
                        done = True
                        self.writer.items(item, part, key, self.final, wrapped=True)
                    elif isinstance(kind, State):
                        self.writer.values(item, self.final)
                    elif self.tracked(kind):
                        self.fail(item, "is iterated")
                if not done:
                    self.fail(source, "contains no state of a model that provides the keys")
                return None
            if name == "range" and len(source.args) == 1 and element is not None and inner is not None:
                return self._indexed(target, source, scope, key, element, inner)
        if isinstance(self.read(source, scope), State):
            self.writer.items(source, target, key, self.final, wrapped=False)
        else:
            self.fail(source, "contains no state of a model that provides the keys")
        return None

    def _indexed(
        self, target: ast.expr, source: ast.Call, scope: Scope, key: str, element: ast.expr, inner: Scope
    ) -> Cell | None:
        """`for i in range(len(params))` as `for name in params`."""
        size = source.args[0]
        counted = size.args[0] if isinstance(size, ast.Call) and len(size.args) == 1 else None
        if (
            counted is None
            or not isinstance(size, ast.Call)
            or self.qualified(size.func) != "len"
            or not isinstance(self.read(counted, scope), State)
            or not isinstance(target, ast.Name)
        ):
            self.fail(source, "contains no state of a model that provides the keys")
            return None
        cell = self.cell(target.id, inner)
        keyed = plain = 0
        for node in walk(element):
            if isinstance(node, ast.Name) and node.id == target.id:
                around = self.local.parent(node)
                held = isinstance(around, ast.Subscript) and around.slice is node
                if held and isinstance(around, ast.Subscript) and self.read(around.value, inner) == STATE:
                    keyed += 1
                else:
                    plain += 1
        self.writer.counted(target, source, counted, key, self.final, numbered=plain > 0)
        self.keys[cell] = key
        return cell

    def _plain(self, node: ast.expr, scope: Scope) -> None:
        """An expression that has nothing to do with states, or must not."""
        tests = isinstance(node, ast.BoolOp) or (
            isinstance(node, ast.Compare) and all(isinstance(item, (ast.Is, ast.IsNot)) for item in node.ops)
        )
        for key, child in _children(node):
            kind = self.read(child, scope)
            taken_apart = isinstance(node, ast.Starred) or (isinstance(node, ast.Dict) and key == "params")
            if taken_apart and isinstance(kind, State):
                self.writer.values(child, self.final)
            elif self.tracked(kind) and not tests and not (isinstance(node, ast.UnaryOp)):
                self.fail(child, "is used in a way that cannot be analyzed")


def _children(node: ast.expr) -> list[tuple[str, ast.expr]]:
    """The expressions right inside of one, with the key of those in a dict."""
    if isinstance(node, ast.Dict):
        keys = [item.value if isinstance(item, ast.Constant) else "" for item in node.keys]
        found = [(str(key), value) for key, value in zip(keys, node.values, strict=True)]
        return found + [("", item) for item in node.keys if item is not None]
    return [("", child) for child in children(node) if isinstance(child, ast.expr)]
