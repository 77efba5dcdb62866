"""What torch and its companions offer in each release: reads it from the sources in their wheels.

python tools/api_data.py read torch 2.13.0 --sources /where/the/wheel/was/unpacked --json out.json
python tools/api_data.py check torch
"""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import sys
import tempfile
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).parent))  # for the modules beside this one, wherever it is run from

from api import explained, wheels
from api.check import check
from api.reader import link, read_release


@click.group()
def main() -> None:
    """Build and check the API data."""


@main.command()
@click.argument("library")
@click.argument("version")
@click.option("--sources", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--json", "out", type=click.Path(dir_okay=False, path_type=Path), required=True)
def read(library: str, version: str, sources: Path | None, out: Path) -> None:
    """Dump one release of LIBRARY as JSON, from its wheel or from SOURCES, where one was unpacked."""
    try:
        if sources is not None:
            entries = read_release(library, sources)
        else:
            with tempfile.TemporaryDirectory() as scratch:
                wheel = wheels.download(library, version, Path(scratch))
                entries = read_release(library, wheels.unpack(wheel, Path(scratch) / "sources"))
    except (wheels.NoWheel, FileNotFoundError) as error:
        raise click.ClickException(str(error)) from error
    shown = {name: shown_entry(dataclasses.asdict(entry)) for name, entry in sorted(entries.items())}
    out.write_text(json.dumps(shown, indent=0), encoding="utf-8")
    click.echo(f"{library} {version}: {len(shown)} names")


@main.command("check")
@click.argument("library", default="torch")
@click.option("--sources", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--all", "everything", is_flag=True, help="Print the explained ones too.")
def check_installed(library: str, sources: Path | None, everything: bool) -> None:
    """Compare what is read of LIBRARY with the installed one, from its own sources or those given."""
    if sources is None:
        spec = importlib.util.find_spec(library)
        if spec is None or spec.origin is None:
            raise click.ClickException(f"{library} is not installed here")
        sources = Path(spec.origin).parent.parent
    report = check(link(library, sources))
    lists = [
        ("read, but not there", report.absent, explained.READ_BUT_ABSENT),
        ("there, but not read", report.unread, explained.NOT_READ),
        ("another signature", report.differing, explained.OTHER_SIGNATURE),
    ]
    left = 0
    for title, names, table in lists:
        open_ones = [
            name for name in names if explained.reason(name.split(" ")[0].rstrip(":"), table) is None
        ]
        left += len(open_ones)
        click.echo(f"{title}: {len(names)}, of these not explained: {len(open_ones)}")
        for name in names if everything else open_ones:
            click.echo(f"  {name}")
    click.echo(f"modules that could not be imported: {len(report.not_imported)}")
    total = report.compared + report.signatures
    click.echo(f"{report.compared} names and {report.signatures} signatures compared, {left} disagree ")
    raise SystemExit(0 if left * 1000 < total else 1)


def shown_entry(entry: dict[str, object]) -> dict[str, object]:
    kind = entry.pop("kind")
    return {"kind": getattr(kind, "value", kind), **{key: part for key, part in entry.items() if part}}


if __name__ == "__main__":
    main()
