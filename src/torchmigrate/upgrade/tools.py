"""Other tools that mend what keeps an old project from running, and is not about torch."""

from __future__ import annotations

import ast
import importlib.util
import shutil
import sys
import sysconfig
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct

from torchmigrate.upgrade.model import UpgradeError
from torchmigrate.upgrade.processes import Clock, run
from torchmigrate.upgrade.workspace import Workspace

_MOST_AT_ONCE = 200  # files of one call: a command line must not get too long


class Tool(Struct, frozen=True):
    """A tool whose changes are a group. run: changes files of the tree, named relative to it."""

    key: str
    title: str
    why: str
    run: Callable[[Workspace, Sequence[str], Clock], None]


def tools_of(names: Sequence[str]) -> list[Tool]:
    """The tools with some names, in the order in which they have to run.

    Raises UpgradeError where one is unknown, or not installed.
    """
    for name in names:
        if name not in _TOOLS:
            raise UpgradeError(f"--also: `{name}` is unknown; choose from {', '.join(_TOOLS)}")
    found = [tool for name, tool in _TOOLS.items() if name in names]
    for tool in found:
        _REQUIRES[tool.key]()
    return found


def _ruff() -> str:
    installed = Path(sysconfig.get_path("scripts")) / "ruff"
    found = str(installed) if installed.exists() else shutil.which("ruff")
    if found is None:
        raise UpgradeError("--also numpy and --also python need ruff: pip install 'torchmigrate[upgrade]'")
    return found


def _fissix() -> str:
    if importlib.util.find_spec("fissix") is None:
        raise UpgradeError("--also python2 needs fissix: pip install 'torchmigrate[upgrade]'")
    return sys.executable


def _with_ruff(rules: str, space: Workspace, paths: Sequence[str], clock: Clock) -> None:
    options = ["check", "--isolated", "--select", rules, "--fix", "--exit-zero", "--quiet", "--no-cache"]
    for start in range(0, len(paths), _MOST_AT_ONCE):
        some = paths[start : start + _MOST_AT_ONCE]
        run([_ruff(), *options, "--", *some], directory=space.tree, log=space.log, clock=clock)


def _python2(space: Workspace, paths: Sequence[str], clock: Clock) -> None:
    old = [path for path in paths if not _parses(space.tree / path)]
    for start in range(0, len(old), _MOST_AT_ONCE):
        some = old[start : start + _MOST_AT_ONCE]
        arguments = [_fissix(), "-m", "fissix", "--write", "--nobackups", "--no-diffs", *some]
        run(arguments, directory=space.tree, log=space.log, clock=clock)


def _parses(path: Path) -> bool:
    try:
        ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    except OSError:
        pass
    return True


_TOOLS = {
    "python2": Tool("python2", "Convert Python 2 to Python 3 (fissix)", "", _python2),
    "python": Tool(
        "python",
        "Update imports that Python moved (ruff UP035)",
        "Python 3.10 removed aliases such as `from collections import Sequence`.",
        partial(_with_ruff, "UP035"),
    ),
    "numpy": Tool(
        "numpy",
        "Replace what NumPy removed (ruff NPY)",
        "",
        partial(_with_ruff, "NPY001,NPY003,NPY201"),
    ),
}
_REQUIRES: dict[str, Callable[[], str]] = {"numpy": _ruff, "python": _ruff, "python2": _fissix}
