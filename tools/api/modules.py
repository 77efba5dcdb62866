"""Modules: each is read once, when it is asked for, as an import would."""

from __future__ import annotations

import ast
import importlib
import sys

from api import compiled, literals, marks
from api.body import run
from api.bound import Bound, Deprecation, ModuleNames, alias, value
from api.scope import Patch, Scope
from api.tree import Tree, parse
from torchmigrate.versions.surface_model import EntryKind

# What functions do that sets names elsewhere; modules without any are not searched for it.
_EFFECTS = (b"global ", b"setattr(", b"torchaudio.load = ")


class Modules:
    """The modules of a library.

    patches: names that modules set on classes and modules from outside.
    """

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.patches: list[Patch] = []
        self._read: dict[str, ModuleNames] = {}
        self._constants: dict[str, dict[str, ast.expr]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self.tree or compiled.is_made(name, self.tree)

    def __getitem__(self, name: str) -> ModuleNames:
        """The names of a module. Inside a cycle of star imports: those read so far. Raises KeyError."""
        if name in self._read:
            return self._read[name]
        if name not in self:
            raise KeyError(name)
        made = compiled.made(name, self.tree)
        if made is not None:
            self._read[name] = made
            return made
        module = self._read[name] = ModuleNames(name)
        stub = name not in self.tree.modules
        path = self.tree.stubs[name] if stub else self.tree.modules[name]
        tree = parse(path)
        if tree is None:
            module.open = True
            return module
        scope = Scope(name, self.tree.package_of(name), self, stub=stub)
        if stub and name not in self.tree.packages:
            scope.package = name.rpartition(".")[0]
        scope.sets_globals = any(word in path.read_bytes() for word in _EFFECTS)
        scope.names = module.names  # a module that is imported in a cycle sees what there is
        run(scope, tree.body)
        self._constants[name] = scope.constants
        self._finish(module, scope, tree)
        if stub:
            compiled.leave_open(module)
        if not stub and name in self.tree.stubs:
            self._signatures_of_stub(module)
        compiled.complete(module, self.tree)
        return module

    def _finish(self, module: ModuleNames, scope: Scope, tree: ast.Module) -> None:
        module.names = scope.names
        module.exported = scope.exported
        module.open = scope.open
        module.made_into = scope.made_into
        self.patches += scope.patches
        module.deprecated = marks.from_warnings(tree.body) or _directive(tree)
        module.gone = any(isinstance(statement, ast.Raise) for statement in tree.body)
        asked = scope.names.pop("__getattr__", None)
        if asked is not None and not scope.stub:
            found = lazy_names(tree, scope)
            if found is None:
                module.open = True
            for name, bound in (found or {}).items():
                module.names.setdefault(name, bound)
        if scope.replaced_by:
            self._replace(module, scope)

    def _replace(self, module: ModuleNames, scope: Scope) -> None:
        """A module that puts an instance of its own class in its place, as torch.backends.cudnn."""
        own = scope.replaced_by.removeprefix(module.name + ".")
        bound = module.names.get(own)
        asked = bound.members.get("__getattr__") if bound is not None else None
        passes_on = asked is None or asked.hands_on == "__getattribute__"
        if bound is None or bound.kind is not EntryKind.CLASS or not passes_on:
            module.open = True
            return
        if bound.bases == ("types.ModuleType",) and not scope.keeps_names and asked is None:
            module.names.clear()
        for name, member in bound.members.items():
            if not name.startswith("__"):
                module.names.setdefault(name, member)

    def constant(self, name: str) -> ast.expr | None:
        """What a module of the library assigns to a name in capitals; None: nothing that was read."""
        module, _, last = name.rpartition(".")
        if module in self:
            self[module]
        return self._constants.get(module, {}).get(last)

    def star(self, source: str) -> tuple[list[tuple[str, Bound]], bool]:
        """What `from source import *` binds, and whether that is all; of "source.*", what `dir()` lists."""
        everything = source.endswith(".*")
        source = source.removesuffix(".*")
        if source.partition(".")[0] in sys.stdlib_module_names:
            names = getattr(importlib.import_module(source), "__all__", None)
            return [(name, alias(f"{source}.{name}")) for name in names or ()], names is not None
        if source not in self:
            return [], False
        module = self[source]
        listed = list(module.names) if everything else module.star()
        found = [(name, alias(f"{source}.{name}")) for name in listed if not name.startswith("__")]
        whole = not module.open or source in compiled.WHOLE or module.exported is not None
        return found, whole

    def _signatures_of_stub(self, module: ModuleNames) -> None:
        """Signatures for functions of the module that show none themselves, from the stub beside it."""
        tree = parse(self.tree.stubs[module.name])
        if tree is None or not any(_lacks_signature(bound) for bound in module.names.values()):
            return
        scope = Scope(module.name, self.tree.package_of(module.name), compiled.Alone(), stub=True)
        run(scope, tree.body)
        for name, bound in module.names.items():
            known = scope.names.get(name)
            if known is not None and known.kind is EntryKind.FUNCTION and _lacks_signature(bound):
                bound.kind, bound.signatures = EntryKind.FUNCTION, known.signatures


def _lacks_signature(bound: Bound) -> bool:
    return bound.kind in (EntryKind.FUNCTION, EntryKind.VALUE) and not bound.signatures and not bound.like


def _directive(tree: ast.Module) -> Deprecation | None:
    """A `deprecated` directive in the docstring of a module."""
    doc = ast.get_docstring(tree) or ""
    return marks.from_docstring(doc, "\0") if ".. deprecated::" in doc else None


def lazy_names(tree: ast.Module, scope: Scope) -> dict[str, Bound] | None:
    """The names that a module's `__getattr__` knows, or None if it may know more."""
    function = _getattr_of(tree.body)
    if function is None or not function.args.args:
        return None
    asked = function.args.args[0].arg
    found: dict[str, Bound] = {}
    exported = ast.List([ast.Constant(name) for name in scope.exported or ()], ast.Load())
    tables = {"__all__": exported, **scope.known(), **_assigned(function)}
    understood = _ends_in_error(function.body)
    for part in ast.walk(function):
        if isinstance(part, ast.Compare) and isinstance(part.left, ast.Name) and part.left.id == asked:
            names = _compared(part, tables)
            if names is None:
                understood = False
            for name in names or ():
                found[name] = value()
        elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr == "get":
            if part.args and isinstance(part.args[0], ast.Name) and part.args[0].id == asked:
                names = literals.strings(part.func.value, tables)
                if names is None:
                    understood = False
                for name in names or ():
                    found[name] = value()
        elif isinstance(part, (ast.Return, ast.Try)) and part in function.body:
            understood = understood and isinstance(part, ast.Return) is False
    return found if understood else None


def _getattr_of(body: list[ast.stmt]) -> ast.FunctionDef | None:
    for statement in body:
        if isinstance(statement, ast.FunctionDef) and statement.name == "__getattr__":
            return statement
        if isinstance(statement, ast.If):
            found = _getattr_of(statement.body) or _getattr_of(statement.orelse)
            if found is not None:
                return found
    return None


def _ends_in_error(body: list[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], ast.Raise)


def _assigned(function: ast.FunctionDef) -> dict[str, ast.expr]:
    found = {}
    for statement in function.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            found[statement.targets[0].id] = statement.value
    return found


def _compared(node: ast.Compare, tables: dict[str, ast.expr]) -> list[str] | None:
    """The names in `name == "x"` and `name in TABLE`."""
    if isinstance(node.ops[0], (ast.Eq, ast.NotEq)):
        one = literals.text(node.comparators[0], tables)
        return None if one is None else [one]
    if isinstance(node.ops[0], (ast.In, ast.NotIn)):
        return literals.strings(node.comparators[0], tables)
    return None
