"""The shells in which completion is tested. Nothing is downloaded: they have to be installed."""

from __future__ import annotations

import shutil

SHELLS = ("bash", "zsh", "fish")


def lacking_shells() -> list[str]:
    """Those that are not installed."""
    return [shell for shell in SHELLS if shutil.which(shell) is None]
