"""How a function can be called at the target, and could be called in earlier releases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from torchmigrate.api_rules.api import Api, Signatures, Version, signatures
from torchmigrate.match.signature import Parameter, Signature
from torchmigrate.versions.surface import Surface
from torchmigrate.versions.surface_model import EntryKind


@dataclass(frozen=True, slots=True)
class Move:
    """Since a release, the argument at a position is for another parameter than before."""

    position: int
    old: Parameter
    new: Parameter
    since: Version


class Function:
    """A function, or a class as what makes its objects, of which all signatures at the target are known.

    now: these. keywords: every name in them; takes_any: `**kwargs` is one of them. most: how many arguments
    without a keyword it takes, None: any number.
    """

    def __init__(self, name: str, now: Signatures, surface: Surface, api: Api) -> None:
        self.name = name
        self.now = now
        self.keywords = frozenset(name for one in now for name in one.by_name)
        self.takes_any = any(one.keywords is not None for one in now)
        endless = any(one.variadic is not None for one in now)
        self.most = None if endless else max(len(one.positional) for one in now)
        self._surface = surface
        self._api = api

    @cached_property
    def history(self) -> tuple[tuple[Version, Signatures], ...]:
        """The signatures in every release up to the target, the oldest first."""
        target = self._api.target.version(self.name)
        return tuple(
            (version, signatures(self._surface, self.name, version))
            for version in self._surface.versions
            if version <= target
        )

    @cached_property
    def is_member(self) -> bool:
        """Whether it belongs to a class, so that its first argument may be the object."""
        owner = self._surface.entry(self.name.rpartition(".")[0], self._api.target.version(self.name))
        return owner is None or owner.kind is not EntryKind.MODULE

    def dropped(self, keyword: str) -> Version | None:
        """The release since which it no longer takes a keyword; None: it never did."""
        return self._last(lambda one: named(one, keyword))

    def narrowed(self, count: int) -> Version | None:
        """The release since which it no longer takes so many positional arguments; None: it never did."""
        return self._last(lambda one: one.variadic is None and len(one.positional) >= count)

    def added(self, keyword: str) -> Version | None:
        """The first of the releases, up to the target without a gap, that take a keyword."""
        since: Version | None = None
        for version, then in reversed(self.history):
            if not any(named(one, keyword) for one in then):
                break
            since = version
        return since

    def before(self, version: Version) -> Signatures:
        """The signatures in the release before this one."""
        found: Signatures = ()
        for release, then in self.history:
            if release == version:
                break
            found = then
        return found

    def _last(self, fits: Callable[[Signature], bool]) -> Version | None:
        since: Version | None = None
        for version, then in reversed(self.history):
            if any(map(fits, then)):
                return since
            since = version
        return None

    @cached_property
    def moves(self) -> tuple[Move, ...]:
        """The positions that mean something else at the target than in a release that is supported."""
        return tuple(self._find_moves()) if len(self.now) == 1 and self.most else ()

    def _find_moves(self) -> Iterator[Move]:
        api, history = self._api, self.history
        (now,) = self.now
        floor = api.floor.version(self.name) if api.minimum and api.floor else (0,)
        oldest = max((version for version, _ in history if version <= floor), default=floor)
        for position, new in enumerate(now.positional):
            since: Version | None = None
            for version, then in reversed(history):
                if version < oldest or len(then) != 1 or len(then[0].positional) <= position:
                    break
                old = then[0].positional[position]
                if old.name != new.name:
                    if since is not None and (old.name in now.by_name or new.name in then[0].by_name):
                        yield Move(position, old, new, since)
                    break  # else it is the same by another name
                since = version


def named(signature: Signature, name: str) -> bool:
    """Whether a parameter can be given by this keyword (and not by `**` alone)."""
    found = signature.by_name.get(name)
    return found is not None and found.kind in ("positional", "keyword-only")
