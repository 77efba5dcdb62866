"""Fixes that would break what other code does with a name: they are shown, never applied."""

from __future__ import annotations

import ast
import functools
import re
from bisect import bisect_left

from msgspec.structs import replace

from torchmigrate.findings import Applicability, Edit, Finding, Fix, Obstacle, Reason
from torchmigrate.patterns import pattern
from torchmigrate.project.mentions import Mentions
from torchmigrate.project.one_project import Project
from torchmigrate.project.screening import may_replace
from torchmigrate.rewrite.context import FileContext
from torchmigrate.semantics.exports import Exports
from torchmigrate.semantics.model import Binding, BindingKind, SemanticModel
from torchmigrate.semantics.public_names import public_name
from torchmigrate.source.text import Source
from torchmigrate.source.trees import walk

_WORD = pattern(r"\w+")
_Import = ast.Import | ast.ImportFrom
_SETTINGS = "torch.backends."  # what is assigned there is no function


def held_back(found: list[Finding], file: FileContext) -> list[Finding]:
    """The findings, with those fixes as advice only that leave a patch, or another file, without its name."""
    names, source, exports = file.names, file.source, file.exports
    reasons: dict[int, Reason] = {}
    patches = _Patches(file)
    fixes = {id(finding.fix): finding.fix for finding in found if finding.fix is not None}
    imports = [binding for binding in names.imports if binding.scope is names.module]
    uses = sorted((offset, binding.name) for binding in imports for offset in binding.uses)
    bound = _Bound(names, source)
    for key, fix in fixes.items():
        reason = bound.removed(fix, exports)
        for symbol in bound.rebound(fix):
            reason = reason or patches.of_symbol(symbol)
        for name in _written_without(fix, uses):
            reason = reason or patches.of_binding(name)
        if reason is not None:
            reasons[key] = reason
    for finding in found:
        if finding.fix is not None and finding.symbol and id(finding.fix) not in reasons:
            reason = patches.of_symbol(finding.symbol)
            if reason is not None and not patches.is_kept(finding.symbol, finding.fix):
                reasons[id(finding.fix)] = reason
    if not reasons:
        return found
    held = {
        key: replace(fix, applicability=Applicability.DISPLAY, held_by=(reasons[key],))
        for key, fix in fixes.items()
        if key in reasons
    }
    return [replace(finding, fix=held.get(id(finding.fix), finding.fix)) for finding in found]


class _Bound:
    """Where the module itself binds its names."""

    def __init__(self, names: SemanticModel, source: Source) -> None:
        self.names = names
        self.source = source
        places: list[tuple[int, int]] = []  # offset, number of the binding
        self.bindings = [binding for bound in names.module.bindings.values() for binding in bound]
        for number, binding in enumerate(self.bindings):
            node = binding.statement if binding.kind is BindingKind.DEFINITION else binding.node
            if isinstance(node, (ast.stmt, ast.expr, ast.alias)):
                places.append((source.offset(node.lineno, node.col_offset), number))
        self.places = sorted(places)

    def removed(self, fix: Fix, exports: Exports) -> Reason | None:
        """Why a fix may not unbind a name; imports without uses go later, and know it."""
        cut = sorted(
            {
                number
                for edit in fix.edits
                for _, number in self.places[
                    bisect_left(self.places, (edit.start, 0)) : bisect_left(self.places, (edit.end, 0))
                ]
            }
        )
        if not cut:
            return None
        words = {word for edit in fix.edits for word in _WORD.findall(edit.text)}
        gone: dict[str, list[Binding]] = {}
        for number in cut:
            gone.setdefault(self.bindings[number].name, []).append(self.bindings[number])
        for name, bound in gone.items():
            every = len(bound) == len(self.names.module.bindings[name])
            if every and name not in words and exports.keeps(bound[0]):
                return Reason(Obstacle.TAKEN, name=name)
        return None

    def rebound(self, fix: Fix) -> list[str]:
        """What uses in the file mean by the names that a fix imports from another place."""
        inside: dict[int, list[Edit]] = {}  # number of the statement -> edits
        for edit in fix.edits:
            number = bisect_left(self._imports, (edit.start + 1,)) - 1
            if number >= 0 and edit.end <= self._imports[number][1]:
                inside.setdefault(number, []).append(edit)
        found: dict[str, None] = {}
        for number, edits in inside.items():
            start, end, statement = self._imports[number]
            left = _imported(_edited(self.source.text[start:end], edits, start))
            for alias in statement.names:
                if _taken(statement, alias) not in left:
                    found.update(self._meant.get(id(alias), {}))
        return list(found)

    @functools.cached_property
    def _imports(self) -> list[tuple[int, int, _Import]]:
        """Offsets of every import that binds names, in source order."""
        held = (binding.statement for binding in self.names.imports)
        statements = {id(node): node for node in held if isinstance(node, _Import)}
        found = [(*self.source.span(statement), statement) for statement in statements.values()]
        return sorted(found, key=lambda item: item[0])

    @functools.cached_property
    def _meant(self) -> dict[int, dict[str, None]]:
        """id() of what an import takes -> the qualified names that its uses may mean."""
        found: dict[int, dict[str, None]] = {}
        for use in self.names.uses:
            for binding in use.origins:
                if binding.is_import:
                    found.setdefault(id(binding.node), {}).update(dict.fromkeys(use.candidates))
        return found


