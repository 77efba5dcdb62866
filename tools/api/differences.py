"""What differs between the releases of a library: all that is recorded of a neighbor of torch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from api.tree import hidden
from torchmigrate.match.signature import Signature, parse_signature
from torchmigrate.versions.releases import Version
from torchmigrate.versions.surface import Surface, published
from torchmigrate.versions.surface_file import encode
from torchmigrate.versions.surface_model import ApiEntry, EntryKind, Release, Status

_NAMED = (EntryKind.CLASS, EntryKind.FUNCTION)
_GIVEN = ("positional-only", "positional", "keyword-only")

# Their functions and classes take the old names of arguments through decorators and base classes, so that
# signatures do not tell what a call may give.
_UNSIGNED = frozenset(["transformers"])

Releases = Sequence[tuple[Version, Release]]


def differences(library: str, releases: Releases) -> list[tuple[Version, dict[str, ApiEntry]]]:
    """The names that a release removed, renamed or deprecated, or whose parameters changed, in all releases.

    With them are the modules and classes that they are in, and what they are other names of. Where it is not
    known whether a name exists, it is recorded as in the release before.
    """
    if library in _UNSIGNED:
        releases = [(version, _unsigned(release)) for version, release in releases]
    whole = _Whole(library, releases)
    different = {name for name in whole.names() if whole.changes(name) and whole.differs(name)}
    kept = whole.with_owners(different)
    kept |= whole.with_owners(whole.aliases(kept))
    found: list[tuple[Version, dict[str, ApiEntry]]] = [(version, {}) for version, _ in releases]
    for name in sorted(kept):
        for (_, entries), entry in zip(found, whole.history(name), strict=True):
            if entry is not None:
                entries[name] = entry if name in different else replace(entry, signatures=())
    return found


def _unsigned(release: Release) -> Release:
    return {name: replace(entry, signatures=(), parameters=()) for name, entry in release.items()}


class _Whole:
    """All releases of a library."""

    def __init__(self, library: str, releases: Releases) -> None:
        self.releases = releases
        self.surface = Surface(encode(library, releases))

    def names(self) -> list[str]:
        """Every name that a release lists."""
        found = {name for _, release in self.releases for name in release}
        return sorted(name for name in found if hidden(self.surface.library, name) is None)

    def status(self, name: str) -> list[Status]:
        """Whether a name exists, by release."""
        return [self.surface.status(name, version) for version, _ in self.releases]

    def history(self, name: str) -> list[ApiEntry | None]:
        """What is listed under a name, by release."""
        found: list[ApiEntry | None] = []
        for (_, release), status in zip(self.releases, self.status(name), strict=True):
            entry = release.get(name)
            if entry is None and status is not Status.ABSENT:
                entry = next((one for one in reversed(found) if one is not None), None)
            found.append(None if entry is None else replace(entry, open=False))
        return found

    def changes(self, name: str) -> bool:
        """Whether what is listed under a name differs at all, or has a mark, and is not another library's."""
        entries = [release.get(name) for _, release in self.releases]
        listed = [entry for entry in entries if entry is not None]
        if all(entry.kind is EntryKind.ALIAS and not self._inside(entry.target) for entry in listed):
            return False  # what a module imports for itself
        first = listed[0]
        marked = first.warns or first.gone or bool(first.parameters)
        return marked or len(listed) < len(entries) or any(entry != first for entry in listed)

    def _inside(self, target: str) -> bool:
        return target.partition(".")[0] == self.surface.library

    def differs(self, name: str) -> bool:
        """Whether a later release breaks a use of a name, or warns about it."""
        owner = name.rpartition(".")[0]
        was_there = False
        before: tuple[Signature, ...] = ()
        for version, release in self.releases:
            status = self.surface.status(name, version)
            entry = release.get(name)
            is_gone = status is Status.ABSENT and was_there
            if is_gone and self.surface.status(owner, version) is Status.PRESENT:
                return True
            if entry is None:
                continue
            was_there = was_there or status is Status.PRESENT
            if entry.warns or entry.gone or entry.parameters:
                return True
            if entry.kind in (EntryKind.FUNCTION, EntryKind.CLASS):
                now = tuple(map(parse_signature, entry.signatures))
                if before and now and not _takes_all(now, before):
                    return True
                before = now or before
        return False

    def aliases(self, kept: set[str]) -> Iterator[str]:
        """Published names that stand for a class or function that is kept."""
        lasts = {name.rpartition(".")[2] for name in kept}
        for version, release in self.releases:
            for name, entry in release.items():
                if entry.kind is not EntryKind.ALIAS or entry.target.rpartition(".")[2] not in lasts:
                    continue
                if name not in kept and published(name, entry):
                    found = self.surface.entry(name, version)
                    definition = self.surface.definition(name, version)
                    if found is not None and found.kind in _NAMED and definition in kept:
                        yield name

    def with_owners(self, names: Iterable[str]) -> set[str]:
        """Names, what they are in, and what they stand for."""
        found: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if not name or name in found:
                continue
            found.add(name)
            waiting.append(name.rpartition(".")[0])
            waiting += {
                entry.target
                for _, release in self.releases
                if (entry := release.get(name)) is not None and entry.kind is EntryKind.ALIAS
            }
        return {name for name in found if any(name in release for _, release in self.releases)}


def _takes_all(now: Sequence[Signature], before: Sequence[Signature]) -> bool:
    """Whether every call that an older form takes means the same to a newer one, but for defaults."""
    return all(any(_takes(new, old) for new in now) for old in before)


def _takes(new: Signature, old: Signature) -> bool:
    names = [item.name for item in old.parameters if item.kind in _GIVEN]
    known = {item.name for item in new.parameters}
    if new.keywords is None and not known.issuperset(names):
        return False
    first, second = [item.name for item in old.positional], [item.name for item in new.positional]
    if second[: len(first)] != first and new.variadic is None:
        return False
    needed = {item.name for item in new.parameters if item.default is None and item.kind in _GIVEN}
    return needed.issubset(names)
