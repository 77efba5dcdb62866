"""The `baseline` command: accept what is found now, or take out of a baseline what is gone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from torchmigrate.baseline.baseline import Baseline, Checked, write
from torchmigrate.baseline.entries import Spot, spots
from torchmigrate.baseline.file import NAME
from torchmigrate.cli.session import Session, errors_of_the_user
from torchmigrate.config.settings import Settings
from torchmigrate.files.paths import is_dir
from torchmigrate.findings import FileResult, Problem
from torchmigrate.report.base import shown_path
from torchmigrate.report.summary import plural
from torchmigrate.run.results import Results, texts_in
from torchmigrate.source.kinds import read_source
from torchmigrate.source.text import SourceError
from torchmigrate.versions.releases import parse_version

DONE, FAILED = 0, 2


class _Found:
    """What is to be in one baseline."""

    def __init__(self) -> None:
        self.files: list[tuple[Checked, list[Spot]]] = []
        self.findings = 0

    @property
    def target(self) -> str:
        return min((each.target for each, _ in self.files), key=parse_version)


def run_baseline(
    session: Session, paths: Sequence[Path], output: Path | None, jobs: int | None, *, prune: bool
) -> int:
    """Write or prune the baselines of some files; the exit code.

    output: the file; None: that of the configuration, or else the default one at the root of the project.
    Files that could not be checked, and where `prune` is set those that could not be in part, keep what the
    baseline has of them.
    """
    here = Path.cwd()
    with errors_of_the_user():
        default = session.settings.root / NAME
        named = None if output is None else here / output
        results = Results(paths, session.configurations, session.console, jobs)
        # A damaged one is told of before files are checked.
        places = {named or scope.settings.baseline or default for scope in results.engines.scopes.values()}
        baselines = {place: Baseline(place) for place in sorted(places) if prune or place.exists()}
        every: defaultdict[Path, _Found] = defaultdict(_Found)
        for result in results:
            # A notebook with a cell that does not parse still has findings, but it is not known what is gone.
            if result.problems and (prune or not result.findings):
                continue
            settings = results.engines.scopes[result.path].settings
            place = named or settings.baseline or default
            try:
                _add(every[place], result, settings, baselines.get(place) if prune else None)
            except SourceError as error:  # it was there a moment ago
                results.problems.append(Problem(result.path, error.reason, error.line, error.kind))
        directories = [path for path in paths if is_dir(path)]
        for place, found in sorted(every.items()):
            shown = shown_path(place, here)
            if prune:
                baseline = baselines[place]
                fewer = baseline.apply(baseline.change([each for each, _ in found.files], directories))
                session.console.note(f"Removed {plural(fewer, 'finding')} from {shown}.")
                continue
            write(place, found.files, directories, found.target)
            files = sum(bool(some) for _, some in found.files)
            session.console.note(
                f"Wrote {plural(found.findings, 'finding')} in {plural(files, 'file')} to {shown}."
            )
            if place not in {scope.settings.baseline for scope in results.engines.scopes.values()}:
                session.console.note(
                    f"To hide them, run `torchmigrate check --baseline {shown}`, or set `baseline = "
                    f'"{_relative(place, session.settings)}"` in the configuration.'
                )
    return FAILED if results.say_problems(here) else DONE


def _add(found: _Found, result: FileResult, settings: Settings, pruned: Baseline | None) -> None:
    """Add a file and what is found there; to a baseline that is pruned, which of it is still used."""
    some: list[Spot] = []
    if result.findings or any(result.examples.values()):
        source = read_source(result.path, embedded=settings.embedded)
        listed = [(text, finding) for text, group in texts_in(result, source) for finding in group]
        if pruned is not None:
            pruned.new(result.path, sorted(listed, key=lambda each: (each[1].start, each[1].end)))
        some = [spot for text, finding in listed for spot in spots(finding, text)]
        found.findings += len(listed)
    looks_for = settings.looks_for_in(result.path)
    checked = Checked(result.path, looks_for, settings.target, settings.embedded)
    found.files.append((checked, some))


def _relative(place: Path, settings: Settings) -> str:
    root = settings.root.absolute()
    return place.relative_to(root).as_posix() if place.is_relative_to(root) else str(place)
