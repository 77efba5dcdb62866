"""What torch and its companions offer in each release: reads it from the sources in their wheels.

    python tools/api_data.py read torch 2.13.0 --sources /where/the/wheel/was/unpacked --json out.json
"""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).parent))  # for the modules beside this one, wherever it is run from

from api.reader import read_release  # noqa: E402


@click.group()
def main() -> None:
    """Build and check the API data."""


@main.command()
@click.argument("library")
@click.argument("version")
@click.option("--sources", type=click.Path(exists=True, file_okay=False, path_type=Path), required=True)
@click.option("--json", "out", type=click.Path(dir_okay=False, path_type=Path), required=True)
def read(library: str, version: str, sources: Path, out: Path) -> None:
    """Dump one release of LIBRARY as JSON."""
    entries = read_release(library, sources)
    shown = {name: shown_entry(dataclasses.asdict(entry)) for name, entry in sorted(entries.items())}
    out.write_text(json.dumps(shown, indent=0), encoding="utf-8")
    click.echo(f"{library} {version}: {len(shown)} names")


def shown_entry(entry: dict[str, object]) -> dict[str, object]:
    kind = entry.pop("kind")
    return {"kind": getattr(kind, "value", kind), **{key: part for key, part in entry.items() if part}}


if __name__ == "__main__":
    main()
