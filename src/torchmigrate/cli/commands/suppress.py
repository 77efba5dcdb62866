"""The command `suppress`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from torchmigrate.cli.options import (
    Command,
    baseline_options,
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
    target_option,
    verbose_option,
)


def _reason(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str:
    """The callback of an option for text that becomes part of a comment."""
    reason = (value or "").strip()
    if not reason.isprintable():
        raise click.BadParameter("must be one line of text.")
    if any(not after[:1].isdigit() for after in reason.split("#")[1:]):
        raise click.BadParameter(
            "must not contain `#` except before a number: another comment would start there."
        )
    return reason


@click.command("suppress", cls=Command, short_help="Add suppression comments for all current findings.")
@paths_argument
@option("--reason", metavar="TEXT", callback=_reason, help="The reason to write after the codes.")
@jobs_option
@evidence_option
@selection_options
@target_option
@minimum_option
@file_options
@baseline_options
@quiet_option
@verbose_option
@colour_option
@config_options
def suppress_findings(paths: tuple[Path, ...], reason: str, jobs: int | None, **options: Any) -> int:
    """Add a `# torchmigrate: ignore[CODE] reason` comment to the lines of all findings.

    Existing comments of this kind get the additional codes. Findings in the baseline are not suppressed. If a
    line cannot take a comment, a message on stderr says so.

    Exit codes: 0 done, 1 findings left, 2 an error occurred.
    """
    from torchmigrate.cli.session import Session
    from torchmigrate.cli.suppress import Suppressor

    session = Session.from_options(paths or (Path(),), options)
    return Suppressor(session, reason, jobs, baseline=not options["no_baseline"]).run(paths or (Path(),))
