"""Functions and classes: what they bind, and their bodies."""

from __future__ import annotations

import ast

from torchmigrate.semantics.libraries import LIBRARY_ROOTS
from torchmigrate.semantics.model import (
    ANNOTATION,
    ASSIGNMENT,
    OTHER,
    PARAMETER,
    BindingKind,
    Const,
    Flag,
    Instance,
    Items,
    Local,
    QualifiedName,
    Role,
    Scope,
    Value,
)
from torchmigrate.semantics.values import types
from torchmigrate.semantics.values.classes import MAKES_OBJECTS, SETUP, ClassInfo, as_attribute
from torchmigrate.semantics.values.frames import Deferred, Frame
from torchmigrate.semantics.values.objects import FUNCTION, MODULE, TENSOR
from torchmigrate.semantics.values.slots import UNKNOWN, Env, join_values, stated
from torchmigrate.semantics.walk.bound import bound_names, stored_names, target_names, walrus_names
from torchmigrate.semantics.walk.expressions import all_arguments, with_defaults
from torchmigrate.semantics.walk.statements import Statements

_NONE: Value = (Const(None),)
# Static methods of an autograd function whose first parameter is the context.
_OF_CONTEXT = ("forward", "backward", "setup_context", "vjp", "jvp")


class Definitions(Statements):
    """Walks definitions."""

    __slots__ = ()

    def _decorators(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        """Walk decorators."""
        self.asked += node.decorator_list
        for mark in node.decorator_list:
            first = len(self.uses)
            if isinstance(mark, (ast.Name, ast.Attribute)):
                self.chain(mark, Role.DECORATOR)
            else:
                self.eval(mark)
            for use in self.uses[first:]:
                if use.call is mark or use.role is Role.DECORATOR:
                    use.decorates = node

    def visit_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._decorators(node)
        arguments = node.args
        tests: dict[str, Value] = {}
        for argument, default in with_defaults(arguments):
            self.eval(default)
            value = self.special(default)
            if value is not None and isinstance(value[0], Flag):
                tests[argument.arg] = value
        self._type_parameters(node)
        frame = self.frame
        owner = frame.owner if frame.scope.kind == "class" else None
        local = bound_names(node.body, {argument.arg for argument in all_arguments(arguments)})
        local.update(parameter.name for parameter in getattr(node, "type_params", ()))
        if self.has_walrus:
            local |= walrus_names(node)
        inner = Deferred(node, frame, owner, self.conditional > 0, local, tests)
        self.waiting[node] = inner
        self.bind(node.name, (Local(node.name, node),), BindingKind.DEFINITION, node)
        holder, self_name = self._self_of(inner)
        if holder is not None and self_name is not None:
            for name in stored_names(local, f"{self_name}."):
                holder.pending[name] = holder.pending.get(name, 0) + 1
        if owner is not None and node.name in SETUP:
            self.setups += 1
            self.queue.appendleft(inner)  # what it puts on `self` is known before the other methods
        elif owner is not None and node.name in MAKES_OBJECTS:
            self.queue.appendleft(inner)
        else:
            self.queue.append(inner)

    def _self_of(self, item: Deferred) -> tuple[ClassInfo | None, str | None]:
        """The class whose objects a function calls `self`, and the name that it really uses for them."""
        node, parent = item.node, item.parent
        if item.owner is not None:
            arguments = node.args.posonlyargs or node.args.args
            if not arguments or (node.decorator_list and "staticmethod" in _marks(node)):
                return None, None
            return item.owner, arguments[0].arg
        if parent.owner is not None and parent.scope.kind == "function":
            return parent.owner, parent.self_name if parent.self_name not in item.local else None
        return None, None

    def visit_body(self, item: Deferred) -> None:
        node, parent = item.node, item.parent
        del self.waiting[node]
        scope = Scope("function", node, parent.scope)
        self.scopes.append(scope)
        frame = Frame(scope, Env(), parent, frozenset(item.local), live=False)
        frame.owner, frame.self_name = self._self_of(item)
        self.statement, self.block = node, node.body
        self.conditional = 0
        self.frame = parent
        arguments = all_arguments(node.args)
        promised = [
            UNKNOWN if argument.annotation is None else self.annotation(argument.annotation)
            for argument in arguments
        ]
        self.annotation(node.returns)
        self.frame = frame
        self._type_parameters(node)
        first, others = self._usual(item)
        for number, argument in enumerate(arguments):
            name = argument.arg
            several = argument is node.args.vararg or argument is node.args.kwarg
            if name in item.tests:
                value = item.tests[name]  # that of a version, which no caller knows better
            else:
                value = first if number == 0 and not several else others
                if argument.annotation is not None and promised[number] != stated(value):
                    value = promised[number]  # else it says what is known anyway
            if several and value is not UNKNOWN:
                value = (Items((value,), many=True, keyed=argument is node.args.kwarg),)
            self.bind(name, value, PARAMETER, argument)
        owner, self_name = frame.owner, frame.self_name
        if owner is None or self_name is None:
            self._finish(node, frame)
            return
        frame.stored = frozenset(stored_names(item.local, f"{self_name}."))
        for name in frame.stored:
            frame.env[f"{self_name}.{name}"] = (owner.find(name) or UNKNOWN, ())
        self._finish(node, frame)
        for name in frame.stored:
            owner.pending[name] -= 1

    def _finish(self, node: ast.FunctionDef | ast.AsyncFunctionDef, frame: Frame) -> None:
        """Walk the statements of a function, and keep what they return."""
        ended = self.visit_block(node.body)
        value = UNKNOWN if frame.yields else frame.returned or UNKNOWN
        self.returned[node] = value if ended or value is UNKNOWN else join_values(value, _NONE)
        if frame.scope.parent is not None and frame.scope.parent.kind == "class" and node.name in SETUP:
            self.setups -= 1

    def _usual(self, item: Deferred) -> tuple[Value, Value]:
        """What the first parameter of a function and the other ones hold, by default."""
        owner, node = item.owner, item.node
        if owner is None:
            return UNKNOWN, UNKNOWN
        first: Value = UNKNOWN
        rest: Value = UNKNOWN
        marks = _marks(node) if node.decorator_list else ()
        if owner.is_a(FUNCTION):
            if node.name == "backward":
                rest = (Instance(TENSOR),)  # or None
            elif node.name == "forward":
                rest = (types.MAYBE_TENSOR,)
            if "staticmethod" in marks:
                return (Instance(FUNCTION),) if node.name in _OF_CONTEXT else UNKNOWN, rest
        elif node.name == "forward" and owner.is_a(MODULE):
            rest = (types.MAYBE_TENSOR,)
        if "staticmethod" not in marks:
            local = Local(owner.name, owner.node)
            first = (local,) if "classmethod" in marks else (Instance(owner.library, owner.certain, local),)
        return first, rest

    def visit_class(self, node: ast.ClassDef) -> None:
        self._decorators(node)
        self._type_parameters(node)
        parents: list[ClassInfo | str | None] = []
        for base in node.bases:
            if isinstance(base, (ast.Name, ast.Attribute)):
                parents.append(self._parent(base, self.chain(base, Role.BASE)))
            else:
                self.eval(base)
                value = self.peek(base.value) if isinstance(base, ast.Subscript) else UNKNOWN
                known = "typing" if value != UNKNOWN else None  # Generic[T]; else Sampler[int]
                parents.append((isinstance(base, ast.Subscript) and self._parent(base.value, value)) or known)
        for keyword in node.keywords:
            self.eval(keyword.value)
        info = ClassInfo(node.name, node, tuple(parents))
        info.derive(self.roots & LIBRARY_ROOTS)  # not of packages that only the user's rules know
        self.classes[node] = info
        outer = self.frame
        scope = Scope("class", node, outer.scope)
        self.scopes.append(scope)
        self.frame = Frame(scope, Env(), outer, frozenset(), live=True, owner=info)
        self.visit_block(node.body)
        for name, slot in self.frame.every.items():
            info.attributes.setdefault(name, as_attribute(slot[0]))
        self.frame = outer
        self.statement = node
        self.bind(node.name, (Local(node.name, node),), BindingKind.DEFINITION, node)

    def _parent(self, base: ast.expr, value: Value) -> ClassInfo | str | None:
        """The class that a base is."""
        if len(value) == 1:
            item = value[0]
            if isinstance(item, QualifiedName):
                return item.name
            if isinstance(item, Local):
                return self.classes.get(item.node)
        return "object" if isinstance(base, ast.Name) and base.id == "object" else None

    def _type_parameters(self, node: ast.AST) -> None:
        for parameter in getattr(node, "type_params", ()):
            self.bind(parameter.name, UNKNOWN, OTHER, parameter)

    def visit_type_alias(self, node: ast.AST) -> None:
        names: set[str] = set()
        target_names(node.name, names)  # type: ignore[attr-defined]
        for name in sorted(names):
            self.bind(name, UNKNOWN, ASSIGNMENT, node)
        before, self.role = self.role, ANNOTATION
        self.eval(node.value)  # type: ignore[attr-defined]
        self.role = before


def _marks(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """The decorators that are plain names."""
    return [mark.id for mark in node.decorator_list if isinstance(mark, ast.Name)]
