"""The import planner: how a name is written at a place, and how the imports of the file change."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from msgspec import Struct

from torchmigrate.findings import DroppedUse, Edit
from torchmigrate.rewrite.imports import edits as editing
from torchmigrate.rewrite.imports.edits import ImportStatement
from torchmigrate.rewrite.imports.removal import removals, unneeded, without_use
from torchmigrate.rewrite.imports.scopes import BUILTINS, ImportScopes, mentions
from torchmigrate.rewrite.imports.swaps import Refusal, Swap, Swaps
from torchmigrate.rewrite.lines import SourceText, add_after, add_before, add_line_before, start_of
from torchmigrate.semantics.exports import Exports
from torchmigrate.semantics.model import Binding, BindingKind, Role, Scope, SemanticModel, Use, Via
from torchmigrate.semantics.submodules import FAMILY, is_standard, needed_module

__all__ = ["ImportPlanner", "Refusal", "Spelling", "Swap"]

_FUNCTIONAL = "torch.nn.functional"


class Spelling(Struct, frozen=True):
    """How a qualified name is written at a place, and the import edits that it needs there."""

    text: str
    edits: tuple[Edit, ...] = ()


class _Home(Struct, frozen=True):
    """Where a new import goes: a scope, a statement list of it, and the import to stand next to."""

    scope: Scope
    block: list[ast.stmt]
    anchor: ast.stmt | None  # None: the block is the module's, and the place is not chosen yet


class _Head(Struct, frozen=True):
    """The name that a use begins with, and the qualified name that it means."""

    text: str
    target: str


class ImportPlanner:
    """Plans the imports of one file, for one round of fixes.

    Nothing is changed here: every answer is in edits of the unchanged source. Equal requests get equal
    edits, and insertions at one place are valid in any order.

    Args:
        names: what the resolver found in the file.
        source: its text.
        exports: which names others take from the file.
    """

    def __init__(self, names: SemanticModel, source: SourceText, exports: Exports) -> None:
        self.names = names
        self.source = source
        self.scopes = ImportScopes(names, source, exports)
        self._top_imports = [
            statement
            for statement in names.tree.body
            if isinstance(statement, (ast.Import, ast.ImportFrom))
            and not editing.is_header(names.tree.body, statement)
        ]
        self._swaps = Swaps(names, source, self.scopes)
        self._made: dict[tuple[str, int], tuple[Edit, ...]] = {}  # new imports by code and block
        self._places: dict[int, frozenset[int]] = {}  # uses by binding: lists of thousands are slow to search

    # ---- spelling a name -----------------------------------------------------------------------------

    def spell(self, qualified: str, use: Use) -> Spelling | Refusal:
        """How to write a qualified name in the place of a use, and the import edits that this needs.

        A name without a dot is a builtin (`str`) or a module (`math`). Refused where no import can be
        made that surely gives the name there.
        """
        if use.role is Role.IMPORT:
            return Refusal("an import statement cannot be replaced by an expression")
        bare = qualified.removeprefix("builtins.")
        if "." not in bare and bare in BUILTINS:
            if bare in self.scopes.declared or self.scopes.scope_of(bare, use.scope) is not None:
                return Refusal(f"`{bare}` has another meaning here")
            return Spelling(bare)
        return self._exact(qualified, use) or self._parent(qualified, use) or self._new(qualified, use)

    def _exact(self, qualified: str, use: Use) -> Spelling | None:
        for binding in self.scopes.visible(qualified, use):
            return self._through(binding, qualified)
        return None

    def _through(self, binding: Binding, qualified: str) -> Spelling:
        """A name written with an import binding of itself or of a parent."""
        self.scopes.relied_on.update(item.id for item in binding.scope.bindings[binding.name])
        return Spelling(binding.name + qualified[len(binding.target or "") :])

    def _parent(self, qualified: str, use: Use) -> Spelling | None:
        """The name with an attribute chain, if something above it is in sight."""
        if self._below(qualified, _FUNCTIONAL) and self._spelled_parent(use) != _FUNCTIONAL:
            for binding in self.scopes.visible(_FUNCTIONAL, use):
                return self._through(binding, qualified)
        head = self._head(use)
        if head is not None and self._reaches(head.target, qualified, use):
            if use.binding is not None:
                self.scopes.relied_on.add(use.binding.id)
            return Spelling(head.text + qualified[len(head.target) :])
        parent = qualified.rpartition(".")[0]
        while parent:
            if self._reaches(parent, qualified, use):
                for binding in self.scopes.visible(parent, use):
                    return self._through(binding, qualified)
            parent = parent.rpartition(".")[0]
        return None

    def _head(self, use: Use) -> _Head | None:
        """What the use itself begins with: as good there as the use is."""
        node = _first_name(use.node)
        if node is None or use.method or (use.binding is not None and use.binding.id in self.scopes.moved):
            return None
        if use.binding is not None and use.binding.target is not None and node.id == use.binding.name:
            return _Head(node.id, use.binding.target)
        suffix = f".{use.attribute_path}"
        if (
            use.sure
            and use.attribute_path
            and use.via in (Via.IMPORT, Via.ALIAS)
            and use.candidates[0].endswith(suffix)
        ):
            return _Head(node.id, use.candidates[0][: -len(suffix)])
        return None

    def _spelled_parent(self, use: Use) -> str:
        """The qualified name of all but the last part of the use's chain."""
        return use.candidates[0].rpartition(".")[0] if use.attribute_path else ""

    def _below(self, qualified: str, parent: str) -> bool:
        return qualified.startswith(parent + ".")

    def _reaches(self, parent: str, qualified: str, use: Use) -> bool:
        """Whether a name is below an imported parent, and the modules on the way exist at run time."""
        if not self._below(qualified, parent):
            return False
        module = needed_module(qualified)
        if module is None or parent == module or self._below(parent, module):
            return True
        spelled = self._spelled_parent(use)
        if spelled == module or self._below(spelled, module):
            return True
        return any(
            binding.module is not None
            and (binding.module == module or self._below(binding.module, module))
            and self.scopes.precedes(binding, use)
            and not binding.type_checking
            for binding in self.scopes.imports_of(module.partition(".")[0])
            if binding.target == module.partition(".")[0]
        )

    # ---- a new import --------------------------------------------------------------------------------

    def _new(self, qualified: str, use: Use) -> Spelling | Refusal:
        root = qualified.partition(".")[0]
        home = self._home(root, use)
        if isinstance(home, Refusal):
            return home
        module = self._own_module(qualified, use) or needed_module(qualified)
        if module is not None and root in FAMILY and module != qualified:
            name = qualified[len(module) + 1 :].partition(".")[0]
            target = f"{module}.{name}"
            if self.scopes.free(name, target, home.scope, [use.start]) and not self.scopes.stars_may_bind(
                name, home.scope
            ):
                edits = self._add_name(module, name, home, use)
                if not isinstance(edits, Refusal):
                    return Spelling(qualified[len(module) + 1 :], edits)
        if not self.scopes.free(root, root, home.scope, [use.start]):
            return Refusal(f"`{root}` has another meaning here")
        edits = self._add(f"import {module or root}", root, home, use)
        return edits if isinstance(edits, Refusal) else Spelling(qualified, edits)

    def _own_module(self, qualified: str, use: Use) -> str | None:
        """The module that the use's own name was imported from, where the new one is in it as well.

        `from torchvision.models import vgg19` is given one more name; `from torch import ...` is not, since
        what is in torch is better written in full.
        """
        own = use.binding
        module = own.module if own is not None and own.kind is BindingKind.FROM_IMPORT else None
        if module is None or "." not in module.lstrip(".") or not self._below(qualified, module):
            return None
        return module

    def _home(self, root: str, use: Use) -> _Home | Refusal:
        """The scope and statement list that a new import of a library belongs to."""
        module = _Home(self.names.module, self.names.tree.body, None)
        own = use.binding
        if is_standard(root) or self.scopes.unconditional_root(root) is not None:
            return module
        if own is not None and own.is_import and not own.type_checking:
            if own.scope is self.names.module and self.scopes.unconditional(own):
                return module
            if any(block is own.block for block, _ in self.scopes.steps(use)) and self.scopes.precedes(
                own, use
            ):
                if own.scope is not self.names.module and mentions(own.scope.node, root):
                    return Refusal(f"`{root}` has another meaning in this function")
                return _Home(own.scope, own.block, own.statement)
            return Refusal(f"`{own.name}` is only imported under a condition")
        if self.scopes.imports_of(root):
            return Refusal(f"`{root}` is only imported under a condition")
        return module

    def _add_name(self, module: str, name: str, home: _Home, use: Use) -> tuple[Edit, ...] | Refusal:
        """Import a name from a module: one more name of an import of that module, or a new statement."""
        code = f"from {module} import {name}"
        held = self._held(code, home, use)
        if held is not None:
            return held
        user = self.scopes.statement_in(home.block, use)
        for statement in home.block:
            if user is not None and start_of(self.source, statement) >= start_of(self.source, user):
                break
            if self._swaps.extensible(statement, module):
                assert isinstance(statement, ast.ImportFrom)
                edits = ImportStatement(self.source, statement).extend(name)
                if use.binding is not None and use.binding.statement is statement:
                    self._swaps.extended_for_own.add(id(statement))
                else:
                    self._swaps.extended.add(id(statement))
                    self._made[code, id(home.block)] = edits
                return edits
        return self._add(code, module.partition(".")[0], home, use)

    def _add(self, code: str, root: str, home: _Home, use: Use) -> tuple[Edit, ...] | Refusal:
        """Add an import statement to its home."""
        edits = self._held(code, home, use)
        if edits is None:
            if home.anchor is not None:
                user = self.scopes.statement_in(home.block, use)
                edit: Edit | None = add_after(self.source, home.block, home.anchor, code, user)
            else:
                edit = self._place(code, root, use)
            if edit is None:
                return Refusal("an import cannot be added before this statement")
            edits = (edit,)
        if self._star_follows(edits[0].start, root, home, use):
            return Refusal(f"a star import further down may rebind `{root}`")
        self._made[code, id(home.block)] = edits
        return edits

    def _held(self, code: str, home: _Home, use: Use) -> tuple[Edit, ...] | None:
        """The edits that already make this import, where they come before the use."""
        edits = self._made.get((code, id(home.block)))
        if edits is None or max(edit.start for edit in edits) > use.start:
            return None
        return edits

    def _star_follows(self, offset: int, name: str, home: _Home, use: Use) -> bool:
        """Whether a star import that comes later may bind the name to something else."""
        deferred = self.scopes.deferred(use.scope, home.scope)
        for star in self.scopes.stars:
            place = start_of(self.source, star.statement)
            runs_between = place >= offset and (deferred or place < use.start)
            if star.scope is home.scope and runs_between and not self.scopes.harmless_star(star, name, name):
                return True
        return False

    def _place(self, code: str, root: str, use: Use) -> Edit | None:
        """Where a careful person puts a new import at the level of the module."""
        body = self.names.tree.body
        user = self.scopes.top_statement(use)
        limit = start_of(self.source, user)
        found = [item for item in self._top_imports if start_of(self.source, item) < limit]
        if not found:
            return editing.add_at_top(self.source, body, code) or self._behind_header(code)
        related = [statement for statement in found if root in editing.roots_of(statement)]
        if not related and is_standard(root) and not self._stars_may_bind(root):
            edit = editing.add_among_standard(self.source, body, code, found, user)
            if edit is not None:
                return edit
        if related and code == f"import {root}" and not self._stars_may_bind(root):
            edit = add_line_before(self.source, body, related[0], code)
            if edit is not None:
                return edit
        own = use.binding.statement if use.binding is not None else None
        anchor = related[-1] if related else own if any(item is own for item in found) and own else found[-1]
        for star in self.scopes.stars:
            harmless = self.scopes.harmless_star(star, root, root)
            later = start_of(self.source, star.statement) > start_of(self.source, anchor)
            if later and not harmless and any(item is star.statement for item in found):
                anchor = star.statement
        return add_after(self.source, body, anchor, code, user)

    def _stars_may_bind(self, root: str) -> bool:
        """Whether a star import may bind the name of a package to something else."""
        return any(not self.scopes.harmless_star(star, root, root) for star in self.scopes.stars)

    def _behind_header(self, code: str) -> Edit | None:
        """On the line of the docstring or `__future__` import, where other statements share it."""
        body = self.names.tree.body
        for statement in body:
            if not editing.is_header(body, statement):
                return add_before(self.source, statement, code)
        return None

    # ---- imports that change or go -------------------------------------------------------------------

    def swap(self, binding: Binding, new: str, *, keep_name: bool = False) -> Swap | Refusal:
        """Make an import bind the new qualified name instead.

        Args:
            binding: an import binding; where it binds a module, ask only if all of it that is used moved.
            new: the new qualified name.
            keep_name: bind it under the old local name (`from torch import outer as ger`).
        """
        return self._swaps.swap([(binding, new)], keep_name=keep_name)[0]

    def swap_all(
        self, moves: Sequence[tuple[Binding, str]], *, keep_name: bool = False
    ) -> list[Swap | Refusal]:
        """Swap several bindings of one import statement at once.

        The swaps that are possible all carry the same edits, to be applied together. Apart, their edits
        may overlap and need a round each.
        """
        return self._swaps.swap(moves, keep_name=keep_name)

    def releases(self, use: Use) -> tuple[DroppedUse, ...]:
        """The import bindings that a use no longer needs once it is written without them.

        They are several where a file imports one name twice.
        """
        bindings = use.origins if use.binding is None else (use.binding,)
        alike = len({binding.target for binding in bindings}) == 1
        if use.role is Role.IMPORT or not alike or not all(binding.is_import for binding in bindings):
            return ()
        return tuple(DroppedUse(binding.id, (self._named_at(use, binding),)) for binding in bindings)

    def _named_at(self, use: Use, binding: Binding) -> int:
        """Where a use names what a binding binds, among the uses of that binding."""
        node = _first_name(use.node)
        if node is None or use.in_string:
            return use.start
        offset = self.source.offset(node.lineno, node.col_offset)
        places = self._places.get(binding.id)
        if places is None:
            places = self._places[binding.id] = frozenset(binding.uses)
        return offset if offset in places else use.start

    def removals(self, releases: Iterable[DroppedUse]) -> tuple[Edit, ...]:
        """Edits that delete the imports without a use left.

        A release without places is for a binding that no longer has uses.
        """
        return removals(self.names, self.source, self.scopes, releases)

    def may_go(self, release: DroppedUse) -> bool:
        """Whether nothing but these uses speaks for an import, whatever comments its statement has."""
        return unneeded(self.names, self.source, self.scopes, release.binding, release.places)

    def without_use(self, binding: Binding) -> tuple[Edit, ...]:
        """Edits that delete an import that has no use; empty where it has one, or others may need it."""
        return without_use(self.names, self.source, self.scopes, binding)


def _first_name(node: ast.AST) -> ast.Name | None:
    """The name that a chain (or the first argument of `getattr`) begins with."""
    if isinstance(node, ast.Call) and node.args:
        node = node.args[0]
    while isinstance(node, ast.Attribute):
        node = node.value
    return node if isinstance(node, ast.Name) else None
