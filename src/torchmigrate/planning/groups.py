"""Places by rule and by file, and the sentences about them that every format has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from torchmigrate.planning.model import EFFECTS, Effect, Effort, Place, Plan, Row, Tally
from torchmigrate.report.summary import plural
from torchmigrate.versions.releases import show_version

MOST_NAMED = 5  # files through which others cannot be imported


class RuleGroup(Struct, frozen=True):
    """The places that one rule found, in order."""

    code: str
    name: str
    places: list[Place]

    def since(self, effect: Effect) -> str:
        """ " (since 2.0)", where that is the same for all places."""
        found = {place.since.of(effect) for place in self.places}
        release = found.pop()
        return f" (since {show_version(release)})" if not found and release is not None else ""


def by_rule(places: Iterable[Place]) -> list[RuleGroup]:
    """Places by rule, in order of code."""
    groups: dict[str, RuleGroup] = {}
    for place in places:
        groups.setdefault(place.code, RuleGroup(place.code, place.name, [])).places.append(place)
    return [groups[code] for code in sorted(groups)]


def by_file(plan: Plan) -> list[tuple[str, list[int]]]:
    """For each file with something to do for the target: its places by effect, then by effort."""
    columns = (*EFFECTS, *Effort)
    found: dict[str, list[int]] = {}
    for place in plan.places:
        effect = place.since.effect(plan.target)
        if effect in EFFECTS:
            numbers = found.setdefault(place.path, [0] * len(columns))
            numbers[columns.index(effect)] += 1
            numbers[columns.index(place.effort_in(plan.target))] += 1
    return sorted(found.items())


def efforts_line(counted: Tally | Row) -> str:
    """ "3 safe fixes, 1 unsafe fix, 2 by hand"; only what there is."""
    return ", ".join(_effort(counted.of(effort), effort) for effort in Effort if counted.of(effort))


def _effort(number: int, effort: Effort) -> str:
    return f"{number} {effort.value}" if effort is Effort.BY_HAND else plural(number, effort.value, "es")


def total_line(plan: Plan) -> str:
    """ "12 places in 2 files: 9 safe fixes, 1 unsafe fix, 2 by hand"."""
    if not plan.last.places:
        whole = plan.is_whole and plan.concerned
        return "nothing to do" if whole else "nothing to do in the files that were read"
    places, files = plural(plan.last.places, "place"), plural(len(by_file(plan)), "file")
    return f"{places} in {files}: {efforts_line(plan.last)}"


def guess_line(plan: Plan) -> str:
    """How many places may behave differently; empty if none."""
    number = plan.last.may_differ
    if not number:
        return ""
    that = "it depends on the change" if number == 1 else "they depend on the change"
    return f"{plural(number, 'more place')} may behave differently; torchmigrate cannot tell whether {that}."


def pinned_line(plan: Plan) -> str:
    """How many pins keep the target from being installed; empty if none."""
    pins = plan.affected(Effect.PINNED)
    if not pins:
        return ""
    raised = sum(place.effort_in(plan.target) is not Effort.BY_HAND for place in pins)
    how = [f"{raised} raised by `--fix-pins`"] if raised else []
    how += [f"{len(pins) - raised} by hand"] if raised < len(pins) else []
    keep = "pin keeps" if len(pins) == 1 else "pins keep"
    return f"{len(pins)} {keep} torch {show_version(plan.target)} from being installed: {', '.join(how)}."


def imports_line(plan: Plan) -> str:
    """How many files cannot be imported since others break on import, and which those are; empty if none."""
    through = Counter(each.through for each in plan.unimportable if each.through is not None)
    number = sum(through.values())
    if not number:
        return ""
    named = [f"{path} ({count})" for path, count in through.most_common(MOST_NAMED)]
    rest = f" and {plural(len(through) - MOST_NAMED, 'other')}" if len(through) > MOST_NAMED else ""
    files = plural(number, "more file")
    return (
        f"{files} cannot be imported on torch {show_version(plan.target)}, because of "
        f"{', '.join(named)}{rest}."
    )


def unread_lines(plan: Plan) -> list[str]:
    """Each kind of what was not read: "3 notebooks (they mention torch): a.ipynb, b.ipynb, ..."."""
    return [
        f"{each.text}: {', '.join(each.examples)}{', ...' * (each.count > len(each.examples))}"
        for each in plan.unread
    ]


def counts(row: Row) -> list[tuple[int, int]]:
    """The numbers of a row as every format shows them: places, and those that are new, for each effect."""
    return [(row.effects[effect].places, row.begins[effect].places) for effect in EFFECTS]


def lacking_line(plan: Plan) -> str:
    """How many places need something newer than the minimum, or what there is instead of one."""
    number = len(plan.needing)
    first = show_version(plan.first)
    if not plan.lacking:
        return f"{plural(number, 'place')} {'needs' if number == 1 else 'need'} torch {first}"
    return (
        f"{plural(number, 'place')} {'uses' if number == 1 else 'use'} names that torch {first} does "
        "not have yet"
    )


def minimum_hint(plan: Plan) -> str:
    """What a newer minimum would make of the unsafe fixes; empty if nothing."""
    held = [
        place for place in plan.places if place.held_by_minimum and place.since.effect(plan.target) in EFFECTS
    ]
    needs = [place.fix_needs for place in held if place.fix_needs is not None]
    if not needs:
        return ""
    fixes = "unsafe fix is" if len(held) == 1 else "unsafe fixes are"
    return f"{len(held)} {fixes} safe if torch {show_version(max(needs))} is the minimum."
