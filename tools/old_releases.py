"""Old code, run on the releases of torch that it was written for, and what came out.

python tools/old_releases.py make DIRECTORY          environments with old releases (about 40 GB)
python tools/old_releases.py record DIRECTORY        run the old sides there, and write tests/recorded/
python tools/old_releases.py try DIRECTORY FILE      run a file on each release, and show what came out

`--only 1.4.0` (more than once, if need be) takes one release; what is recorded of the others stays.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click

TOOLS = Path(__file__).resolve().parent
TESTS = TOOLS.parent / "tests"
sys.path[:0] = [str(TOOLS), str(TESTS)]

from old_torch import environments  # noqa: E402

DIRECTORY = click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
ONLY = click.option(
    "--only", multiple=True, type=click.Choice([item.torch for item in environments.ENVIRONMENTS])
)


@click.group()
def main() -> None:
    """Old code on the old releases of torch."""


def _chosen(only: tuple[str, ...]) -> list[environments.Environment]:
    return [item for item in environments.ENVIRONMENTS if not only or item.torch in only]


@main.command()
@DIRECTORY
@ONLY
def make(directory: Path, only: tuple[str, ...]) -> None:
    """Create the environments below DIRECTORY; what is there already stays."""
    for item in _chosen(only):
        click.echo(f"torch {item.torch} on Python {item.python}", err=True)
        try:
            environments.make(item, directory)
        except (environments.NoPython, subprocess.CalledProcessError) as error:
            raise click.ClickException(f"torch {item.torch}: {error}") from error


@main.command()
@DIRECTORY
@ONLY
@click.option("--file", "files", multiple=True, help="Only this rule file, such as torch/linalg.yaml.")
def record(directory: Path, only: tuple[str, ...], files: tuple[str, ...]) -> None:
    """Run the old sides of all examples on the releases in DIRECTORY, and write what came out."""
    from old_torch import record

    for line in record.record(directory, _chosen(only), files):
        click.echo(line)


@main.command("try")
@DIRECTORY
@click.argument("file", type=click.Path(path_type=Path, exists=True))
@ONLY
def try_file(directory: Path, file: Path, only: tuple[str, ...]) -> None:
    """Run FILE on each release, and show its values, warnings, or what it raised."""
    from old_torch import record

    for item in _chosen(only):
        answer = record.ask(item, directory, [{"before": file.read_text("utf-8"), "after": None}])
        click.echo(f"torch {item.torch}: {answer[0]}")


if __name__ == "__main__":
    main()
