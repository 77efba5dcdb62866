"""The map of what each release does to each repository: releases that do the same are one cell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from msgspec import Struct
from msgspec.structs import replace

from torchmigrate.fleet.model import Record
from torchmigrate.versions.releases import RELEASES, parse_version, show_version


class Kind(Struct, frozen=True):
    """What a release does.

    column: of the table `releases`. letter: in a cell. one, many: after "1" and after another number.
    about: in the legend.
    """

    column: str
    letter: str
    one: str
    many: str
    about: str


# Worst first. The CSS class of each is its column.
KINDS = (
    Kind("breaks_on_import", "B", "breaks on import", "break on import", "Breaks on import"),
    Kind("raises", "R", "raises", "raise", "Raises when reached"),
    Kind("needs_newer", "N", "needs a newer release", "need a newer release", "Needs a newer release"),
    Kind("may_raise", "M", "may raise", "may raise", "May raise"),
    Kind("changes", "C", "changes results", "change results", "Changes results silently"),
    Kind("warns", "W", "warns", "warn", "Warns"),
    Kind("may_differ", "D", "may differ", "may differ", "May behave differently"),
    Kind("pinned", "P", "pins an older release", "pin an older release", "Pinned to older releases"),
)
FINE = "fine"  # the class of a release that does nothing to a repository
UNSEEN = "unseen-release"  # the class of a release that was not looked at


class Cell(Struct, frozen=True):
    """The worst that releases in a row do.

    kind: a CSS class. places: how many places it concerns. text: the visible text. words: the same in
    words, such as "2 raise". size: how many releases these are.
    """

    kind: str
    places: int
    text: str
    words: str
    size: int = 1

    @property
    def rank(self) -> int:
        """0 for the worst kind."""
        return next((index for index, kind in enumerate(KINDS) if kind.column == self.kind), len(KINDS))


def worst(row: Record | None) -> Cell:
    """The worst effect in a row of `releases`; None: there is no such row."""
    if row is None:
        return Cell(UNSEEN, 0, "", "not looked at")
    for kind in KINDS:
        places = row.get(kind.column) or 0
        if places:
            words = f"{places:,} {kind.one if places == 1 else kind.many}"
            return Cell(kind.column, places, f"{kind.letter}{places}", words)
    return Cell(FINE, 0, "", "runs")


def cells(rows: Mapping[str, Record], releases: Sequence[str]) -> list[Cell]:
    """The cells of a repository, for its rows by release."""
    found = (worst(rows.get(release)) for release in releases)
    return [replace(cell, size=len(list(same))) for cell, same in groupby(found)]


def axis(named: Iterable[str]) -> list[str]:
    """All releases from the oldest to the newest of those that are named, in order."""
    versions = {parse_version(each) for each in named}
    if versions:
        versions |= {each for each in RELEASES if min(versions) <= each <= max(versions)}
    return [show_version(each) for each in sorted(versions)]
