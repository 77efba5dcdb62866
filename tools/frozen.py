"""Freeze what the program does with a list of repositories, and compare two such records.

    python tools/frozen.py examples DIRECTORY
    python tools/frozen.py record OUT --command PROGRAM DIRECTORY_OR_LIST...
    python tools/frozen.py compare OLD NEW [--command PROGRAM] [--rule CODE] [--samples 3]

A repository is a directory; a list is a text file with one directory per line. `record` runs PROGRAM, an
installed torchmigrate, on a copy of each directory and writes OUT/NAME.jsonl.gz: the findings of all rules,
what `--fix` and `--unsafe-fixes` change, the plan, exit codes and stderr. This depends on the program and the
content of the directory only. Repositories whose record is up to date are skipped, so an interrupted run can
be repeated. `compare` prints the differences by rule and kind; with `--command` it first records the
directories of OLD into NEW. `examples` writes the examples of all rules as a directory to record.
Exit codes: 0 done, and no differences; 1 differences, or a run that failed.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click
from freezing.compare import compare, report
from freezing.record import Program, read, record


@click.group()
def main() -> None:
    """Freeze what the program does with a list of repositories."""


def directories_of(given: Iterable[Path]) -> list[Path]:
    """The directories that were given, and those in lists.

    Raises:
        click.UsageError: one does not exist, or two have the same name.
    """
    found: dict[str, Path] = {}
    for path in given:
        lines = [] if path.is_dir() else path.read_text(encoding="utf-8").splitlines()
        for directory in [path] if path.is_dir() else [path.parent / line for line in lines if line]:
            if not directory.is_dir():
                raise click.UsageError(f"{directory} is not a directory")
            if found.setdefault(directory.name, directory.resolve()) != directory.resolve():
                raise click.UsageError(f"two repositories are named {directory.name}")
    return [*found.values()]


def options_of_runs(function: Callable[..., None]) -> Callable[..., None]:
    for option in (
        click.option("--workers", default=os.cpu_count() or 1, help="Repositories at the same time."),
        click.option("--jobs", default=1, help="The program's `--jobs`."),
        click.option("--cached", is_flag=True, help="Run `check` twice and record what the cache gives."),
        click.option("--limit", default=600.0, help="Seconds after which a run is stopped."),
    ):
        function = option(function)
    return function


@main.command("record")
@click.argument("out", type=click.Path(file_okay=False, path_type=Path))
@click.argument("given", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--command", required=True, help="The program, as a shell would call it.")
@options_of_runs
def record_command(out: Path, given: tuple[Path, ...], command: str, workers: int, **how: Any) -> None:
    """Record what the program does with each directory, given or listed in a file, into OUT."""
    program = Program(tuple(shlex.split(command)), **how)
    sys.exit(0 if record(out, program, directories_of(given), workers) else 1)


@main.command("compare")
@click.argument("old", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("new", type=click.Path(file_okay=False, path_type=Path))
@click.option("--command", help="First record what this program does with the directories of OLD into NEW.")
@click.option("--rule", default="", help="Only differences of rules whose code begins with this.")
@click.option("--samples", default=3, help="Differences to show of each kind.")
@options_of_runs
def compare_command(
    old: Path, new: Path, command: str | None, rule: str, samples: int, workers: int, **how: Any
) -> None:
    """Print the differences between the records in OLD and NEW."""
    if command is not None:
        given = [Path(next(read(path))["directory"]) for path in sorted(old.glob("*.jsonl.gz"))]
        record(new, Program(tuple(shlex.split(command)), **how), directories_of(given), workers)
    found = [
        each for each in compare(old, new) if any(code.startswith(rule) for code in each.rule.split("/"))
    ]
    for line in report(found, samples):
        click.echo(line.encode("utf-8", "backslashreplace").decode())
    sys.exit(1 if found else 0)


@main.command("examples")
@click.argument("out", type=click.Path(file_okay=False, path_type=Path))
def examples_command(out: Path) -> None:
    """Write the examples of all rules, each as a project of its own, into OUT."""
    from torchmigrate.catalogue.loader import load_directory
    from torchmigrate.catalogue.store import rules_directory

    for item in load_directory(rules_directory()):
        for number, example in enumerate(item.examples, start=1):
            settings = {"minimum": example.minimum, "target": example.target}
            lines = [f'{key} = "{value}"\n' for key, value in settings.items() if value is not None]
            texts = {**example.beside, example.file or "example.py": example.before}
            for name, text in {"torchmigrate.toml": "".join(lines), **texts}.items():
                path = out / f"{item.rule.code}-{number}" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8", newline="")


if __name__ == "__main__":
    main()
