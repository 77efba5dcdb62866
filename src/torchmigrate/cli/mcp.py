"""The command `mcp`: a server of the Model Context Protocol, for coding agents."""

from __future__ import annotations

from pathlib import Path

import click

from torchmigrate.cli.options import COUNT, SECONDS, Command, option


@click.command("mcp", cls=Command, short_help="Run the MCP server for coding agents.")
@option(
    "--root",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path(),
    metavar="DIR",
    help="The directory that the agent may check and fix; paths outside are rejected. [default: the current "
    "directory]",
)
@option(
    "--max-files",
    type=COUNT,
    default=5000,
    metavar="N",
    help="Reject calls that concern more files. [default: 5000]",
)
@option(
    "--time-limit",
    type=SECONDS,
    default=120,
    metavar="SECONDS",
    help="How long a call may take. [default: 120]",
)
def mcp(root: Path, max_files: int, time_limit: float) -> int:
    """Run a server of the Model Context Protocol (MCP), which a coding agent starts and uses.

    Its tools are check, explain, fix and plan; fix returns a diff and writes files only on request. The
    server needs the extra `mcp`. docs/agents.md shows how to add it to an agent.

    Exit codes: 0 the agent closed stdin, 2 the server could not be started.
    """
    try:
        from mcp.server import MCPServer  # noqa: F401 (an extra, from 2.0 on)
    except ImportError:
        raise click.ClickException('`torchmigrate mcp` needs mcp: pip install "torchmigrate[mcp]"') from None
    from torchmigrate.server.mcp import Limits, serve

    serve(root, Limits(max_files, time_limit))
    return 0
