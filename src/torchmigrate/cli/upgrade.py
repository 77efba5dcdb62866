"""The command `upgrade`: its options, the steps, and the reports."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from torchmigrate.cli.options import (
    ENVIRONMENT,
    SECONDS,
    Command,
    console_options,
    format_option,
    jobs_option,
    listed,
    option,
    version_option,
)

if TYPE_CHECKING:
    from torchmigrate.report.console import Console
    from torchmigrate.report.style import Style
    from torchmigrate.upgrade.model import Report
    from torchmigrate.upgrade.upgrade import Upgrade, UpgradeRequest


@click.command(cls=Command, short_help="Upgrade a project, and verify the result with its own tests.")
@click.argument("path", type=click.Path(path_type=Path), default=".")
@version_option(
    "--to", "--target", "to", help="The torch release to upgrade to. [default: the newest known release]"
)
@option(
    "--test",
    metavar="COMMAND",
    help="The command that runs the tests. [default: pytest -q, if there are tests]",
)
@option(
    "--call-functions",
    is_flag=True,
    help="Without tests: also call functions on made inputs in both environments, and compare the results.",
)
@option(
    "--unsafe-fixes/--no-unsafe-fixes",
    "unsafe",
    help="Include fixes that may change results, and let the tests judge them.",
)
@option(
    "--also",
    "also",
    metavar="TOOLS",
    multiple=True,
    callback=listed,
    help="Also replace what numpy, python (with ruff) or python2 (with fissix) removed.",
)
@option(
    "--evidence/--no-evidence",
    default=True,
    help="Record the types of objects during the tests, which allows more fixes. [default: record]",
)
@option("--dry-run", is_flag=True, help="Show what the command would do, without doing it.")
@option(
    "--resume",
    is_flag=True,
    help="Continue an interrupted upgrade, with the same options unless you pass others.",
)
@option(
    "--work",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="The directory to work in. [default: next to the project]",
)
@option(
    "--time-limit",
    type=SECONDS,
    metavar="MINUTES",
    help="Stop after this time; continue with --resume.",
)
@option(
    "--test-timeout",
    type=SECONDS,
    default=300.0,
    metavar="SECONDS",
    help="The time limit for a single test. [default: 300]",
)
@option(
    "--env",
    "environment",
    type=click.Path(path_type=Path),
    metavar="DIR",
    group=ENVIRONMENT,
    help="An existing environment with the target release. [default: create one]",
)
@option(
    "--old-env",
    "old_environment",
    type=click.Path(path_type=Path),
    metavar="DIR",
    group=ENVIRONMENT,
    help="An environment with the old torch; the tests run there first.",
)
@option(
    "--python",
    metavar="VERSION",
    group=ENVIRONMENT,
    help="The Python for the new environment: a version such as 3.11, or a path.",
)
@option("--index-url", metavar="URL", group=ENVIRONMENT, help="The package index, as for pip.")
@option(
    "--extra-index-url",
    metavar="URL",
    multiple=True,
    group=ENVIRONMENT,
    help="An additional package index, for example for CPU builds.",
)
@option(
    "--install-option",
    "install_options",
    metavar="OPTION",
    multiple=True,
    group=ENVIRONMENT,
    help="An additional option for pip install, such as --no-cache-dir.",
)
@jobs_option
@format_option("report", "text", "markdown", "json", "html")
@console_options
def upgrade(path: Path, output_format: str, **options: Any) -> int:
    """Upgrade a project to a torch release, and verify the result with the project's own tests.

    The command works on a branch in a separate git work tree next to the project and does not touch your
    checkout. It runs the tests on the new torch before it changes anything, and commits fixes by rule or
    migration. It then runs the tests again, and finds and reverts the fixes that make a test fail.

    Exit codes: 0 all tests pass, 1 tests still fail (as they did before), 2 an error occurred.
    """
    from torchmigrate.report.console import Console
    from torchmigrate.upgrade.environment import EnvironmentOptions
    from torchmigrate.upgrade.upgrade import UpgradeRequest
    from torchmigrate.versions.releases import NEWEST, parse_version

    console = Console(**{name: options.pop(name) for name in ("color", "quiet", "verbose")})
    context, is_dry = click.get_current_context(), options.pop("dry_run")
    given = [name for name in options if context.get_parameter_source(name) is not ParameterSource.DEFAULT]
    of_pip = {name: options.pop(name) for name in EnvironmentOptions.__struct_fields__}
    limit = options.pop("time_limit")
    request = UpgradeRequest(
        path=path,
        given=frozenset(given),
        to=parse_version(options.pop("to") or NEWEST),
        options=EnvironmentOptions(**of_pip),
        time_limit=None if limit is None else limit * 60,
        **options,
    )
    if not is_dry:
        return _run(request, console, output_format)
    from torchmigrate.upgrade.model import UpgradeError
    from torchmigrate.upgrade.preview import preview

    try:
        console.out(preview(request, console))
    except UpgradeError as error:
        raise click.ClickException(str(error)) from None
    return DONE


DONE, FAILING, FAILED = 0, 1, 2


def _run(request: UpgradeRequest, console: Console, output_format: str) -> int:
    from torchmigrate.files.signals import catch_sigterm
    from torchmigrate.upgrade.model import UpgradeError
    from torchmigrate.upgrade.processes import OutOfTime
    from torchmigrate.upgrade.upgrade import Upgrade

    catch_sigterm()
    upgrade: Upgrade | None = None
    try:
        upgrade = Upgrade(request, console)
        report = upgrade.run()
        directory = upgrade.space.directory
        for name, kind in _FILES.items():
            text = _rendered(report, kind, console.style)
            (directory / name).write_text(text, encoding="utf-8", errors="backslashreplace")
    except UpgradeError as error:
        raise click.ClickException(str(error)) from None
    except OutOfTime:
        raise click.ClickException(f"the time limit was reached; {_how_to_go_on(upgrade)}") from None
    except OSError as error:  # the disk is full, or something was removed meanwhile
        what = f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error)
        raise click.ClickException(f"{what}; {_how_to_go_on(upgrade)}") from None
    except KeyboardInterrupt:
        console.note(_how_to_go_on(upgrade))
        raise
    console.out(_rendered(report, output_format, console.style))
    console.note(f"Reports: {directory}/report.md, report.html, report.json")
    if report.applied:
        console.note(_how_to_take(upgrade))
    return FAILING if report.bad or report.broken else DONE


def _rendered(report: Report, output_format: str, style: Style) -> str:
    from torchmigrate.report.document import as_markdown, as_text
    from torchmigrate.upgrade.document import document_of
    from torchmigrate.upgrade.json import as_json

    if output_format == "json":
        return as_json(report)
    document = document_of(report)
    if output_format == "text":
        return as_text(document, style)
    if output_format == "markdown":
        return as_markdown(document)
    from torchmigrate.report.web_page import as_html

    return as_html(document)


_FILES = {"report.md": "markdown", "report.html": "html", "report.json": "json"}


def _how_to_go_on(upgrade: Upgrade | None) -> str:
    if upgrade is None or not hasattr(upgrade, "space"):
        return "nothing was started"
    return f"the work so far is in {upgrade.space.directory}; run the same command with --resume to continue"


def _how_to_take(upgrade: Upgrade) -> str:
    space = upgrade.space
    if space.is_copy:
        return f"The upgraded copy is {space.tree}."
    take, remove = f"git merge {space.branch}", f"git worktree remove --force {space.tree}"
    return f"To use it: {take}. To remove the work tree: {remove}"
