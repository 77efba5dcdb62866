"""The `server` command: the language server."""

from __future__ import annotations

import click


def run_server() -> int:
    """Serve an editor on stdin and stdout; the exit code. Raises click.ClickException without pygls."""
    try:
        import pygls  # noqa: F401 (an extra)
    except ImportError:
        raise click.ClickException(
            "`torchmigrate server` needs pygls: pip install 'torchmigrate[lsp]'"
        ) from None
    from torchmigrate.server.stdio import serve

    return serve()
