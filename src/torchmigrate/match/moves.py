"""Which new names a fix may write, by the API data: those that are there, and not outdated themselves.

A rule that moves a module applies to all its members. Which of them really moved, and since when they are in
the new place, is not in the rule: a module may have kept some, and others went from both.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import lru_cache

from msgspec.structs import replace

from torchmigrate.catalogue.model import Case, Rule
from torchmigrate.findings import Applicability
from torchmigrate.match.pattern import METAVARIABLE
from torchmigrate.semantics.libraries import LIBRARY_ROOTS
from torchmigrate.source.trees import walk
from torchmigrate.versions.range import VersionRange, requirement
from torchmigrate.versions.releases import Version, show_version
from torchmigrate.versions.surface import Surface, whole_surface_of
from torchmigrate.versions.surface_model import EntryKind, Status


class Moves:
    """Old and new names in the releases of a range."""

    def __init__(self, versions: VersionRange) -> None:
        self.versions = versions

    def member(self, rule: Rule, module: str, name: str) -> Rule | None:
        """The rule on a moved module as it stands for a name in there; None: this one did not move.

        Its cases require the release since which the name is in the new place.
        """
        new = rule.modules.get(module)
        surface = whole_surface_of(new) if new else None
        if new is None or surface is None:
            return rule  # removed without a successor; or the contents of the new place are unknown
        known = rule.members is not None and name[len(module) + 1 :] in rule.members
        since = self.since(name, new + name[len(module) :], (module, new), trusted=known)
        if since is None:
            return None
        if since == surface.versions[0]:
            return rule  # or earlier
        return replace(rule, cases=tuple(_requiring(case, rule, surface, since) for case in rule.cases))

    def since(self, old: str, new: str, moved: tuple[str, str], *, trusted: bool = False) -> Version | None:
        """The release since which a name is, without a gap up to the target, the same object in a new place.

        Args:
            old, new: its qualified names.
            moved: the old and the new module that contain them. trusted: it is known to be the same object;
            the data tells only whether it exists.
        """
        surface = whole_surface_of(new)
        assert surface is not None, "the caller has looked"
        target, _ = self.versions.of(surface.library)
        found: Version | None = None
        for version in reversed([item for item in surface.versions if item <= target]):
            if not _is_there(surface, old, new, moved, version, trusted):
                break
            found = version
        return found

    def holds(self, old: str, new: str, name: str, attributes: int) -> bool:
        """Whether what is reached as `name` through a module can be reached through the one that replaces it.

        Args:
            old, new: the modules. Where they are none, what is in them follows them.
            name: of something in the old module; or its own, where the module is a value.
            attributes: how many of the last parts of the name are attributes.
        """
        if self.kind(new) is not EntryKind.MODULE:
            return True
        there = new + name[len(old) :]
        if name != old and self.since(name, there, (old, new)) is None:
            return False
        return self.leads_on(name, there, attributes)

    def kind(self, name: str) -> EntryKind | None:
        """What a name is at the target; None: it does not exist, or is unknown."""
        surface = whole_surface_of(name)
        entry = surface.entry(name, self.versions.of(surface.library)[0]) if surface is not None else None
        return None if entry is None or entry.gone else entry.kind

    def leads_on(self, old: str, new: str, attributes: int) -> bool:
        """Whether a use of an old name can become one of the new name, its last parts as attributes.

        A module that is a value, whole, is not what another module is; a function that has the name of the
        submodule that it is from hides that from attributes; and what objects have, their class may lack.
        """
        kind = self.kind(new)
        owner, theirs = (self.kind(name.rpartition(".")[0]) for name in (new, old))
        if kind is EntryKind.MODULE:
            return self.kind(old) is None
        if attributes and kind is EntryKind.VALUE and owner is theirs is EntryKind.CLASS:
            return self._has_no_objects(new.rpartition(".")[0])
        for _ in range(attributes - 1):
            new = new.rpartition(".")[0]
            if self.kind(new) is EntryKind.FUNCTION:
                return False
        return True

    def _has_no_objects(self, name: str) -> bool:
        """Whether a class only holds constants, as far as the data tells: nothing makes objects of it."""
        surface = whole_surface_of(name)
        entry = surface.entry(name, self.versions.of(surface.library)[0]) if surface is not None else None
        return entry is not None and not entry.signatures and not entry.bases

    def is_module(self, name: str) -> bool:
        """Whether `import name` works at the target, and gives a module: as far as the data tells."""
        return whole_surface_of(name) is None or self.kind(name) is EntryKind.MODULE

    def is_outdated(self, name: str) -> bool:
        """Whether a name is deprecated at the target, or at a release before that which the code is for.

        A deprecation can be withdrawn again.
        """
        surface = whole_surface_of(name)
        if surface is None:
            return False
        target, minimum = self.versions.of(surface.library)
        oldest = target if minimum is None else minimum
        entries = [surface.entry(name, item) for item in surface.versions if oldest <= item <= target]
        return any(entry is not None and entry.deprecated is not None for entry in entries)

    def without_outdated(self, rule: Rule, symbol: str) -> Rule:
        """The rule without the cases that write a name that is deprecated itself, somewhere in the range.

        A name for the same object is as good as the old name; and advice is not applied.
        """
        variables = rule.symbols.get(symbol, {})
        cases = tuple(
            case
            for case in rule.cases
            if case.applicability is Applicability.DISPLAY
            or not any(
                self.is_outdated(name) and not self._is_one(symbol, name)
                for name in written_names(case, variables)
            )
        )
        return rule if len(cases) == len(rule.cases) else replace(rule, cases=cases)

    def _is_one(self, first: str, second: str) -> bool:
        surface, other = whole_surface_of(first), whole_surface_of(second)
        if first == second or surface is None or other is not surface:
            return first == second
        target, _ = self.versions.of(surface.library)
        return surface.definition(first, target) == surface.definition(second, target)


def written_names(case: Case, variables: Mapping[str, str]) -> tuple[str, ...]:
    """The qualified names of libraries that a case writes, for a symbol with these variables."""
    texts = [text for text in (case.rename, case.template) if text]
    filled = [METAVARIABLE.sub(lambda found: variables.get(found[1], found[0]), text) for text in texts]
    return tuple(dict.fromkeys(name for text in filled for name in dotted_names(text)))


@lru_cache(maxsize=1024)  # of the templates of all rules
def dotted_names(text: str) -> tuple[str, ...]:
    """Dotted names in a template, whole: `torch.linalg.solve($A, $B)` holds `torch.linalg.solve` alone."""
    try:
        tree = ast.parse(text.replace("$", "__"), mode="eval")
    except SyntaxError:
        return ()
    found = []
    inner: set[ast.AST] = set()  # parts of names that were found: `walk` gives what is outside first
    for node in walk(tree):
        if isinstance(node, ast.Attribute) and node in inner:
            inner.add(node.value)
        elif isinstance(node, ast.Attribute):
            dotted = ast.unparse(node)
            plain = dotted.replace(".", "").isidentifier()  # not `torch.linalg.lstsq(a, b).solution`
            if plain and dotted.partition(".")[0] in LIBRARY_ROOTS:
                found.append(dotted)
                inner.add(node.value)
    return tuple(found)


def _is_there(
    surface: Surface, old: str, new: str, moved: tuple[str, str], version: Version, trusted: bool
) -> bool:
    if surface.status(new, version) is Status.ABSENT:
        return False
    if surface.status(new, version) is Status.UNKNOWN:  # an attribute of something: it goes where that goes
        while surface.status(new, version) is not Status.PRESENT and len(new) > len(moved[1]):
            old, new = old.rpartition(".")[0], new.rpartition(".")[0]
        entry = surface.entry(new, version)
        if entry is None or entry.kind in (EntryKind.MODULE, EntryKind.FUNCTION):
            return False
    return trusted or _is_same(surface, old, new, moved, version)


def _is_same(surface: Surface, old: str, new: str, moved: tuple[str, str], version: Version) -> bool:
    """Whether two names that exist are one thing, or copies of one another."""
    before = whole_surface_of(old)
    first = before.definition(old, version) if before is not None else None
    second = surface.definition(new, version)
    if before is None or first is None or second is None or first == second:
        return True
    kinds = {item and item.kind for item in (before.entry(old, version), surface.entry(new, version))}
    if first == moved[0] + second[len(moved[1]) :]:
        return len(kinds) == 1
    return kinds == {EntryKind.MODULE}


def _requiring(case: Case, rule: Rule, surface: Surface, since: Version) -> Case:
    if case.requires is not None:
        library, needed = requirement(case.requires, rule.library)
        if library != surface.library or needed >= since:
            return case
    return replace(case, requires=f"{surface.library} {show_version(since)}")
