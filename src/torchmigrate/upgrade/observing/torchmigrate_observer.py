"""A pytest plugin that tells what happens, as `torchmigrate_outcomes` says; for pytest 4 and newer."""

import os
import re
import traceback
from collections.abc import Generator
from typing import Any

import pytest
from torchmigrate_outcomes import (  # type: ignore[import-not-found]
    FILE,
    FRAMES,
    MOST,
    is_left_out,
    write,
    write_python,
)

_INNER = "TORCHMIGRATE_OBSERVED"  # whatever a run of pytest starts is not observed
_WARNINGS = 2000  # the most that are reported
_HERE = os.getcwd()  # paths that pytest shortens begin here


class _Observer:
    def __init__(self) -> None:
        self.warned: set[tuple[Any, ...]] = set()

    # ---- what pytest calls

    def pytest_collection_modifyitems(self, config: Any, items: "list[Any]") -> None:
        left_out = [item for item in items if is_left_out(item.nodeid)]
        if left_out:
            config.hook.pytest_deselected(items=left_out)
            gone = set(map(id, left_out))
            items[:] = [item for item in items if id(item) not in gone]

    def pytest_collection_finish(self, session: Any) -> None:
        write(kind="collected", count=len(session.items))

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            message, frames = _error(report)
            if report.nodeid:
                write(kind="unloaded", id=report.nodeid, message=message, frames=frames)
            else:  # pytest itself, as pytest 7 says of a conftest.py in a directory below
                write(kind="stopped", message=message, frames=frames)

    def pytest_runtest_logstart(self, nodeid: str, location: object) -> None:
        write(kind="start", id=nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when != "call" and report.outcome == "passed":
            return
        outcome = report.outcome
        if hasattr(report, "wasxfail"):
            outcome = "xfailed" if outcome == "skipped" else outcome
        elif outcome == "failed" and report.when != "call":
            outcome = "error"
        message, frames = _error(report) if report.failed else ("", [])
        write(kind="outcome", id=report.nodeid, outcome=outcome, message=message, frames=frames)

    def pytest_runtest_logfinish(self, nodeid: str, location: object) -> None:
        write(kind="end", id=nodeid)

    @pytest.hookimpl(optionalhook=True)
    def pytest_warning_recorded(
        self, warning_message: Any, when: object, nodeid: str, location: object
    ) -> None:
        self.warn(warning_message, nodeid)

    if int(pytest.__version__.split(".")[0]) < 6:

        @pytest.hookimpl(optionalhook=True)
        def pytest_warning_captured(self, warning_message: Any, when: object, item: Any) -> None:
            self.warn(warning_message, getattr(item, "nodeid", ""))

    def warn(self, warning: Any, test: str) -> None:
        said = str(warning.message)[:MOST]
        key = (warning.category.__name__, said, warning.filename, warning.lineno, test.partition("::")[0])
        if key not in self.warned and len(self.warned) < _WARNINGS:
            self.warned.add(key)
            write(kind="warning", category=key[0], message=said, path=key[2], line=key[3], test=key[4])

    def pytest_internalerror(self, excrepr: object, excinfo: Any) -> None:
        _tell_stopped(excinfo.value)

    def pytest_sessionfinish(self, session: object, exitstatus: int) -> None:
        write_python(pytest=True)
        write(kind="finished", code=int(exitstatus))


def _error(report: Any) -> "tuple[str, list[list[Any]]]":
    """The message of an error, and the lines of its traceback."""
    whole = report.longrepr
    frames: list[list[Any]] = []
    message = ""
    crash = getattr(whole, "reprcrash", None)
    if crash is not None:
        message = str(crash.message)
    chain = [part[0] for part in getattr(whole, "chain", ())] or [getattr(whole, "reprtraceback", None)]
    for part in chain:
        for entry in getattr(part, "reprentries", ()):
            place = getattr(entry, "reprfileloc", None)
            if place is not None:
                frames.append([os.path.join(_HERE, str(place.path)), int(place.lineno)])
    text = str(whole)
    if "MultipleFailures" in message:  # of hypothesis, on Pythons without groups of exceptions
        text = "\n".join(content for title, content in report.sections if title == "Hypothesis")
    several = _several(text) if "MultipleFailures" in message or "Exception Group Traceback" in text else []
    if several:
        message = "\n".join(said for said, _ in several)
        frames = [frame for _, some in reversed(several) for frame in some]
    if not frames:  # of a file that cannot be imported there is only the text
        frames = [
            [os.path.join(_HERE, path), int(line)]
            for path, line in re.findall(r"^(\S[^\n:]*):(\d+): in ", text, re.MULTILINE)
        ]
        said = re.findall(r"^E   +(\S.*)$", text, re.MULTILINE)
        message = message or (said[-1] if said else text[-MOST:])
    return message[:MOST], frames[-FRAMES:]


def _several(text: str) -> "list[tuple[str, list[list[Any]]]]":
    """The errors in a text with several tracebacks: their messages, and the lines of each."""
    found = []
    lines = "\n".join(re.sub(r"^[ +-]*\| ?", "", line) for line in text.splitlines())
    for part in re.split(r"(?<!Group )Traceback \(most recent call last\):\n", lines)[1:]:
        said = re.search(r"^\S.*$", part, re.MULTILINE)
        frames = re.findall(r'^  File "([^"]+)", line (\d+)', part, re.MULTILINE)
        if said is not None:
            found.append((said.group(), [[path, int(line)] for path, line in frames]))
    return found


def _tell_stopped(error: BaseException) -> None:
    """Tell an error that ends pytest itself, such as that of a conftest.py that cannot be imported."""
    inner = getattr(error, "cause", None) or getattr(error, "excinfo", None)
    if isinstance(inner, tuple):  # before pytest 8, of sys.exc_info()
        inner = inner[1]
    if isinstance(inner, BaseException):
        error = inner
    if isinstance(error, (pytest.UsageError, KeyboardInterrupt)):
        return  # nothing of the project
    frames: list[list[Any]] = [
        [frame.filename, frame.lineno or 0] for frame in traceback.extract_tb(error.__traceback__)
    ]
    if isinstance(error, SyntaxError) and error.filename:
        frames.append([error.filename, error.lineno or 0])
    message = "".join(traceback.format_exception_only(type(error), error)).strip()
    write(kind="stopped", message=message[:MOST], frames=frames[-FRAMES:])


@pytest.hookimpl(hookwrapper=True)
def pytest_load_initial_conftests(
    early_config: Any, parser: object, args: object
) -> "Generator[None, Any, None]":
    outcome = yield
    if FILE and _INNER not in os.environ and outcome.excinfo is not None:
        _tell_stopped(outcome.excinfo[1])


def pytest_configure(config: Any) -> None:
    if not FILE:
        return
    is_worker = hasattr(config, "workerinput")
    if is_worker or _INNER not in os.environ:
        # Every test counts: one that fails, or a file that cannot be imported, ends nothing.
        config.option.maxfail = 0
        config.option.continue_on_collection_errors = True
    if is_worker:  # of xdist, which tells the one that started it
        config.pluginmanager.register(_Worker(), "torchmigrate-worker")
    elif _INNER not in os.environ:  # tests of a plugin run pytest themselves
        os.environ[_INNER] = "1"
        config.pluginmanager.register(_Observer(), "torchmigrate-observer")


class _Worker:
    pytest_collection_modifyitems = _Observer.pytest_collection_modifyitems

    def pytest_sessionfinish(self, session: object, exitstatus: int) -> None:
        write_python(pytest=True)
