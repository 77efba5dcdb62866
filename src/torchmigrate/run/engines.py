"""The engines of a run: one for all files with the same configuration for which the same is required."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from torchmigrate.engine.engine import Engine
from torchmigrate.engine.options import PLAIN, EngineOptions
from torchmigrate.engine.results import FileResult
from torchmigrate.findings import Problem, Trouble
from torchmigrate.report.base import shown_path
from torchmigrate.report.console import Console
from torchmigrate.report.summary import plural
from torchmigrate.run.configurations import Configurations, Scope
from torchmigrate.run.needs import NeedsNewer, newest_of, newest_required
from torchmigrate.source.kinds import with_code
from torchmigrate.source.text import Source

if TYPE_CHECKING:
    from torchmigrate.config.settings import Settings
    from torchmigrate.versions.detect import Required
    from torchmigrate.versions.releases import Version


class Engines:
    """Checks and fixes files; can be sent to another process.

    Args:
        configurations: of the run.
        scopes: what holds for each file, from `scopes_of`; the same object where the same holds.
        options: what else is wanted; settings of other directories are those of `configurations`. With a
            chooser, files are checked in this process.
    """

    def __init__(
        self,
        configurations: Configurations,
        scopes: Mapping[Path, Scope],
        options: EngineOptions = PLAIN,
    ) -> None:
        self.options: Final = replace(options, settings_in=configurations.settings_around)
        self.scopes: Final = scopes
        # What states the minimum makes no difference to an engine.
        different = {id(scope.settings): scope for scope in scopes.values()}
        self._different = list(different.values())
        numbers = {key: number for number, key in enumerate(different)}
        self._numbers = {path: numbers[id(scope.settings)] for path, scope in scopes.items()}
        self._engines: dict[int, Engine] = {}
        self._needing: dict[int, NeedsNewer] = {}

    def of(self, path: Path) -> Engine:
        """The engine for a file; all share what they know of other files."""
        return self._engine(self._numbers[path])

    def _engine(self, number: int) -> Engine:
        if number not in self._engines:
            settings, catalogue, *_ = self._different[number]
            if number:
                self._engines[number] = self._engine(0).sibling(settings, catalogue, self.options)
            else:
                self._engines[0] = Engine(catalogue, settings, self.options)
        return self._engines[number]

    def needing(self, path: Path) -> NeedsNewer:
        """What looks for what a file needs."""
        number = self._numbers[path]
        if number not in self._needing:
            self._needing[number] = NeedsNewer(self._engine(number))
        return self._needing[number]

    def load(self) -> None:
        """Read the rules now, so that the processes that are forked share them."""
        for number in range(len(self._different)):
            self._engine(number).load()

    def share(self) -> None:
        """Read the projects of the files now, so that the processes that are forked share them."""
        if self.scopes:
            self._engine(0).project.load(self.scopes)

    def check(self, path: Path) -> FileResult:
        """`Engine.check`, and what the file needs if it was fixed."""
        questions = self.options.questions
        if questions is None:
            return self._with_needs(self.of(path).check(path))
        questions.begin(path)
        result = self._with_needs(self.of(path).check(path))
        result.asked = questions.taken()
        return result

    def check_source(self, source: Source, path: Path) -> FileResult:
        """The same with `Engine.check_source`."""
        return self._with_needs(self.of(path).check_source(source, path))

    def _with_needs(self, result: FileResult) -> FileResult:
        if result.new_text is not None:
            assert result.new is not None
            needs = newest_of(self.needing(result.path).findings(result.new, result.path))
            result.needs = max(filter(None, [needs, newest_required(result.requires)]), default=None)
        return result


def scopes_of(
    files: Sequence[Path], configurations: Configurations, console: Console
) -> tuple[dict[Path, Scope], list[Problem]]:
    """What holds for each of some files, by its own configuration and what its project requires.

    That does not depend on the other files, on how a file is named, or on where the program runs. Says in a
    line for each minimum where it comes from. What was not read are problems.

    Raises ConfigError where a configuration cannot be used.
    """
    from torchmigrate.versions.detect import Requirements
    from torchmigrate.versions.releases import parse_version
    from torchmigrate.versions.requirement_lists import silent

    problems: list[Problem] = []

    def trouble(path: Path, reason: str, refused: bool) -> None:
        if refused:
            problems.append(Problem(path, reason, None, Trouble.UNREADABLE))
        else:
            console.note(f"warning: {shown_path(path, Path.cwd())}: {reason}: no minimum read from it")

    wanted = Requirements(console.detail, trouble)
    given = Requirements(silent, silent)  # for those packages alone that a rule may ask for
    made: dict[tuple[int, Required], Scope] = {}
    settings: dict[tuple[object, ...], Settings] = {}
    found: dict[Path, Scope] = {}
    counts: Counter[tuple[Required, Version]] = Counter()
    counted = frozenset(with_code(files))
    problems += _problems_with_evidence(counted, configurations)
    for path in files:
        scope = configurations.of(directory_of(path))
        if scope.settings.detect:
            required = (wanted if scope.settings.minimum is None else given).of(path)
            target = parse_version(scope.settings.target)
            if scope.settings.minimum is None and path in counted:
                counts[replace(required, packages=frozenset(), companions=frozenset()), target] += 1
            key = id(scope), required
            if key not in made:
                made[key] = _with(scope, required, target)
                # Equal settings are one object, so that they get one engine.
                same = id(scope), made[key].settings.minimum, required.packages, required.companions
                made[key] = made[key]._replace(settings=settings.setdefault(same, made[key].settings))
            scope = made[key]
        found[path] = scope
    for (required, target), count in sorted(counts.items(), key=lambda item: str(item[0][0].path or "")):
        console.detail(_minimum_note(required, count, target))
    return found, problems


def _problems_with_evidence(files: Iterable[Path], configurations: Configurations) -> list[Problem]:
    """What is wrong with the evidence of the projects of some files; it is read once, where it is there."""
    from torchmigrate.evidence.location import find

    asked = set() if configurations.isolated else {path.parent for path in files}
    found = {
        path
        for place in asked
        if (path := find(place)) is not None
        and configurations.of(directory_of(place / "-")).settings.evidence
    }
    if not found:
        return []
    from torchmigrate.evidence.evidence import problem_with

    problems = [(path, problem_with(path)) for path in sorted(found)]
    return [Problem(path, reason, None, Trouble.UNREADABLE) for path, reason in problems if reason]


def directory_of(path: Path) -> Path:
    """The directory in which a file really is, whose configuration and requirements hold for it."""
    return Path(os.path.realpath(path)).parent if os.path.islink(path) else path.parent  # noqa: PTH114


def _with(scope: Scope, required: Required, target: Version) -> Scope:
    """The scope with what is required; a minimum that is newer than the target does not count."""
    from torchmigrate.versions.releases import show_version

    settings = scope.settings
    if settings.minimum is None and required.minimum is not None and required.minimum <= target:
        settings = replace(settings, minimum=show_version(required.minimum))
        scope = scope._replace(source=required.path)
    if required.packages or required.companions:
        settings = replace(settings, packages=required.packages, companions=required.companions)
    return scope if settings is scope.settings else scope._replace(settings=settings)


def _minimum_note(required: Required, count: int, target: Version) -> str:
    """Which minimum holds for how many files."""
    from torchmigrate.versions.releases import show_version

    files = plural(count, "file")
    if required.minimum is None:
        return f"minimum: unknown ({files})"
    torch = f"torch {show_version(required.minimum)}"
    if required.python is not None:
        torch += f" (the first for Python {show_version(required.python)})"
    if required.minimum > target:
        return f"minimum: ignoring {torch} in {required.path}, which is newer than the target ({files})"
    return f"minimum: {torch}, from {required.path} ({files})"
