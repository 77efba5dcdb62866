"""The nouns of an upgrade plan. Versions are releases of torch, such as (2, 6)."""

from __future__ import annotations

import enum
from collections.abc import Mapping

from msgspec import Struct, field

from torchmigrate.evidence.evidence import Warned
from torchmigrate.findings import Severity
from torchmigrate.versions.releases import Version, show_version


class Effect(enum.IntEnum):
    """What a release does to a place, mildest first."""

    OUTDATED = 1  # works without a warning; there is a newer way
    PINNED = 2  # what the project asks for keeps the release from being installed
    MAY_DIFFER = 3  # a default or a result changed; whether this code depends on it is a guess
    WARNS = 4
    CHANGES = 5  # other results or another default, without a warning
    MAY_RAISE = 6  # for some inputs, or where something else is missing
    RAISES = 7  # when it is reached
    BREAKS_ON_IMPORT = 8  # the import of the module raises

    @property
    def label(self) -> str:
        return self.name.lower()

    @property
    def words(self) -> str:
        """ "Breaks on import": how all formats call it."""
        return _WORDS[self]

    @property
    def severity(self) -> Severity:
        """The severity of findings with this effect."""
        if self >= Effect.RAISES:
            return Severity.ERROR
        return Severity.WARNING if self >= Effect.WARNS else Severity.INFO


_WORDS = {
    Effect.BREAKS_ON_IMPORT: "Breaks on import",
    Effect.RAISES: "Raises when reached",
    Effect.MAY_RAISE: "May raise",
    Effect.CHANGES: "Changes results silently",
    Effect.WARNS: "Warns",
    Effect.MAY_DIFFER: "May behave differently",
    Effect.PINNED: "Pinned",
    Effect.OUTDATED: "Outdated",
}
MOST_ROWS = 10  # of one decision are named
# Those that the releases are judged by, worst first. What is only outdated needs no upgrade; what may behave
# differently and pins, which are not code, are counted apart.
EFFECTS = (Effect.BREAKS_ON_IMPORT, Effect.RAISES, Effect.MAY_RAISE, Effect.CHANGES, Effect.WARNS)
BREAKING = (Effect.BREAKS_ON_IMPORT, Effect.RAISES)
WORST_FIRST = tuple(sorted(Effect, reverse=True))


class Effort(enum.Enum):
    """What it takes to mend a place, least first."""

    SAFE = "safe fix"
    UNSAFE = "unsafe fix"
    BY_HAND = "by hand"


class Since(Struct, frozen=True):
    """From which release on a place has each effect; None: from none that is known.

    needs: the first release that has what is used there, where that is newer than the project's minimum.
    """

    outdated: Version | None = None
    may_differ: Version | None = None
    warns: Version | None = None
    changes: Version | None = None
    may_raise: Version | None = None
    raises: Version | None = None
    breaks_on_import: Version | None = None
    needs: Version | None = None
    pinned: Version | None = None

    def effect(self, release: Version) -> Effect | None:
        """The worst that happens there in a release; None: nothing."""
        for effect in WORST_FIRST:
            since = self.of(effect)
            if since is None or since > release:
                continue
            if effect is Effect.WARNS and self.outdated is not None and since < self.outdated <= release:
                continue  # what is outdated in a later release than it was deprecated in has ceased to warn
            return effect
        return None

    def of(self, effect: Effect) -> Version | None:
        """The first release with an effect."""
        since: Version | None = getattr(self, effect.label)
        return since

    @property
    def breaks(self) -> Version | None:
        """The first release that does not run the current code."""
        return min((since for since in map(self.of, BREAKING) if since is not None), default=None)

    def lacks(self, release: Version) -> bool:
        """Whether a release does not have yet what is used there."""
        return self.needs is not None and release < self.needs

    @property
    def known(self) -> list[Version]:
        """All releases that are named, oldest first."""
        every = (*map(self.of, Effect), self.needs)
        return sorted(version for version in every if version is not None)

    def joined(self, other: Since) -> Since:
        """What holds for two places that are one decision."""

        def first(one: Version | None, two: Version | None) -> Version | None:
            return min((each for each in (one, two) if each is not None), default=None)

        needs = max((each for each in (self.needs, other.needs) if each is not None), default=None)
        return Since(**{each.label: first(self.of(each), other.of(each)) for each in Effect}, needs=needs)


class Line(Struct, frozen=True):
    """A line of source, and which part of it is meant; the three parts together are what is shown."""

    number: int
    before: str
    marked: str = ""
    after: str = ""


