"""The command `plan`: look, compute, render, write."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

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
from torchmigrate.run.results import say_problems
from torchmigrate.versions.releases import NEWEST

if TYPE_CHECKING:
    from torchmigrate.planning.links import Links
    from torchmigrate.planning.model import Plan


DONE, FAILED = 0, 2


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
    from torchmigrate.planning.links import Links
    from torchmigrate.planning.look import Project

    step = options["target"] is not None
    paths, here = paths or (Path(),), Path.cwd()
    session = Session.from_options(paths, {**options, "target": options["target"] or NEWEST}, guessing=True)
    console, start = session.console, common_directory(paths)
    root = repository_of(start) or session.configurations.start
    try:
        links = Links(link_template, root=root, near=here if output is None else output.parent)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--link-template") from None
    with errors_of_the_user():
        project = Project(paths, session.configurations, console, start=start, root=root, here=here)
        made, problems = project.plan(project.look(project.files, jobs), title)
    style = console.style if output is None else Style()
    text = _rendered(made, output_format, links, style, step=step)
    if output is None:
        console.out(text)
    else:
        from torchmigrate.cli.writing import write_output

        write_output(output, text.encode("utf-8", "backslashreplace"))
    return FAILED if say_problems(problems, console, here) else DONE


def _rendered(plan: Plan, output_format: str, links: Links, style: Style, *, step: bool) -> str:
    if output_format == "json":
        from torchmigrate.planning.json import as_json

        return as_json(plan, links)
    if output_format == "html":
        from torchmigrate.planning.html import as_html

        return as_html(plan, links)
    from torchmigrate.planning.document import document_of
    from torchmigrate.report.document import as_markdown, as_text

    document = document_of(plan, links, step=step)
    return as_markdown(document) if output_format == "markdown" else as_text(document, style)
