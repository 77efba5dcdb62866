"""The command `upgrade`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from torchmigrate.cli.options import (
    ENVIRONMENT,
    OUTPUT,
    Command,
    colour_option,
    jobs_option,
    listed,
    option,
    positive,
    quiet_option,
    verbose_option,
    version_option,
)

# Option -> field of the request, where their names differ.
_FIELDS = {"target": "to", "unsafe_fixes": "unsafe", "install_option": "install_options"}


@click.command(cls=Command, short_help="Upgrade a project, and verify the result with its own tests.")
@click.argument("path", type=click.Path(path_type=Path), default=".")
@version_option(
    "--to", "--target", "target", help="The torch release to upgrade to. [default: the newest known release]"
)
@option(
    "--test",
    metavar="COMMAND",
    help="The command that runs the tests. [default: pytest -q, if there are tests]",
)
@option(
    "--unsafe-fixes/--no-unsafe-fixes",
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
    type=float,
    callback=positive,
    metavar="MINUTES",
    help="Stop after this time; continue with --resume.",
)
@option(
    "--test-timeout",
    type=float,
    callback=positive,
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
    metavar="OPTION",
    multiple=True,
    group=ENVIRONMENT,
    help="An additional option for pip install, such as --no-cache-dir.",
)
@jobs_option
@option(
    "--output-format",
    type=click.Choice(["text", "markdown", "json", "html"]),
    default="text",
    group=OUTPUT,
    help="The format of the report. [default: text]",
)
@quiet_option
@verbose_option
@colour_option
def upgrade(path: Path, output_format: str, **options: Any) -> int:
    """Upgrade a project to a torch release, and verify the result with the project's own tests.

    The command works on a branch in a separate git work tree next to the project and does not touch your
    checkout. It runs the tests on the new torch before it changes anything, and commits fixes by rule or
    migration. It then runs the tests again, and finds and reverts the fixes that make a test fail.

    Exit codes: 0 all tests pass, 1 tests still fail (as they did before), 2 an error occurred.
    """
    from torchmigrate.cli.session import open_console
    from torchmigrate.cli.upgrade import dry_run, run_upgrade
    from torchmigrate.upgrade.environment import Options
    from torchmigrate.upgrade.upgrade import Request
    from torchmigrate.versions.releases import NEWEST, parse_version

    console = open_console(options["colour"], quiet=options["quiet"], verbose=options["verbose"])
    limit = options["time_limit"]
    context = click.get_current_context()
    request = Request(
        path=path,
        given=frozenset(
            _FIELDS.get(name, name)
            for name in options
            if context.get_parameter_source(name) is not ParameterSource.DEFAULT
        ),
        to=parse_version(options["target"] or NEWEST),
        test=options["test"],
        environment=options["environment"],
        old_environment=options["old_environment"],
        options=Options(
            options["python"], options["index_url"], options["extra_index_url"], options["install_option"]
        ),
        unsafe=options["unsafe_fixes"],
        evidence=options["evidence"],
        also=options["also"],
        work=options["work"],
        resume=options["resume"],
        jobs=options["jobs"],
        time_limit=None if limit is None else limit * 60,
        test_timeout=options["test_timeout"],
    )
    if options["dry_run"]:
        return dry_run(request, console)
    return run_upgrade(request, console, output_format)
