"""From places to a plan: what every release does, and which ones run the unchanged code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from torchmigrate.evidence.evidence import Warned
from torchmigrate.findings import Timeline
from torchmigrate.planning.model import Effect, Place, Plan, Row, Since, Unimportable, Unread
from torchmigrate.planning.reach import Reach
from torchmigrate.report.summary import plural
from torchmigrate.versions.releases import RELEASES, Version, parse_version, show_version, torch_release

_NAME_ERRORS = ("ImportError", "ModuleNotFoundError", "AttributeError")
_CALL_ERRORS = ("TypeError",)


class Nature(Struct, frozen=True):
    """What decides how something that is removed or changed shows.

    raises: what the rule says, see `Rule.raises`. guess: whether it is one that the place is affected.
    missing: whether a name is not there any more, so that to evaluate it is enough. reach: when it runs.
    """

    raises: str | None = None
    guess: bool = False
    missing: bool = True
    reach: Reach = Reach()


_USUAL = Nature()


def since(timeline: Timeline, nature: Nature = _USUAL) -> Since:
    """From when on a place has which effect, in releases of torch."""

    def torch(version: str | None) -> Version | None:
        return None if version is None else torch_release(timeline.library, parse_version(version))

    found: dict[str, Version | None] = {
        "outdated": torch(timeline.outdated),
        "warns": torch(timeline.deprecated),
        "needs": torch(timeline.added),
        "pinned": torch(timeline.excluded),
    }
    removed, changed = torch(timeline.removed), torch(timeline.changed)
    says = nature.raises if timeline.removed is not None else None
    _put(found, _of_removed(says or "always", nature), removed)
    says = nature.raises if timeline.removed is None else None
    warns = found["warns"]
    if changed is not None and not (says is None and warns is not None and warns >= changed):
        # What warns as soon as it has changed does not change silently.
        _put(found, _of_changed(says or "never", nature, found), changed)
    return Since(**found)


def _put(found: dict[str, Version | None], effect: Effect, version: Version | None) -> None:
    before = found.get(effect.label)
    if version is not None and (before is None or version < before):
        found[effect.label] = version


def _of_removed(raises: str, nature: Nature) -> Effect:
    reach = nature.reach
    if reach.never:
        return Effect.OUTDATED
    if raises == "never":
        return Effect.CHANGES
    if raises == "sometimes":
        return Effect.MAY_RAISE
    if reach.catches(*(_NAME_ERRORS if nature.missing else _CALL_ERRORS)):
        return Effect.CHANGES  # the other branch is taken
    runs = nature.missing or reach.is_called
    return Effect.BREAKS_ON_IMPORT if reach.on_import and runs else Effect.RAISES


def _of_changed(raises: str, nature: Nature, found: dict[str, Version | None]) -> Effect:
    if nature.guess:
        return Effect.MAY_DIFFER
    if raises != "never":
        return _of_removed(raises, replace(nature, missing=False))
    # A class that is not computed gives the same as before.
    idle = nature.reach.is_name and found["outdated"] is not None
    return Effect.OUTDATED if idle or nature.reach.never else Effect.CHANGES


def make_plan(
    project: str,
    places: Iterable[Place],
    *,
    target: Version,
    minimum: Version | None,
    files: int = 0,
    concerned: int | None = None,
    unread: Iterable[Unread] = (),
    unimportable: Iterable[Unimportable] = (),
    warned: Iterable[Warned] = (),
) -> Plan:
    """The plan of a project for every release from its minimum to the target.

    Without a minimum it starts with the first release that has all that is used, or with the last one that
    does nothing to the code. concerned: as in `Plan`; None: all files.
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
        project,
        minimum,
        target,
        rows,
        _runs(places, releases, minimum),
        tuple(places),
        files,
        files if concerned is None else concerned,
        tuple(unread),
        tuple(unimportable),
        tuple(sorted(warned)),
    )


def _first(places: Sequence[Place], releases: Sequence[Version], minimum: Version | None) -> Version:
    """The release that a plan begins with."""
    if minimum is not None:
        return min(releases[-1], max(minimum, releases[0]))
    needs = [place.since.needs for place in places if place.since.needs is not None]
    if needs:
        return min(releases[-1], max(needs))
    judged = [place for place in places if place.since.may_differ is None and place.since.pinned is None]
    known = [version for place in judged for version in place.since.known if version <= releases[-1]]
    return _before(min(known, default=releases[-1]), releases) or releases[0]


