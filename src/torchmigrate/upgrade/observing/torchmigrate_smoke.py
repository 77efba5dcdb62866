"""Imports modules, runs scripts with `--help` and calls functions; reports each outcome as the plugin does.

It runs in the environment of the project, where there are no tests: `torchmigrate_smoke.py LIST`; every item
of the list is ["import", module, path], ["help", path, path] or ["call", function, path, plan]. Each has a
process of its own, forked from one that has torch already. `torchmigrate_smoke.py LIST RESULTS` runs in the
old environment: what functions give there is added to a file, for the plans of the new one. Written for
Python 3.6 and without torchmigrate.
"""

import importlib
import json
import os
import runpy
import signal
import sys
import traceback
import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import torchmigrate_calls as calls  # type: ignore[import-not-found]
from torchmigrate_outcomes import FRAMES, MOST, is_left_out, write  # type: ignore[import-not-found]


def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as stream:
        items = json.load(stream)
    with suppress(Exception):  # each item reports it itself
        import torch  # noqa: F401 - so that each process need not
    items = [item for item in items if not is_left_out(_name(item))]
    write(kind="collected", count=len(items))
    bad = 0
    for item in items:
        write(kind="start", id=_name(item))
        child = os.fork()
        if not child:
            os._exit(_try(item))
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            outcome, message = "crashed", "signal %d" % number
            if number == signal.SIGALRM:
                outcome, message = "hung", "took longer than %d s" % calls.SECONDS
            write(kind="outcome", id=_name(item), outcome=outcome, frames=[], message=message)
        bad += bool(status)
        write(kind="end", id=_name(item))
    write(kind="finished", code=bool(bad))
    sys.exit(1 if bad else 0)


def _name(item: "Sequence[Any]") -> str:
    return " ".join(item[:2])


def _try(item: "Sequence[Any]") -> int:
    """What one item comes to; the exit code."""
    kind, what, path = item[:3]
    directory = os.path.dirname(os.path.abspath(path))
    warnings.simplefilter("default")
    warnings.showwarning = _warned
    outcome, message = "passed", ""
    frames: list[list[object]] = []
    try:
        if kind == "import":
            sys.argv = [path]
            sys.path.append(directory)  # scripts import what is next to them
            importlib.import_module(what)
        elif kind == "call":
            sys.path.append(directory)
            _call(what, item[3])
        else:
            sys.argv = [path, "--help"]
            sys.path.insert(0, directory)
            runpy.run_path(path, run_name="__main__")
    except SystemExit as end:
        if end.code not in (None, 0):
            outcome, message = "failed", "exit code %s" % (end.code,)
    except calls.Unsuitable as error:
        outcome, message = "skipped", str(error)
    except calls.Differs as error:
        outcome, message, frames = "failed", str(error), error.frames
    except BaseException as error:
        outcome = "failed"
        message = "".join(traceback.format_exception_only(type(error), error)).strip()
        frames = [[frame.filename, frame.lineno or 0] for frame in traceback.extract_tb(error.__traceback__)]
        if isinstance(error, SyntaxError) and error.filename:
            frames.append([error.filename, error.lineno or 0])
    write(kind="outcome", id=_name(item), outcome=outcome, message=message[:MOST], frames=frames[-FRAMES:])
    return int(outcome == "failed")


def _call(what: str, plan: "dict[str, Any]") -> None:
    importlib.import_module(plan["module"])
    calls.restrict()
    try:
        if "old" in plan:
            calls.compare(plan, plan["old"], plan["torch"])
            return
        result = calls.old_result(plan)
    finally:
        calls.release()
    with open(sys.argv[2], "a", encoding="utf-8") as stream:
        stream.write(json.dumps({"id": what, "old": result}) + "\n")


def _warned(
    message: "Warning | str",
    category: "type[Warning]",
    filename: str,
    lineno: int,
    file: object = None,
    line: object = None,
) -> None:
    said = str(message)[:MOST]
    write(kind="warning", category=category.__name__, message=said, path=filename, line=lineno, test="")


if __name__ == "__main__":
    main()
