"""Which imports can be relied on at a place, and which names are free to be bound there."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection, Iterable
from functools import cached_property

from torchmigrate.rewrite.lines import SourceText, end_of, start_of
from torchmigrate.semantics.exports import Exports
from torchmigrate.semantics.model import Binding, BindingKind, Scope, SemanticModel, Use
from torchmigrate.semantics.submodules import FAMILY, is_standard
from torchmigrate.source.trees import walk

BUILTINS = frozenset(dir(builtins))

# A statement list on the way to a place, and the statement of it that holds the place; None: all have run.
Step = tuple[list[ast.stmt], ast.stmt | None]


class ImportScopes:
    """Answers for one file; built once, used for each import that a fix needs."""

    def __init__(self, names: SemanticModel, source: SourceText, exports: Exports) -> None:
        self.names = names
        self.exports = exports
        self.source = source
        # Declared `global` or `nonlocal` somewhere: it is unknown which code binds these last.
        self.declared: set[str] = set()
        for scope in names.scopes:
            self.declared |= scope.globals | scope.nonlocals
        # Bindings (by id) that a fix makes mean something else, and those that spellings rely on.
        self.moved: set[int] = set()
        self.relied_on: set[int] = set()
        self.stars = [binding for binding in names.bindings if binding.kind is BindingKind.STAR_IMPORT]
        self._by_target: dict[tuple[str, Scope], list[Binding]] = {}
        self._by_root: dict[str, list[Binding]] = {}
        for binding in names.imports:
            self._by_target.setdefault((binding.target or "", binding.scope), []).append(binding)
            self._by_root.setdefault(_root(binding.module or ""), []).append(binding)

    @cached_property
    def _owners(self) -> dict[int, tuple[ast.stmt, list[ast.stmt], list[ast.stmt] | None]]:
        """For each statement list: the statement that holds it, that one's list, and a list run before."""
        found: dict[int, tuple[ast.stmt, list[ast.stmt], list[ast.stmt] | None]] = {}
        todo: list[list[ast.stmt]] = [self.names.tree.body]
        while todo:
            block = todo.pop()
            for statement in block:
                for name, inner in _blocks(statement):
                    ran = statement.body if name == "orelse" and isinstance(statement, ast.Try) else None
                    found[id(inner)] = (statement, block, ran)
                    todo.append(inner)
        return found

    # ---- places --------------------------------------------------------------------------------------

    def steps(self, use: Use) -> list[Step]:
        """The statement lists around a use, innermost first."""
        found: list[Step] = [(use.block, use.statement)]
        owner = self._owners.get(id(use.block))
        while owner is not None:
            statement, block, ran = owner
            if ran is not None:  # the else of a try runs after the whole of its body
                found.append((ran, None))
            found.append((block, statement))
            owner = self._owners.get(id(block))
        return found

    def statement_in(self, block: list[ast.stmt], use: Use) -> ast.stmt | None:
        """The statement of `block` that holds the use."""
        return next((statement for here, statement in self.steps(use) if here is block), None)

    def top_statement(self, use: Use) -> ast.stmt:
        """The statement of the module that holds the use."""
        return self.steps(use)[-1][1] or use.statement

    def precedes(self, binding: Binding, use: Use) -> bool:
        """Whether the import has surely run when the use runs."""
        for block, user in self.steps(use):
            if block is binding.block and (
                user is None or start_of(self.source, binding.statement) < start_of(self.source, user)
            ):
                return True
        return self.unconditional(binding) and self.deferred(use.scope, binding.scope)

    def unconditional(self, binding: Binding) -> bool:
        """Whether the import runs whenever the body of its scope does."""
        if binding.block is getattr(binding.scope.node, "body", None):
            return True
        if binding.conditional or binding.type_checking:
            return False
        block = binding.block
        while (owner := self._owners.get(id(block))) is not None and owner[0] is not binding.scope.node:
            statement, block, _ = owner
            if not isinstance(statement, (ast.With, ast.AsyncWith)):
                return False
            if any("suppress" in ast.unparse(item.context_expr) for item in statement.items):
                return False
        return True

    def in_try(self, binding: Binding) -> bool:
        """Whether the import stands in a try statement that handles its failure."""
        block = binding.block
        while (owner := self._owners.get(id(block))) is not None:
            statement, block, _ = owner
            if getattr(statement, "handlers", None):
                return True
            if statement is binding.scope.node:
                break
        return False

    def deferred(self, scope: Scope, outer: Scope) -> bool:
        """Whether code in `scope` runs only after the body of `outer` has continued (inside a function)."""
        here: Scope | None = scope
        while here is not None and here is not outer:
            if here.kind == "function":
                return True
            here = here.parent
        return False

    # ---- names ---------------------------------------------------------------------------------------

    def scope_of(self, name: str, scope: Scope) -> Scope | None:
        """The scope whose binding a name has in `scope`, by Python's rules; None: builtin or unbound."""
        here: Scope | None = scope
        while here is not None:
            if (here is scope or here.kind != "class") and here.bindings.get(name):
                return here
            here = here.parent
        return None

    def visible(self, target: str, use: Use) -> list[Binding]:
        """Import bindings that surely mean `target` at the use, the nearest scope first."""
        found: list[Binding] = []
        here: Scope | None = use.scope
        while here is not None:
            bindings = self._by_target.get((target, here), ())
            found += sorted((item for item in bindings if self.sees(item, use)), key=lambda item: item.id)
            here = here.parent
        return found

    def sees(self, binding: Binding, use: Use) -> bool:
        """Whether the name of this import surely means its target at the use."""
        name, scope = binding.name, binding.scope
        if name in self.declared or self.scope_of(name, use.scope) is not scope:
            return False
        same = [item for item in scope.bindings[name] if not item.type_checking]
        if any(not item.is_import or item.target != binding.target or item.id in self.moved for item in same):
            return False
        if self._star_after(binding, use):
            return False
        return any(self.precedes(item, use) for item in same)

    def _star_after(self, binding: Binding, use: Use) -> bool:
        """Whether a star import may have rebound the name between the import and the use."""
        after = start_of(self.source, binding.statement)
        deferred = self.deferred(use.scope, binding.scope)
        for star in self.stars:
            place = start_of(self.source, star.statement)
            runs_between = place > after and (deferred or place < use.start)
            harmless = self.harmless_star(star, binding.name, binding.target)
            if star.scope is binding.scope and runs_between and not harmless:
                return True
        return False

    def harmless_star(self, star: Binding, name: str, target: str | None) -> bool:
        """Whether a star import cannot bind this name to anything else.

        Any module may hold the name of a library, but then it means that library, as the resolver has it too.
        """
        if name != target:
            return False
        module = star.module or "."
        if name in FAMILY:
            return True
        return not module.startswith(".") and (_root(module) in FAMILY or is_standard(module))

    def stars_may_bind(self, name: str, scope: Scope) -> bool:
        """Whether `name` may already come from a star import of the module or of `scope`."""
        return any(
            star.scope in (scope, self.names.module) and not is_standard(star.module or ".")
            for star in self.stars
        )

    def free(
        self, name: str, target: str, scope: Scope, uses: Collection[int], ignore: Binding | None = None
    ) -> bool:
        """Whether binding `name` to `target` in `scope` changes nothing, and is seen at all of `uses`.

        Args:
            uses: offsets of the places where the name will be written.
            ignore: an import binding that the new one replaces.
        """
        if name in self.declared or name in BUILTINS:
            return False
        here: Scope | None = scope
        while here is not None:
            for binding in here.bindings.get(name, ()):
                if binding is not ignore and not (binding.is_import and binding.target == target):
                    return False
            here = here.parent
        return not any(
            start <= use < end
            for inner in self._binders.get(name, ())
            if inner is not scope and self._within(inner, scope)
            for start, end in [self._span(inner)]
            for use in uses
        )

    @cached_property
    def _binders(self) -> dict[str, list[Scope]]:
        """The scopes that bind a name."""
        found: dict[str, list[Scope]] = {}
        for scope in self.names.scopes:
            for name, bindings in scope.bindings.items():
                if bindings:
                    found.setdefault(name, []).append(scope)
        return found

    def _within(self, scope: Scope, outer: Scope) -> bool:
        here: Scope | None = scope
        while here is not None:
            if here is outer:
                return True
            here = here.parent
        return False

    def _span(self, scope: Scope) -> tuple[int, int]:
        node = scope.node
        if isinstance(node, ast.Module):
            return 0, len(self.source.text) + 1
        assert isinstance(node, (ast.stmt, ast.expr)), "scopes are made by statements and expressions"
        if isinstance(node, ast.stmt):
            return start_of(self.source, node), end_of(self.source, node)
        assert node.end_lineno is not None and node.end_col_offset is not None
        return (
            self.source.offset(node.lineno, node.col_offset),
            self.source.offset(node.end_lineno, node.end_col_offset),
        )

    def unconditional_root(self, root: str) -> Binding | None:
        """An import of a library (or of something in it) that always runs with the module."""
        for binding in self.imports_of(root):
            if binding.scope is self.names.module and self.unconditional(binding):
                return binding
        return None

    def imports_of(self, root: str) -> list[Binding]:
        """The imports of a library, and of anything in it."""
        return self._by_root.get(root, [])


def _root(module: str) -> str:
    return module.partition(".")[0]


def _blocks(statement: ast.stmt) -> Iterable[tuple[str, list[ast.stmt]]]:
    """The statement lists inside a statement, with the name of the field that holds them."""
    for name in ("body", "orelse", "finalbody"):
        inner = getattr(statement, name, None)
        if inner:
            yield name, inner
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield "body", part.body


def mentions(tree: ast.AST, name: str) -> bool:
    """Whether a name is read or written anywhere in a tree."""
    return any(isinstance(node, ast.Name) and node.id == name for node in walk(tree))
