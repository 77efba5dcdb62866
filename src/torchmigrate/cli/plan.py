"""The command `plan`: look, compute, render, write."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from torchmigrate.cli.options import (
    OUTPUT,
    Command,
    config_options,
    console_options,
    evidence_option,
    file_options,
    format_option,
    jobs_option,
    minimum_option,
    option,
    output_option,
    paths_argument,
    selection_options,
    version_option,
)
from torchmigrate.cli.session import Session, errors_of_the_user
from torchmigrate.files.paths import common_directory, repository_of
from torchmigrate.report.style import Style
from torchmigrate.report.summary import plural
from torchmigrate.versions.releases import NEWEST

if TYPE_CHECKING:
    from torchmigrate.planning.links import Links
    from torchmigrate.planning.model import Plan


@click.command(cls=Command, short_help="Show what each torch release breaks in a project.")
@paths_argument
@jobs_option
@evidence_option
@version_option(
    "--to",
    "--target",
    "target",
    help="The release to plan for; lists everything to do for it. [default: the newest known release, "
    "without a list]",
)
@minimum_option
@selection_options
@file_options
@format_option(
    "plan",
    *("table", "markdown", "json", "html"),
    more="; html is a page with a chart, a filterable table, and source excerpts",
)
@output_option(help="Write the plan to this file instead of stdout.")
@option(
    "--link-template",
    metavar="URL",
    group=OUTPUT,
    help="The link for each place, such as https://github.com/o/r/blob/main/{path}#L{line}; the path is "
    "relative to the root of the repository. [default: the file itself]",
)
@option(
    "--title",
    metavar="TEXT",
    group=OUTPUT,
    help="The name of the project. [default: the name of its directory]",
)
@console_options
@config_options
def plan(
    paths: tuple[Path, ...],
    jobs: int | None,
    output_format: str,
    output: Path | None,
    link_template: str | None,
    title: str | None,
    **options: Any,
) -> int:
    """Show the upgrade plan for files and directories (default: the current directory).

    The plan lists the places that no fix can change, then a table of the torch releases from the project's
    minimum to the newest. Each row counts the places that break on import, raise when reached, may raise,
    silently change their results or warn on these releases, the places for which that is new (+), and the
    effort to change them. Releases with the same counts share a row. Finally, the plan lists files that were
    not read. The command ignores the target in the configuration.

    Exit codes: 0 done, 2 an error occurred.
    """
    step = options["target"] is not None
    session = Session.from_options(
        paths or (Path(),), {**options, "target": options["target"] or NEWEST}, guessing=True
    )
    return run_plan(
        session, paths or (Path(),), Request(output_format, step, output, title, link_template, jobs)
    )


DONE, FAILED = 0, 2


class Request(Struct, frozen=True, eq=False):
    """The options of a run.

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
    from torchmigrate.planning.look import plan_of

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
        from torchmigrate.cli.writing import write_output

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
    from torchmigrate.planning.links import Links

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
    from torchmigrate.planning.document import document_of
    from torchmigrate.report.document import as_markdown, as_text

    document = document_of(plan, links, step=request.step)
    if request.format == "markdown":
        return as_markdown(document)
    return as_text(document, session.console.style if request.output is None else Style())
