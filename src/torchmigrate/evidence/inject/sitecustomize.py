"""Starts the recorder in every Python that the recorded command runs; then the own `sitecustomize` runs.

This directory is on PYTHONPATH for such a command, so that Python finds this file first. Any Python can read
it; those before 3.6 record nothing. For the tests of an upgrade, it also tells which Pythons run, and which
torch they import.
"""

import os
import sys


def _start():  # type: () -> None
    here = os.path.dirname(os.path.abspath(__file__))
    if sys.version_info >= (3, 6):  # noqa: UP036
        try:
            if "TORCHMIGRATE_RECORD" in os.environ:
                import torchmigrate_recorder  # type: ignore[import-not-found]

                torchmigrate_recorder.start_from_environment()
            if "TORCHMIGRATE_OUTCOMES" in os.environ:
                import atexit

                from torchmigrate_outcomes import write_python  # type: ignore[import-not-found]

                atexit.register(write_python)
        except Exception as error:  # the program runs all the same
            sys.stderr.write("torchmigrate: nothing is recorded: %s\n" % (error,))
    # The program finds its modules where it would without this directory.
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != here]
    mine = sys.modules.pop("sitecustomize", None)
    sys.path_importer_cache.pop(here, None)
    try:
        import sitecustomize  # type: ignore[import-not-found]  # noqa: F401
    except ImportError as error:
        if getattr(error, "name", "sitecustomize") != "sitecustomize":
            raise
    finally:
        if mine is not None:
            sys.modules.setdefault("sitecustomize", mine)


_start()
