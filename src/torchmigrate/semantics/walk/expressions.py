"""What an expression may be, and which library names it uses."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import lru_cache

from torchmigrate.patterns import pattern
from torchmigrate.semantics.model import (
    ANNOTATION,
    CALL,
    OPAQUE,
    OTHER,
    PARAMETER,
    REFERENCE,
    Const,
    Instance,
    Items,
    Operation,
    QualifiedName,
    Role,
    Scope,
    Value,
    Via,
)
from torchmigrate.semantics.values import distinctive, types
from torchmigrate.semantics.values.narrowing import Narrowed, narrowed
from torchmigrate.semantics.values.operators import binary, compared, item_of, unpacked
from torchmigrate.semantics.values.slots import NOTHING, UNKNOWN, join_values
from torchmigrate.semantics.walk.bound import target_names
from torchmigrate.semantics.walk.calls import PLAIN_CALLS, REGISTERS, Calls
from torchmigrate.semantics.walk.chains import Chain
from torchmigrate.source.trees import children

_MOST_ITEMS = 16  # elements of a tuple or list that are kept apart
_MOST_NESTED = 16  # conditions within each other that are followed: each is read once for all around it
_SPECIAL_CALLS = frozenset(["cast", "getattr", "import_module", "importorskip", "patch", "setattr"])
_CASTS = frozenset(["typing.cast", "typing_extensions.cast"])
_DOTTED = pattern(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+\Z")


class Expressions(Calls):
    """Evaluates expressions in the current frame."""

    __slots__ = ()

    def narrowed(self, test: ast.expr) -> tuple[Narrowed, Narrowed]:
        """What names of the current scope hold where a test is true, and where it is false."""
        return narrowed(test, self)

    def narrow(self, known: Narrowed) -> Narrowed:
        """Hold names to what a test says of them; what they held before."""
        if not known:
            return known
        env = self.frame.env
        kept = {name: env[name] for name in known}
        env.apply(known)
        return kept

    def eval(self, node: ast.expr) -> Value:
        """What `node` may be; every name inside it is visited exactly once."""
        kind = node.__class__
        if kind is ast.Name:  # without a call for unknown names: most of all expressions
            name: str = node.id  # type: ignore[attr-defined]
            value, bindings = self.frame.env.get(name) or self.lookup(name)
            if value is not UNKNOWN:
                value = self.chain_of(Chain(node, REFERENCE, None, bindings), node, value, [])
                if value is not UNKNOWN:
                    self.values[id(node)] = value
            return value
        if kind is ast.Constant and self.role is not ANNOTATION:
            self.values[id(node)] = value = _constant_value(node.value)  # type: ignore[attr-defined]
            return value
        handler = _EVALUATE.get(kind)
        if handler is not None:
            value = handler(self, node)
            if value is not UNKNOWN:
                self.values[id(node)] = value
            return value
        for child in children(node):
            if isinstance(child, ast.expr):
                self.eval(child)
        return UNKNOWN

    def _chain(self, node: ast.Attribute) -> Value:
        return self.chain(node)

    def _constant(self, node: ast.Constant) -> Value:
        if self.role is ANNOTATION and isinstance(node.value, str):
            return self._string_annotation(node)
        return _constant_value(node.value)  # as in `Literal["a"]`

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

    def _call(self, node: ast.Call) -> Value:
        func = node.func
        kind = func.__class__
        name = ""
        if kind is ast.Name or kind is ast.Attribute:
            name = func.id if isinstance(func, ast.Name) else func.attr  # type: ignore[attr-defined]
            self.called.add(name)
            if name in _SPECIAL_CALLS:
                special = self._special_call(node, name)
                if special is not None:
                    return special
            callee = self.chain(func, CALL, node)
        else:
            called = self.called_now
            self.called_now = node
            callee = self.eval(func)
            self.called_now = called
        values: list[Value] = []
        if node.args or node.keywords:
            before, self.role = self.role, REFERENCE
            evaluate = self.eval
            for argument in node.args:
                values.append(evaluate(argument))
            for keyword in node.keywords:
                evaluate(keyword.value)
            self.role = before
        if name in REGISTERS:
            self.register(node, values)
        if callee is not UNKNOWN:
            item = callee[0] if len(callee) == 1 else None
            if item.__class__ is Instance and item.cls in distinctive.CALLED:
                self._record_called(node, item)
            return self.call_value(node, callee, values)
        if name in PLAIN_CALLS and kind is ast.Name:
            return self.plain_call(name, node, values)
        return UNKNOWN

    def _record_called(self, node: ast.Call, item: Instance) -> None:
        """Record that an object is called, which is a use of its `__call__`."""
        member = "__call__"
        names = (f"{item.cls}.{member}",)
        self.record(node.func, names, item.sure, CALL, node, None, member, Via.METHOD, (), item.stated)

    def _special_call(self, node: ast.Call, name: str) -> Value | None:
        """`getattr(torch, "qr")`, and dotted names in strings of `patch`, `setattr`, `import_module`."""
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
                    QualifiedName(f"{item.name}.{second.value}", item.sure, Via.GETATTR)
                    if isinstance(item, QualifiedName)
                    else OPAQUE
                    for item in value
                )
                names = tuple(
                    item.name
                    for item in out
                    if isinstance(item, QualifiedName) and item.name.partition(".")[0] in self.roots
                )
                if names and len(node.args) == 2:
                    outer = (
                        self.called_now
                        if self.called_now is not None and self.called_now.func is node
                        else None
                    )
                    role = REFERENCE if outer is None else CALL
                    self.record(node, names, False, role, outer, None, "", Via.GETATTR)
                return out or UNKNOWN
        elif name == "importorskip":
            return self._imported_or_skipped(node)
        elif name == "cast":
            return self._cast(node)
        elif name != "getattr" and node.args:
            first = node.args[0]
            if (
                isinstance(first, ast.Constant)
                and isinstance(first.value, str)
                and _DOTTED.match(first.value)
                and first.value.partition(".")[0] in self.roots
            ):
                self.record(first, (first.value,), False, Role.STRING, None, None, "", Via.IMPORT)
            if name == "import_module":
                return self._imported_or_skipped(node)
        return None

    def _cast(self, node: ast.Call) -> Value | None:
        """`cast(Module, x)`: the first argument is an annotation, and the second comes back as it is."""
        value = self.peek(node.func)
        only = value[0] if len(value) == 1 else None
        if (
            not isinstance(only, QualifiedName)
            or only.name not in _CASTS
            or len(node.args) != 2
            or node.keywords
        ):
            return None
        before = self.role
        self.role = ANNOTATION
        self.eval(node.args[0])
        self.role = REFERENCE
        value = self.eval(node.args[1])
        self.role = before
        return value

    def _imported_or_skipped(self, node: ast.Call) -> Value | None:
        """`torch = pytest.importorskip("torch")`: what the import gives, wherever anything runs after it.

        So is `import_module("torch.fft")`; the name in the string is a use itself.
        """
        first = node.args[0] if node.args else None
        module = first.value if isinstance(first, ast.Constant) else None
        if not isinstance(module, str) or module.partition(".")[0] not in self.roots:
            return None
        return (QualifiedName(module, False, Via.ALIAS),)

    def _operation(self, node: ast.BinOp | ast.UnaryOp | ast.Subscript) -> None:
        self.operations.append(Operation(node, self.frame.scope, self.fstring))

    def _bin_op(self, node: ast.BinOp) -> Value:
        # Long sums lean to the left: walked in a loop, so that they cannot exhaust the stack.
        operations: list[ast.BinOp] = []
        left: ast.expr = node
        while left.__class__ is ast.BinOp:
            operations.append(left)
            left = left.left
        for operation in operations:
            self._operation(operation)
        value = self.eval(left)
        for node in reversed(operations):
            other = self.eval(node.right)
            unsure = self.lazy and (value is UNKNOWN or other is UNKNOWN)
            value = binary(value, node.op, other)
            # A lazy matrix and a tensor make another lazy matrix: `K + jitter * torch.eye(n)`.
            if unsure and types.level(value) > types.MAYBE:
                value = (types.MAYBE_TENSOR,)
        return value

    def _unary_op(self, node: ast.UnaryOp) -> Value:
        self._operation(node)
        value = self.eval(node.operand)
        if isinstance(node.op, ast.Not) or value is UNKNOWN:
            return UNKNOWN
        if types.level(value):
            return value
        if len(value) == 1 and isinstance(value[0], Const) and isinstance(node.op, ast.USub):
            number = value[0].value
            if isinstance(number, (int, float)):
                return (Const(-number),)
        return UNKNOWN

    def _compare(self, node: ast.Compare) -> Value:
        left = self.eval(node.left)
        values = [self.eval(right) for right in node.comparators]
        value = compared(left, node.ops[0], values[0]) if len(values) == 1 else UNKNOWN
        if value is not UNKNOWN:
            self.called.add("==")
        return value

    def _bool_op(self, node: ast.BoolOp) -> Value:
        # Later operands run only when the earlier ones did not decide: `hasattr(torch, "x") and torch.x()`.
        both = isinstance(node.op, ast.And)
        value: Value = NOTHING
        kept: Narrowed = {}
        self.nested += 1
        self.uncertain += 1
        followed = self.nested <= _MOST_NESTED
        for operand in node.values:
            value = join_values(value, self.eval(operand))
            if followed and operand.__class__ is not ast.Name:
                for name, slot in self.narrow(self.narrowed(operand)[0 if both else 1]).items():
                    kept.setdefault(name, slot)
        self.nested -= 1
        self.uncertain -= 1
        self.frame.env.apply(kept)
        return value

    def _if_exp(self, node: ast.IfExp) -> Value:
        self.eval(node.test)
        self.asked.append(node.test)
        positive, negative = self.narrowed(node.test)
        self.uncertain += 1
        kept = self.narrow(positive)
        first = self.eval(node.body)
        self.frame.env.apply(kept)
        kept = self.narrow(negative)
        second = self.eval(node.orelse)
        self.frame.env.apply(kept)
        self.uncertain -= 1
        return join_values(first, second)

    def _subscript(self, node: ast.Subscript) -> Value:
        self._operation(node)
        value = self.eval(node.value)
        before = self.role
        if before is not ANNOTATION:
            self.role = REFERENCE
        self.eval(node.slice)
        self.role = before
        return UNKNOWN if value is UNKNOWN else item_of(value, node.slice)

    def _sequence(self, node: ast.Tuple | ast.List) -> Value:
        values = list(map(self.eval, node.elts))
        if len(values) > _MOST_ITEMS:
            return UNKNOWN
        for value in values:
            if value is not UNKNOWN and has_objects(value):
                if any(element.__class__ is ast.Starred for element in node.elts):
                    return UNKNOWN
                return (Items(tuple(values)),)
        return UNKNOWN

    def _dict(self, node: ast.Dict) -> Value:
        joined: Value = NOTHING
        for key, item in zip(node.keys, node.values, strict=True):
            if key is not None:
                self.eval(key)
            joined = join_values(joined, self.eval(item))
        return (Items((joined,), True, True),) if has_objects(joined) else UNKNOWN

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
        self.bind(node.target.id, value, OTHER, node)
        self.frame.scope = scope
        return value

    def _yield(self, node: ast.Yield | ast.YieldFrom) -> Value:
        self.frame.yields = True
        if node.value is not None:
            self.eval(node.value)
        return UNKNOWN

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
        found: list[Value] = []

        def body() -> None:
            for number, generator in enumerate(generators):
                value = self.eval(generator.iter) if number else first
                if value is not UNKNOWN:
                    self._hold(generator.target, types.elements(value))
                for test in generator.ifs:
                    self.eval(test)
                    self.narrow(
                        {name: slot for name, slot in self.narrowed(test)[0].items() if name in names}
                    )
            if isinstance(node, ast.DictComp):
                self.eval(node.key)
                found.append(self.eval(node.value))
            else:
                found.append(self.eval(node.elt))

        self._inside("comprehension", node, sorted(names), body)
        if not has_objects(found[0]):
            return UNKNOWN
        return (Items((found[0],), True, isinstance(node, ast.DictComp)),)

    def _hold(self, target: ast.expr, value: Value) -> None:
        """Let the names of a comprehension's target, which are bound, hold a value."""
        if isinstance(target, ast.Name):
            self.frame.env[target.id] = (value, self.frame.env[target.id][1])
        elif isinstance(target, (ast.Tuple, ast.List)) and value is not UNKNOWN:
            for element, part in zip(target.elts, unpacked(value, len(target.elts)), strict=True):
                self._hold(element, part)

    def _inside(self, kind: str, node: ast.AST, names: list[str], body: Callable[[], object]) -> None:
        """Run `body` with `names` bound to something unknown, in a scope of their own."""
        outer = self.frame.scope
        scope = Scope(kind, node, outer)
        self.scopes.append(scope)
        env = self.frame.env
        saved = {name: env.get(name) for name in names}
        self.frame.scope = scope
        self.uncertain += 1
        for name in names:
            binding = self.new_binding(name, PARAMETER if kind == "function" else OTHER, node)
            env[name] = (UNKNOWN, (binding,))
        body()
        self.uncertain -= 1
        self.frame.scope = outer
        env.apply(saved)


