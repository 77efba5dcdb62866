"""Runs a script as `python SCRIPT ...` does, and records it. Any Python can read it; old ones only run it."""

import os
import sys

if sys.version_info >= (3, 6):  # noqa: UP036
    import torchmigrate_recorder  # type: ignore[import-not-found]

    torchmigrate_recorder.main(sys.argv[1:])
else:
    import runpy

    del sys.argv[0]
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    runpy.run_path(sys.argv[0], run_name="__main__")
