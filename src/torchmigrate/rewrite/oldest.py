"""The oldest release on which a place of a file runs, as far as the code around it tells."""

from __future__ import annotations

import functools
from collections.abc import Callable

from torchmigrate.semantics.guards.formulas import MISSING_IMPORT, is_handled, survives
from torchmigrate.semantics.model import Role, Use
from torchmigrate.versions.range import VersionRange
from torchmigrate.versions.releases import RELEASES, Version, companion, parse_version, show_version


def range_at(use: Use, name: str, versions: VersionRange) -> VersionRange:
    """The range in which what replaces a use has to work.

    Under `if torch.__version__ >= "1.6"` it begins with that release, and in a `try` that continues without
    what it imports, with the first one that has it: code that tests for a release supports it.

    Args:
        name: the qualified name that is used.
    """
    oldest = _tested(use, versions)
    if use.role is Role.IMPORT and survives(use.guards, MISSING_IMPORT):
        oldest = max(oldest, _first_with(name))
    minimum = RELEASES[0] if versions.minimum is None else parse_version(versions.minimum)
    if oldest <= minimum:
        return versions
    first = show_version(min(oldest, parse_version(versions.target)))
    return VersionRange(versions.target, first, companions=versions.companions)


def _tested(use: Use, versions: VersionRange) -> Version:
    """The first release that the tests around a use let through."""
    guards = use.guards
    if guards.formula is None and guards.outer is None:
        return RELEASES[0]
    target = parse_version(versions.target)
    for release in RELEASES:
        if release >= target:
            break
        if not is_handled(guards, target=_at(release), old=(), new=()):
            return release
    return RELEASES[0]


@functools.cache  # guards keep the answer to a question that is the same one
def _at(release: Version) -> Callable[[str], Version | None]:
    """The release of each library that goes with one of torch."""
    return lambda library: companion(library, release)


def _first_with(name: str) -> Version:
    """The first release of torch that has a name; of other libraries nothing is known here."""
    from torchmigrate.versions.surface import surface_of

    surface = surface_of(name) if name.startswith("torch.") else None
    return min((start for start, _ in surface.spans(name)), default=RELEASES[0]) if surface else RELEASES[0]
