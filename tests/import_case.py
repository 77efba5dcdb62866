"""A file for which imports are planned: each answer is applied, and the result parsed."""

from __future__ import annotations

import ast
from pathlib import Path

from torchmigrate.findings import Applicability, DroppedUse, Edit, Fix
from torchmigrate.rewrite.apply import apply
from torchmigrate.rewrite.imports.planner import ImportPlanner, Refusal, Spelling, Swap
from torchmigrate.semantics.exports import Exports
from torchmigrate.semantics.model import Binding, Role, SemanticModel, Use
from torchmigrate.semantics.walk.resolver import LIBRARY_ROOTS, resolve
from torchmigrate.source.text import Source

ROOTS = LIBRARY_ROOTS | {"math"}


class Case:
    """A file that is being planned for."""

    def __init__(self, code: str, *, is_init: bool = False) -> None:
        self.text = code
        self.source = Source.from_text(self.text, Path("case.py"))
        self.names: SemanticModel = resolve(ast.parse(self.text), self.source, roots=ROOTS)
        self.planner = ImportPlanner(self.names, self.source, Exports(self.names, is_init=is_init))

    def uses(self, name: str) -> list[Use]:
        """The uses written `name`, in order."""
        return [
            use
            for use in self.names.uses
            if use.role is not Role.IMPORT and self.text[use.start : use.end] == name
        ]

    def bindings(self, name: str) -> list[Binding]:
        return [item for item in self.names.bindings if item.name == name and item.is_import]

    def binding(self, name: str) -> Binding:
        found = self.bindings(name)
        assert len(found) == 1, found
        return found[0]

    def result(self, *groups: tuple[Edit, ...]) -> str:
        """The text with groups of edits applied, each as a fix of its own; it must parse."""
        fixes = [Fix(f"fix {n}", Applicability.SAFE, group) for n, group in enumerate(groups) if group]
        done = apply(self.text, fixes)
        assert not done.deferred
        ast.parse(done.text)
        return done.text

    def spell(self, name: str, new: str, which: int = 0) -> Spelling | Refusal:
        return self.planner.spell(new, self.uses(name)[which])

    def rewrite(self, name: str, new: str) -> str:
        """The text with every use of `name` written as `new`, and the unused imports removed."""
        groups = []
        releases: list[DroppedUse] = []
        for use in self.uses(name):
            spelling = self.planner.spell(new, use)
            assert isinstance(spelling, Spelling), spelling
            groups.append((Edit(use.start, use.end, spelling.text), *spelling.edits))
            releases += self.planner.releases(use)
        removed = self.planner.removals(releases)
        return self.result(*groups, removed)

    def swapped(self, *moves: tuple[str, str], keep_name: bool = False) -> tuple[str, bool]:
        """The text with imports swapped together, and their uses rewritten; and whether that is lossy."""
        bindings = [(self.binding(name), new) for name, new in moves]
        swaps = self.planner.swap_all(bindings, keep_name=keep_name)
        edits: dict[Edit, None] = {}
        lossy = False
        for (binding, _), swap in zip(bindings, swaps, strict=True):
            assert isinstance(swap, Swap), swap
            lossy = lossy or swap.lossy
            edits.update(dict.fromkeys(swap.edits))
            if swap.local_name != binding.name:
                for place in binding.uses:
                    edits[Edit(place, place + len(binding.name), swap.local_name)] = None
        return self.result(tuple(edits)), lossy


def rewritten(code: str, name: str, new: str) -> str:
    return Case(code).rewrite(name, new)
