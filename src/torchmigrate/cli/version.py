"""The command `version`, which ruff's users know."""

from __future__ import annotations

import click

from torchmigrate import __version__
from torchmigrate.cli.options import OUTPUT, Command, option
from torchmigrate.cli.session import open_console


@click.command(cls=Command, short_help="Print the version.")
@option(
    "--output-format",
    type=click.Choice(["text", "json"]),
    default="text",
    group=OUTPUT,
    help="The format of the output. [default: text]",
)
def version(output_format: str) -> int:
    """Print the version of torchmigrate, as `--version` does."""
    import json

    text = json.dumps({"version": __version__}) if output_format == "json" else f"torchmigrate {__version__}"
    open_console("never").out(text + "\n")
    return 0
