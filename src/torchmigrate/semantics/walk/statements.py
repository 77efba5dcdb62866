"""Statements without blocks: assignments, imports, deletions, assertions, expressions."""

from __future__ import annotations

import ast

from torchmigrate.semantics.formulas import UNKNOWN as UNKNOWN_TEST
from torchmigrate.semantics.formulas import TryWorked, negate
from torchmigrate.semantics.guards.functions import may_check
from torchmigrate.semantics.guards.tests import evaluate_special, may_mark, parse_test, unpack_version
from torchmigrate.semantics.model import (
    ASSIGNMENT,
    VIA_IMPORT,
    BindingKind,
    Const,
    Flag,
    Instance,
    QualifiedName,
    Role,
    Use,
    Value,
    Via,
)
from torchmigrate.semantics.values import distinctive
from torchmigrate.semantics.values.classes import MAKES_OBJECTS, SETUP, as_attribute
from torchmigrate.semantics.values.operators import augmented, unpacked
from torchmigrate.semantics.values.slots import (
    UNKNOWN,
    join_values,
)
from torchmigrate.semantics.walk.expressions import Expressions, has_objects
from torchmigrate.source.trees import children, last_name, walk

_NONE: Value = (Const(None),)
# Expressions that may be about versions, or about whether a name is there.
# What may be a test that is given a name: `new = TORCH_IS_NEW and cuda`, `pytestmark = skipif(...)`.
_MAY_BE_TESTS = frozenset([ast.Attribute, ast.BoolOp, ast.Compare, ast.IfExp, ast.Name, ast.UnaryOp])
_MAY_BE_SPECIAL = frozenset(
    [
        ast.Call,
        ast.Attribute,
        ast.Subscript,
        ast.ListComp,
        ast.GeneratorExp,
        ast.Tuple,
        ast.List,
        ast.Compare,
        ast.BoolOp,
        ast.UnaryOp,
        ast.IfExp,
        ast.Lambda,
    ]
)
# Expressions that may be a library name, or give one of theirs.
_GIVE_NAMES = frozenset([ast.Name, ast.Attribute, ast.IfExp, ast.BoolOp])
# Calls after which nothing runs: those that end a program, and those that end a test.
_ENDS: dict[str, tuple[str, ...]] = {
    "exit": ("sys", "pytest"),
    "_exit": ("os",),
    "skipTest": ("self",),
    "fail": ("self", "pytest"),
    "skip": ("pytest",),
    "xfail": ("pytest",),
}
_MAY_END = frozenset([*_ENDS, "quit"])
_MAKES_OR_SETS_UP = frozenset((*SETUP, *MAKES_OBJECTS))


def _results(node: ast.expr) -> set[ast.expr]:
    """The expressions that `node` may evaluate to."""
    found: set[ast.expr] = set()
    waiting = [node]
    while waiting:
        node = waiting.pop()
        found.add(node)
        if isinstance(node, ast.IfExp):
            waiting += [node.body, node.orelse]
        elif isinstance(node, ast.BoolOp):
            waiting += node.values
    return found


