"""Looking at a project and making its plan."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from torchmigrate.evidence.evidence import Warned
from torchmigrate.files.paths import nearest_project, repository_of
from torchmigrate.findings import Problem
from torchmigrate.planning.collect import FilePlan, Search
from torchmigrate.planning.compute import make_plan
from torchmigrate.planning.imports import broken_since, unimportable
from torchmigrate.planning.model import Place, Plan
from torchmigrate.planning.unread import not_read
from torchmigrate.printing import printable
from torchmigrate.report.base import shown_path
from torchmigrate.report.console import Console
from torchmigrate.report.summary import plural
from torchmigrate.run.engines import scopes_of
from torchmigrate.versions.releases import Version, parse_version

if TYPE_CHECKING:
    from torchmigrate.run.configurations import Configurations


class Seen(Struct, eq=False):
    """What was found in some files of a project; can be sent to another process.

    concerned: how many mention a library. broken: the files (real paths) with what breaks on import, and the
    first release in which it does. warned: as in `Plan`.
    """

    problems: list[Problem] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    concerned: int = 0
    broken: dict[Path, Version] = field(default_factory=dict)
    warned: list[Warned] = field(default_factory=list)

    def add(self, other: Seen) -> None:
        """Add what was found in the files that come after those of this one."""
        self.problems += other.problems
        self.places += other.places
        self.concerned += other.concerned
        self.broken |= other.broken
        self.warned += other.warned


class Project:
    """A project that a plan is made of: its files, and what holds for them.

    Args:
        start: the directory that holds all paths.
        root: of the project.
        here: the directory to which messages are relative.

    Attributes:
        files: that are looked at, in order.

    Raises ConfigError where a configuration cannot be used.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        configurations: Configurations,
        console: Console,
        *,
        start: Path,
        root: Path,
        here: Path,
    ) -> None:
        from torchmigrate.project.discover import discover_for

        self._paths = paths
        self._configurations = configurations
        self._console = console
        self._start = start
        self._here = here
        found = discover_for(paths, configurations.settings_in)
        self.files: list[Path] = found.files
        # Without any file, the plan is about the directory.
        self._scopes, problems = scopes_of(found.files or [start / "-"], configurations, console)
        self._problems = problems + found.problems
        if not found.files and not self._problems:
            console.note("warning: no Python files found under the given paths")
        # The command line says which target it is for all.
        self._target = max(parse_version(scope.settings.target) for scope in self._scopes.values())
        self._search = Search(configurations, self._scopes, here, root)

    def look(self, files: Sequence[Path], jobs: int | None) -> Seen:
        """What is found in some of the files. jobs: processes; None: as many as pay off."""
        from torchmigrate.run.runner import run

        started = time.monotonic()
        seen = Seen()
        with self._console.progress() as progress:
            for result in run(files, self._search.check, jobs, progress, self._search.engines.share):
                seen.problems += result.problems
                if isinstance(result, FilePlan):
                    seen.places += result.places
                    seen.warned += result.warned
                    if (since := broken_since(result.places, self._target)) is not None:
                        seen.broken[Path(os.path.realpath(result.path))] = since
                    seen.concerned += result.concerned
        self._console.detail(f"checked {plural(len(files), 'file')} in {time.monotonic() - started:.2f} s")
        return seen

    def plan(self, seen: Seen, title: str | None) -> tuple[Plan, list[Problem]]:
        """The plan of what was found in all files, and what could not be done."""
        problems = self._problems + seen.problems
        shown = {Path(os.path.realpath(path)): shown_path(path, self._here) for path in self.files}
        settings = self._configurations.of(self._start).settings
        directory = nearest_project(self._start) or repository_of(self._start) or self._start
        plan = make_plan(
            printable(title or directory.name or "project"),
            seen.places,
            target=self._target,
            minimum=self._minimum,
            files=len(set(self.files) - {problem.path for problem in problems}),
            concerned=seen.concerned,
            unread=not_read(self._paths, settings, self.files, problems, self._here),
            unimportable=unimportable(seen.broken, self._importers, shown) if seen.broken else (),
            warned=seen.warned,
        )
        return plan, problems

    @property
    def _minimum(self) -> Version | None:
        """The oldest of all files; None if it is not known for one of them."""
        minimums = {scope.settings.minimum for scope in self._scopes.values()}
        known = [parse_version(minimum) for minimum in minimums if minimum is not None]
        return min(known) if len(known) == len(minimums) else None

    def _importers(self, path: Path) -> list[Path]:
        """The files that import one as soon as they are imported."""
        return self._search.engines.of(self.files[0]).project.importers(path)