def _edited(text: str, edits: list[Edit], start: int) -> str:
    for edit in sorted(edits, reverse=True):
        text = text[: edit.start - start] + edit.text + text[edit.end - start :]
    return text


def _imported(text: str) -> set[tuple[str | None, str, str | None]]:
    """What the imports in a text take; nothing if it is not valid code on its own."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return set()
    statements = [node for node in walk(tree) if isinstance(node, _Import)]
    return {_taken(node, alias) for node in statements for alias in node.names}


def _taken(node: _Import, alias: ast.alias) -> tuple[str | None, str, str | None]:
    """Module, name and new name."""
    return node.module if isinstance(node, ast.ImportFrom) else None, alias.name, alias.asname


def _written_without(fix: Fix, uses: list[tuple[int, str]]) -> list[str]:
    """The imported names that a fix no longer uses somewhere; `uses` are offsets and names, sorted."""
    found: dict[str, None] = {}
    for edit in fix.edits:
        here = uses[bisect_left(uses, (edit.start, "")) : bisect_left(uses, (edit.end, ""))]
        words = set(_WORD.findall(edit.text)) if here else set()
        found.update(dict.fromkeys(name for _, name in here if name not in words))
    return list(found)


class _Patches:
    """What the file and its project patch."""

    def __init__(self, file: FileContext) -> None:
        self.names = file.names
        self.source = file.source
        self.data = file.source.text.encode("utf-8", "surrogatepass")
        self.path = file.path
        self.project = file.project
        self.exists = file.exists
        self._own: Mentions | None = None
        self._known: dict[str, Reason | None] = {}
        self._uses: dict[str, list[tuple[int, int]]] = {}

    def of_symbol(self, symbol: str) -> Reason | None:
        """Why a use of a library's name may not get another one."""
        if symbol not in self._known:
            self._known[symbol] = self._symbol(public_name(symbol))
        return self._known[symbol]

    def _symbol(self, name: str) -> Reason | None:
        if name.startswith(_SETTINGS):
            return None
        last = name.rpartition(".")[2]
        if may_replace(self.data, last) and self._patches_here(name, last):
            return Reason(Obstacle.PATCH, name=name)
        other = self.project.ask(Project.patches, self.path, name)
        return None if other is None else Reason(Obstacle.PATCH, name=name, path=other)

    def is_kept(self, symbol: str, fix: Fix) -> bool:
        """Whether a fix leaves the uses of a name, so that what is put in its place sees the new code."""
        public = public_name(symbol)
        if symbol not in self._uses:
            self._uses[symbol] = [
                (use.start, use.end)
                for use in self.names.uses
                if symbol in use.candidates or public in map(public_name, use.candidates)
            ]
        uses = self._uses[symbol]
        touched = [
            (edit.text, self.source.text[start:end])
            for edit in fix.edits
            for start, end in uses
            if edit.start < end and start < edit.end
        ]
        return bool(uses) and all(
            re.search(rf"(?<![\w.]){re.escape(spelled)}(?!\w)", text) for text, spelled in touched
        )

    def of_binding(self, name: str) -> Reason | None:
        """Why a use of an imported name may not be written without it."""
        if self.project.ask(Project.replaces, self.path, name):
            return Reason(Obstacle.REPLACED, name=name)
        return None

    def _patches_here(self, name: str, last: str) -> bool:
        if self._own is None:
            self._own = Mentions(self.names.tree, self.path.absolute().parent.parts)
        # What is only set where it is missing is left as it is, if the target has it.
        filled_in = () if self.exists(name) else self._own.filled_in
        return last in self._own.patched_anywhere or any(
            item.parts[-1] == last and name in self.project.ask(Project.qualified, self.path, item)
            for item in (*self._own.patched, *filled_in)
        )
