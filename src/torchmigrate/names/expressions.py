"""The expression half of the walk: what an expression may be, and which library names it uses."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from torchmigrate.names import types
from torchmigrate.names.bound import target_names
from torchmigrate.names.chains import Chains
from torchmigrate.names.flow import NOTHING, UNKNOWN, join_values
from torchmigrate.names.guard_tests import parse_test
from torchmigrate.names.guards import UNKNOWN as UNKNOWN_TEST
from torchmigrate.names.guards import negate
from torchmigrate.names.model import OPAQUE, Const, Guards, Instance, Kind, Qual, Role, Scope, Value

_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+\Z")


class Expressions(Chains):
    """Evaluates expressions in the current frame."""

    def eval(self, node: ast.expr) -> Value:
        """What `node` may be; every name inside it is visited exactly once."""
        handler = _EVALUATE.get(node.__class__)
        if handler is not None:
            return handler(self, node)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.eval(child)
        return UNKNOWN

    def _name(self, node: ast.Name) -> Value:
        return self.chain(node, Role.REFERENCE)

    def _attribute(self, node: ast.Attribute) -> Value:
        return self.chain(node, Role.REFERENCE)

    def _constant(self, node: ast.Constant) -> Value:
        if self.role is Role.ANNOTATION and isinstance(node.value, str):
            return self._string_annotation(node)
        return (Const(node.value),)

    def _string_annotation(self, node: ast.Constant) -> Value:
        text = node.value
        assert isinstance(text, str), "the caller looked"
        if self.string_base is not None or node.lineno != node.end_lineno or not text.isascii():
            return UNKNOWN
        start = self.offset(node)
        raw = self.source.text[start : self.end_offset(node)]
        quote = raw[:1]
        if quote not in "'\"" or raw != quote + text + quote:
            return UNKNOWN
        try:
            inner = ast.parse(text, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return UNKNOWN
        if getattr(inner, "end_lineno", 1) != 1:
            return UNKNOWN
        self.string_base = start + 1
        try:
            return self.eval(inner)
        finally:
            self.string_base = None

    def annotation(self, node: ast.expr | None) -> Value:
        """The value that a parameter or variable with this annotation holds."""
        if node is None:
            return UNKNOWN
        before, self.role = self.role, Role.ANNOTATION
        try:
            value = self.eval(node)
        finally:
            self.role = before
        if len(value) == 1 and isinstance(value[0], Qual):
            return (types.of_annotation(value[0].name),)
        return UNKNOWN

    def _call(self, node: ast.Call) -> Value:
        func = node.func
        kind = func.__class__
        if kind is ast.Name or kind is ast.Attribute:
            special = self._special_call(node)
            if special is not None:
                return special
            callee = self.chain(func, Role.CALL, node)
        else:
            callee = self.eval(func)
        before, self.role = self.role, Role.REFERENCE
        for argument in node.args:
            self.eval(argument)
        for keyword in node.keywords:
            self.eval(keyword.value)
        self.role = before
        if len(callee) == 1 and callee is not UNKNOWN:
            item = callee[0]
            if isinstance(item, Qual):
                return (types.call_result(item.name, item.sure),)
            if isinstance(item, Instance) and item.cls.startswith("torch.nn."):
                return (Instance(types.TENSOR, False),)
        return UNKNOWN

    def _special_call(self, node: ast.Call) -> Value | None:
        """`getattr(torch, "qr")`, and dotted names in the strings of `mock.patch` and its like."""
        func = node.func
        name = func.id if isinstance(func, ast.Name) else func.attr if isinstance(func, ast.Attribute) else ""
        if name == "getattr" and 2 <= len(node.args) <= 3 and not node.keywords:
            second = node.args[1]
            if (
                isinstance(second, ast.Constant)
                and isinstance(second.value, str)
                and second.value.isidentifier()
            ):
                value = self.eval(node.args[0])
                if len(node.args) == 3:
                    self.eval(node.args[2])
                out = tuple(
                    Qual(f"{item.name}.{second.value}", item.sure, "getattr")
                    if isinstance(item, Qual)
                    else OPAQUE
                    for item in value
                )
                names = tuple(
                    item.name
                    for item in out
                    if isinstance(item, Qual) and item.name.partition(".")[0] in self.roots
                )
                if names and len(node.args) == 2:
                    self._record(node, names, False, Role.REFERENCE, None, None, None, "", "getattr")
                return out or UNKNOWN
        elif name in ("patch", "setattr") and node.args:
            first = node.args[0]
            if (
                isinstance(first, ast.Constant)
                and isinstance(first.value, str)
                and _DOTTED.match(first.value)
                and first.value.partition(".")[0] in self.roots
            ):
                self._record(first, (first.value,), False, Role.STRING, None, None, None, "", "import")
        return None

    def _bin_op(self, node: ast.BinOp) -> Value:
        # Long sums lean to the left: walked in a loop, so that they cannot exhaust the stack.
        rights: list[ast.expr] = []
        left: ast.expr = node
        while left.__class__ is ast.BinOp:
            rights.append(left.right)
            left = left.left
        values = [self.eval(left)]
        values.extend(self.eval(right) for right in reversed(rights))
        tensors = [
            item
            for value in values
            for item in value
            if isinstance(item, Instance) and item.cls == types.TENSOR
        ]
        if tensors:
            return (Instance(types.TENSOR, any(item.sure for item in tensors)),)
        return UNKNOWN

    def _unary_op(self, node: ast.UnaryOp) -> Value:
        value = self.eval(node.operand)
        if len(value) == 1:
            item = value[0]
            if isinstance(item, Instance) and item.cls == types.TENSOR and not isinstance(node.op, ast.Not):
                return value
            if (
                isinstance(item, Const)
                and isinstance(node.op, ast.USub)
                and isinstance(item.value, (int, float))
            ):
                return (Const(-item.value),)
        return UNKNOWN

    def _compare(self, node: ast.Compare) -> Value:
        values = [self.eval(node.left)]
        values.extend(self.eval(right) for right in node.comparators)
        elementwise = not any(isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in node.ops)
        for value in values:
            if (
                len(value) == 1
                and isinstance(value[0], Instance)
                and value[0].cls == types.TENSOR
                and elementwise
            ):
                return value
        return UNKNOWN

    def _bool_op(self, node: ast.BoolOp) -> Value:
        # Later operands run only when the earlier ones did not decide: `hasattr(torch, "x") and torch.x()`.
        outer = self.guards
        value: Value = NOTHING
        for operand in node.values:
            value = join_values(value, self.eval(operand))
            test = parse_test(operand, self.peek)
            if test is not UNKNOWN_TEST:  # some conditions have thousands of operands
                self.guards = Guards(
                    formula=test if isinstance(node.op, ast.And) else negate(test), outer=self.guards
                )
        self.guards = outer
        return value

    def _if_exp(self, node: ast.IfExp) -> Value:
        self.eval(node.test)
        test = parse_test(node.test, self.peek)
        outer = self.guards
        self.guards = Guards(formula=test, outer=outer)
        first = self.eval(node.body)
        self.guards = Guards(formula=negate(test), outer=outer)
        second = self.eval(node.orelse)
        self.guards = outer
        return join_values(first, second)

    def _subscript(self, node: ast.Subscript) -> Value:
        value = self.eval(node.value)
        before = self.role
        if before is not Role.ANNOTATION:
            self.role = Role.REFERENCE
        self.eval(node.slice)
        self.role = before
        if len(value) == 1 and isinstance(value[0], Instance):
            return (types.element(value[0].cls, value[0].sure),)
        return UNKNOWN

    def _sequence(self, node: ast.Tuple | ast.List) -> Value:
        for element in node.elts:
            self.eval(element)
        return UNKNOWN

    def _joined(self, node: ast.JoinedStr) -> Value:
        before = self.fstring
        self.fstring = before or node
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                self.eval(part.value)
                if isinstance(part.format_spec, ast.JoinedStr):
                    self._joined(part.format_spec)
        self.fstring = before
        return UNKNOWN

    def _named(self, node: ast.NamedExpr) -> Value:
        value = self.eval(node.value)
        scope = self.frame.scope
        while self.frame.scope.kind == "comprehension" and self.frame.scope.parent is not None:
            self.frame.scope = self.frame.scope.parent  # a walrus binds in the scope around comprehensions
        self.bind(node.target.id, value, Kind.OTHER, node)
        self.frame.scope = scope
        return value

    def _lambda(self, node: ast.Lambda) -> Value:
        for default in (*node.args.defaults, *(item for item in node.args.kw_defaults if item)):
            self.eval(default)
        names = [arg.arg for arg in all_arguments(node.args)]
        self._inside("function", node, names, lambda: self.eval(node.body))
        return UNKNOWN

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Value:
        generators = node.generators
        first = self.eval(generators[0].iter)
        names: set[str] = set()
        for generator in generators:
            target_names(generator.target, names)

        def body() -> None:
            for number, generator in enumerate(generators):
                value = self.eval(generator.iter) if number else first
                if (
                    isinstance(generator.target, ast.Name)
                    and len(value) == 1
                    and isinstance(value[0], Instance)
                ):
                    item = types.element(value[0].cls, value[0].sure)
                    self.frame.env[generator.target.id] = ((item,), self.frame.env[generator.target.id][1])
                for test in generator.ifs:
                    self.eval(test)
            if isinstance(node, ast.DictComp):
                self.eval(node.key)
                self.eval(node.value)
            else:
                self.eval(node.elt)

        self._inside("comprehension", node, sorted(names), body)
        return UNKNOWN

    def _inside(self, kind: str, node: ast.AST, names: list[str], body: Callable[[], object]) -> None:
        """Run `body` with `names` bound to something unknown, in a scope of their own."""
        outer = self.frame.scope
        scope = Scope(kind, node, outer)
        self.scopes.append(scope)
        env = self.frame.env
        saved = {name: env.get(name) for name in names}
        self.frame.scope = scope
        for name in names:
            binding = self.new_binding(name, Kind.PARAMETER if kind == "function" else Kind.OTHER, node)
            env[name] = (UNKNOWN, (binding,))
        body()
        self.frame.scope = outer
        for name, slot in saved.items():
            if slot is None:
                env.pop(name, None)
            else:
                env[name] = slot


def all_arguments(arguments: ast.arguments) -> list[ast.arg]:
    """Every parameter, in order."""
    found = [*arguments.posonlyargs, *arguments.args]
    if arguments.vararg:
        found.append(arguments.vararg)
    found.extend(arguments.kwonlyargs)
    if arguments.kwarg:
        found.append(arguments.kwarg)
    return found


_EVALUATE: dict[type, Callable[..., Value]] = {
    ast.Name: Expressions._name,
    ast.Attribute: Expressions._attribute,
    ast.Constant: Expressions._constant,
    ast.Call: Expressions._call,
    ast.BinOp: Expressions._bin_op,
    ast.UnaryOp: Expressions._unary_op,
    ast.Compare: Expressions._compare,
    ast.BoolOp: Expressions._bool_op,
    ast.IfExp: Expressions._if_exp,
    ast.Subscript: Expressions._subscript,
    ast.Tuple: Expressions._sequence,
    ast.List: Expressions._sequence,
    ast.JoinedStr: Expressions._joined,
    ast.NamedExpr: Expressions._named,
    ast.Lambda: Expressions._lambda,
    ast.ListComp: Expressions._comprehension,
    ast.SetComp: Expressions._comprehension,
    ast.GeneratorExp: Expressions._comprehension,
    ast.DictComp: Expressions._comprehension,
}
