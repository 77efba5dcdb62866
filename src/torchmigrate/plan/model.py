"""The nouns of an upgrade plan. Versions are releases of torch, such as (2, 6)."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from torchmigrate.findings import Severity
from torchmigrate.versions.releases import Version


class Effect(enum.IntEnum):
    """What a release does to a place, mildest first."""

    OUTDATED = 1  # works without a warning; there is a newer way
    WARNS = 2
    CHANGES = 3  # other results or another default, without a word
    BREAKS = 4

    @property
    def label(self) -> str:
        return self.name.lower()

    @property
    def severity(self) -> Severity:
        """The severity of findings with this effect."""
        return Severity.ERROR if self is Effect.BREAKS else Severity(min(self.value, Severity.WARNING))


# Those that the releases are judged by, worst first. What is only outdated needs no upgrade.
EFFECTS = (Effect.BREAKS, Effect.CHANGES, Effect.WARNS)


class Effort(enum.Enum):
    """What it takes to mend a place, least first."""

    SAFE = "safe fix"
    UNSAFE = "unsafe fix"
    BY_HAND = "by hand"


@dataclass(frozen=True, slots=True)
class Since:
    """From which release on a place is affected; None: from none that is known.

    needs: the first release that has what is used there, where that is newer than the project's minimum.
    """

    outdated: Version | None = None
    warns: Version | None = None
    changes: Version | None = None
    breaks: Version | None = None
    needs: Version | None = None

    def effect(self, release: Version) -> Effect | None:
        """The worst that happens there in a release; None: nothing."""
        if self.breaks is not None and self.breaks <= release:
            return Effect.BREAKS
        if self.changes is not None and self.changes <= release:
            return Effect.CHANGES
        outdated = self.outdated if self.outdated is not None and self.outdated <= release else None
        if self.warns is not None and self.warns <= release:
            # What is outdated in a later release than it was deprecated in has ceased to warn.
            return Effect.OUTDATED if outdated is not None and outdated > self.warns else Effect.WARNS
        return None if outdated is None else Effect.OUTDATED

    def of(self, effect: Effect) -> Version | None:
        """The first release with an effect."""
        since: Version | None = getattr(self, effect.label)
        return since

    def lacks(self, release: Version) -> bool:
        """Whether a release does not have yet what is used there."""
        return self.needs is not None and release < self.needs

    @property
    def known(self) -> list[Version]:
        """All releases that are named, oldest first."""
        every = (self.outdated, self.warns, self.changes, self.breaks, self.needs)
        return sorted(version for version in every if version is not None)


@dataclass(frozen=True, slots=True)
class Line:
    """A line of source, and which part of it is meant; the three parts together are what is shown."""

    number: int
    before: str
    marked: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """One place in the project that a release does something to, or did not know yet.

    path: as messages show it. file: relative to the project's root, `/` between its parts, for links.
    cell: of a notebook, 1-based. row, column: of its first character, in the cell if there is one, 1-based,
    in characters. line: of the file, where that is not the row.
    fix_needs: the first release in which the fixed code works, if it does not in every one.
    held_by_minimum: the fix would be safe if the project's minimum had the new code.
    """

    path: str
    file: str
    row: int
    column: int
    code: str
    name: str
    message: str
    since: Since
    effort: Effort = Effort.BY_HAND
    fix: str | None = None  # what the fix does
    fix_needs: Version | None = None
    held_by_minimum: bool = False
    reason: str | None = None  # why the fix is not safe
    help: str | None = None
    url: str | None = None
    symbol: str | None = None
    excerpt: tuple[Line, ...] = ()
    cell: int | None = None
    line: int | None = None

    @property
    def within(self) -> str:
        """What the row is counted in: the file, or the cell."""
        return self.path if self.cell is None else f"{self.path}:cell {self.cell}"

    def effort_in(self, release: Version) -> Effort:
        """What it takes to mend the place for a release."""
        if self.fix_needs is not None and release < self.fix_needs:
            return Effort.BY_HAND
        return self.effort


@dataclass(slots=True)
class Tally:
    """How many places, by effort."""

    safe: int = 0
    unsafe: int = 0
    by_hand: int = 0

    @property
    def places(self) -> int:
        return self.safe + self.unsafe + self.by_hand

    def add(self, effort: Effort) -> None:
        name = effort.name.lower()
        setattr(self, name, getattr(self, name) + 1)

    def of(self, effort: Effort) -> int:
        """How many of this effort."""
        number: int = getattr(self, effort.name.lower())
        return number


def _tallies() -> dict[Effect, Tally]:
    return {effect: Tally() for effect in EFFECTS}


@dataclass(frozen=True, slots=True)
class Row:
    """What one release does.

    effects: to all places, those that older releases affected included. begins: to places with which an
    older release did something else, or nothing. lacking: how many places need a newer release.
    """

    release: Version
    effects: Mapping[Effect, Tally] = field(default_factory=_tallies)
    begins: Mapping[Effect, Tally] = field(default_factory=_tallies)
    lacking: int = 0

    @property
    def runs(self) -> bool:
        """Whether the code runs there as it stands, as far as is known."""
        return not self.lacking and not self.effects[Effect.BREAKS].places

    @property
    def places(self) -> int:
        """How many places there are to look at."""
        return sum(tally.places for tally in self.effects.values())

    def of(self, effort: Effort) -> int:
        """How many of them take this effort."""
        return sum(tally.of(effort) for tally in self.effects.values())


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of one project.

    minimum: the oldest release that the project supports; None: unknown. rows: one for every release
    from `first` to `target`. runs: the first and last release that run the code as it stands, the first
    one None if only the last is known; None: no release does.
    places: in order of path and place.
    """

    project: str
    minimum: Version | None
    target: Version
    rows: tuple[Row, ...]
    runs: tuple[Version | None, Version] | None
    places: tuple[Place, ...]
    files: int = 0  # that were looked at
    unread: int = 0  # of these, files that could not be checked

    @property
    def first(self) -> Version:
        return self.rows[0].release

    @property
    def last(self) -> Row:
        """The row of the target."""
        return self.rows[-1]

    def affected(self, effect: Effect) -> list[Place]:
        """The places with this effect at the target."""
        return [place for place in self.places if place.since.effect(self.target) is effect]

    @property
    def lacking(self) -> list[Place]:
        """The places that need something that not every release of the plan has."""
        return [place for place in self.places if place.since.lacks(self.first)]

    @property
    def needing(self) -> list[Place]:
        """The places for which the code needs the first release that runs it, or a newer minimum."""
        if self.minimum is not None:
            return self.lacking
        return [place for place in self.places if place.since.needs and place.since.needs >= self.first]

    @property
    def listed(self) -> list[Place]:
        """The places that one of the releases affects, and those that need something newer."""
        needing = {id(place) for place in self.needing}
        return [
            place
            for place in self.places
            if place.since.effect(self.target) is not None or id(place) in needing
        ]
