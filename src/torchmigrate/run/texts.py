"""Texts that are checked as files which need not hold them, one after the other."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from torchmigrate.engine.choosing import One
from torchmigrate.engine.engine import MOST_FINDINGS, Engine
from torchmigrate.engine.options import EngineOptions
from torchmigrate.engine.results import FileResult
from torchmigrate.findings import Applicability, Fix, Problem
from torchmigrate.report.console import Console
from torchmigrate.run.configurations import Configurations, Scope
from torchmigrate.run.engines import scopes_of
from torchmigrate.run.runner import attempt
from torchmigrate.source.text import Source


class TextChecker:
    """Checks texts, and keeps what it learns of configurations and of the files of the project.

    Who wants to know of files that have changed meanwhile calls `files.paths.forget` and makes a new one.
    """

    def __init__(self, configurations: Configurations, *, by_place: bool = False) -> None:
        """by_place: as in `EngineOptions`."""
        self.configurations = configurations
        around = configurations.settings_around
        self._options = EngineOptions(settings_in=around, by_place=by_place, most=MOST_FINDINGS)
        self._scopes: dict[Path, tuple[Scope, list[Problem]]] = {}
        self._engines: list[Engine] = []  # all share what they know of other files
        self._fixers: dict[int, Engine] = {}
        self._console = Console("never", quiet=True)

    def scope(self, path: Path) -> tuple[Scope, list[Problem]]:
        """The scope of a file, and problems in finding it.

        Raises ConfigError where its configuration cannot be used.
        """
        if path not in self._scopes:
            scopes, problems = scopes_of([path], self.configurations, self._console)
            self._scopes[path] = scopes[path], problems
        return self._scopes[path]

    def engine(self, path: Path) -> Engine:
        """What checks a file. Raises ConfigError as `scope`."""
        scope = self.scope(path)[0]
        for known in self._engines:
            if known.settings == scope.settings and known.whole is scope.catalogue:
                return known
        if self._engines:
            made = self._engines[0].sibling(scope.settings, scope.catalogue)
        else:
            made = Engine(scope.catalogue, scope.settings, self._options)
        self._engines.append(made)
        return made

    def fixer(self, path: Path) -> Engine:
        """What makes the fixes in a file, as its configuration wants. Raises ConfigError as `scope`."""
        engine = self.engine(path)
        if id(engine) not in self._fixers:
            self._fixers[id(engine)] = engine.sibling(replace(engine.settings, fix=True))
        return self._fixers[id(engine)]

    def check(self, source: Source, path: Path) -> FileResult:
        """Check a text as a file; whatever goes wrong is a problem of the result.

        Raises ConfigError as `scope`.
        """
        engine = self.engine(path)
        return attempt(lambda _: engine.check_source(source, path), path)

    def fix(self, source: Source, path: Path) -> FileResult:
        """The same, and the fixes are made. Raises ConfigError as `scope`."""
        engine = self.fixer(path)
        return attempt(lambda _: engine.check_source(source, path), path)

    def fix_one(self, source: Source, path: Path, part: Source, fix: Fix) -> FileResult:
        """The same, and one fix is made, safe or not, as if the others were refused.

        part: the text that it is for: `source`, or an example within it. Raises ConfigError as `scope`.
        """
        engine = self.engine(path)
        unsafe = fix.applicability is not Applicability.SAFE
        settings = replace(engine.settings, fix=True, unsafe_fixes=unsafe)
        fixer = engine.sibling(settings, options=replace(engine.options, chooser=One(part, fix)))
        return attempt(lambda _: fixer.check_source(source, path), path)
