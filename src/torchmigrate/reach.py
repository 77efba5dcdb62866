"""Whether a path is there, where a directory on the way may be closed.

`Path.exists` and its like raise PermissionError below a directory that this user may not enter (until
Python 3.14). For looking around, what cannot be reached is not there.
"""

from __future__ import annotations

from pathlib import Path


def exists(path: Path) -> bool:
    """Whether there is something that this user can see."""
    try:
        return path.exists()
    except OSError:
        return False


def is_file(path: Path) -> bool:
    """Whether there is a file that this user can see."""
    try:
        return path.is_file()
    except OSError:
        return False


def is_dir(path: Path) -> bool:
    """Whether there is a directory that this user can see."""
    try:
        return path.is_dir()
    except OSError:
        return False
