"""Imports modules, each in a process of its own that has torch already: `python -m watch_imports NAMES`."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import sys
from pathlib import Path

import torch  # noqa: F401
from watching import inside, told, write

SECONDS = 60  # for one import


def tried(name: str, path: Path) -> None:
    """Import one module and tell what came of it."""
    depth = name.count(".") + (path.name == "__init__.py")
    sys.path.insert(0, str(path.parents[depth]))
    sys.argv = [str(path)]
    found: dict[str, object] = {
        "path": inside(str(path)),
        "name": name,
        "error": "",
        "frames": [],
        "about_torch": False,
    }
    signal.alarm(SECONDS)
    try:
        importlib.import_module(name)
    except SystemExit:
        pass
    except BaseException as error:
        found.update(told(error, error.__traceback__))
    write(found)


def main() -> None:
    with Path(os.devnull).open("w") as nowhere:
        for name, path in json.loads(sys.argv[1]):
            child = os.fork()
            if not child:
                with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
                    tried(name, Path(path))
                os._exit(0)
            os.waitpid(child, 0)


if __name__ == "__main__":
    main()
