"""The files that commands write their results to."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import click

from torchmigrate.files.reading import explain_os_error
from torchmigrate.files.signals import held
from torchmigrate.source.text import SourceError


def write_output(path: Path, data: bytes, *, parents: bool = False) -> None:
    """Write a file, which need not exist, in one step. A device or a pipe is just written to.

    parents: make its directory, too.

    Raises click.ClickException.
    """
    from torchmigrate.rewrite.apply import write_atomic

    made = False
    try:
        if _is_special(path):
            path.write_bytes(data)
            return
        if parents:
            path.parent.mkdir(parents=True, exist_ok=True)
        with held():  # a signal must not leave an empty file
            try:
                if not os.path.lexists(path):
                    with path.open("xb"):
                        made = True
                write_atomic(path, data)
            except (OSError, SourceError):
                if made:
                    path.unlink(missing_ok=True)
                raise
    except (OSError, SourceError) as error:
        reason = (
            error.reason if isinstance(error, SourceError) else f"cannot write: {explain_os_error(error)}"
        )
        raise click.ClickException(f"{path}: {reason}") from None


def _is_special(path: Path) -> bool:
    """Whether it is something that has no content of its own, such as /dev/stdout."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)
