"""The `fleet` commands: many repositories at once, and questions to what was found."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from torchmigrate.cli.options import (
    COUNT,
    ENVIRONMENT,
    FILES,
    OUTPUT,
    VERSIONS,
    Command,
    DefaultGroup,
    color_option,
    format_option,
    minimum_option,
    option,
    quiet_option,
    selection_options,
    version_option,
)

if TYPE_CHECKING:
    from torchmigrate.fleet.fleet import FleetRequest, Outcome
    from torchmigrate.report.console import Console

DONE, FAILED = 0, 2
DIRECTORY = "torchmigrate-fleet"
_LISTED = 20  # repositories that could not be examined are named, at most


@click.group(
    "fleet",
    cls=DefaultGroup,
    default="run",
    short_help="Plan the move of many repositories.",
)
def fleet() -> None:
    """Examine many repositories, and show which of them block the move to a release.

    `torchmigrate fleet REPOS` is short for `torchmigrate fleet run REPOS`. Needs the extra `fleet`.
    """


_results = option(
    "-d",
    "--results",
    type=click.Path(file_okay=False, path_type=Path),
    default=DIRECTORY,
    metavar="DIRECTORY",
    group=FILES,
    help=f"The --output directory of the runs. [default: {DIRECTORY}]",
)
_format = format_option("answer", "table", "csv", "json")


@fleet.command("run", cls=Command, short_help="Examine the repositories of a list.")
@click.argument("repos", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@version_option(
    "--to", "--target", "target", help="The release to move to. [default: the newest known release]"
)
@minimum_option
@selection_options
@option("--isolated", is_flag=True, group=VERSIONS, help="Ignore the configurations of the repositories.")
@option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=DIRECTORY,
    metavar="DIRECTORY",
    group=OUTPUT,
    help=f"The directory of the results. [default: {DIRECTORY}]",
)
@option("--excerpts", is_flag=True, group=OUTPUT, help="Show lines of source in the results.")
@option(
    "--resume/--no-resume",
    default=True,
    group=ENVIRONMENT,
    help="Use earlier results for repositories that have not changed since. [default: --resume]",
)
@option(
    "--scheduler",
    metavar="ADDRESS",
    group=ENVIRONMENT,
    help="The Dask scheduler of a cluster, such as tcp://10.0.0.1:8786. [default: processes on this machine]",
)
@option(
    "--workers",
    type=COUNT,
    metavar="N",
    group=ENVIRONMENT,
    help="The number of processes on this machine. [default: one for each processor]",
)
@option(
    "--clones",
    metavar="DIRECTORY",
    group=ENVIRONMENT,
    help="Where the workers keep clones. [default: the user's cache]",
)
@option(
    "--time-limit",
    type=COUNT,
    default=600,
    metavar="SECONDS",
    group=ENVIRONMENT,
    help="How long a repository, or a part of a large one, may take. [default: 600]",
)
@option(
    "--memory-limit",
    type=COUNT,
    default=2000,
    metavar="MB",
    group=ENVIRONMENT,
    help="How much memory a repository, or a part of a large one, may take. [default: 2000]",
)
@option(
    "--retries",
    type=click.IntRange(0, 10),
    default=1,
    metavar="N",
    group=ENVIRONMENT,
    help="How often to try again a repository that could not be examined. [default: 1]",
)
@quiet_option
@option("-v", "--verbose", is_flag=True, group=OUTPUT, help="Also say what became of each repository.")
@color_option
def run(repos: Path, **options: Any) -> int:
    """Examine the repositories of the list REPOS, and write tables, plans and a page about all of them.

    REPOS is a text file with an address in each line (optionally followed by a revision and an owner), a CSV
    file with the columns address, revision, owner and name, or a YAML file with a list of these. An address
    is a directory or anything that `git clone` takes.

    The results are Parquet files, a page (index.html), and the plan of each repository. The same command
    examines only what has changed since, and what could not be examined.

    Exit codes: 0 done, 2 a repository could not be examined or an error occurred.
    """
    from torchmigrate.report.console import Console

    if options["scheduler"] is not None and options["workers"] is not None:
        raise click.UsageError("--workers is about this machine: a scheduler has its own workers.")
    console = Console(options["color"], quiet=options["quiet"], verbose=options["verbose"])
    with _errors("cryptography", "distributed", "duckdb", "filelock", "psutil", "pyarrow"):
        return _run(_request(repos, options), console)


@fleet.command(cls=Command, short_help="Ask a question about the results, in SQL.")
@click.argument("query", metavar="SQL|NAME")
@_results
@option("--run", metavar="RUN", group=FILES, help="The run to ask about. [default: the newest]")
@version_option("--release", help="The release for `blocking`. [default: the target]")
@_format
@color_option
def query(
    query: str, results: Path, run: str | None, release: str | None, output_format: str, color: str
) -> int:
    """Ask a question about the results of `torchmigrate fleet`, in the SQL of DuckDB.

    The tables are `runs`, `repositories`, `findings`, `releases` and `unread`, of the newest run;
    `all_findings` and so on hold all runs. `release('2.10')` makes releases comparable. docs/fleet.md lists
    the columns.

    There are names for three questions: `blocking` (which repositories a release does not run, and because of
    what), `rules` (which rules are found most) and `owners` (what is left to do, by owner).

    Exit codes: 0 done, 2 an error occurred.
    """
    from torchmigrate.fleet.answers import as_text
    from torchmigrate.fleet.queries import READY, opened
    from torchmigrate.fleet.store import Store
    from torchmigrate.report.console import Console

    with _errors("duckdb"), opened(Store(results), run) as tables:
        ready = READY.get(query)
        values = {"release": release or tables.target} if ready and "$release" in ready.sql else {}
        text = as_text(tables.ask(ready.sql if ready else query, values), output_format)
    Console(color).out(text)
    return DONE


@fleet.command(cls=Command, short_help="Show what changed between two runs.")
@click.argument("before", required=False)
@click.argument("after", required=False)
@_results
@_format
@color_option
def compare(before: str | None, after: str | None, results: Path, output_format: str, color: str) -> int:
    """Show the places that are new, gone or moved in a run.

    AFTER (default: the newest run) is compared with BEFORE (default: the run before it), in the repositories
    that both examined.

    Exit codes: 0 done, 2 an error occurred.
    """
    from torchmigrate.fleet.answers import as_text
    from torchmigrate.fleet.model import FleetError
    from torchmigrate.fleet.queries import opened
    from torchmigrate.fleet.store import Store
    from torchmigrate.report.console import Console

    with _errors("duckdb"), opened(Store(results), after) as tables:
        first = before or tables.before(tables.run)
        if first is None:
            raise FleetError(f"{results}: there is no run before {tables.run}")
        if first not in tables.runs:
            raise FleetError(f"{results}: has no run {first}; it has {', '.join(tables.runs)}")
        text = as_text(tables.changes(first, tables.run), output_format)
    Console(color).out(text)
    return DONE


@contextmanager
def _errors(*packages: str) -> Iterator[None]:
    """End the command with one line where the extra is not installed, or something cannot be done."""
    from importlib.util import find_spec

    from torchmigrate.fleet.model import FleetError

    lacking = [name for name in packages if find_spec(name) is None]
    if lacking:
        raise click.ClickException(
            f"`torchmigrate fleet` needs {', '.join(lacking)}: pip install 'torchmigrate[fleet]'"
        )
    try:
        yield
    except FleetError as error:
        raise click.ClickException(str(error)) from None


def _run(request: FleetRequest, console: Console) -> int:
    from torchmigrate.files.signals import catch_sigterm
    from torchmigrate.fleet.fleet import Fleet

    catch_sigterm()
    fleet = Fleet(
        request,
        said=lambda name, what: console.detail(f"{name}: {what}"),
        noted=lambda text: console.note(f"warning: {text}"),
    )
    try:
        with console.progress("Examining") as progress:
            outcome = fleet.run(progress)
    except KeyboardInterrupt:
        if fleet.outcome.page is not None:
            _say(fleet.outcome, request, console)
        raise
    _say(outcome, request, console)
    return FAILED if outcome.failed else DONE


def _say(outcome: Outcome, request: FleetRequest, console: Console) -> None:
    for name, error in sorted(outcome.failed.items())[:_LISTED]:
        console.error(f"{name}: {error.why}")
    if len(outcome.failed) > _LISTED:
        console.error(f"… and {len(outcome.failed) - _LISTED} more")
    total = len(request.repositories)
    parts = [f"{len(outcome.examined)} examined", f"{len(outcome.reused)} unchanged"]
    if outcome.failed:
        parts.append(f"{len(outcome.failed)} failed")
    left = total - outcome.finished
    if left:
        parts.append(f"{left} not reached; the same command goes on from there")
    console.note(f"{total} {'repository' if total == 1 else 'repositories'}: {', '.join(parts)}.")
    console.note(f"Page: {outcome.page}")


def _request(repos: Path, options: dict[str, Any]) -> FleetRequest:
    from torchmigrate.cli.session import Session
    from torchmigrate.config.settings import Layer
    from torchmigrate.fleet.fleet import FleetRequest
    from torchmigrate.fleet.model import FleetSettings, Limits
    from torchmigrate.fleet.repositories import read_repositories
    from torchmigrate.versions.releases import NEWEST

    ignore = (*options["ignore"], *options["extend_ignore"])
    same = {name: options[name] for name in ("minimum", "select", "extend_select", "isolated", "excerpts")}
    settings = FleetSettings(target=options["target"] or NEWEST, ignore=ignore, **same)
    # Options that no repository could use are reported once, before the run.
    asked = Layer(
        option="--{}",
        target=settings.target,
        minimum=settings.minimum,
        select=settings.select or None,
        extend_select=settings.extend_select,
        ignore=settings.ignore,
    )
    _ = Session.open([Path()], isolated=True, command_line=asked, detect=False).settings
    same = {name: options[name] for name in ("output", "scheduler", "workers", "clones", "resume", "retries")}
    limits = Limits(float(options["time_limit"]), options["memory_limit"])
    return FleetRequest(repositories=read_repositories(repos), settings=settings, limits=limits, **same)
