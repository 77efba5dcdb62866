"""The command `baseline`: accept all current findings, or remove those that no longer exist."""

from __future__ import annotations

import os
import shlex
from collections import defaultdict
from collections.abc import Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from torchmigrate.cli.options import (
    Command,
    config_options,
    console_options,
    jobs_option,
    option,
    output_option,
    paths_argument,
    settings_options,
)
from torchmigrate.cli.session import Session, errors_of_the_user
from torchmigrate.config.settings import FILE_NAME, PROJECT_FILE, TABLE, Settings
from torchmigrate.engine.results import FileResult
from torchmigrate.files.paths import entries, is_dir, nearest_project, project_of
from torchmigrate.files.reading import is_below
from torchmigrate.findings import Problem
from torchmigrate.printing import printable
from torchmigrate.report.base import shown_path
from torchmigrate.report.summary import plural
from torchmigrate.run.configurations import Scope
from torchmigrate.run.results import Results, texts_in
from torchmigrate.source.kinds import read_source
from torchmigrate.source.text import SourceError
from torchmigrate.versions.releases import parse_version

if TYPE_CHECKING:
    from torchmigrate.baseline.baseline import Baseline, Checked
    from torchmigrate.baseline.entries import Spot


DONE, FAILED = 0, 2


class _Found:
    """The entries of one baseline.

    unnamed: the configurations in force for files with entries that do not name this baseline; None: none.
    """

    def __init__(self) -> None:
        self.files: list[tuple[Checked, list[Spot]]] = []
        self.findings = 0
        self.unnamed: set[Path | None] = set()

    @property
    def target(self) -> str:
        return min((each.target for each, _ in self.files), key=parse_version)


@click.command(cls=Command, short_help="Accept all current findings, so that only new ones are reported.")
@paths_argument
@option("--prune", is_flag=True, help="Remove findings that no longer exist from the file, and add none.")
@output_option(
    help="The baseline file. [default: the file in the configuration, or .torchmigrate-baseline.json next "
    "to the configuration or the nearest pyproject.toml, setup.cfg or setup.py]"
)
@jobs_option
@settings_options
@console_options
@config_options
def baseline(
    paths: tuple[Path, ...], prune: bool, output: Path | None, jobs: int | None, **options: Any
) -> int:
    """Write a baseline: a file with all current findings, which `check --baseline` then hides.

    The baseline identifies a finding by its file, its rule and the text of its line, so line numbers may
    change. Existing entries for files that are not under PATHS, and for rules that are not enabled, are kept.

    Exit codes: 0 done, 2 an error occurred.
    """
    from torchmigrate.baseline.baseline import Baseline, write

    session = Session.from_options(paths or (Path(),), options)
    here = Path.cwd()
    with errors_of_the_user():
        default = default_place(session)
        named = None if output is None else here / output
        results = Results(paths or (Path(),), session.configurations, session.console, jobs)
        # A damaged one is reported before files are checked.
        places = {named or scope.settings.baseline or default for scope in results.engines.scopes.values()}
        baselines = {place: Baseline(place) for place in sorted(places) if prune or place.exists()}
        every: defaultdict[Path, _Found] = defaultdict(_Found)
        for result in results:
            # A notebook with a cell that does not parse still has findings, but it is unknown which entries
            # are obsolete.
            if result.problems and (prune or not result.findings):
                continue
            scope = results.engines.scopes[result.path]
            settings = scope.settings
            place = named or settings.baseline or default
            found = every[place]
            try:
                some = _add(found, result, settings, baselines.get(place) if prune else None)
                if some and settings.baseline != place:
                    found.unnamed.add(_config_of(scope))
            except SourceError as error:  # it was there a moment ago
                results.problems.append(Problem(result.path, error.reason, error.line, error.kind))
        directories = [path for path in paths or (Path(),) if is_dir(path)]
        for place, found in sorted(every.items()):
            shown = shown_path(place, here)
            with session.console.replacing(place, here):
                if prune:
                    baseline = baselines[place]
                    fewer = baseline.apply(baseline.change([each for each, _ in found.files], directories))
                else:
                    write(place, found.files, directories, found.target)
            if prune:
                session.console.note(f"Removed {plural(fewer, 'finding')} from {shown}.")
                continue
            files = sum(bool(some) for _, some in found.files)
            session.console.note(
                f"Wrote {plural(found.findings, 'finding')} in {plural(files, 'file')} to {shown}."
            )
            if found.unnamed:
                session.console.note(_hint(place, found.unnamed, session, paths))
    return FAILED if results.say_problems(here) else DONE


def default_place(session: Session) -> Path:
    """The baseline of a run for files whose configuration names none.

    It is next to the configuration in force at the start of the run; without one, next to the nearest project
    file, or else at the root of the repository.
    """
    settings = session.settings
    from torchmigrate.baseline.file import NAME

    nearest = None if _config_of(session.scope) else nearest_project(session.start)
    return (nearest or settings.root) / NAME


def _config_of(scope: Scope) -> Path | None:
    """The configuration file of a scope; None: it has none."""
    configs = [layer for layer in scope.layers if layer.origin]  # the others are the command line
    return Path(configs[-1].origin) if configs else None


def _hint(place: Path, configs: Set[Path | None], session: Session, paths: Sequence[Path]) -> str:
    """How to hide the findings in a baseline.

    configs: of the files with these findings, see `_Found.unnamed`. paths: as the user gave them.
    """
    here = Path.cwd()
    shown = [shlex.quote(printable(str(path))) for path in paths]
    command = " ".join(["torchmigrate check", *shown, "--baseline", shlex.quote(shown_path(place, here))])
    hint = f"To hide them, run `{command}`"
    if len(configs) > 1:  # one line in one file would not hide all
        return f"{hint}."
    (config,) = configs
    if config is None:
        directory = nearest_project(session.start) or session.settings.root
        config = directory / (PROJECT_FILE if PROJECT_FILE in entries(directory) else FILE_NAME)
    root = Path(os.path.realpath(config.parent))
    real = os.path.realpath(place)
    if not is_below(real, str(project_of(root))):  # a configuration may only name files of its project
        return f"{hint}."
    import json

    value = json.dumps(Path(os.path.relpath(real, root)).as_posix(), ensure_ascii=False)
    table = f"[{TABLE}] of " if config.name == PROJECT_FILE else ""
    return f"{hint}, or set `baseline = {printable(value)}` in {table}{shown_path(config, here)}."


def _add(found: _Found, result: FileResult, settings: Settings, pruned: Baseline | None) -> int:
    """Add a file and its findings, or to a pruned baseline the entries that are still used; their number."""
    from torchmigrate.baseline.baseline import Checked
    from torchmigrate.baseline.entries import spots

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
    return len(some)
