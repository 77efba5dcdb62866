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
from torchmigrate.semantics.walk.annotations import Annotations
from torchmigrate.semantics.walk.assignments import Assignments
from torchmigrate.semantics.walk.bindings import Bindings
from torchmigrate.semantics.walk.bound import bound_names, stored_names, target_names, walrus_names
from torchmigrate.semantics.walk.chains import Chains
from torchmigrate.semantics.walk.expressions import Expressions, all_arguments, with_defaults
from torchmigrate.semantics.walk.lookups import Lookups
from torchmigrate.semantics.walk.state import State

_NONE: Value = (Const(None),)
# Static methods of an autograd function whose first parameter is the context.
_OF_CONTEXT = ("forward", "backward", "setup_context", "vjp", "jvp")


class Definitions:
    """Walks definitions."""

    __slots__ = (
        "annotations",
        "assignments",
        "bindings",
        "chains",
        "expressions",
        "lookups",
        "state",
    )

    def __init__(
        self,
        state: State,
        lookups: Lookups,
        bindings: Bindings,
        annotations: Annotations,
        chains: Chains,
        expressions: Expressions,
        assignments: Assignments,
    ) -> None:
        self.state = state
        self.lookups = lookups
        self.bindings = bindings
        self.annotations = annotations
        self.chains = chains
        self.expressions = expressions
        self.assignments = assignments

    def _decorators(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        """Walk decorators."""
        state = self.state
        state.asked += node.decorator_list
        for mark in node.decorator_list:
            if isinstance(mark, (ast.Name, ast.Attribute)):
                self.chains.chain(mark, Role.DECORATOR, None, node)
            elif isinstance(mark, ast.Call):
                first = len(state.uses)
                self.expressions.eval(mark)
                for use in state.uses[first:]:
                    if use.call is mark:
                        use.decorates = node
            else:
                self.expressions.eval(mark)

    def visit_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        state = self.state
        self._decorators(node)
        arguments = node.args
        tests: dict[str, Value] = {}
        for argument, default in with_defaults(arguments):
            self.expressions.eval(default)
            value = self.assignments.special(default)
            if value is not None and isinstance(value[0], Flag):
                tests[argument.arg] = value
        self._type_parameters(node)
        frame = state.frame
        owner = frame.owner if frame.scope.kind == "class" else None
        local = bound_names(node.body, {argument.arg for argument in all_arguments(arguments)})
        local.update(parameter.name for parameter in getattr(node, "type_params", ()))
        if state.has_walrus:
            local |= walrus_names(node)
        inner = Deferred(node, frame, owner, state.conditional > 0, local, tests)
        state.waiting[node] = inner
        self.bindings.bind(node.name, (Local(node.name, node),), BindingKind.DEFINITION, node)
        holder, self_name = self._self_of(inner)
        if holder is not None and self_name is not None:
            for name in stored_names(local, f"{self_name}."):
                holder.pending[name] = holder.pending.get(name, 0) + 1
        if owner is not None and node.name in SETUP:
            state.setups += 1
            state.queue.appendleft(inner)  # what it puts on `self` is known before the other methods
        elif owner is not None and node.name in MAKES_OBJECTS:
            state.queue.appendleft(inner)
        else:
            state.queue.append(inner)

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
        state = self.state
        node, parent = item.node, item.parent
        del state.waiting[node]
        scope = Scope("function", node, parent.scope)
        state.scopes.append(scope)
        frame = Frame(scope, Env(), parent, frozenset(item.local), live=False)
        frame.owner, frame.self_name = self._self_of(item)
        state.statement, state.block = node, node.body
        state.conditional = 0
        state.frame = parent
        arguments = all_arguments(node.args)
        promised = [
            UNKNOWN if argument.annotation is None else self.annotations.annotation(argument.annotation)
            for argument in arguments
        ]
        self.annotations.annotation(node.returns)
        state.frame = frame
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
            self.bindings.bind(name, value, PARAMETER, argument)
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
        ended = self.state.visit_block(node.body)
        value = UNKNOWN if frame.yields else frame.returned or UNKNOWN
        self.state.returned[node] = value if ended or value is UNKNOWN else join_values(value, _NONE)
        if frame.scope.parent is not None and frame.scope.parent.kind == "class" and node.name in SETUP:
            self.state.setups -= 1

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
        state = self.state
        self._decorators(node)
        self._type_parameters(node)
        parents: list[ClassInfo | str | None] = []
        for base in node.bases:
            if isinstance(base, (ast.Name, ast.Attribute)):
                parents.append(self._parent(base, self.chains.chain(base, Role.BASE)))
            else:
                self.expressions.eval(base)
                value = self.lookups.peek(base.value) if isinstance(base, ast.Subscript) else UNKNOWN
                known = "typing" if value != UNKNOWN else None  # Generic[T]; else Sampler[int]
                parents.append((isinstance(base, ast.Subscript) and self._parent(base.value, value)) or known)
        for keyword in node.keywords:
            self.expressions.eval(keyword.value)
        info = ClassInfo(node.name, node, tuple(parents))
        info.derive(state.roots & LIBRARY_ROOTS)  # not of packages that only the user's rules know
        state.classes[node] = info
        outer = state.frame
        scope = Scope("class", node, outer.scope)
        state.scopes.append(scope)
        state.frame = Frame(scope, Env(), outer, frozenset(), live=True, owner=info)
        state.visit_block(node.body)
        for name, slot in state.frame.every.items():
            info.attributes.setdefault(name, as_attribute(slot[0]))
        state.frame = outer
        state.statement = node
        self.bindings.bind(node.name, (Local(node.name, node),), BindingKind.DEFINITION, node)

    def _parent(self, base: ast.expr, value: Value) -> ClassInfo | str | None:
        """The class that a base is."""
        if len(value) == 1:
            item = value[0]
            if isinstance(item, QualifiedName):
                return item.name
            if isinstance(item, Local):
                return self.state.classes.get(item.node)
        return "object" if isinstance(base, ast.Name) and base.id == "object" else None

    def _type_parameters(self, node: ast.AST) -> None:
        for parameter in getattr(node, "type_params", ()):
            self.bindings.bind(parameter.name, UNKNOWN, OTHER, parameter)

    def visit_type_alias(self, node: ast.AST) -> None:
        state = self.state
        names: set[str] = set()
        target_names(node.name, names)  # type: ignore[attr-defined]
        for name in sorted(names):
            self.bindings.bind(name, UNKNOWN, ASSIGNMENT, node)
        before, state.role = state.role, ANNOTATION
        self.expressions.eval(node.value)  # type: ignore[attr-defined]
        state.role = before


def _marks(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """The decorators that are plain names."""
    return [mark.id for mark in node.decorator_list if isinstance(mark, ast.Name)]
