"""The command `config`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from torchmigrate.cli.options import (
    OUTPUT,
    Command,
    cache_dir_option,
    colour_option,
    config_options,
    evidence_option,
    file_options,
    minimum_option,
    option,
    quiet_option,
    selection_options,
    target_option,
    verbose_option,
)


@click.command("config", cls=Command, short_help="Show the settings that hold for a file.")
@click.argument("path", metavar="[FILE]", type=click.Path(readable=False, path_type=Path), default=".")
@option(
    "--schema",
    type=click.Choice(["torchmigrate", "pyproject", "rules"]),
    help="Print the JSON Schema of torchmigrate.toml, of pyproject.toml or of rule files instead.",
)
@option(
    "--unsafe-fixes/--no-unsafe-fixes",
    default=None,
    help="Also count and apply fixes that may change results.",
)
@evidence_option
@selection_options
@target_option
@minimum_option
@file_options
@option(
    "--output-format",
    type=click.Choice(["text", "json"]),
    default="text",
    group=OUTPUT,
    help="Format of the output. [default: text]",
)
@quiet_option
@verbose_option
@colour_option
@config_options
@cache_dir_option
def show_config(path: Path, schema: str | None, output_format: str, **options: Any) -> int:
    """Show the settings that hold for a file or a directory (default: the current one), which need not exist.

    Each setting comes with its origin: the default, a file (the minimum may be from one that states what the
    project requires), or the command line. Takes the options of `check` that change settings.

    Exit codes: 0 done, 2 a configuration cannot be used.
    """
    if schema is not None:
        import json

        from torchmigrate.authoring.schemas import schema as made
        from torchmigrate.cli.session import open_console

        open_console(options["colour"]).out(json.dumps(made(schema), indent=2) + "\n")
        return 0
    from torchmigrate.cli.config import show_settings
    from torchmigrate.cli.session import Session

    return show_settings(Session.from_options([path], options), path, output_format)
