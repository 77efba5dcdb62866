"""How a function can be called at the target, and could be called in earlier releases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

from msgspec import Struct

from torchmigrate.engine.api_rules.api import Api, Signatures, Version, signatures_of
from torchmigrate.match.signature import Argument, Parameter, Signature, lacking, required
from torchmigrate.versions.surface import Surface
from torchmigrate.versions.surface_model import ApiEntry, EntryKind

# Before torch had stubs, what is known of its compiled functions comes from their docstrings.
_CERTAIN_SINCE: dict[str, Version] = {"torch": (1, 2)}


class Move(Struct, frozen=True):
    """Since a release, the argument at a position is for another parameter than before."""

    position: int
    old: Parameter
    new: Parameter
    since: Version


class Function:
    """A function, or a class as what makes its objects, whose signatures at the target are all known.

    now: these. keywords: every name in them; takes_any: `**kwargs` is one of them. most: how many arguments
    without a keyword it takes, None: any number. demands: whether no call is right without arguments.
    """

    def __init__(self, name: str, now: Signatures, surface: Surface, api: Api) -> None:
        self.name = name
        self.now = now
        self.keywords = frozenset(name for one in now for name in one.by_name)
        self.takes_any = any(one.keywords is not None for one in now)
        endless = any(one.variadic is not None for one in now)
        self.most = None if endless else max(len(one.positional) for one in now)
        self.demands = all(map(required, now))
        self._surface = surface
        self._api = api

    @cached_property
    def history(self) -> tuple[tuple[Version, Signatures], ...]:
        """The signatures in every release up to the target, the oldest first."""
        target = self._api.target.version(self.name)
        found: list[tuple[Version, Signatures]] = []
        last: ApiEntry | None = None
        then: Signatures = ()
        for version, entry in self._surface.entries(self.name):
            if version > target:
                break
            if entry is not last:
                last, then = entry, signatures_of(entry)
            found.append((version, then))
        return tuple(found)

    @cached_property
    def _certain(self) -> tuple[tuple[Version, Signatures], ...]:
        """The part of the history in which names and order of the parameters are certain."""
        first = _CERTAIN_SINCE.get(self._surface.library, (0,))
        return tuple(item for item in self.history if item[0] >= first)

    @cached_property
    def is_member(self) -> bool:
        """Whether it belongs to a class, so that its first argument may be the object."""
        owner = self._surface.entry(self.name.rpartition(".")[0], self._api.target.version(self.name))
        return owner is None or owner.kind is not EntryKind.MODULE

    def dropped(self, keyword: str) -> Version | None:
        """The release since which it no longer takes a keyword; None: it never did."""
        return _last(self._certain, lambda one: named(one, keyword))

    def never_took(self, keyword: str) -> bool:
        """Whether no release takes a keyword, all of whose forms are known: neither by name nor by `**`."""
        every = [one for _, then in self.history for one in then]
        return not any(one.keywords is not None or keyword in one.by_name for one in every)

    def narrowed(self, count: int) -> Version | None:
        """The release since which it no longer takes so many positional arguments; None: it never did."""
        return _last(self._certain, lambda one: one.variadic is None and len(one.positional) >= count)

    def demanded(self, arguments: Sequence[Argument]) -> tuple[Version, tuple[str, ...]] | None:
        """The release since which this call lacks required arguments, and which ones.

        None: it lacks none, or no release ever took it. The arguments that became required are named where
        they are known: they may come before those that the call leaves out.
        """
        left_out = [lacking(one, arguments) for one in self.now]
        if not all(left_out):
            return None
        shortest = min((names for names in left_out if names), key=len)

        def took(one: Signature) -> bool:
            # What takes anything may still have looked for it.
            whole = one.variadic is None and one.keywords is None
            return lacking(one, arguments) == () and (whole or all(map(one.by_name.get, shortest)))

        since = _last(self._certain, took)
        if since is None:
            return None
        before = next(one for one in self.before(since) if took(one))
        new = [name for one in self.now for name in required(one) if name not in required(before)]
        return since, tuple(name for name in shortest if name in new) or tuple(dict.fromkeys(new)) or shortest

    def added(self, keyword: str) -> Version | None:
        """The first of the releases that take a keyword; None: it is not known.

        It is not known where the first one of all, or the first one with stubs, is among them: the docstrings
        from before leave forms out. Nor where a release between lacks it: then its stub does.
        """
        takes = [any(named(one, keyword) for one in then) for _, then in self._certain]
        if True not in takes or takes[0]:
            return None
        first = takes.index(True)
        return self._certain[first][0] if all(takes[first:]) else None

    def before(self, version: Version) -> Signatures:
        """The signatures in the release before this one."""
        found: Signatures = ()
        for release, then in self.history:
            if release == version:
                break
            found = then
        return found

    @cached_property
    def moves(self) -> tuple[Move, ...]:
        """The positions that mean something else at the target than in a release that is supported."""
        return tuple(self._find_moves()) if len(self.now) == 1 and self.most else ()

    def _find_moves(self) -> Iterator[Move]:
        api, history = self._api, self._certain
        (now,) = self.now
        floor = api.floor.version(self.name) if api.minimum and api.floor else (0,)
        oldest = max((version for version, _ in history if version <= floor), default=floor)
        for position, new in enumerate(now.positional):
            since: Version | None = None
            same: Signatures = ()
            for version, then in reversed(history):
                if version < oldest:
                    break
                if then is not same:
                    if len(then) != 1 or len(then[0].positional) <= position:
                        break
                    old = then[0].positional[position]
                    if old.name != new.name:
                        if since is not None and (old.name in now.by_name or new.name in then[0].by_name):
                            yield Move(position, old, new, since)
                        break  # else it is the same by another name
                    same = then
                since = version


def _last(history: Sequence[tuple[Version, Signatures]], fits: Callable[[Signature], bool]) -> Version | None:
    """The release since which no signature fits; None: none ever did."""
    since: Version | None = None
    for version, then in reversed(history):
        if any(map(fits, then)):
            return since
        since = version
    return None


def named(signature: Signature, name: str) -> bool:
    """Whether a parameter can be given by this keyword (and not by `**` alone)."""
    found = signature.by_name.get(name)
    return found is not None and found.kind in ("positional", "keyword-only")
