"""What is found in all files of a run, for those that do something with it other than report it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from torchmigrate.engine.results import FileResult
from torchmigrate.findings import Finding, Problem
from torchmigrate.report.console import Console
from torchmigrate.report.summary import plural

if TYPE_CHECKING:
    from torchmigrate.run.configurations import Configurations
    from torchmigrate.run.engines import Engines
    from torchmigrate.source.text import Source


def texts_in(result: FileResult, source: Source) -> list[tuple[Source, list[Finding]]]:
    """The texts in a file, each with what is found there."""
    texts = [(source, result.findings)]
    if any(result.examples.values()):
        from torchmigrate.source.embedded import embedded_in

        documents = embedded_in(source)
        texts += ((documents[number], found) for number, found in result.examples.items())
    return texts


class Results:
    """The results of all files under some paths, in order; `problems` grow during the iteration.

    Raises ConfigError where a configuration cannot be used.
    """

    def __init__(
        self, paths: Sequence[Path], configurations: Configurations, console: Console, jobs: int | None
    ) -> None:
        from torchmigrate.project.discover import discover_for
        from torchmigrate.run.engines import Engines, scopes_of

        found = discover_for(paths, configurations.settings_in)
        self.files = found.files
        self.problems: list[Problem] = list(found.problems)
        if not found.files and not found.problems:
            console.note("warning: no Python files found under the given paths")
        scopes, problems = scopes_of(found.files, configurations, console)
        self.problems += problems
        self.engines: Engines = Engines(configurations, scopes)
        self._console = console
        self._jobs = jobs

    def __iter__(self) -> Iterator[FileResult]:
        from torchmigrate.run.runner import run

        if len(self.files) > 1:
            self.engines.load()
        with self._console.progress() as progress:
            for result in run(self.files, self.engines.check, self._jobs, progress, self.engines.share):
                self.problems += result.problems
                yield result

    def say_problems(self, here: Path) -> bool:
        """Say what could not be done; whether there was anything."""
        return say_problems(self.problems, self._console, here)


def problems_in_order(problems: Iterable[Problem]) -> list[Problem]:
    """Problems in order of place."""
    return sorted(problems, key=lambda each: (str(each.path), each.cell or 0, each.line or 0))


def say_problems(problems: Sequence[Problem], console: Console, here: Path) -> bool:
    """Say what could not be done, in order of place; whether there was anything."""
    for problem in problems_in_order(problems):
        console.problem(problem, here)
    if problems:
        files = len({problem.path for problem in problems})
        console.note(f"{plural(files, 'file')} could not be processed.")
    return bool(problems)
