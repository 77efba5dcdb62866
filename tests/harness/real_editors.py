"""The editors in which the server is tested. Nothing is downloaded: they have to be installed."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache
from typing import NamedTuple


class RealEditor(NamedTuple):
    """since: the first release that docs/editors.md is about."""

    program: str
    since: tuple[int, ...]


EDITORS = {
    "Neovim": RealEditor("nvim", (0, 11)),
    "Emacs": RealEditor("emacs", (29,)),
    "Helix": RealEditor("hx", (23, 5)),
}


@cache
def lacking(name: str) -> str | None:
    """Why an editor cannot be used; None: it can."""
    program, since = EDITORS[name]
    wanted = f"{name} {'.'.join(map(str, since))} or newer"
    if shutil.which(program) is None:
        return f"{wanted} is not installed"
    shown = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
    found = re.search(r"\d+(\.\d+)+", shown)
    if found is None or tuple(map(int, found[0].split("."))) < since:
        return f"{wanted} is not installed, but {found[0] if found else 'another one'} is"
    return None


def lacking_editors() -> list[str]:
    """Why editors cannot be used, for those that cannot."""
    return [why for why in map(lacking, EDITORS) if why is not None]
