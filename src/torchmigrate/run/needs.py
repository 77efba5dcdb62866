"""From which release of torch on code runs, by the names and parameters that it uses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from torchmigrate.catalogue.codes import NEEDS_NEWER
from torchmigrate.findings import Finding
from torchmigrate.versions.range import requirement
from torchmigrate.versions.releases import Version, parse_version, show_version, torch_release

if TYPE_CHECKING:
    from pathlib import Path

    from torchmigrate.engine.engine import Engine
    from torchmigrate.rewrite.context import FileContext
    from torchmigrate.source.text import Source

# Of 1.0, the API data cannot tell what `torch` itself lacks: most of it came from compiled code.
_OLDEST = (1, 1)


class NeedsNewer:
    """Looks for what releases lack that are older than the code.

    What a minimum lacks is looked for on its own: in a usual run a place that another rule reports is not
    reported as too new as well. A finding says which release has a module that the minimum lacks, not which
    one has all that is used of it: the file is looked at again with that release as the minimum, until
    nothing is missing. Where the minimum is not known, that begins with a very old one.

    Args:
        engine: the engine of the files; its settings and rules are used.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._engines: dict[Version, Engine] = {}

    def findings(self, source: Source, path: Path, file: FileContext | None = None) -> list[Finding]:
        """What the code needs, at each place the newest. file: what is known of the source, if it is."""
        settings = self.engine.settings
        found: dict[int, Finding] = {}
        minimum, target = settings.minimum, parse_version(settings.target)
        floor: Version | None = _OLDEST if minimum is None else parse_version(minimum)
        first = minimum is not None
        while floor is not None and floor <= target:
            more = [
                # That the project supports this release is only so for its minimum.
                finding if first else replace(finding, lacking=None)
                for finding in self._engine_for(floor).check_source(source, path, file).findings
                if finding.code == NEEDS_NEWER
            ]
            more.sort(key=lambda each: newest_of([each]) or _OLDEST)  # of those that begin at one place
            found |= {finding.start: finding for finding in more}
            newest = newest_of(more)
            if newest is not None and newest > floor:
                floor = newest
            else:
                floor = _OLDEST if floor < _OLDEST else None
            first = False
        return list(found.values())

    def _engine_for(self, minimum: Version) -> Engine:
        if minimum not in self._engines:
            settings = replace(
                self.engine.settings,
                codes=frozenset([NEEDS_NEWER]),
                minimum=show_version(minimum),
                fix=False,
                embedded=False,
            )
            options = replace(
                self.engine.options, everywhere=True, keeps_history=False, focus=None, chooser=None
            )
            self._engines[minimum] = self.engine.sibling(settings, options=options)
        return self._engines[minimum]


def newest_of(findings: Iterable[Finding]) -> Version | None:
    """The first torch that has all that these findings are about."""
    needs = (
        torch_release(finding.timeline.library, parse_version(finding.timeline.added))
        for finding in findings
        if finding.timeline is not None and finding.timeline.added is not None
    )
    return max((version for version in needs if version is not None), default=None)


def newest_required(requires: Iterable[str]) -> Version | None:
    """The first torch that has all of some releases, such as "torch 2.3" and "torchvision 0.13"."""
    needs = (torch_release(*requirement(text, "torch")) for text in requires)
    return max((version for version in needs if version is not None), default=None)