class Statements(Expressions):
    """Walks one statement of a block."""

    __slots__ = ()

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
                    self.special(item) or (part if has_objects(part) else self.peek(item))
                    for item, part in zip(source.elts, parts, strict=True)
                ]
            else:
                values = unpack_version(source, self.peek, len(elements))
        if values is None and value is not UNKNOWN and not starred:
            values = unpacked(value, len(elements))
        for number, element in enumerate(elements):
            self.assign(element, values[number] if values else UNKNOWN, kind)

    def special(self, node: ast.expr) -> Value | None:
        return evaluate_special(node, self.peek)

    def visit_import(self, node: ast.Import) -> None:
        for alias in node.names:
            name = alias.asname or alias.name.partition(".")[0]
            target = alias.name if alias.asname else name
            self._bind_import(name, target, alias.name, BindingKind.IMPORT, alias)

    def visit_import_from(self, node: ast.ImportFrom) -> None:
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
            self.record(node, (module,), False, Role.IMPORT, None, None, "", Via.STAR)
        else:
            self.other_star = True
            self._look_alike(module)
            self.unknown_star = bool(self.stars)  # it may have brought any of the names that follow

    def _bind_import(self, name: str, target: str, module: str, kind: BindingKind, alias: ast.alias) -> None:
        root = target.partition(".")[0]
        sure = not target.startswith(".")
        value = self.given.get(name) or ((QualifiedName(target),) if sure else UNKNOWN)
        binding = self.bind(name, value, kind, alias)
        only = value[0] if len(value) == 1 and root not in self.roots else None
        if isinstance(only, QualifiedName) and only.name.partition(".")[0] in self.roots:
            target = only.name  # a relative import, or a re-export
        binding.target, binding.module = target, module
        self.imports.append(binding)
        if alias.asname is not None and alias.asname == alias.name:
            binding.exported = True
        if root not in self.roots:
            self._look_alike(target)
        else:
            if root == "torch":
                self.imports_torch = True
            full = alias.name if kind is BindingKind.IMPORT else target
            self.record(alias, (full,), True, Role.IMPORT, None, binding, "", VIA_IMPORT)

    def _look_alike(self, module: str) -> None:
        """Note an import after which methods of tensors may be those of something else."""
        root = module.partition(".")[0]
        if root in distinctive.LOOKALIKES:
            self.lookalikes = True
        if root in distinctive.MATRICES or "lazy" in module.lower():
            self.lazy = True

    def visit_children(self, statement: ast.stmt) -> None:
        for child in children(statement):
            if isinstance(child, ast.expr):
                self.eval(child)

    def visit_expr(self, node: ast.Expr) -> bool:
        value = node.value
        self.eval(value)
        if not isinstance(value, ast.Call):
            return False
        owner = value.func.value if isinstance(value.func, ast.Attribute) else None
        if isinstance(owner, ast.Name) and owner.id == "__all__" and value.args:
            self._export(value.args[0])
        name = last_name(value.func)
        if name in _MAKES_OR_SETS_UP:
            self._note_base(value.func)
        elif name != "importorskip" and may_check(name):
            self.asked.append(value)
        return name in _MAY_END and self.ends(value)

    def _note_base(self, func: ast.expr) -> None:
        """Note that a method calls what it overrides: `super().__init__()`, `Base.__init__(self)`."""
        frame = self.frame
        node, owner = frame.scope.node, frame.owner
        if owner is None or not isinstance(func, ast.Attribute) or not isinstance(node, ast.FunctionDef):
            return
        if node.name == func.attr and self.block is node.body:
            owner.calls_base.add(node.name)

    def ends(self, call: ast.Call) -> bool:
        """Whether nothing runs after a call: `sys.exit()`, `self.skipTest(...)`, `pytest.skip(...)`."""
        func = call.func
        if isinstance(func, ast.Name):
            name = func.id
            if name in _ENDS and self.peek(func) == (QualifiedName(f"pytest.{name}"),):
                return True
            if name not in ("exit", "quit"):
                return False
            builtin = not self.lookup(name)[1]  # not a function of the file that has the name
            return builtin or self.peek(func) == (QualifiedName("sys.exit"),)
        if not isinstance(func, ast.Attribute) or not isinstance(func.value, ast.Name):
            return False
        return func.attr in _ENDS and func.value.id in _ENDS[func.attr]

    def visit_assign(self, node: ast.Assign) -> None:
        value = self._taken(node.value)
        kind = node.value.__class__
        called = last_name(node.value.func) if isinstance(node.value, ast.Call) else ""
        if kind in _MAY_BE_TESTS or (called and may_mark(called)):
            self.asked.append(node.value)
        if kind in _MAY_BE_SPECIAL:
            if not value or value[0].__class__ is not Instance:
                special = self.special(node.value)
                if special is not None:
                    value = special
                elif value is UNKNOWN and (kind is ast.Tuple or kind is ast.List):
                    value = self.peek(node.value)
        elif isinstance(node.value, ast.Constant) and isinstance(node.value.value, bool):
            value = self._flag(node.value.value) or value
        for target in node.targets:
            self.assign(target, value, ASSIGNMENT, node.value)
            if isinstance(target, ast.Name) and target.id == "__all__":
                self._export(node.value)

    def _taken(self, node: ast.expr) -> Value:
        """The value of what is assigned; names of libraries in it know where they were taken from."""
        first = len(self.uses)
        value = self.eval(node)
        if value is UNKNOWN or len(self.uses) == first or node.__class__ not in _GIVE_NAMES:
            return value
        results = _results(node)
        places: dict[str, tuple[Use, ...]] = {}
        for use in self.uses[first:]:
            if use.via is VIA_IMPORT and use.node in results:
                for name in use.candidates:
                    places[name] = (*places.get(name, ()), use)
        return tuple(
            QualifiedName(item.name, item.sure, item.via, item.receiver, item.stated, places[item.name])
            if isinstance(item, QualifiedName) and item.name in places
            else item
            for item in value
        )

    def _flag(self, value: bool) -> Value | None:
        """`HAS_X = True` in a branch or a try body, `False` in the other or the handler: a flag for which of
        them ran."""
        if self.branch_test is not None:
            asked, wanted = self.branch_test
            test = parse_test(asked, self.peek)
            if test is not UNKNOWN_TEST:
                return (Flag(test if value is wanted else negate(test)),)
        if not self.tries:
            return None
        guard, part = self.tries[-1]
        self.flagged.append(guard)
        worked: Flag = Flag(TryWorked(guard))
        if (part == "body") == value:
            return (worked,)
        return (Flag(negate(TryWorked(guard))),)

    def visit_aug_assign(self, node: ast.AugAssign) -> None:
        value = self.eval(node.value)
        target = node.target
        if isinstance(target, ast.Name):
            held = self.lookup(target.id)
            for binding in held[1]:
                if binding.is_import:
                    binding.uses.append(self.offset(target))
            self.bind(target.id, augmented(held[0], node.op, value), ASSIGNMENT, target)
            if target.id == "__all__":
                self._export(node.value)
        elif isinstance(target, ast.Attribute):
            self.assign(target, augmented(self.eval(target), node.op, value), ASSIGNMENT)
        else:
            self.eval(target)

    def visit_ann_assign(self, node: ast.AnnAssign) -> None:
        promised = self.annotation(node.annotation)
        value = self._taken(node.value) if node.value is not None else UNKNOWN
        if node.value is not None:
            value = self.special(node.value) or value
            if value == UNKNOWN:
                value = promised
            self.assign(node.target, value, ASSIGNMENT, node.value)
        elif isinstance(node.target, ast.Name):
            self.bind(node.target.id, promised, ASSIGNMENT, node.target)

    def _export(self, node: ast.expr) -> None:
        for item in walk(node):
            if isinstance(item, ast.Constant) and isinstance(item.value, str) and self.frame.parent is None:
                self.exports.add(item.value)

    def visit_delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name):
                for binding in self.lookup(target.id)[1]:
                    if binding.is_import:
                        binding.uses.append(self.offset(target))
                self.new_binding(target.id, BindingKind.DELETION, target)
                self.frame.env.remove(target.id)
            else:
                self.eval(target)

    def visit_assert(self, node: ast.Assert) -> None:
        """What is asserted holds in the rest of the block."""
        self.eval(node.test)
        if node.msg is not None:
            self.eval(node.msg)
        self.narrow(self.narrowed(node.test)[0])
        self.asked.append(node.test)

    def visit_return(self, node: ast.Return) -> bool:
        value = _NONE if node.value is None else self.eval(node.value)
        frame = self.frame
        frame.returned = join_values(frame.returned, value)
        return True

    def visit_leaving(self, node: ast.stmt) -> bool:
        self.visit_children(node)
        return True

    def visit_global(self, node: ast.Global) -> None:
        self.frame.scope.globals.update(node.names)

    def visit_nonlocal(self, node: ast.Nonlocal) -> None:
        self.frame.scope.nonlocals.update(node.names)
