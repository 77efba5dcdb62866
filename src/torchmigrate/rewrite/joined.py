"""Several fixes as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from msgspec.structs import replace

from torchmigrate.findings import Fix

_MOST_TITLES = 3  # of a fix that changes several imports of one statement


def joined_fixes(fixes: Mapping[int, Fix]) -> dict[int, Fix]:
    """Several fixes as one, by the id() of each, as safe as the least safe of them.

    Where they change one import in different ways they stay apart, for one round each.
    """
    worst = min(fixes.values(), key=lambda fix: fix.applicability)
    edits = sorted({edit for fix in fixes.values() for edit in fix.edits})
    held_by = tuple(dict.fromkeys(reason for fix in fixes.values() for reason in fix.held_by))
    if any(one.end > other.start for one, other in pairwise(edits)):
        level = worst.applicability
        return {key: replace(fix, applicability=level, held_by=held_by) for key, fix in fixes.items()}
    whole = replace(
        worst,
        title=joined_title(list(dict.fromkeys(fix.title for fix in fixes.values()))),
        held_by=held_by,
        edits=tuple(edits),
        releases=tuple(dict.fromkeys(release for fix in fixes.values() for release in fix.releases)),
        requires=tuple(sorted({text for fix in fixes.values() for text in fix.requires})),
        unsafe=None,
    )
    return dict.fromkeys(fixes, whole)


def joined_title(titles: Sequence[str]) -> str:
    """The title of one fix for several names."""
    named = [*titles[:1], *(title[:1].lower() + title[1:] for title in titles[1:_MOST_TITLES])]
    rest = len(titles) - len(named)
    return "; ".join([*named, f"{rest} more"] if rest else named)
