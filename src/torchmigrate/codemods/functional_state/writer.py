"""New names, and the calls of functional models."""

from __future__ import annotations

import ast

from torchmigrate.rewrite.calls import packed_call
from torchmigrate.rewrite.code import Code, code
from torchmigrate.rewrite.context import FileContext
from torchmigrate.source.trees import walk


class StateWriter:
    """Collects the changes of one file."""

    def __init__(self, file: FileContext) -> None:
        self.source = file.source
        self.flow = file.flow
        self.rewriting = file.rewriting()
        self._given: set[tuple[int, str]] = set()  # id() of a function, a new name in it
        self._taken = {node.arg for node in walk(file.tree) if isinstance(node, ast.arg)}

    def fresh(self, *wanted: str) -> str:
        """The first of some names that nothing in the file has, else the last with a number."""
        for name in wanted:
            if not self._is_taken(name):
                return name
        number = 2
        while self._is_taken(f"{wanted[-1]}_{number}"):
            number += 1
        return f"{wanted[-1]}_{number}"

    def unique(self, name: str, statement: ast.stmt) -> str:
        """A name that nothing in the file has, and that no other statement of the function has been given."""
        function, number, found = id(self.flow.index.function_of(statement)), 1, name
        while (function, found) in self._given or self._is_taken(found):
            number += 1
            found = f"{name}_{number}"
        self._given.add((function, found))
        return found

    def _is_taken(self, name: str) -> bool:
        index = self.flow.index
        return name in self._taken or bool(index.named(name) or index.bindings(name))

    def is_submodule(self, target: ast.expr) -> bool:
        """Whether a target is `self.x` in a class that is a module."""
        classes, names = self.flow.classes, self.flow.names
        owner = classes.owner_of(target.value) if isinstance(target, ast.Attribute) else None
        for each in classes.lineage(owner) if owner is not None else ():
            for base in each.bases:
                last = base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")
                if last.endswith("Module") or (names.qualified(base) or "").startswith("torch.nn."):
                    return True
        return False

    def replace(self, node: ast.expr, new: Code) -> None:
        self.rewriting.replace_node(node, new)

    def functional_call(self, call: ast.Call, function: str, states: int) -> str | None:
        """`f(params, x, k=v)` as `functional_call(f, params, (x,), {"k": v})`; or what is in the way."""
        given, inputs = call.args[:states], call.args[states:]
        if len(given) < states or any(isinstance(item, ast.Starred) for item in given):
            return "passes the state by keyword or `*`"
        if any(isinstance(item, ast.GeneratorExp) for item in call.args):
            return "has a generator among its arguments"
        first = min(map(self.source.span, call.keywords), default=None)
        if inputs and first is not None and first < self.source.span(inputs[-1]):
            return "has keywords before its inputs"
        self.rewriting.record(packed_call(self.source, call, code("$f", f=function), states))
        return None
