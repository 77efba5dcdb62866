"""The command `server`: the language server."""

from __future__ import annotations

import click

from torchmigrate.cli.options import Command


@click.command("server", cls=Command, short_help="Run the language server for editors.")
@click.option("--stdio", is_flag=True, hidden=True)  # what editors say of themselves; there is nothing else
def server(stdio: bool) -> int:
    """Run the language server, which an editor starts and speaks to on stdin and stdout.

    It speaks the Language Server Protocol, and needs the extra `lsp`. docs/editors.md says how to set up
    editors, and which options they may give.

    Exit codes: 0 the editor ended it, 1 the editor went away, 2 it could not be started.
    """
    try:
        import pygls  # noqa: F401 (an extra)
    except ImportError:
        raise click.ClickException(
            "`torchmigrate server` needs pygls: pip install 'torchmigrate[lsp]'"
        ) from None
    from torchmigrate.server.stdio import serve

    return serve()
