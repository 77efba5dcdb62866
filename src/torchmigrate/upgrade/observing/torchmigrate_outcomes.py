"""The output of the programs in this directory: lines of JSON in a file, written as things happen.

A run that crashes or is ended has written everything until then. TORCHMIGRATE_OUTCOMES names the file;
TORCHMIGRATE_ONLY one that lists the tests to run, TORCHMIGRATE_SKIP one that lists the tests, or files of
tests, to leave out, each as a list in JSON. All of this runs in the environment of the project, without
torchmigrate, on Python 3.6 or newer.
"""

import json
import os
import sys

MOST = 2000  # characters of an error
FRAMES = 40  # of a traceback, the innermost
# Now: what runs later may do anything to the environment.
FILE = os.environ.get("TORCHMIGRATE_OUTCOMES", "")


def write(**line: object) -> None:
    """Tell something. The file is opened for each line: whatever a test does to open files, it is written."""
    with open(FILE, "a", encoding="utf-8") as stream:
        stream.write(json.dumps(line) + "\n")


def write_python(pytest: bool = False) -> None:
    """Tell which Python this is, and which torch it has imported. pytest: it is one that runs tests."""
    torch = getattr(sys.modules.get("torch"), "__version__", None)
    version = str(torch) if isinstance(torch, str) else None
    write(kind="python", prefix=sys.prefix, executable=sys.executable, torch=version, pytest=pytest)


def is_left_out(name: str) -> bool:
    """Whether a test is not to be run."""
    if _SKIP is not None and (name in _SKIP or name.partition("::")[0] in _SKIP):
        return True
    return _ONLY is not None and name not in _ONLY


def _listed(variable: str) -> "set[str] | None":
    """The names in the file that a variable names; None: there is none."""
    path = os.environ.get(variable)
    if not path:
        return None
    with open(path, encoding="utf-8") as stream:
        return set(json.load(stream))


_ONLY, _SKIP = _listed("TORCHMIGRATE_ONLY"), _listed("TORCHMIGRATE_SKIP")
