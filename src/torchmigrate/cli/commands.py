"""The commands, each in a module of its own."""

from __future__ import annotations

import click

from torchmigrate import __version__
from torchmigrate.cli.options import Group

_HERE = "torchmigrate.cli"
# A run imports only the command that it is about.
_WHERE = {
    "check": f"{_HERE}.check:check",
    "baseline": f"{_HERE}.baseline:baseline",
    "suppress": f"{_HERE}.suppress:suppress_findings",
    "clean": f"{_HERE}.clean:clean",
    "plan": f"{_HERE}.plan:plan",
    "upgrade": f"{_HERE}.upgrade:upgrade",
    "record": f"{_HERE}.record:record",
    "config": f"{_HERE}.config:show_config",
    "explain": f"{_HERE}.explain:explain",
    "rule": f"{_HERE}.explain:rule",
    "rules": f"{_HERE}.rules:rules",
    "server": f"{_HERE}.server:server",
    "mcp": f"{_HERE}.mcp:mcp",
    "test-rules": f"{_HERE}.test_rules:test_rules",
    "fleet": f"{_HERE}.fleet:fleet",
    "version": f"{_HERE}.version:version",
}


@click.group(
    cls=Group,
    where=_WHERE,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 no findings, 1 findings left, 2 an error occurred.",
)
@click.version_option(
    __version__, "-V", "--version", prog_name="torchmigrate", message="%(prog)s %(version)s"
)
def commands() -> None:
    """Find and rewrite PyTorch code that is outdated for the release you migrate to."""
