"""From places to a plan: what every release does, and which ones run the code as it stands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from torchmigrate.findings import Timeline
from torchmigrate.plan.model import Effect, Place, Plan, Row, Since
from torchmigrate.versions.releases import RELEASES, Version, parse_version, show_version, torch_release


def since(timeline: Timeline) -> Since:
    """A timeline, which counts in releases of its library, in releases of torch."""

    def torch(version: str | None) -> Version | None:
        return None if version is None else torch_release(timeline.library, parse_version(version))

    return Since(
        outdated=torch(timeline.outdated),
        warns=torch(timeline.deprecated),
        changes=torch(timeline.changed),
        breaks=torch(timeline.removed),
        needs=torch(timeline.added),
    )


def make_plan(
    project: str,
    places: Iterable[Place],
    *,
    target: Version,
    minimum: Version | None,
    files: int = 0,
    unread: int = 0,
) -> Plan:
    """The plan of a project for every release from its minimum to the target.

    Without a minimum it starts with the first release that has all that is used, or with the last one that
    does nothing to the code.
    """
    places = sorted(
        places, key=lambda each: (each.path, each.cell or 0, each.row, each.column, each.code, each.message)
    )
    releases = [release for release in RELEASES if release <= target]
    if not releases or releases[-1] != target:  # newer than those that are known, or older
        releases.append(target)
    first = _first(places, releases, minimum)
    rows = tuple(_row(places, release, releases) for release in releases if release >= first)
    return Plan(
        project, minimum, target, rows, _runs(places, releases, minimum), tuple(places), files, unread
    )


def _first(places: Sequence[Place], releases: Sequence[Version], minimum: Version | None) -> Version:
    """The release that a plan begins with."""
    if minimum is not None:
        return min(releases[-1], max(minimum, releases[0]))
    needs = [place.since.needs for place in places if place.since.needs is not None]
    if needs:
        return min(releases[-1], max(needs))
    known = [version for place in places for version in place.since.known if version <= releases[-1]]
    return _before(min(known, default=releases[-1]), releases) or releases[0]


def _before(version: Version, releases: Sequence[Version]) -> Version | None:
    """The last release before a version; None: it is the first one, or older."""
    return max((release for release in releases if release < version), default=None)


def _row(places: Sequence[Place], release: Version, releases: Sequence[Version]) -> Row:
    row = Row(release, lacking=sum(place.since.lacks(release) for place in places))
    before = _before(release, releases)
    for place in places:
        effect = place.since.effect(release)
        if effect is None or effect is Effect.OUTDATED:
            continue
        row.effects[effect].add(place.effort_in(release))
        # What holds in the first of all releases begins there or earlier, which is all the same.
        if before is None or place.since.effect(before) is not effect:
            row.begins[effect].add(place.effort_in(release))
    return row


def _runs(
    places: Sequence[Place], releases: Sequence[Version], minimum: Version | None
) -> tuple[Version | None, Version] | None:
    needs = [place.since.needs for place in places if place.since.needs is not None]
    breaks = [place.since.breaks for place in places if place.since.breaks is not None]
    high = releases[-1] if not breaks else _last_below(min(breaks), releases)
    low = max([*needs, *([] if minimum is None else [minimum])], default=None)
    if high is None or (needs and max(needs) > high):
        return None
    return (low if low is None or low <= high else None), high


def _last_below(version: Version, releases: Sequence[Version]) -> Version | None:
    return releases[-1] if version > releases[-1] else _before(version, releases)


def headline(plan: Plan) -> str:
    """What matters most, in a sentence or two: "Runs on torch 1.8 to 1.13 as it stands; ..."."""
    if not plan.unread:
        return _headline(plan)
    files = "1 file" if plan.unread == 1 else f"{plan.unread} files"
    return f"{_headline(plan)} {files} could not be read and may change this."


def _headline(plan: Plan) -> str:
    target, first = show_version(plan.target), show_version(plan.first)
    if plan.runs is None:
        return f"Runs on no release of torch up to {target} as it stands: {_why_not(plan)}."
    low, high = plan.runs
    if high < plan.first:
        gone = plan.rows[0].effects[Effect.BREAKS].places
        return (
            f"Does not run on torch {first} as it stands: {_count(gone, 'breaks', 'break')} there."
            f" The newest that it runs on is {show_version(high)}."
        )
    if low is None:
        text = f"Runs up to torch {show_version(high)} as it stands (minimum unknown)"
    elif low == high:
        text = f"Runs on torch {show_version(high)} only as it stands"
    else:
        text = f"Runs on torch {show_version(low)} to {show_version(high)} as it stands"
    reasons = []
    if plan.lacking and low is not None:
        reasons.append(f"{_count(len(plan.lacking), 'needs', 'need')} a newer one than {first}")
    if high < plan.target:
        row = next(row for row in plan.rows if row.release > high)
        broken = row.effects[Effect.BREAKS].places
        reasons.append(f"torch {show_version(row.release)} breaks {_places(broken)}")
        more = plan.last.effects[Effect.BREAKS].places - broken
        if more:
            reasons.append(f"up to {target} it is {broken + more}")
    else:
        warns, changes = (plan.last.effects[effect].places for effect in (Effect.WARNS, Effect.CHANGES))
        if warns:
            reasons.append(f"{_count(warns, 'warns', 'warn')} on {target}")
        if changes:
            reasons.append(f"{_count(changes, 'changes its results', 'change their results')}")
    return "; ".join([text, *reasons]) + "."


def _why_not(plan: Plan) -> str:
    breaks = [place.since.breaks for place in plan.places if place.since.breaks is not None]
    needs = [place.since.needs for place in plan.places if place.since.needs is not None]
    parts = []
    if needs:
        newest = max(needs)
        count = sum(place.since.needs == newest for place in plan.places)
        parts.append(f"{_count(count, 'needs', 'need')} torch {show_version(newest)} or newer")
    if breaks:
        oldest = min(breaks)
        count = sum(place.since.breaks is not None and place.since.breaks <= oldest for place in plan.places)
        parts.append(f"{_count(count, 'breaks', 'break')} from {show_version(oldest)} on")
    return " and ".join(parts)


def _places(number: int) -> str:
    return "1 place" if number == 1 else f"{number} places"


def _count(number: int, one: str, more: str) -> str:
    """A number of places with what they do."""
    return f"{_places(number)} {one if number == 1 else more}"
