"""Binding names: assignments, imports, functions and classes."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections import deque
from collections.abc import Iterable

from torchmigrate.semantics.guards.formulas import UNKNOWN as UNKNOWN_TEST
from torchmigrate.semantics.guards.formulas import Formula, all_of
from torchmigrate.semantics.guards.tests import evaluate_special, mark_of, unpack_version
from torchmigrate.semantics.model import (
    ANNOTATION,
    ASSIGNMENT,
    OTHER,
    PARAMETER,
    Binding,
    BindingKind,
    Flag,
    Guards,
    Instance,
    Items,
    Local,
    QualifiedName,
    Role,
    Scope,
    TryGuard,
    Value,
)
from torchmigrate.semantics.values import distinctive, types
from torchmigrate.semantics.values.classes import ClassInfo, as_attribute
from torchmigrate.semantics.values.objects import FUNCTION, MODULE, TENSOR
from torchmigrate.semantics.values.operators import unpacked
from torchmigrate.semantics.values.slots import UNKNOWN, Deferred, Env, Frame, Slot, join_slots, stated
from torchmigrate.semantics.walk.bound import bound_names, stored_names, target_names, walrus_names
from torchmigrate.semantics.walk.expressions import Expressions, all_arguments, has_objects, with_defaults
from torchmigrate.semantics.walk.lookups import SourceLike

# Static methods of an autograd function of which the first parameter is the context.
_OF_CONTEXT = ("forward", "backward", "setup_context", "vjp", "jvp")
# Methods that run before the others, so that what they put on `self` is there.
SETUP = ("__init__", "setUp", "setup", "__post_init__", "setup_method", "setUpClass", "setup_class")


class Definitions(Expressions):
    """Binds names in the current frame."""

    __slots__ = (
        "branch_test",
        "conditional",
        "exports",
        "has_walrus",
        "queue",
        "tested",
        "tries",
        "type_checking",
    )

    def __init__(self, source: SourceLike, roots: frozenset[str]) -> None:
        super().__init__(source, roots)
        self.queue: deque[Deferred] = deque()
        self.conditional = 0  # depth of if, try and loops around the statement
        self.type_checking = 0
        self.has_walrus = ":=" in source.text
        self.exports: set[str] = set()
        self.tested: list[tuple[ast.stmt, ast.stmt, Formula]] = []
        self.tries: list[tuple[TryGuard, str]] = []
        self.branch_test: Formula = UNKNOWN_TEST  # of the `if` that alone decides whether this block runs

    @abstractmethod
    def visit_block(self, block: list[ast.stmt]) -> bool:
        """Walk statements; whether their end is never reached. In `Resolver`."""

    def note_test(self, first: ast.stmt, last: ast.stmt, outer: Guards) -> None:
        """Remember what the guards within `outer` say of some statements, if that is anything."""
        tests: list[Formula] = []
        guards: Guards | None = self.guards
        while guards is not None and guards is not outer:
            if guards.formula is not None and guards.formula is not UNKNOWN_TEST:
                tests.append(guards.formula)
            guards = guards.outer
        if tests:
            self.tested.append((first, last, all_of(tests)))

    # ---- binding -------------------------------------------------------------------------------------

    def new_binding(self, name: str, kind: BindingKind, node: ast.AST) -> Binding:
        scope = self.frame.scope
        bindings = self.bindings
        # By position, in the order of the class: there are as many as names in a file.
        binding = Binding(
            len(bindings), name, kind, scope, node, self.statement, self.block, None, None,
            self.conditional > 0, self.type_checking > 0, self.guards,
        )  # fmt: skip
        bindings.append(binding)
        held = scope.bindings.get(name)
        if held is None:
            scope.bindings[name] = [binding]
        else:
            held.append(binding)
        return binding

    def bind(self, name: str, value: Value, kind: BindingKind, node: ast.AST) -> Binding:
        frame = self.frame
        binding = self.new_binding(name, kind, node)
        binding.value = value
        slot: Slot = (value, (binding,))
        scope = frame.scope
        if (scope.globals and name in scope.globals) or (scope.nonlocals and name in scope.nonlocals):
            outer = frame.parent
            while outer is not None and (
                outer.scope.kind == "class"
                or (name in frame.scope.globals and outer.parent is not None)
                or (name in frame.scope.nonlocals and name not in outer.local)
            ):
                outer = outer.parent
            if outer is not None:
                outer.scope.bindings.setdefault(name, []).append(binding)
                old = outer.every.get(name)
                outer.every[name] = slot if old is None else join_slots(old, slot)
        frame.env[name] = slot
        every = frame.every
        old = every.get(name)
        every[name] = slot if old is None else join_slots(old, slot)
        return binding

    def assign(
        self, target: ast.expr, value: Value, kind: BindingKind, source: ast.expr | None = None
    ) -> None:
        """Bind an assignment target to a value; `source` is the expression, where there is one."""
        if isinstance(target, ast.Name):
            self.bind(target.id, value, kind, target)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target, value, kind, source)
        elif isinstance(target, ast.Starred):
            self.assign(target.value, UNKNOWN, kind)
        elif isinstance(target, ast.Attribute):
            frame = self.frame
            holder = target.value
            if isinstance(holder, ast.Name) and frame.owner is not None and holder.id == frame.self_name:
                value = as_attribute(value)
                if target.attr in frame.stored:
                    frame.env[f"{holder.id}.{target.attr}"] = (value, ())
                frame.owner.store(target.attr, value)
            else:
                self.eval(holder)
        else:
            self.eval(target)

    def _unpack(
        self, target: ast.Tuple | ast.List, value: Value, kind: BindingKind, source: ast.expr | None
    ) -> None:
        elements = target.elts
        starred = any(isinstance(element, ast.Starred) for element in elements)
        values: list[Value] | None = None
        if source is not None and not starred:
            if isinstance(source, (ast.Tuple, ast.List)) and len(source.elts) == len(elements):
                parts = unpacked(value, len(elements))
                values = [
                    self._special(item) or (part if has_objects(part) else self.peek(item))
                    for item, part in zip(source.elts, parts, strict=True)
                ]
            else:
                values = unpack_version(source, self.peek, len(elements))
        if values is None and value is not UNKNOWN and not starred:
            values = unpacked(value, len(elements))
        for number, element in enumerate(elements):
            self.assign(element, values[number] if values else UNKNOWN, kind)

    def _special(self, node: ast.expr) -> Value | None:
        return evaluate_special(node, self.peek)

    # ---- imports -------------------------------------------------------------------------------------

    def _import(self, node: ast.Import) -> None:
        for alias in node.names:
            name = alias.asname or alias.name.partition(".")[0]
            target = alias.name if alias.asname else name
            self._bind_import(name, target, alias.name, BindingKind.IMPORT, alias)

    def _import_from(self, node: ast.ImportFrom) -> None:
        module = "." * node.level + (node.module or "")
        for alias in node.names:
            if alias.name == "*":
                self._star_import(node, module)
                continue
            target = f"{module}.{alias.name}" if node.module else f"{module}{alias.name}"
            self._bind_import(alias.asname or alias.name, target, module, BindingKind.FROM_IMPORT, alias)

    def _star_import(self, node: ast.ImportFrom, module: str) -> None:
        binding = self.new_binding("*", BindingKind.STAR_IMPORT, node)
        binding.module = module
        if module.partition(".")[0] in self.roots:
            self.stars.append((module, self.offset(node)))
            self.imports_torch = self.imports_torch or module.startswith("torch")
            self._record(node, (module,), False, Role.IMPORT, None, None, None, "", "star")
        else:
            self.other_star = True
            self._look_alike(module)
            self.unknown_star = bool(self.stars)  # it may have brought any of the names that follow

    def _bind_import(self, name: str, target: str, module: str, kind: BindingKind, alias: ast.alias) -> None:
        root = target.partition(".")[0]
        sure = not target.startswith(".")
        binding = self.bind(name, (QualifiedName(target),) if sure else UNKNOWN, kind, alias)
        binding.target, binding.module = target, module
        if alias.asname is not None and alias.asname == alias.name:
            binding.exported = True
        if root not in self.roots:
            self.note_try((target,))
            self._look_alike(target)
        else:
            if root == "torch":
                self.imports_torch = True
            full = alias.name if kind is BindingKind.IMPORT else target
            self._record(alias, (full,), True, Role.IMPORT, None, None, binding, "", "import")

    def _look_alike(self, module: str) -> None:
        """Note an import after which methods of tensors may be those of something else."""
        root = module.partition(".")[0]
        if root in distinctive.LOOKALIKES:
            self.lookalikes = True
        if root in ("gpytorch", "linear_operator") or "lazy" in module.lower():
            self.lazy = True

    # ---- definitions ---------------------------------------------------------------------------------

    def _decorators(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> tuple[Formula, ...]:
        """Walk decorators; the tests under which what they mark runs, those around it included."""
        marks = self.frame.marks
        for mark in node.decorator_list:
            test = mark_of(mark, self.peek)
            if test is not UNKNOWN_TEST:
                marks = (*marks, test)
            if isinstance(mark, (ast.Name, ast.Attribute)):
                self.chain(mark, Role.DECORATOR, None, node)
            elif isinstance(mark, ast.Call):
                first = len(self.uses)
                self.eval(mark)
                for use in self.uses[first:]:
                    if use.call is mark:
                        use.decorates = node
            else:
                self.eval(mark)
        return marks

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        marks = self._decorators(node)
        arguments = node.args
        tests: dict[str, Value] = {}
        for argument, default in with_defaults(arguments):
            self.eval(default)
            value = self._special(default)
            if value is not None and isinstance(value[0], Flag):
                tests[argument.arg] = value
        self._type_parameters(node)
        frame = self.frame
        owner = frame.owner if frame.scope.kind == "class" else None
        local = bound_names(node.body, {argument.arg for argument in all_arguments(arguments)})
        local.update(parameter.name for parameter in getattr(node, "type_params", ()))
        if self.has_walrus:
            local |= walrus_names(node)
        guards = under(marks, self.guards)
        inner = Deferred(node, frame, guards, self.guards, owner, self.conditional > 0, local, tests)
        self.bind(node.name, (Local(node.name, node),), BindingKind.DEFINITION, node)
        holder, self_name = self._self_of(inner)
        if holder is not None and self_name is not None:
            for name in stored_names(local, f"{self_name}."):
                holder.pending[name] = holder.pending.get(name, 0) + 1
        if owner is not None and node.name in SETUP:
            self.queue.appendleft(inner)  # what it puts on `self` is known before the other methods
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

    def _function_body(self, item: Deferred) -> None:
        node, parent = item.node, item.parent
        scope = Scope("function", node, parent.scope)
        self.scopes.append(scope)
        frame = Frame(scope, Env(), parent, frozenset(item.local), live=False)
        frame.owner, frame.self_name = self._self_of(item)
        self.statement, self.block = node, node.body
        self.guards = item.guards
        if item.owner is not None and item.owner.refused:
            self.guards = under(item.owner.refused, self.guards)
        self.note_test(node.body[0], node.body[-1], item.around)
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
            self.visit_block(node.body)
            return
        frame.stored = frozenset(stored_names(item.local, f"{self_name}."))
        for name in frame.stored:
            frame.env[f"{self_name}.{name}"] = (owner.find(name) or UNKNOWN, ())
        self.visit_block(node.body)
        for name in frame.stored:
            owner.pending[name] -= 1

    def _usual(self, item: Deferred) -> tuple[Value, Value]:
        """What the first parameter of a function and the other ones hold, where nothing else says so."""
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

    def _class(self, node: ast.ClassDef) -> None:
        marks = self._decorators(node)
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
        info.derive(self.roots)
        self.classes[node] = info
        outer = self.frame
        scope = Scope("class", node, outer.scope)
        self.scopes.append(scope)
        self.frame = Frame(
            scope, Env(), outer, frozenset(), live=True, owner=info, marks=marks, marks_outside=marks
        )
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

    def _type_alias(self, node: ast.AST) -> None:
        names: set[str] = set()
        target_names(node.name, names)  # type: ignore[attr-defined]
        for name in sorted(names):
            self.bind(name, UNKNOWN, ASSIGNMENT, node)
        before, self.role = self.role, ANNOTATION
        self.eval(node.value)  # type: ignore[attr-defined]
        self.role = before


def under(tests: Iterable[Formula], guards: Guards) -> Guards:
    """The guards of a place that is under some tests more."""
    for test in tests:
        guards = Guards(formula=test, outer=guards)
    return guards


def _marks(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """The decorators that are plain names."""
    return [mark.id for mark in node.decorator_list if isinstance(mark, ast.Name)]
