"""The edits that make tuples of parameters into dicts."""

from __future__ import annotations

import ast

from torchmigrate.findings import Edit
from torchmigrate.rewrite.parentheses import argument_span, arguments_start, behind_closers, with_parentheses
from torchmigrate.semantics.flow.tree_index import TreeIndex
from torchmigrate.source.text import Source

_KEYS = ("name", "key", "parameter_name", "name_of_parameter")
_PRIMARY = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)


class StateText:
    """Collects edits. The methods do nothing until `final`, so that a reader may ask again and again."""

    def __init__(self, source: Source, local: TreeIndex, tree: ast.Module) -> None:
        self.source = source
        self.local = local
        self.edits: dict[Edit, None] = {}
        self.module_methods: list[ast.Call] = []  # `fmodel.eval()`
        self._appends: set[int] = set()
        self._given: set[tuple[int, str]] = set()  # id() of a function, a new name in it
        self._taken = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}

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

    def key(self) -> str:
        """The variable for the name of a parameter."""
        return self.fresh(*_KEYS)

    def add(self, start: int, end: int, text: str) -> None:
        self.edits[Edit(start, end, text)] = None

    def replace(self, node: ast.expr, text: str, final: bool) -> None:
        if final:
            self.add(*self.source.span(node), text)

    def around(self, node: ast.expr, before: str, behind: str, final: bool) -> None:
        """Write something before an expression and something behind it, which binds to all of it."""
        if not final:
            return
        start, end = self.source.span(node)
        if not isinstance(node, _PRIMARY):
            before, behind = f"{before}(", f"){behind}"
        if before:
            self.add(start, start, before)
        self.add(end, end, behind)

    def values(self, node: ast.expr, final: bool) -> None:
        self.around(node, "", ".values()", final)

    def tupled(self, node: ast.expr, final: bool) -> None:
        self.around(node, "tuple(", ".values())", final)

    def listed(self, node: ast.expr, final: bool) -> None:
        self.around(node, "list(", ".values())", final)

    def items(self, node: ast.expr, target: ast.expr, key: str, final: bool, *, wrapped: bool) -> None:
        """`for p in params` as `for name, p in params.items()`; wrapped: the target stands among others."""
        self.around(node, "", ".items()", final)
        if final:
            start, end = self.source.span(target)
            self.add(start, start, f"({key}, " if wrapped else f"{key}, ")
            if wrapped:
                self.add(end, end, ")")

    def counted(
        self, target: ast.Name, loop: ast.expr, state: ast.expr, key: str, final: bool, *, numbered: bool
    ) -> None:
        """`for i in range(len(params))` as `for name in params`, or as `for i, name in enumerate(params)`."""
        if final:
            text = self.source.segment(state)
            self.replace(target, f"{target.id}, {key}" if numbered else key, final)
            self.replace(loop, f"enumerate({text})" if numbered else text, final)

    def braces(self, node: ast.ListComp | ast.GeneratorExp, whole: ast.expr, key: str, final: bool) -> None:
        """`[...]` or `tuple(...)` around a comprehension as `{name: ...}`."""
        if not final:
            return
        start, end = self.source.span(whole)
        first = self.source.span(node)[0]
        if self.source.text[first] in "([" and self.source.span(node)[1] <= end:
            first += 1
        self.add(start, first, f"{{{key}: ")
        self.add(self.source.span(node)[1] - 1, end, "}")

    def append(self, call: ast.Call, key: str, final: bool) -> None:
        """`found.append(x)` as `found[name] = x`."""
        self._appends.add(id(call))
        if not final or len(call.args) != 1 or not isinstance(call.func, ast.Attribute):
            return
        holder, (value,) = self.source.span(call.func.value)[1], call.args
        text, end = self.source.text, self.source.span(call)[1]
        if "\n" in self.source.segment(value):
            self.add(holder, self.source.span(call.func)[1], f"[{key}] = ")
            return
        self.add(holder, arguments_start(call, self.source), f"[{key}] = ")
        self.add(behind_closers(self.source.span(value)[1], end - 1, text), end, "")

    def is_append(self, call: ast.Call) -> bool:
        return id(call) in self._appends

    # ---- calls of the model --------------------------------------------------------------------------

    def functional_call(self, call: ast.Call, function: str, states: int) -> str | None:
        """`f(params, x, k=v)` as `functional_call(f, params, (x,), {"k": v})`; or what is in the way."""
        source = self.source
        given = call.args[:states]
        if len(given) < states or any(isinstance(item, ast.Starred) for item in given):
            return "gives the state by keyword or star"
        if any(isinstance(item, ast.GeneratorExp) for item in call.args):
            return "has a generator among its arguments"
        start, end = source.span(call)
        opening = arguments_start(call, source) - 1
        self.add(start, start, f"{function}(")
        self.add(opening, opening + 1, ", (" if states > 1 else ", ")
        inputs, keywords = call.args[states:], sorted(call.keywords, key=lambda item: source.span(item)[0])
        if inputs and keywords and source.span(keywords[0])[0] < source.span(inputs[-1])[0]:
            return "has keywords before its inputs"
        behind_state = self._behind(given[-1], end)
        if states > 1:
            self.add(behind_state, behind_state, ")")
        if inputs:
            first = self._before(inputs[0])
            self.add(first, first, "(")
            last = self._behind(inputs[-1], end)
            self.add(last, last, ",)" if len(inputs) == 1 else ")")
        else:
            self.add(behind_state, behind_state, ", ()")
        if len(keywords) == 1 and keywords[0].arg is None:
            self.add(source.span(keywords[0])[0], source.span(keywords[0].value)[0], "")
        elif keywords:
            for keyword in keywords:
                if keyword.arg is not None:
                    at = source.span(keyword)[0]
                    begin = self._before(keyword.value)
                    brace = "{" if keyword is keywords[0] else ""
                    self.add(at, begin, f'{brace}"{keyword.arg}": ')
                elif keyword is keywords[0]:
                    at = source.span(keyword)[0]
                    self.add(at, at, "{")
            last = self._behind(keywords[-1].value, end)
            self.add(last, last, "}")
        return None

    def _behind(self, node: ast.expr, end: int) -> int:
        """Behind an argument and the parentheses around it."""
        return behind_closers(self.source.span(node)[1], end - 1, self.source.text)

    def _before(self, node: ast.expr) -> int:
        """Before an argument and the parentheses around it."""
        start, end = self.source.span(node)
        outer = self.local.parent(node)
        if isinstance(outer, ast.keyword):
            return with_parentheses(start, end, self.source.span(outer)[0], self.source.text)[0]
        return argument_span(node, outer, self.source)[0] if isinstance(outer, ast.Call) else start
