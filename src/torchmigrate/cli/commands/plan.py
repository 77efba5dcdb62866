"""The command `plan`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from torchmigrate.cli.options import (
    OUTPUT,
    Command,
    colour_option,
    config_options,
    evidence_option,
    file_options,
    jobs_option,
    minimum_option,
    option,
    paths_argument,
    quiet_option,
    selection_options,
    verbose_option,
    version_option,
)


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
@option(
    "--output-format",
    type=click.Choice(["table", "markdown", "json", "html"]),
    default="table",
    group=OUTPUT,
    help=(
        "The format of the plan; html is a page with a chart, a filterable table, and source excerpts. "
        "[default: table]"
    ),
)
@option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    group=OUTPUT,
    help="Write the plan to this file instead of stdout.",
)
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
@quiet_option
@verbose_option
@colour_option
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
    from torchmigrate.cli.plan import Request, run_plan
    from torchmigrate.cli.session import Session
    from torchmigrate.versions.releases import NEWEST

    step = options["target"] is not None
    session = Session.from_options(
        paths or (Path(),), {**options, "target": options["target"] or NEWEST}, guessing=True
    )
    return run_plan(
        session, paths or (Path(),), Request(output_format, step, output, title, link_template, jobs)
    )
