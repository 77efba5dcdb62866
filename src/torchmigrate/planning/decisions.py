"""Which findings are one decision: a person looks at them together, or one fix mends them together."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from msgspec import Struct

from torchmigrate.catalogue.codes import NEEDS_NEWER
from torchmigrate.catalogue.model import Rule
from torchmigrate.findings import Finding
from torchmigrate.planning.model import Effort, Since
from torchmigrate.planning.reach import Places, Reach

# The unit of a whole migration that could not be made: all of it must be understood together.
_UNITS = {"apex": "file", "functional_state": "file", "legacy_function": "class", "volatile": "function"}


class Decided(Struct, frozen=True):
    """A finding with what a plan says of it."""

    finding: Finding
    since: Since
    effort: Effort
    reach: Reach


def decisions(
    found: Sequence[Decided], places: Places, rule_of: Callable[[str], Rule | None]
) -> list[list[Decided]]:
    """The findings of one file in groups, each in order of place.

    An import goes with the first use of what it takes, where nothing mends one of them alone.
    """
    found = sorted(found, key=lambda each: (each.finding.start, each.finding.end, each.finding.code))
    groups: dict[Hashable, list[Decided]] = {}
    uses: dict[Hashable, Hashable] = {}  # what is used, and how it is mended -> group of the first use
    imports: list[Decided] = []
    for number, each in enumerate(found):
        key = _unit(each, places, rule_of) or number
        what = each.finding.code, each.finding.symbol, each.effort
        if each.reach.is_import and key == number:
            imports.append(each)
            continue
        groups.setdefault(key, []).append(each)
        uses.setdefault(what, key)
    for number, each in enumerate(imports):
        what = each.finding.code, each.finding.symbol, each.effort
        groups.setdefault(uses.get(what, ("import", number)), []).insert(0, each)
    for group in groups.values():
        group.sort(key=lambda each: (each.finding.start, each.finding.end, each.finding.code))
    return sorted(groups.values(), key=lambda group: (group[0].finding.start, group[0].finding.end))


def _unit(each: Decided, places: Places, rule_of: Callable[[str], Rule | None]) -> Hashable | None:
    """What the findings of a decision have in common; None: it is one of its own."""
    finding = each.finding
    if finding.code == NEEDS_NEWER:
        return finding.code, finding.message  # a newer minimum is one decision
    if finding.fix is not None and each.effort is not Effort.BY_HAND:
        return "fix", id(finding.fix)
    rule = rule_of(finding.code)
    family = rule.codemod.partition(".")[0] if rule is not None and rule.codemod is not None else ""
    kind = _UNITS.get(family)
    if kind is None or each.effort is not Effort.BY_HAND:
        return None
    if kind == "file":
        return family, each.effort
    unit = places.unit(finding.start, finding.end, kind)
    return None if unit is None else (family, each.effort, id(unit))
