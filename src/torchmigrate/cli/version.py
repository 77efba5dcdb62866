"""The command `version`, which ruff's users know."""

from __future__ import annotations

import click

from torchmigrate import __version__
from torchmigrate.cli.options import Command, format_option
from torchmigrate.report.console import Console


@click.command(cls=Command, short_help="Print the version.")
@format_option("output", "text", "json")
def version(output_format: str) -> int:
    """Print the version of torchmigrate, as `--version` does."""
    import json

    text = json.dumps({"version": __version__}) if output_format == "json" else f"torchmigrate {__version__}"
    Console("never").out(text + "\n")
    return 0
