"""What makes tuples of parameters into dicts."""

from __future__ import annotations

import ast

from torchmigrate.rewrite.calls import packed_call
from torchmigrate.rewrite.code import Code, code
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.nodes import keyed_comprehension
from torchmigrate.semantics.flow.tree_index import TreeIndex
from torchmigrate.source.trees import walk

_KEYS = ("name", "key", "parameter_name", "name_of_parameter")


class StateWriter:
    """Collects changes. The methods do nothing until `final`, so that a reader may call them repeatedly."""

    def __init__(self, file: FileContext, local: TreeIndex) -> None:
        self.source = file.source
        self.flow = file.flow
        self.local = local
        self.rewriting = file.rewriting()
        self.module_methods: list[ast.Call] = []  # `fmodel.eval()`
        self._appends: set[int] = set()
        self._given: set[tuple[int, str]] = set()  # id() of a function, a new name in it
        self._taken = {node.arg for node in walk(file.tree) if isinstance(node, ast.arg)}

    def fresh(self, *wanted: str) -> str:
        """The first of some names that nothing in the file has, else the last with a number."""
        for name in wanted:
            if name not in self._taken and not self.local.named(name):
                return name
        number = 2
        while self.local.named(f"{wanted[-1]}_{number}"):
            number += 1
        return f"{wanted[-1]}_{number}"

    def unique(self, name: str, statement: ast.stmt) -> str:
        """A name that nothing in the file has, and that no other statement of the function has been given."""
        function, number, found = id(self.local.function_of(statement)), 1, name
        while (
            (function, found) in self._given
            or found in self._taken
            or self.local.named(found)
            or self.local.bindings(found)
        ):
            number += 1
            found = f"{name}_{number}"
        self._given.add((function, found))
        return found

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

    def key(self) -> str:
        """The variable for the name of a parameter."""
        return self.fresh(*_KEYS)

    def replace(self, node: ast.expr, new: Code, final: bool) -> None:
        if final:
            self.rewriting.replace_node(node, new)

    def values(self, node: ast.expr, final: bool) -> None:
        self.replace(node, code("$x.values()", x=node), final)

    def tupled(self, node: ast.expr, final: bool) -> None:
        self.replace(node, code("tuple($x.values())", x=node), final)

    def listed(self, node: ast.expr, final: bool) -> None:
        self.replace(node, code("list($x.values())", x=node), final)

    def items(self, node: ast.expr, target: ast.expr, key: str, final: bool, *, wrapped: bool) -> None:
        """`for p in params` as `for name, p in params.items()`; wrapped: the target stands among others."""
        self.replace(node, code("$x.items()", x=node), final)
        self.replace(target, code("($key, $x)" if wrapped else "$key, $x", key=key, x=target), final)

    def counted(
        self, target: ast.Name, loop: ast.expr, state: ast.expr, key: str, final: bool, *, numbered: bool
    ) -> None:
        """`for i in range(len(params))` as `for name in params`, or as `for i, name in enumerate(params)`."""
        self.replace(target, code("$x, $key" if numbered else "$key", x=target, key=key), final)
        self.replace(loop, code("enumerate($x)" if numbered else "$x", x=state), final)

    def braces(self, node: ast.ListComp | ast.GeneratorExp, whole: ast.expr, key: str, final: bool) -> None:
        """`[...]` or `tuple(...)` around a comprehension as `{name: ...}`."""
        if final:
            self.rewriting.record(keyed_comprehension(self.source, node, whole, key))

    def append(self, call: ast.Call, key: str, final: bool) -> None:
        """`found.append(x)` as `found[name] = x`."""
        self._appends.add(id(call))
        if len(call.args) == 1 and isinstance(call.func, ast.Attribute):
            new = code("$found[$key] = $x", found=call.func.value, key=key, x=call.args[0])
            self.replace(call, new, final)

    def is_append(self, call: ast.Call) -> bool:
        return id(call) in self._appends

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
