"""Which names a library has in which release: questions to the API data.

`surface_of("torch.nn.Linear").status("torch.nn.Linear", (2, 6))`. A name is looked up as Python would: from
the library down, through what is imported elsewhere (`torch.nn.Linear` stands for
`torch.nn.modules.linear.Linear`) and through base classes. Where the data cannot tell, the answer is
`Status.UNKNOWN`, never a guess.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from msgspec.structs import replace

from torchmigrate.versions.surface_file import Segment, SurfaceFile, Version, entry_in
from torchmigrate.versions.surface_model import ApiEntry, EntryKind, Status

DATA = Path(__file__).with_name("api")

# Made by compiled code or on access: no source lists their members.
_OPAQUE = ("torch._C", "torch.ops", "torch.classes")
# Bases that add nothing but what every class has.
_PLAIN_BASES = frozenset(
    {
        "object",
        "builtins.object",
        "abc.ABC",
        "typing.Generic",
        "typing.Protocol",
        "typing_extensions.Protocol",
    }
)
_ENDLESS = sys.maxsize  # after every release
_OBJECT = frozenset(dir(type))  # __name__, mro and so on: every class has them

# Where a dotted name leads: the qualified name at its definition and what that is; or why nowhere.
_Found = tuple[str, ApiEntry]

# Their compiled functions have no stubs: what they take is read from docstrings, which leave old forms out.
DOCUMENTED = frozenset(["torch.fft", "torch.linalg", "torch.nested", "torch.sparse", "torch.special"])


class Surface:
    """The names of one library in all its releases, read as they are needed.

    Versions are (major, minor) of the library itself. One that is newer than the data counts as the newest
    in it, and one between two known ones as the older of them; older than all, nothing is known.
    """

    def __init__(self, data: bytes) -> None:
        self._file = SurfaceFile(data)
        self.library = self._file.library
        self.versions = self._file.versions  # oldest first
        self.partial = self._file.partial  # only what differs between releases is known
        self._histories: dict[tuple[str, str], tuple[Segment, ...]] = {}
        self._owners: dict[str, dict[str, tuple[Segment, ...]]] = {}
        # Name -> where it leads, with the first release for which that holds, and the first one no more.
        self._found: dict[str, list[tuple[int, int, _Found | Status]]] = {}
        self._under_way: set[tuple[str, int]] = set()
        self._since, self._until = 0, _ENDLESS  # the releases for which all holds that was read on the way

    def entry(self, name: str, version: Version) -> ApiEntry | None:
        """What a name is; None if it does not exist, or is unknown.

        Never an alias, unless of something outside the data (another library, `torch._C`).
        """
        found = self._lookup(name, version)
        return None if isinstance(found, Status) else found[1]

    def entries(self, name: str) -> Iterator[tuple[Version, ApiEntry | None]]:
        """What a name is in every release, the oldest first; the same object as long as nothing changes."""
        number = 0
        while number < len(self.versions):
            found = self._resolve(name, number)
            entry = None if isinstance(found, Status) else found[1]
            until = next(until for since, until, _ in self._found[name] if since <= number < until)
            for version in self.versions[number:until]:
                yield version, entry
            number = until

    def definition(self, name: str, version: Version) -> str | None:
        """The qualified name of the definition; names of one object have the same."""
        found = self._lookup(name, version)
        return None if isinstance(found, Status) else found[0]

    def status(self, name: str, version: Version) -> Status:
        """Whether a name exists. What is there but only raises (`ApiEntry.gone`) does not."""
        if self._opaque(name):
            return Status.UNKNOWN
        found = self._lookup(name, version)
        if isinstance(found, Status):
            return found
        return Status.ABSENT if found[1].gone else Status.PRESENT

    def spans(self, name: str) -> tuple[tuple[Version, Version | None], ...]:
        """The releases in which a name exists, as (first, first without it or None: it is still there).

        A release without data counts as the one before it, or as without it if it is the first.
        """
        spans: list[tuple[Version, Version | None]] = []
        start: Version | None = None
        for version in self.versions:
            status = self.status(name, version)
            if status is Status.PRESENT and start is None:
                start = version
            elif status is Status.ABSENT and start is not None:
                spans.append((start, version))
                start = None
        if start is not None:
            spans.append((start, None))
        return tuple(spans)

    def known(self, name: str) -> bool:
        """Whether a name is there in any release, even if it only raises."""
        return any(self.entry(name, version) is not None for version in self.versions)

    def names_ending(self, last: str, version: Version, *, hidden: bool = False) -> list[str]:
        """Names whose last part is `last`, the shortest first: public ones, or all if `hidden`.

        What a module has only because it uses it (`torch.nn.functional.Tensor`) is left out.
        """
        number = self._number(version)
        if number is None:
            return []
        found = []
        for owner in self._file.owners_with(last):
            name = f"{owner}.{last}" if owner else last
            entry = self._own(owner, last, number)
            if (
                entry is not None
                and not entry.gone
                and (hidden or not private(name))
                and published(name, entry)
                and self.status(owner or name, version) is Status.PRESENT
            ):
                found.append(name)
        return sorted(found, key=lambda name: (name.count("."), name))

    def is_module(self, name: str, version: Version) -> bool:
        """Whether `import` finds a name: a function of the same name may hide a module."""
        number = self._number(version)
        entry = self.entry(name, version)
        if number is None or entry is None or entry.kind in (EntryKind.MODULE, EntryKind.CLASS):
            return number is not None and entry is not None and entry.kind is EntryKind.MODULE
        return any(entry_in(history, number) is not None for history in self._members(name).values())

    def members(self, name: str, version: Version) -> set[str]:
        """What a module or class has, inherited members too; an empty set for anything else."""
        number = self._number(version)
        found = self._lookup(name, version)
        if number is None or isinstance(found, Status):
            return set()
        return {
            last
            for owner, _ in self._family(*found, number)
            for last, history in self._members(owner).items()
            if entry_in(history, number) is not None
        }

    def ancestry(self, name: str, version: Version) -> list[str]:
        """Where a class and its bases are defined, the nearest first; empty for anything else."""
        number = self._number(version)
        found = self._lookup(name, version)
        if number is None or isinstance(found, Status) or found[1].kind is not EntryKind.CLASS:
            return []
        return [owner for owner, _ in self._family(*found, number)]

    def release(self, version: Version) -> dict[str, ApiEntry]:
        """Everything that is listed in a release, aliases as such. Raises ValueError if it is not there."""
        return self._file.release(version)

    def _number(self, version: Version) -> int | None:
        """The release in the data that stands for a version."""
        number = bisect_right(self.versions, version) - 1
        return number if number >= 0 else None

    def _opaque(self, name: str) -> bool:
        return any(name == root or name.startswith(root + ".") for root in _OPAQUE)

    def _lookup(self, name: str, version: Version) -> _Found | Status:
        number = self._number(version)
        return Status.UNKNOWN if number is None else self._resolve(name, number)

    def _resolve(self, name: str, number: int) -> _Found | Status:
        """Follows a dotted name from the library down; a name that leads to itself is not known."""
        answers = self._found.get(name)
        for since, until, found in answers or ():
            if since <= number < until:
                self._narrow(since, until)
                return found
        key = (name, number)
        if key in self._under_way:
            self._narrow(number, number + 1)
            return Status.UNKNOWN
        self._under_way.add(key)
        outer = self._since, self._until
        self._since, self._until = 0, _ENDLESS
        try:
            found = self._follow(name, number)
        finally:
            since, until = self._since, self._until
            self._since, self._until = outer
            self._narrow(since, until)
            self._under_way.discard(key)
        if answers is None:
            answers = self._found.setdefault(name, [])
        answers.append((since, until, found))
        return found

    def _narrow(self, since: int, until: int) -> None:
        """What is being followed rests on something that holds for these releases only."""
        if since > self._since:
            self._since = since
        if until < self._until:
            self._until = until

    def _follow(self, name: str, number: int) -> _Found | Status:
        owner, _, last = name.rpartition(".")
        # A function may have the name of the submodule that it comes from: `import` still finds what is in
        # the module, and so does this, before it asks the function.
        listed = self._step(owner, last, number)
        if not isinstance(listed, Status):
            return listed
        if not owner:
            return Status.UNKNOWN  # another library
        found = self._resolve(owner, number)
        if isinstance(found, Status):
            return found
        if found[1].kind is EntryKind.FUNCTION and last in self._members(owner):
            return Status.ABSENT  # what is a module in another release: `torch.fft` before 1.7
        return self._member(*found, last, number)

    def _member(self, name: str, entry: ApiEntry, last: str, number: int) -> _Found | Status:
        """A member of what is defined as `name`."""
        if entry.kind is EntryKind.MODULE:
            # Members of the class of a configuration module are those that the module lists.
            for owner, _ in self._family(name, entry, number):
                found = self._step(owner, last, number)
                if found is not Status.ABSENT:
                    return found
            known_whole = not entry.open and not self._opaque(name) and not _dunder(last)
            if self.partial:
                known_whole = last in self._members(name)
            return Status.ABSENT if known_whole else Status.UNKNOWN
        if entry.kind is EntryKind.CLASS:
            known_whole = last not in _OBJECT and not _dunder(last)
            listed = False
            for owner, parent in self._family(name, entry, number):
                found = self._step(owner, last, number)
                if found is not Status.ABSENT:
                    return found
                known_whole = known_whole and not parent.open
                listed = listed or (self.partial and last in self._members(owner))
            if self.partial:
                known_whole = listed
            return Status.ABSENT if known_whole else Status.UNKNOWN
        # An attribute of a value, a function or of something in another library.
        return Status.UNKNOWN

    def _family(self, name: str, entry: ApiEntry, number: int) -> Iterator[_Found]:
        """A module, or a class, and its bases, nearest first, one from elsewhere as an open class."""
        seen: set[str] = set()
        waiting = [(name, entry)]
        while waiting:
            name, entry = waiting.pop(0)
            if name not in seen:
                seen.add(name)
                yield name, entry
                waiting[:0] = self._bases(entry, number)

    def _bases(self, entry: ApiEntry, number: int) -> Iterator[_Found]:
        for base in entry.bases:
            if base not in _PLAIN_BASES:
                found = self._resolve(base, number)
                if isinstance(found, Status) or found[1].kind is not EntryKind.CLASS:
                    found = (base, ApiEntry(EntryKind.CLASS, open=True))
                yield found

    def _step(self, owner: str, last: str, number: int) -> _Found | Status:
        """A member that an owner lists itself, with aliases resolved."""
        entry = self._own(owner, last, number)
        if entry is None:
            return Status.ABSENT
        name = f"{owner}.{last}" if owner else last
        if entry.kind is not EntryKind.ALIAS:
            return name, entry
        found = self._resolve(entry.target, number)
        # The name is listed: if its target cannot be read, that says nothing about the name itself.
        return (name, entry) if isinstance(found, Status) else self._marked(found, entry)

    @staticmethod
    def _marked(found: _Found, alias: ApiEntry) -> _Found:
        """What an alias stands for, with the marks that only this name has."""
        name, entry = found
        if alias.gone <= entry.gone and (alias.deprecated is None or entry.deprecated is not None):
            return found
        said = entry if entry.deprecated is not None else alias
        return name, replace(
            entry, gone=entry.gone or alias.gone, deprecated=said.deprecated, warns=said.warns
        )

    def _own(self, owner: str, last: str, number: int) -> ApiEntry | None:
        """What an owner lists itself in a release."""
        history = self._histories.get((owner, last))
        if history is None:
            history = self._histories[owner, last] = self._file.history(owner, last)
        since, until, entry = 0, _ENDLESS, None
        for start, later in history:
            if start > number:
                until = start
                break
            since, entry = start, later
        self._narrow(since, until)
        return entry

    def _members(self, owner: str) -> dict[str, tuple[Segment, ...]]:
        """What an owner lists itself in any release."""
        members = self._owners.get(owner)
        if members is None:
            members = self._owners[owner] = self._file.members(owner)
        return members


def surface_of(name: str) -> Surface | None:
    """The data of the library that a dotted name begins with; None: there is none."""
    return _load(name.partition(".")[0])


def whole_surface_of(name: str) -> Surface | None:
    """The same, but None also for data that does not list every name."""
    surface = surface_of(name)
    return None if surface is None or surface.partial else surface


@cache
def _load(library: str) -> Surface | None:
    path = DATA / f"{library}.gz"
    return Surface(path.read_bytes()) if library.isidentifier() and path.is_file() else None


def _dunder(last: str) -> bool:
    return last.startswith("__") and last.endswith("__")


def private(name: str) -> bool:
    return any(part.startswith("_") for part in name.split("."))


def published(name: str, entry: ApiEntry) -> bool:
    """Whether a name is meant for others: defined there, or taken from below or from a private module."""
    if entry.kind is not EntryKind.ALIAS:
        return True
    owner = name.rpartition(".")[0]
    return entry.target.startswith(owner + ".") or private(entry.target)
