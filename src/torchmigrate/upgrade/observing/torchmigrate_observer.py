"""A pytest plugin that writes what happens to a file, line by line, as it happens.

It runs in the environment of the project, where torchmigrate need not be: it imports nothing of it, and is
written for Python 3.7 and pytest 4 as well. A run that crashes or is ended has told all it knew.

TORCHMIGRATE_OUTCOMES names the file; TORCHMIGRATE_ONLY one that lists the tests to run, TORCHMIGRATE_SKIP one
that lists those to leave out, each as a list in JSON.
"""

from __future__ import annotations

import json
import os
import re
from typing import Any

import pytest

_MOST = 2000  # characters of an error
_FRAMES = 40
_WARNINGS = 2000


class _Observer:
    def __init__(self, path: str) -> None:
        self.path = path
        self.warned: set[tuple[Any, ...]] = set()

    def write(self, **line: object) -> None:
        # Opened for each line: whatever a test does to open files, the line is written.
        with open(self.path, "a", encoding="utf-8") as stream:
            stream.write(json.dumps(line) + "\n")

    # ---- what pytest calls

    def pytest_collection_modifyitems(self, config: Any, items: list[Any]) -> None:
        only, skip = _listed("TORCHMIGRATE_ONLY"), _listed("TORCHMIGRATE_SKIP")
        left_out = [
            item
            for item in items
            if (only is not None and item.nodeid not in only) or item.nodeid in (skip or ())
        ]
        if left_out:
            config.hook.pytest_deselected(items=left_out)
            gone = set(map(id, left_out))
            items[:] = [item for item in items if id(item) not in gone]

    def pytest_collection_finish(self, session: Any) -> None:
        self.write(kind="collected", count=len(session.items))

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            message, frames = _error(report)
            self.write(kind="unloaded", id=report.nodeid, message=message, frames=frames)

    def pytest_runtest_logstart(self, nodeid: str, location: object) -> None:
        self.write(kind="start", id=nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when != "call" and report.outcome == "passed":
            return
        outcome = report.outcome
        if hasattr(report, "wasxfail"):
            outcome = "xfailed" if outcome == "skipped" else outcome
        elif outcome == "failed" and report.when != "call":
            outcome = "error"
        message, frames = _error(report) if report.failed else ("", [])
        self.write(kind="outcome", id=report.nodeid, outcome=outcome, message=message, frames=frames)

    def pytest_runtest_logfinish(self, nodeid: str, location: object) -> None:
        self.write(kind="end", id=nodeid)

    @pytest.hookimpl(optionalhook=True)
    def pytest_warning_recorded(
        self, warning_message: Any, when: object, nodeid: str, location: object
    ) -> None:
        self.warn(warning_message)

    if int(pytest.__version__.split(".")[0]) < 6:

        @pytest.hookimpl(optionalhook=True)
        def pytest_warning_captured(self, warning_message: Any, when: object, item: object) -> None:
            self.warn(warning_message)

    def warn(self, warning: Any) -> None:
        key = (warning.category.__name__, str(warning.message)[:_MOST], warning.filename, warning.lineno)
        if key not in self.warned and len(self.warned) < _WARNINGS:
            self.warned.add(key)
            self.write(kind="warning", category=key[0], message=key[1], path=key[2], line=key[3])

    def pytest_sessionfinish(self, session: object, exitstatus: int) -> None:
        self.write(kind="finished", code=int(exitstatus))


def _listed(variable: str) -> set[str] | None:
    path = os.environ.get(variable)
    if not path:
        return None
    with open(path, encoding="utf-8") as stream:
        return set(json.load(stream))


def _error(report: Any) -> tuple[str, list[list[Any]]]:
    """The message of an error, and the lines of its traceback."""
    whole = report.longrepr
    frames: list[list[Any]] = []
    message = ""
    crash = getattr(whole, "reprcrash", None)
    if crash is not None:
        message = str(crash.message)
    chain = [part[0] for part in getattr(whole, "chain", ())] or [getattr(whole, "reprtraceback", None)]
    for traceback in chain:
        for entry in getattr(traceback, "reprentries", ()):
            place = getattr(entry, "reprfileloc", None)
            if place is not None:
                frames.append([str(place.path), int(place.lineno)])
    if not frames:  # of a file that cannot be imported there is only the text
        text = str(whole)
        frames = [
            [path, int(line)] for path, line in re.findall(r"^(\S[^\n:]*):(\d+): in ", text, re.MULTILINE)
        ]
        said = re.findall(r"^E   +(\S.*)$", text, re.MULTILINE)
        message = message or (said[-1] if said else text[-_MOST:])
    return message[:_MOST], frames[-_FRAMES:]


def pytest_configure(config: Any) -> None:
    path = os.environ.get("TORCHMIGRATE_OUTCOMES")
    if path and not hasattr(config, "workerinput"):  # a worker of xdist tells the one that started it
        observer = _Observer(path)
        config.pluginmanager.register(observer, "torchmigrate-observer")
    elif path:
        config.pluginmanager.register(_Selecting(), "torchmigrate-selecting")


class _Selecting:
    pytest_collection_modifyitems = _Observer.pytest_collection_modifyitems
