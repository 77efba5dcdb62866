"""Binding names: assignments, imports, functions and classes."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections import deque

from torchmigrate.names import types
from torchmigrate.names.bound import bound_names, target_names, walrus_names
from torchmigrate.names.chains import SourceLike
from torchmigrate.names.expressions import Expressions, all_arguments
from torchmigrate.names.flow import UNKNOWN, ClassInfo, Deferred, Frame, Slot, join_slots, join_values
from torchmigrate.names.guard_tests import evaluate_special, unpack_version
from torchmigrate.names.model import (
    Binding,
    Instance,
    Kind,
    Local,
    Qual,
    Role,
    Scope,
    TryGuard,
    Value,
)

_MODULES = ("torch.nn.Module", "torch.nn.modules.module.Module", "torch.nn.modules.Module")
_FUNCTIONS = ("torch.autograd.Function", "torch.autograd.function.Function")


class Definitions(Expressions):
    """Binds names in the current frame."""

    def __init__(self, source: SourceLike, roots: frozenset[str]) -> None:
        super().__init__(source, roots)
        self.queue: deque[Deferred] = deque()
        self.conditional = 0  # depth of if, try and loops around the statement
        self.type_checking = 0
        self.has_walrus = ":=" in source.text
        self.exports: set[str] = set()
        self.tries: list[tuple[TryGuard, str]] = []
        self.classes: dict[str, ClassInfo] = {}

    @abstractmethod
    def visit_block(self, block: list[ast.stmt]) -> bool:
        """Walk statements; whether their end is never reached. In `Resolver`."""

    # ---- binding -------------------------------------------------------------------------------------

    def new_binding(self, name: str, kind: Kind, node: ast.AST) -> Binding:
        scope = self.frame.scope
        binding = Binding(
            len(self.bindings), name, kind, scope, node, self.statement, self.block,
            conditional=self.conditional > 0, type_checking=self.type_checking > 0, guards=self.guards,
        )  # fmt: skip
        self.bindings.append(binding)
        held = scope.bindings.get(name)
        if held is None:
            scope.bindings[name] = [binding]
        else:
            held.append(binding)
        return binding

    def bind(self, name: str, value: Value, kind: Kind, node: ast.AST) -> Binding:
        frame = self.frame
        binding = self.new_binding(name, kind, node)
        binding.value = value
        slot: Slot = (value, (binding,))
        if name in frame.scope.globals or name in frame.scope.nonlocals:
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

    def assign(self, target: ast.expr, value: Value, kind: Kind, source: ast.expr | None = None) -> None:
        """Bind an assignment target to a value; `source` is the expression, where there is one."""
        if isinstance(target, ast.Name):
            self.bind(target.id, value, kind, target)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target, value, kind, source)
        elif isinstance(target, ast.Starred):
            self.assign(target.value, UNKNOWN, kind)
        elif isinstance(target, ast.Attribute):
            frame = self.frame
            if (
                isinstance(target.value, ast.Name)
                and frame.owner is not None
                and target.value.id == frame.self_name
            ):
                held = frame.owner.attributes.get(target.attr)
                frame.owner.attributes[target.attr] = value if held is None else join_values(held, value)
                self.lookup_self(target.value)
            else:
                self.eval(target.value)
        else:
            self.eval(target)

    def lookup_self(self, node: ast.Name) -> None:
        """`self` is a parameter: nothing to record."""

    def _unpack(
        self, target: ast.Tuple | ast.List, value: Value, kind: Kind, source: ast.expr | None
    ) -> None:
        elements = target.elts
        starred = any(isinstance(element, ast.Starred) for element in elements)
        values: list[Value] | None = None
        if source is not None and not starred:
            if isinstance(source, (ast.Tuple, ast.List)) and len(source.elts) == len(elements):
                values = [self._special(item) or self.peek(item) for item in source.elts]
            else:
                values = unpack_version(source, self.peek, len(elements))
        if values is None and len(value) == 1 and isinstance(value[0], Instance):
            values = [(types.element(value[0].cls, value[0].sure),)] * len(elements)
        for number, element in enumerate(elements):
            self.assign(element, values[number] if values else UNKNOWN, kind)

    def _special(self, node: ast.expr) -> Value | None:
        return evaluate_special(node, self.peek)

    # ---- imports -------------------------------------------------------------------------------------

    def _import(self, node: ast.Import) -> None:
        for alias in node.names:
            name = alias.asname or alias.name.partition(".")[0]
            target = alias.name if alias.asname else name
            self._bind_import(name, target, alias.name, Kind.IMPORT, alias)

    def _import_from(self, node: ast.ImportFrom) -> None:
        module = "." * node.level + (node.module or "")
        for alias in node.names:
            if alias.name == "*":
                self._star_import(node, module)
                continue
            target = f"{module}.{alias.name}" if node.module else f"{module}{alias.name}"
            self._bind_import(alias.asname or alias.name, target, module, Kind.FROM_IMPORT, alias)

    def _star_import(self, node: ast.ImportFrom, module: str) -> None:
        binding = self.new_binding("*", Kind.STAR_IMPORT, node)
        binding.module = module
        if module.partition(".")[0] in self.roots:
            self.stars.append((module, self.offset(node)))
            self.imports_torch = self.imports_torch or module.startswith("torch")
            self._record(node, (module,), False, Role.IMPORT, None, None, None, "", "star")
        else:
            self.other_star = True
            self.unknown_star = bool(self.stars)  # it may have brought any of the names that follow

    def _bind_import(self, name: str, target: str, module: str, kind: Kind, alias: ast.alias) -> None:
        root = target.partition(".")[0]
        sure = not target.startswith(".")
        binding = self.bind(name, (Qual(target),) if sure else UNKNOWN, kind, alias)
        binding.target, binding.module = target, module
        if alias.asname is not None and alias.asname == alias.name:
            binding.exported = True
        if root not in self.roots:
            self.note_try((target,))
        else:
            if root == "torch":
                self.imports_torch = True
            full = alias.name if kind is Kind.IMPORT else target
            self._record(alias, (full,), True, Role.IMPORT, None, None, binding, "", "import")

    # ---- definitions ---------------------------------------------------------------------------------

    def _decorators(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        for mark in node.decorator_list:
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

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._decorators(node)
        arguments = node.args
        for default in (*arguments.defaults, *(item for item in arguments.kw_defaults if item)):
            self.eval(default)
        self._type_parameters(node)
        owner = self.frame.owner if self.frame.scope.kind == "class" else None
        inner = Deferred(node, self.frame, self.guards, owner, self.conditional > 0)
        self.bind(node.name, (Local(node.name, node),), Kind.DEFINITION, node)
        if owner is not None and node.name in ("__init__", "setUp", "setup"):
            self.queue.appendleft(inner)  # what it puts on `self` is known before the other methods
        else:
            self.queue.append(inner)

    def _function_body(self, item: Deferred) -> None:
        node, parent = item.node, item.parent
        scope = Scope("function", node, parent.scope)
        self.scopes.append(scope)
        arguments = all_arguments(node.args)
        local = bound_names(node.body, {argument.arg for argument in arguments})
        if self.has_walrus:
            local |= walrus_names(node)
        frame = Frame(scope, {}, parent, frozenset(local), live=False)
        static = any(isinstance(mark, ast.Name) and mark.id == "staticmethod" for mark in node.decorator_list)
        if item.owner is not None and not static and arguments:
            frame.owner, frame.self_name = item.owner, arguments[0].arg
        elif parent.owner is not None and parent.scope.kind == "function":
            frame.owner = parent.owner
            frame.self_name = parent.self_name if parent.self_name not in local else None
        self.statement, self.block = node, node.body
        self.guards = item.guards
        self.conditional = 0
        self.frame = parent
        promised = [self.annotation(argument.annotation) for argument in arguments]
        self.annotation(node.returns)
        self.frame = frame
        maybe_tensors = item.owner is not None and (
            (node.name == "forward" and item.owner.derives(*_MODULES, *_FUNCTIONS))
            or (node.name == "backward" and item.owner.derives(*_FUNCTIONS))
        )
        for number, argument in enumerate(arguments):
            value = promised[number]
            if value == UNKNOWN and maybe_tensors and number and argument in node.args.args:
                value = (Instance(types.TENSOR, False),)
            if argument is node.args.vararg or argument is node.args.kwarg:
                value = UNKNOWN
            self.bind(argument.arg, value, Kind.PARAMETER, argument)
        self.visit_block(node.body)

    def _class(self, node: ast.ClassDef) -> None:
        self._decorators(node)
        self._type_parameters(node)
        bases: list[str] = []
        for base in node.bases:
            if isinstance(base, (ast.Name, ast.Attribute)):
                value = self.chain(base, Role.BASE)
                for item in value:
                    if isinstance(item, Qual):
                        bases.append(item.name)
                    elif isinstance(item, Local) and item.name in self.classes:
                        bases.extend(self.classes[item.name].bases)
            else:
                self.eval(base)
        for keyword in node.keywords:
            self.eval(keyword.value)
        info = ClassInfo(node.name, tuple(bases))
        self.classes[node.name] = info
        outer = self.frame
        scope = Scope("class", node, outer.scope)
        self.scopes.append(scope)
        self.frame = Frame(scope, {}, outer, frozenset(), live=True, owner=info)
        self.visit_block(node.body)
        for name, slot in self.frame.every.items():
            info.attributes.setdefault(name, slot[0])
        self.frame = outer
        self.statement = node
        self.bind(node.name, (Local(node.name, node),), Kind.DEFINITION, node)

    def _type_parameters(self, node: ast.AST) -> None:
        for parameter in getattr(node, "type_params", ()):
            self.bind(parameter.name, UNKNOWN, Kind.OTHER, parameter)

    def _type_alias(self, node: ast.AST) -> None:
        names: set[str] = set()
        target_names(node.name, names)  # type: ignore[attr-defined]
        for name in sorted(names):
            self.bind(name, UNKNOWN, Kind.ASSIGNMENT, node)
        before, self.role = self.role, Role.ANNOTATION
        self.eval(node.value)  # type: ignore[attr-defined]
        self.role = before