def _before(version: Version, releases: Sequence[Version]) -> Version | None:
    """The last release before a version; None: it is the first one, or older."""
    return max((release for release in releases if release < version), default=None)


def _row(places: Sequence[Place], release: Version, releases: Sequence[Version]) -> Row:
    row = Row(
        release,
        lacking=sum(place.since.lacks(release) for place in places),
        may_differ=sum(place.since.effect(release) is Effect.MAY_DIFFER for place in places),
        pinned=sum(place.since.effect(release) is Effect.PINNED for place in places),
    )
    before = _before(release, releases)
    for place in places:
        effect = place.since.effect(release)
        if effect is None or effect not in row.effects:
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
    """What matters most, in a sentence or two: "Works unchanged on torch 1.8 to 1.13 ...".

    It makes no statement about the project if an unread file may decide it.
    """
    unread = [each for each in plan.unread if each.matters]
    if not plan.concerned:
        text = "Nothing was checked: no file under the given paths could be read."
        if plan.files:
            none = "The only file that was read does not mention" if plan.files == 1 else ""
            none = none or f"None of the {plan.files} files that were read mentions"
            text = f"{none} torch or its companions."
    else:
        text = _headline(plan)
    if not unread:
        return text
    kinds = _listed([f"{each.count} {each.kind}" for each in unread])
    were = "was" if len(unread) == 1 and unread[0].count == 1 else "were"
    return f"{text} It is unknown whether the project runs: {kinds} {were} not read."


def _listed(words: Sequence[str]) -> str:
    """ "a, b and c"."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _headline(plan: Plan) -> str:
    target, first = show_version(plan.target), show_version(plan.first)
    if plan.runs is None:
        files = "this file unchanged" if plan.concerned == 1 else f"these {plan.concerned} files unchanged"
        known = f"from {show_version(RELEASES[0])} to {target}"  # older ones may run it
        return f"No release of torch {known} runs {files}: {_why_not(plan)}."
    low, high = plan.runs
    if high < plan.first:
        gone = plan.rows[0].broken
        return (
            f"{_claim(plan, first, runs=False)}: {_count(gone, 'breaks', 'break')} there. The newest "
            f"release on which nothing breaks is {show_version(high)}."
        )
    if low is None:
        text = _claim(plan, f"up to torch {show_version(high)}")
    elif low == high:
        text = _claim(plan, f"torch {show_version(high)} only")
    else:
        text = _claim(plan, f"torch {show_version(low)} to {show_version(high)}")
    reasons = []
    if plan.lacking and low is not None:
        reasons.append(f"{_count(len(plan.lacking), 'needs', 'need')} a newer release than {first}")
    if high < plan.target:
        row = next(row for row in plan.rows if row.release > high)
        reasons.append(f"torch {show_version(row.release)} breaks {_broken(row)}")
        if plan.last.broken > row.broken:
            reasons.append(f"{target} breaks {plan.last.broken}")
    for effect, one, more in (
        (Effect.MAY_RAISE, "may raise", "may raise"),
        (Effect.CHANGES, "silently changes its results", "silently change their results"),
        (Effect.WARNS, "warns", "warn"),
    ):
        number = plan.last.effects[effect].places
        if number and (high == plan.target or effect is not Effect.WARNS):
            reasons.append(f"{_count(number, one, more)} on {target}")
    return "; ".join([text, *reasons]) + "."


def _claim(plan: Plan, releases: str, *, runs: bool = True) -> str:
    """Where the code runs, and what that rests on."""
    files = plural(plan.concerned, "file")
    unknown = ", with no known minimum" if plan.minimum is None and releases.startswith("up to") else ""
    if not plan.is_whole:
        if not runs:
            return f"Of {files}, not all work unchanged on torch {releases}"
        where = releases if releases.startswith("up to") else f"on {releases}"
        return f"Nothing breaks {where} in {files}{unknown}"
    if not runs:
        return f"Does not work unchanged on torch {releases}"
    where = releases if releases.startswith("up to") else f"on {releases}"
    return f"Works unchanged {where} (based on {files}){unknown}"


def _broken(row: Row) -> str:
    """ "3 places, 1 of them on import"."""
    imports = row.effects[Effect.BREAKS_ON_IMPORT].places
    if not imports:
        return _places(row.broken)
    if imports == row.broken:
        return f"{_places(row.broken)} on import"
    return f"{_places(row.broken)}, {imports} of them on import"


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
