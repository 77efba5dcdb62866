"""Looking at a project and making its plan."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from torchmigrate.files.paths import repository_of
from torchmigrate.findings import Problem
from torchmigrate.planning.collect import Looked, Search
from torchmigrate.planning.compute import make_plan
from torchmigrate.planning.imports import broken_since, unimportable
from torchmigrate.planning.model import Place, Plan
from torchmigrate.planning.unread import not_read
from torchmigrate.report.base import shown_path
from torchmigrate.report.console import Console
from torchmigrate.report.style import printable
from torchmigrate.report.summary import plural
from torchmigrate.run.engines import scopes_of
from torchmigrate.versions.releases import Version, parse_version

if TYPE_CHECKING:
    from torchmigrate.run.configurations import Configurations


def plan_of(
    paths: Sequence[Path],
    configurations: Configurations,
    console: Console,
    *,
    title: str | None,
    start: Path,
    root: Path,
    here: Path,
    jobs: int | None,
) -> tuple[Plan, list[Problem]]:
    """The plan of a project, and what could not be done.

    Args:
        title: what the project is called; None: as the directory.
        start: the directory that holds all paths.
        root: of the project.
        here: the directory to which messages are relative.

    Raises ConfigError where a configuration cannot be used.
    """
    seen = _look(paths, configurations, console, jobs, start, here, root)
    shown = {Path(os.path.realpath(path)): shown_path(path, here) for path in seen.files}
    problems = seen.problems
    plan = make_plan(
        printable(title or (repository_of(start) or start).name or "project"),
        seen.places,
        target=seen.target,
        minimum=seen.minimum,
        files=len(set(seen.files) - {problem.path for problem in problems}),
        concerned=seen.concerned,
        unread=not_read(paths, configurations.of(start).settings, seen.files, problems, here),
        unimportable=unimportable(seen.broken, seen.importers, shown) if seen.broken else (),
    )
    return plan, problems


@dataclass(slots=True, eq=False)
class _Seen:
    """What was found.

    files: that were looked at, whether or not that could be done. concerned: how many mention a library.
    target: of the plan. minimum: the oldest of all files; None if it is not known for one of them.
    broken: the files (real paths) with what breaks on import, with the first release of which it does.
    importers: gives the files that import one as soon as they are imported.
    """

    files: list[Path]
    problems: list[Problem]
    target: Version
    places: list[Place] = field(default_factory=list)
    concerned: int = 0
    minimum: Version | None = None
    broken: dict[Path, Version] = field(default_factory=dict)
    importers: Callable[[Path], list[Path]] = lambda path: []


def _look(
    paths: Sequence[Path],
    configurations: Configurations,
    console: Console,
    jobs: int | None,
    start: Path,
    here: Path,
    root: Path,
) -> _Seen:
    from torchmigrate.project.discover import discover_for
    from torchmigrate.run.runner import run

    started = time.monotonic()
    found = discover_for(paths, configurations.settings_in)
    # Without any file, the plan is about the directory.
    files = found.files or [start / "-"]
    scopes, problems = scopes_of(files, configurations, console)
    # The command line says which target it is for all.
    target = max(parse_version(scope.settings.target) for scope in scopes.values())
    seen = _Seen(found.files, problems + found.problems, target)
    if not found.files and not seen.problems:
        console.note("warning: no Python files found under the given paths")
    search = Search(configurations, scopes, here, root)
    with console.progress() as progress:
        for result in run(found.files, search.check, jobs, progress, search.engines.share):
            seen.problems += result.problems
            if isinstance(result, Looked):
                seen.places += result.places
                if (since := broken_since(result.places, target)) is not None:
                    seen.broken[Path(os.path.realpath(result.path))] = since
                seen.concerned += result.concerned
    if seen.broken:
        seen.importers = search.engines.of(found.files[0]).project.importers
    console.detail(f"checked {plural(len(found.files), 'file')} in {time.monotonic() - started:.2f} s")
    minimums = {scope.settings.minimum for scope in scopes.values()}
    known = [parse_version(minimum) for minimum in minimums if minimum is not None]
    seen.minimum = min(known) if len(known) == len(minimums) else None
    return seen