class Place(Struct, frozen=True):
    """One place in the project that a release does something to, or did not know yet.

    A place is a decision: lines that one fix mends, or that are only changed together, are one place.

    path: as messages show it. file: relative to the project's root, `/` between its parts, for links.
    cell: of a notebook, 1-based. row, column: of its first character, in the cell if there is one, 1-based,
    in characters. line: of the file, where that is not the row.
    fix_needs: the first release in which the fixed code works, if it does not in every one.
    held_by_minimum: the fix would be safe if the project's minimum had the new code.
    rows: of the other lines of the same decision.
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
    rows: tuple[int, ...] = ()

    @property
    def also(self) -> str:
        """The lines of the rest of the decision, in words; empty if there are none."""
        if not self.rows:
            return ""
        shown = ", ".join(map(str, self.rows[:MOST_ROWS]))
        more = f" and {len(self.rows) - MOST_ROWS} more" if len(self.rows) > MOST_ROWS else ""
        return f"also in line{'s' if len(self.rows) > 1 else ''} {shown}{more}"

    @property
    def within(self) -> str:
        """What the row is counted in: the file, or the cell."""
        return self.path if self.cell is None else f"{self.path}:cell {self.cell}"

    def effort_in(self, release: Version) -> Effort:
        """What it takes to mend the place for a release."""
        if self.fix_needs is not None and release < self.fix_needs:
            return Effort.BY_HAND
        return self.effort


class Tally(Struct):
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


class Row(Struct, frozen=True):
    """What one release does.

    effects: to all places, those that older releases affected included. begins: to places with which an
    older release did something else, or nothing. lacking: how many places need a newer release.
    pinned: how many keep it from being installed.
    """

    release: Version
    effects: Mapping[Effect, Tally] = field(default_factory=_tallies)
    begins: Mapping[Effect, Tally] = field(default_factory=_tallies)
    lacking: int = 0
    may_differ: int = 0
    pinned: int = 0

    @property
    def runs(self) -> bool:
        """Whether the unchanged code runs there, if known."""
        return not self.lacking and not self.broken

    @property
    def broken(self) -> int:
        """How many places the release does not run."""
        return sum(self.effects[effect].places for effect in BREAKING)

    @property
    def places(self) -> int:
        """How many places there are to look at."""
        return sum(tally.places for tally in self.effects.values())

    def of(self, effort: Effort) -> int:
        """How many of them take this effort."""
        return sum(tally.of(effort) for tally in self.effects.values())

    def is_like(self, before: Row) -> bool:
        """Whether this release has the same entries as another one before it."""
        fresh = any(tally.places for tally in self.begins.values())
        return self.effects == before.effects and self.lacking == before.lacking and not fresh


class Span(Struct, frozen=True):
    """Releases with equal entries: from the release of `row`, the first, to `last`.

    index: of the first of them among the rows of the plan. size: how many they are.
    """

    row: Row
    last: Version
    index: int
    size: int

    @property
    def shown(self) -> str:
        """ "2.0 to 2.5"."""
        first = show_version(self.row.release)
        return first if self.size == 1 else f"{first} to {show_version(self.last)}"


class Unread(Struct, frozen=True):
    """Files of one kind that were not read.

    kind: "notebooks", "C++ and CUDA", ... why: in a few words. examples: the first paths, as messages have
    them. matters: whether what they hold decides if the project runs.
    """

    kind: str
    count: int
    why: str
    examples: tuple[str, ...] = ()
    matters: bool = True

    @property
    def text(self) -> str:
        """ "3 notebooks (not read by this command)"."""
        return f"{self.count} {self.kind} ({self.why})"


class Unimportable(Struct, frozen=True):
    """A file that cannot be imported from some release on.

    through: the file that breaks, where it is another one, which this one imports. Both are as messages
    have them.
    """

    path: str
    since: Version
    through: str | None = None


class Plan(Struct, frozen=True):
    """The plan of one project.

    minimum: the oldest release that the project supports; None: unknown. rows: one for every release
    from `first` to `target`. runs: the first and last release that run the unchanged code, the first
    one None if only the last is known; None: no release does.
    places: in order of path and place.
    files: that were looked at; concerned: those of them that mention one of the libraries.
    unimportable: the files that cannot be imported on the target, as far as that is sure.
    warned: where torch was seen to warn that something changes, and no finding says what.
    """

    project: str
    minimum: Version | None
    target: Version
    rows: tuple[Row, ...]
    runs: tuple[Version | None, Version] | None
    places: tuple[Place, ...]
    files: int = 0
    concerned: int = 0
    unread: tuple[Unread, ...] = ()
    unimportable: tuple[Unimportable, ...] = ()
    warned: tuple[Warned, ...] = ()

    @property
    def first(self) -> Version:
        return self.rows[0].release

    @property
    def last(self) -> Row:
        """The row of the target."""
        return self.rows[-1]

    @property
    def spans(self) -> list[Span]:
        """The rows, those that say the same as one."""
        spans: list[Span] = []
        for index, row in enumerate(self.rows):
            if spans and row.is_like(spans[-1].row):
                before = spans.pop()
                spans.append(Span(before.row, row.release, before.index, before.size + 1))
            else:
                spans.append(Span(row, row.release, index, 1))
        return spans

    @property
    def is_whole(self) -> bool:
        """Whether all was read that decides if the project runs."""
        return not any(each.matters for each in self.unread)

    def affected(self, effect: Effect) -> list[Place]:
        """The places with this effect at the target."""
        return [place for place in self.places if place.since.effect(self.target) is effect]

    @property
    def by_hand(self) -> list[Place]:
        """The places that no fix mends, the worst first: what the upgrade costs."""
        left = [
            place
            for place in self.places
            if place.since.effect(self.target) in EFFECTS and place.effort_in(self.target) is Effort.BY_HAND
        ]
        return sorted(left, key=lambda place: EFFECTS.index(place.since.effect(self.target)))

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
