"""The `plan` command: look, compute, render, write."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import click

from torchmigrate.cli.session import Session, common_directory, errors_of_the_user
from torchmigrate.files.paths import repository_of
from torchmigrate.files.reading import explain_os_error
from torchmigrate.files.signals import held
from torchmigrate.findings import Problem
from torchmigrate.plan.collect import Looked, Search
from torchmigrate.plan.compute import make_plan
from torchmigrate.plan.imports import broken_since, unimportable
from torchmigrate.plan.links import Links
from torchmigrate.plan.model import Place, Plan
from torchmigrate.plan.unread import not_read
from torchmigrate.report.base import shown_path
from torchmigrate.report.style import Style, printable
from torchmigrate.report.summary import plural
from torchmigrate.run.engines import scopes_of
from torchmigrate.source.text import SourceError
from torchmigrate.versions.releases import Version, parse_version

DONE, FAILED = 0, 2
FORMATS = ("table", "markdown", "json", "html")


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """What is asked for.

    step: list what there is to do for the target. output: the file to write; None: stdout.
    title: what the project is called; None: as its directory. link: template of links; None: relative paths.
    """

    format: str = "table"
    step: bool = False
    output: Path | None = None
    title: str | None = None
    link: str | None = None
    jobs: int | None = None


def run_plan(session: Session, paths: Sequence[Path], request: Request) -> int:
    """Make a plan and print or write it; the exit code.

    Raises:
        click.ClickException: the output cannot be written, or the link template cannot be used.
    """
    here = Path.cwd()
    start = common_directory(paths)
    repository = repository_of(start)
    root = repository or session.configurations.start
    links = _links(request, root, here)
    seen = _look(session, paths, request.jobs, here, root)
    shown = {Path(os.path.realpath(path)): shown_path(path, here) for path in seen.files}
    problems = seen.problems
    plan = make_plan(
        printable(request.title or (repository or start).name or "project"),
        seen.places,
        target=seen.target,
        minimum=seen.minimum,
        files=len(set(seen.files) - {problem.path for problem in problems}),
        concerned=seen.concerned,
        unread=not_read(paths, session.settings, seen.files, problems, here),
        unimportable=unimportable(seen.broken, seen.importers, shown) if seen.broken else (),
    )
    text = _render(plan, request, links, session)
    if request.output is None:
        session.console.out(text)
    else:
        _write(request.output, text.encode("utf-8", "backslashreplace"))
    for problem in sorted(problems, key=lambda each: (str(each.path), each.cell or 0, each.line or 0)):
        session.console.problem(problem, here)
    if problems:
        session.console.note(
            f"{plural(len({problem.path for problem in problems}), 'file')} could not be done."
        )
        return FAILED
    return DONE


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


def _look(session: Session, paths: Sequence[Path], jobs: int | None, here: Path, root: Path) -> _Seen:
    from torchmigrate.project.discover import discover_for
    from torchmigrate.run.runner import run

    started = time.monotonic()
    console, configurations = session.console, session.configurations
    with errors_of_the_user():
        found = discover_for(paths, configurations.settings_in)
        # Without any file, the plan is about the directory.
        files = found.files or [common_directory(paths) / "-"]
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


def _links(request: Request, root: Path, here: Path) -> Links:
    try:
        return Links(request.link, root=root, near=here if request.output is None else request.output.parent)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--link-template") from None


def _render(plan: Plan, request: Request, links: Links, session: Session) -> str:
    if request.format == "json":
        from torchmigrate.plan.json import as_json

        return as_json(plan, links)
    if request.format == "html":
        from torchmigrate.plan.html import as_html

        return as_html(plan, links)
    if request.format == "markdown":
        from torchmigrate.plan.markdown import as_markdown

        return as_markdown(plan, links, step=request.step)
    from torchmigrate.plan.terminal import as_table

    style = session.console.style if request.output is None else Style()
    return as_table(plan, style, step=request.step)


def _write(path: Path, data: bytes) -> None:
    """Write a file, which need not exist."""
    from torchmigrate.rewrite.apply import write_atomic

    made = False
    try:
        with held():  # a signal must not leave an empty file
            try:
                if not os.path.lexists(path):
                    with path.open("xb"):
                        made = True
                write_atomic(path, data)
            except (OSError, SourceError):
                if made:
                    path.unlink(missing_ok=True)
                raise
    except (OSError, SourceError) as error:
        reason = (
            error.reason if isinstance(error, SourceError) else f"cannot write: {explain_os_error(error)}"
        )
        raise click.ClickException(f"{path}: {reason}") from None