@lru_cache(maxsize=2048, typed=True)  # most are a few numbers, strings and None
def _constant_value(value: object) -> Value:
    return (Const(value),)


def has_objects(value: Value) -> bool:
    """Whether something is known of the objects that a value may be."""
    for item in value:  # noqa: SIM110 (a generator would take longer to make than to run)
        if item.__class__ is Instance or item.__class__ is Items:
            return True
    return False


def all_arguments(arguments: ast.arguments) -> list[ast.arg]:
    """Every parameter, in order."""
    found = [*arguments.posonlyargs, *arguments.args]
    if arguments.vararg:
        found.append(arguments.vararg)
    found.extend(arguments.kwonlyargs)
    if arguments.kwarg:
        found.append(arguments.kwarg)
    return found


def with_defaults(arguments: ast.arguments) -> list[tuple[ast.arg, ast.expr]]:
    """Every parameter that has a default, with it, in order."""
    if not arguments.defaults and not arguments.kw_defaults:
        return []
    positional = [*arguments.posonlyargs, *arguments.args]
    found = list(
        zip(positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True)
    )
    keywords = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return found + [(argument, default) for argument, default in keywords if default is not None]


_EVALUATE: dict[type, Callable[..., Value]] = {
    ast.Attribute: Expressions._chain,
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
    ast.Yield: Expressions._yield,
    ast.YieldFrom: Expressions._yield,
    ast.Lambda: Expressions._lambda,
    ast.ListComp: Expressions._comprehension,
    ast.SetComp: Expressions._comprehension,
    ast.GeneratorExp: Expressions._comprehension,
    ast.DictComp: Expressions._comprehension,
    ast.Dict: Expressions._dict,
}
