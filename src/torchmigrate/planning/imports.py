"""Which files cannot be imported since they import others that break."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from torchmigrate.planning.model import Effect, Place, Unimportable
from torchmigrate.versions.releases import Version


def broken_since(places: Iterable[Place], target: Version) -> Version | None:
    """The first release that does not import a file, of its places; None: the target imports it."""
    found = [
        since
        for place in places
        if place.since.effect(target) is Effect.BREAKS_ON_IMPORT
        and (since := place.since.breaks_on_import) is not None
    ]
    return min(found, default=None)


def unimportable(
    broken: Mapping[Path, Version],
    importers: Callable[[Path], Iterable[Path]],
    shown: Mapping[Path, str],
) -> list[Unimportable]:
    """The files that cannot be imported from some release on, in order of path.

    Args:
        broken: the files with what breaks on import, and the first release in which it does. importers: gives
        the files that import one as soon as they are imported.
        shown: how messages have the path of each file; others are not listed.
    """
    found: dict[Path, Unimportable] = {}
    waiting = [(since, 0, shown[path], path, "") for path, since in broken.items() if path in shown]
    heapq.heapify(waiting)  # the first release first, and then the shortest way
    while waiting:
        since, steps, name, path, through = heapq.heappop(waiting)
        if path in found:
            continue
        found[path] = Unimportable(name, since, through or None)
        for other in importers(path):
            if other in shown and other not in found:
                heapq.heappush(waiting, (since, steps + 1, shown[other], other, through or name))
    return sorted(found.values(), key=lambda each: each.path)
