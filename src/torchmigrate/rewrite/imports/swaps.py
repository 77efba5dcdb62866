"""Making an import bind another qualified name: `from torch import ger` -> `from torch import outer`."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from torchmigrate.findings import Edit
from torchmigrate.rewrite.imports import edits as editing
from torchmigrate.rewrite.imports.edits import ImportStatement, spell_alias
from torchmigrate.rewrite.imports.scopes import ImportScopes
from torchmigrate.rewrite.lines import (
    SourceText,
    add_before,
    add_line_after,
    end_of,
    is_marker,
    logical_line,
    remove_statements,
    start_of,
)
from torchmigrate.semantics.model import Binding, BindingKind, Scope, SemanticModel
from torchmigrate.semantics.submodules import is_standard, module_of


class Refusal(Struct, frozen=True):
    """Why no import can be made, one line; the finding is report-only."""

    reason: str


class Swap(Struct, frozen=True):
    """An import that binds the new qualified name.

    local_name: the name that it binds afterwards, to be written at the uses.
    lossy: a comment of the old import goes.
    """

    edits: tuple[Edit, ...]
    local_name: str
    lossy: bool = False


class _Move(Struct, frozen=True):
    """One name of a from-import that is to come from `module` as `name`."""

    index: int
    module: str
    name: str
    local: str
    held: bool  # an earlier import of the same block, or an earlier move, already binds exactly this

    @property
    def bound(self) -> tuple[str, str, str]:
        return self.module, self.name, self.local


class Swaps:
    """Swaps import bindings of one file, for one round of fixes."""

    def __init__(self, names: SemanticModel, source: SourceText, scopes: ImportScopes) -> None:
        self.names = names
        self.source = source
        self.scopes = scopes
        self.extended: set[int] = set()  # statements (by id) that were given one more name
        # For uses of what they bind: not needed where those move with the whole statement.
        self.extended_for_own: set[int] = set()
        self._replaced: set[int] = set()  # statements that go, or come from another module
        # By scope, local name, what is imported and the block: where, and the binding.
        self._alike: dict[tuple[Scope, str], dict[tuple[str | None, int], list[tuple[int, Binding]]]] = {}

    def extensible(self, statement: ast.stmt, module: str) -> bool:
        """Whether a statement is a from-import of the module that may be given one more name."""
        return (
            isinstance(statement, ast.ImportFrom)
            and statement.module == module
            and not statement.level
            and statement.names[0].name != "*"
            and id(statement) not in self._replaced
        )

    def swap(self, moves: Sequence[tuple[Binding, str]], *, keep_name: bool) -> list[Swap | Refusal]:
        """See `ImportPlanner.swap_all`."""
        first = moves[0][0].statement
        if any(binding.statement is not first for binding, _ in moves):
            raise ValueError("the bindings are of several statements")
        answers = self._swap(moves, keep_name=keep_name)
        for (binding, _), answer in zip(moves, answers, strict=True):
            if isinstance(answer, Swap):
                self.scopes.moved.add(binding.id)
        return answers

    def _swap(self, moves: Sequence[tuple[Binding, str]], *, keep_name: bool) -> list[Swap | Refusal]:
        first = moves[0][0].statement
        results: list[Swap | Refusal | None] = []
        planned: list[_Move] = []
        bound: set[tuple[str, str, str]] = set()
        for binding, new in moves:
            answer = self._plan(binding, new, keep_name)
            if isinstance(answer, _Move):
                if answer.bound in bound:
                    answer = replace(answer, held=True)  # two old names became one
                bound.add(answer.bound)
                planned.append(answer)
            results.append(None if isinstance(answer, _Move) else answer)
        if not planned:
            return [item if item is not None else Refusal("nothing to move") for item in results]
        block = moves[0][0].block
        assert isinstance(first, ast.ImportFrom), "only names of from-imports move"
        done = self._apply(block, first, planned, [binding for binding, _ in moves], keep_name=keep_name)
        locals_ = iter(move.local for move in planned)
        if isinstance(done, Refusal):
            return [item if item is not None else done for item in results]
        edits, lossy = done
        return [item if item is not None else Swap(edits, next(locals_), lossy) for item in results]

    # ---- the names to bind -------------------------------------------------------------------------

    def _plan(self, binding: Binding, new: str, keep_name: bool) -> _Move | Swap | Refusal:
        alias, statement = binding.node, binding.statement
        if not binding.is_import or not isinstance(alias, ast.alias):
            return Refusal(f"`{binding.name}` is not an import")
        if binding.id in self.scopes.relied_on:
            return Refusal("another fix relies on this import")
        if (binding.target or ".").startswith("."):
            return Refusal("relative imports do not import a library")
        index = next(number for number, item in enumerate(statement.names) if item is alias)  # type: ignore[attr-defined]
        if isinstance(statement, ast.Import):
            return self._module(binding, alias, statement, index, new)
        module, _, name = new.rpartition(".")
        if not module or module_of(new) != module:
            return Refusal(f"`{new}` cannot be imported from a module")
        local, held = self._local(binding, alias, name, new, keep_name)
        return _Move(index, module, name, local, held)

    def _module(
        self, binding: Binding, alias: ast.alias, statement: ast.Import, index: int, new: str
    ) -> Swap | Refusal:
        """`import a.b as c`: the same with the new module; `import a.b` only if nothing uses it."""
        if not alias.asname:
            root = new.partition(".")[0]
            if root != binding.name:
                if binding.uses or binding.scope.kind == "class" or self.scopes.exports.takes(binding):
                    return Refusal(f"`{binding.name}` is still used")
                if not self.scopes.free(root, root, binding.scope, [], ignore=binding):
                    return Refusal(f"`{root}` has another meaning here")
            elif self._used_module(binding, alias.name):
                return Refusal(f"`{alias.name}` is still used")
        edits = ImportStatement(self.source, statement).rename(index, new, alias.asname or new)
        return Swap(edits, alias.asname or new.partition(".")[0])

    def _used_module(self, binding: Binding, module: str) -> bool:
        """Whether a place other than the import itself needs the module."""
        return any(
            candidate == module or candidate.startswith(module + ".")
            for use in self.names.uses
            if use.node is not binding.node
            for candidate in use.candidates
        )

    def _local(
        self, binding: Binding, alias: ast.alias, name: str, new: str, keep_name: bool
    ) -> tuple[str, bool]:
        """The local name, and whether an earlier import of the block already binds it to the same object."""
        old = binding.name
        fixed = (
            keep_name
            or alias.asname is not None
            or len(binding.scope.bindings[old]) > 1
            or (binding.in_string and not self._all_seen(binding))
            or old in self.scopes.declared
            or binding.scope.kind == "class"
            or (name != old and self.scopes.exports.takes(binding))
        )
        local = old
        if not fixed and name != old:
            free = self.scopes.free(name, new, binding.scope, binding.uses, ignore=binding)
            taken = self.scopes.stars_may_bind(name, binding.scope)
            local = name if free and not taken else old
        return local, self._held(binding, local, new)

    def _all_seen(self, binding: Binding) -> bool:
        """Whether no string or comment has the name of a binding but those whose uses are known."""
        start, end = start_of(self.source, binding.statement), end_of(self.source, binding.statement)
        known = frozenset(binding.uses)
        return all(
            found.start() in known or start <= found.start() < end
            for found in re.finditer(rf"(?<!\w){re.escape(binding.name)}(?!\w)", self.source.text)
        )

    def _held(self, binding: Binding, local: str, new: str) -> bool:
        if self.scopes.exports.is_init:
            return False
        key = binding.scope, local
        alike = self._alike.get(key)
        if alike is None:
            alike = self._alike[key] = {}
            for item in binding.scope.bindings.get(local, ()):
                if item.kind is BindingKind.FROM_IMPORT:
                    place = start_of(self.source, item.statement), item
                    alike.setdefault((item.target, id(item.block)), []).append(place)
        here = start_of(self.source, binding.statement)
        same = alike.get((new, id(binding.block)), ())
        return any(start <= here and item is not binding for start, item in same)

    # ---- the statement -------------------------------------------------------------------------------

    def _apply(
        self,
        block: list[ast.stmt],
        statement: ast.ImportFrom,
        moves: list[_Move],
        bindings: list[Binding],
        *,
        keep_name: bool,
    ) -> tuple[tuple[Edit, ...], bool] | Refusal:
        """Edits that make the names of one statement come from where they are now."""
        layout = ImportStatement(self.source, statement)
        comments = editing.comments_of(self.source, block, statement)
        away: dict[str, list[_Move]] = {}
        edits: list[Edit] = []
        gone: list[int] = []
        for move in moves:
            if move.held and not (len(moves) == len(statement.names) and comments):
                gone.append(move.index)
            elif move.module == statement.module:
                edits.extend(layout.rename(move.index, move.name, move.local))
            else:
                away.setdefault(move.module, []).append(move)
        leaving = [*gone, *(move.index for group in away.values() for move in group)]
        targets = {module: self._target(block, statement, module, bindings) for module in away}
        for module, group in list(away.items()):
            edit = self._among_standard(block, statement, module, group) if not targets[module] else None
            if edit is not None and not comments:
                edits.append(edit)
                del away[module]
        if len(leaving) == len(statement.names):
            if id(statement) in self.extended or (keep_name and id(statement) in self.extended_for_own):
                return Refusal("another fix adds a name to this import")
            self._replaced.add(id(statement))
            stays = next((module for module in away if comments or targets[module] is None), None)
            if stays is None:
                gone_edits = remove_statements(
                    self.source, block, [statement], module=block is self.names.tree.body
                )
                for module, group in away.items():
                    edits.extend(self._extend(targets[module], group))
                return (*edits, *gone_edits), False
            edits.append(layout.change_module(stays))
            for move in away.pop(stays):
                leaving.remove(move.index)
                edits.extend(layout.rename(move.index, move.name, move.local))
        lossy = False
        carried = ""
        if leaving:
            cut = layout.cut(leaving)
            edits.extend(cut.edits)
            lossy = cut.text_lost()
            if len(cut.comments) == len(leaving) == 1 and not cut.lost:
                carried = cut.comments[0][1]
        for module, group in away.items():
            target = targets[module]
            if target is not None:
                edits.extend(self._extend(target, group))
                continue
            added, kept = self._add(block, statement, module, group, carried)
            edits.append(added)
            lossy = lossy and not kept
        return tuple(dict.fromkeys(edits)), lossy

    def _among_standard(
        self, block: list[ast.stmt], statement: ast.ImportFrom, module: str, group: Sequence[_Move]
    ) -> Edit | None:
        """An import from the standard library where the module has such imports, above those of libraries."""
        imports: list[ast.Import | ast.ImportFrom] = []
        for item in block:
            if item is statement:
                break
            if isinstance(item, (ast.Import, ast.ImportFrom)) and not editing.is_header(block, item):
                imports.append(item)
        bound = self.names.module.bindings
        alone = all(len(bound.get(move.local, ())) <= 1 for move in group)
        stars = any(self.scopes.stars_may_bind(move.local, self.names.module) for move in group)
        if block is not self.names.tree.body or not imports or not alone or stars or not is_standard(module):
            return None
        code = editing.from_import(self.source, module, [spell_alias(m.name, m.local) for m in group], None)
        return editing.add_among_standard(self.source, block, code, imports, statement)

    def _target(
        self, block: list[ast.stmt], statement: ast.ImportFrom, module: str, bindings: Sequence[Binding]
    ) -> ast.ImportFrom | None:
        """A from-import of the module in the same block that runs before every use of the bindings."""
        uses = [offset for binding in bindings for offset in binding.uses]
        here = start_of(self.source, statement)
        for item in block:
            if item is statement or not self.extensible(item, module):
                continue
            assert isinstance(item, ast.ImportFrom)
            if start_of(self.source, item) < here or all(use > end_of(self.source, item) for use in uses):
                return item
        return None

    def _extend(self, target: ast.ImportFrom | None, group: Sequence[_Move]) -> list[Edit]:
        assert target is not None
        self.extended.add(id(target))
        layout = ImportStatement(self.source, target)
        held = {(alias.name, alias.asname or alias.name) for alias in target.names}
        wanted = [spell_alias(move.name, move.local) for move in group if (move.name, move.local) not in held]
        edits = [edit for alias in wanted for edit in layout.extend(alias)]
        return list(dict.fromkeys(edits))

    def _add(
        self,
        block: list[ast.stmt],
        statement: ast.ImportFrom,
        module: str,
        group: Sequence[_Move],
        carried: str,
    ) -> tuple[Edit, bool]:
        """A new from-import next to the old one; and whether it has the comment that was carried over."""
        line = logical_line(self.source, block, statement)
        names = [spell_alias(move.name, move.local) for move in group]
        if line.indent is None or line.statements[-1] is not statement:
            code = editing.from_import(self.source, module, names, None)
            return add_before(self.source, statement, code), not carried
        code = editing.from_import(self.source, module, names, line.indent)
        comment = carried if len(group) == 1 else ""
        if not comment and line.comment and is_marker(line.comment):
            comment = line.comment
        if comment:
            code += f"  {comment}"
        return add_line_after(self.source, line, code), bool(carried)
