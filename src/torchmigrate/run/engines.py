"""The engines of a run: one for all files for which the projects around them require the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from torchmigrate.config.settings import Settings
from torchmigrate.engine.engine import Engine
from torchmigrate.findings import FileResult, Problem
from torchmigrate.report.base import shown_path
from torchmigrate.report.console import Console
from torchmigrate.report.summary import plural
from torchmigrate.source.text import Source

if TYPE_CHECKING:
    from torchmigrate.catalogue.index import Catalogue
    from torchmigrate.versions.detect import Required
    from torchmigrate.versions.releases import Version


class Engines:
    """Checks and fixes files; can be sent to another process.

    Args:
        catalogue: all rules.
        settings: of the run.
        own: the settings of files for which they are others, because of what their project requires.
        keeps_history, unfixed: as in `Engine`.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        settings: Settings,
        own: Mapping[Path, Settings] | None = None,
        *,
        keeps_history: bool = False,
        unfixed: frozenset[str] = frozenset(),
    ) -> None:
        self.own = own or {}
        self.first = Engine(
            catalogue, settings, in_project=True, keeps_history=keeps_history, unfixed=unfixed
        )
        self._others: dict[tuple[str | None, frozenset[str]], Engine] = {}

    def settings_of(self, path: Path) -> Settings:
        """What holds for a file."""
        return self.own.get(path, self.first.settings)

    def of(self, path: Path) -> Engine:
        """The engine for a file; all share what they know of the rules and of other files."""
        settings = self.own.get(path)
        if settings is None:
            return self.first
        key = settings.minimum, settings.packages
        if key not in self._others:
            self._others[key] = self.first.sibling(settings)
        return self._others[key]

    def load(self) -> None:
        """Read the rules now, so that the processes that are forked share them."""
        for engine in {id(engine): engine for engine in map(self.of, self.own)}.values():
            engine.load()
        self.first.load()

    def check(self, path: Path) -> FileResult:
        """`Engine.check`."""
        return self.of(path).check(path)

    def check_source(self, source: Source, path: Path) -> FileResult:
        """`Engine.check_source`."""
        return self.of(path).check_source(source, path)


def settings_of_files(
    files: Sequence[Path], settings: Settings, console: Console
) -> tuple[dict[Path, Settings], list[Problem]]:
    """The settings of those files whose project requires something, by what it requires for each file alone.

    They do not depend on the other files, on how a file is named, or on where the program runs. Says in a
    line for each minimum where it comes from. What was not read are problems.
    """
    from torchmigrate.versions.detect import Requirements, silent
    from torchmigrate.versions.releases import parse_version

    problems: list[Problem] = []

    def trouble(path: Path, reason: str, refused: bool) -> None:
        if refused:
            problems.append(Problem(path, reason))
        else:
            console.note(f"warning: {shown_path(path, Path.cwd())}: {reason}: no minimum is read from it")

    if not settings.detect:
        return {}, problems
    wanted = settings.minimum is None
    requirements = Requirements(console.detail, trouble) if wanted else Requirements(silent, silent)
    required = {path: requirements.of(path) for path in files}
    target = parse_version(settings.target)
    made = {each: _with(settings, each, target) for each in set(required.values())}
    if wanted:
        counts = Counter(each._replace(packages=frozenset()) for each in required.values())
        for each, count in sorted(counts.items(), key=lambda item: str(item[0].path or "")):
            console.detail(_told(each, count, target))
    return {path: made[each] for path, each in required.items() if made[each] is not settings}, problems


def _with(settings: Settings, required: Required, target: Version) -> Settings:
    """The settings with what is required; a minimum that is newer than the target does not count."""
    from torchmigrate.versions.releases import show_version

    if settings.minimum is None and required.minimum is not None and required.minimum <= target:
        settings = settings._replace(minimum=show_version(required.minimum))
    return settings._replace(packages=required.packages) if required.packages else settings


def _told(required: Required, count: int, target: Version) -> str:
    """Which minimum holds for how many files."""
    from torchmigrate.versions.releases import show_version

    files = plural(count, "file")
    if required.minimum is None:
        return f"minimum: unknown ({files})"
    torch = f"torch {show_version(required.minimum)}"
    if required.python is not None:
        torch += f" (the first for Python {show_version(required.python)})"
    if required.minimum > target:
        return f"minimum: {torch} in {required.path} is newer than the target: not used ({files})"
    return f"minimum: {torch}, from {required.path} ({files})"
