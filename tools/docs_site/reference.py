"""The reference of the command line, made from click, and of the configuration, made from its keys."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click

from docs_site.markdown import cell, code, prose, table
from torchmigrate.cli.commands import commands
from torchmigrate.config.keys import KEYS


def command_line() -> str:
    """All commands with their options, as `--help` has them."""
    parts = [
        "---\ntitle: Command line\n---",
        "# Command line",
        "The options of every command, as in `torchmigrate COMMAND --help`. All commands have the same "
        "[exit codes](../exit-codes.md), except where noted.",
    ]
    context = click.Context(commands, info_name="torchmigrate")
    rows = []
    for name, command in commands.everything().items():
        rows.append((f"[`{name}`](#{name})", cell(command.get_short_help_str(limit=200))))
    parts.append(table(("command", "what it does"), rows))
    for name, command in commands.everything().items():
        parts += _command(name, command, context)
    return "\n\n".join(parts) + "\n"


def _command(name: str, command: click.Command, parent: click.Context) -> Iterator[str]:
    context = click.Context(command, info_name=name, parent=parent)
    yield f"## {name}"
    yield f"```text\n{command.get_usage(context).removeprefix('Usage: ')}\n```"
    for paragraph in re.split(r"\n\s*\n", command.help or ""):
        yield prose(paragraph)
    groups: dict[str, list[tuple[str, str]]] = {}
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and isinstance(parameter, click.Option):  # arguments are in the text
            groups.setdefault(getattr(parameter, "group", "Options"), []).append(record)
    for heading, records in groups.items():
        yield f"**{heading}**"
        yield table(("option", "meaning"), ((_option(names), cell(text)) for names, text in records))


def _option(names: str) -> str:
    return code(names.replace("|", "¦")).replace("¦", "\\|")


def configuration() -> str:
    """Every key of a configuration."""
    parts = [
        "---\ntitle: Configuration keys\n---",
        "# Configuration keys",
        "Every key of `[tool.torchmigrate]` in `pyproject.toml`, and of `torchmigrate.toml`. "
        "[Configuration](../configuration.md) describes which file applies, and `torchmigrate config FILE` "
        "shows the settings of a file. For editors, there are JSON Schemas: "
        "[torchmigrate.json](../schemas/torchmigrate.json) and [pyproject.json](../schemas/pyproject.json).",
    ]
    for key in KEYS:
        parts += [f"## {key.name}", prose(key.text)]
        facts = [f"- Type: {key.kind}", f"- Default: {key.default}"]
        if key.option is not None:
            facts.append(f"- Command line: [`{key.option}`](cli.md#check)")
        parts.append("\n".join(facts))
        parts.append(f"```toml\n{key.name} = {key.example}\n```")
    return "\n\n".join(parts) + "\n"
