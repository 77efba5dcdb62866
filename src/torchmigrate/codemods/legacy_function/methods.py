"""The methods of an old function class, made static: they get a context, and gradients for settings."""

from __future__ import annotations

import ast

from torchmigrate.codemods.base.unclear import Unclear
from torchmigrate.codemods.legacy_function.classes import (
    LegacyClass,
    Method,
    calls_base_init,
    first_parameter,
    members_of,
)
from torchmigrate.rewrite.code import code
from torchmigrate.rewrite.lines import is_alone, logical_line
from torchmigrate.rewrite.statements import Crowded, Rewriting
from torchmigrate.semantics.flow.domain import OPEN, UNKNOWN, Domain, Values
from torchmigrate.semantics.flow.steps import Path
from torchmigrate.semantics.flow.values import ValueFlow
from torchmigrate.source.trees import is_docstring, walk_own


class ClassRewriting:
    """Rewrites one class."""

    def __init__(self, found: LegacyClass, rewriting: Rewriting, flow: ValueFlow) -> None:
        self.found = found
        self.rewriting = rewriting
        self.source = rewriting.source
        self.flow = flow
        self.none = ["None"] * len(found.settings)  # gradients of settings

    def write(self) -> None:
        """Rewrite all methods.

        Raises:
            Unclear: the text does not allow it.
            Crowded: as Rewriting says.
        """
        from torchmigrate.rewrite.parameters import NewParameter, parameters_added  # with LibCST

        found = self.found
        for method in found.methods:
            self.rewriting.decorate(method, code("staticmethod"))
            self.rewriting.rename(first_parameter(method), "ctx")
            self._rename(method)
        if self.none:
            new = [NewParameter(item.arg, item.annotation, found.default(item)) for item in found.settings]
            last = found.forward.args.args[-1]
            self.rewriting.record(parameters_added(self.source, found.forward, last, new))
        if found.backward is not None and self.none:
            returns = [node for node in walk_own(found.backward.body) if isinstance(node, ast.Return)]
            if not returns and not isinstance(found.backward.body[-1], ast.Raise):
                raise Unclear("`backward` returns nothing")
            for statement in returns:
                self._return_gradients(statement)
        if found.init is not None:
            self._drop_init(found.init)

    def _rename(self, method: Method) -> None:
        """Give every `self.x` of a method its new form."""
        for member in members_of(method, self.flow.index):
            around = self.flow.names.parents.get(member)
            by_number = isinstance(around, ast.Subscript) and isinstance(around.slice, ast.Constant)
            if member.attr == "saved_variables":
                self.rewriting.replace_node(member, code("ctx.saved_tensors"))
            elif member.attr == "needs_input_grad" and self.none and not by_number:
                inputs = code("ctx.needs_input_grad[:$number]", number=str(self.found.inputs))
                self.rewriting.replace_node(member, inputs)
            elif isinstance(member.value, ast.Name):
                self.rewriting.rename(member.value, "ctx")

    def _return_gradients(self, statement: ast.Return) -> None:
        """More gradients at the end of what is returned."""
        from torchmigrate.rewrite.returns import values_returned  # with LibCST

        value = statement.value
        if value is None:
            if self.found.inputs != 1:
                raise Unclear("`backward` returns nothing")
            edits = values_returned(self.source, statement, ["None", *self.none])
        else:
            if isinstance(value, ast.Tuple) and not value.elts:
                raise Unclear("`backward` returns an empty tuple")
            edits = values_returned(self.source, statement, self.none, unpacked=self._is_tuple(value))
        self.rewriting.record(edits)

    def _is_tuple(self, value: ast.expr) -> bool:
        """Whether the returned value is a tuple.

        Raises:
            Unclear: it is not known.
        """
        # What autograd gives to `backward` is a tensor.
        kinds = {False if kind is OPEN else kind for kind in _Tuples(self.flow).of(value)} or {False}
        if len(kinds) != 1 or UNKNOWN in kinds:
            raise Unclear("cannot tell whether `backward` returns a tuple")
        if self.found.inputs > 1 and False in kinds:
            raise Unclear("`backward` returns one gradient for several inputs")
        return True in kinds

    def _drop_init(self, init: Method) -> None:
        """Move what `__init__` does to the beginning of `forward`."""
        own, into = first_parameter(init).arg, self.found.forward
        dropped = [item for item in init.body if calls_base_init(item, own) or isinstance(item, ast.Pass)]
        if len(dropped) == len(init.body):
            self.rewriting.remove(init)
            return
        self.rewriting.merge(init, into)
        if is_docstring(init.body[0]) and is_docstring(into.body[0]):
            raise Unclear("`__init__` and `forward` both have a docstring")
        for item in dropped:
            line = logical_line(self.source, init.body, item)
            if line.comment or not is_alone(self.source, init.body, item):
                raise Crowded("a statement of `__init__` shares its line with others, or with a comment")
            self.rewriting.remove(item)
        self._rename(init)


class _Tuples(Domain[bool]):
    """Whether a value is a tuple."""

    def start(self, node: ast.AST) -> bool | None:
        if isinstance(node, (ast.UnaryOp, ast.Constant, ast.Compare, ast.AugAssign)):
            return False
        return True if isinstance(node, (ast.Tuple, ast.arg)) else None  # `*grads`

    def through(self, node: ast.AST) -> Values[bool]:
        if isinstance(node, ast.BinOp):  # a tuple only if one side is
            return frozenset([isinstance(node.op, ast.Add) and True in self.join(node.left, node.right)])
        if isinstance(node, ast.Call) and self.flow.builtin(node.func) == "tuple":
            return frozenset([True])
        # A method of a tensor, or a function of a library.
        plain = isinstance(node, ast.Call) and not isinstance(node.func, ast.Name)
        return frozenset([False if plain else UNKNOWN])

    def part(self, node: ast.AST, path: Path) -> Values[bool]:
        return frozenset([False])
