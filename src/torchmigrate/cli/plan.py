"""The `plan` command: look, compute, render, write."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
from msgspec import Struct

from torchmigrate.cli.session import Session, errors_of_the_user
from torchmigrate.cli.writing import write_output
from torchmigrate.files.paths import common_directory, repository_of
from torchmigrate.planning.links import Links
from torchmigrate.planning.look import plan_of
from torchmigrate.planning.model import Plan
from torchmigrate.report.style import Style
from torchmigrate.report.summary import plural

DONE, FAILED = 0, 2
FORMATS = ("table", "markdown", "json", "html")


class Request(Struct, frozen=True, eq=False):
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
    root = repository_of(start) or session.configurations.start
    links = _links(request, root, here)
    with errors_of_the_user():
        plan, problems = plan_of(
            paths,
            session.configurations,
            session.console,
            title=request.title,
            start=start,
            root=root,
            here=here,
            jobs=request.jobs,
        )
    text = _render(plan, request, links, session)
    if request.output is None:
        session.console.out(text)
    else:
        write_output(request.output, text.encode("utf-8", "backslashreplace"))
    for problem in sorted(problems, key=lambda each: (str(each.path), each.cell or 0, each.line or 0)):
        session.console.problem(problem, here)
    if problems:
        session.console.note(
            f"{plural(len({problem.path for problem in problems}), 'file')} could not be processed."
        )
        return FAILED
    return DONE


def _links(request: Request, root: Path, here: Path) -> Links:
    try:
        return Links(request.link, root=root, near=here if request.output is None else request.output.parent)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--link-template") from None


def _render(plan: Plan, request: Request, links: Links, session: Session) -> str:
    if request.format == "json":
        from torchmigrate.planning.json import as_json

        return as_json(plan, links)
    if request.format == "html":
        from torchmigrate.planning.html import as_html

        return as_html(plan, links)
    if request.format == "markdown":
        from torchmigrate.planning.markdown import as_markdown

        return as_markdown(plan, links, step=request.step)
    from torchmigrate.planning.terminal import as_table

    style = session.console.style if request.output is None else Style()
    return as_table(plan, style, step=request.step)
