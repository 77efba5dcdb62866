"""A plugin for pytest that tells how each test ended, and which of the watched lines it came to."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Generator
from types import FrameType
from typing import Any

import pytest
from watching import PROJECT, inside, told, write

LINES: dict[str, set[int]] = {
    path: set(rows) for path, rows in json.loads(os.environ["PLAN_CLAIMS_LINES"]).items()
}
_watched: dict[str, tuple[str, set[int]] | None] = {}
_reached: set[tuple[str, int]] = set()


def _rows(filename: str) -> tuple[str, set[int]] | None:
    if filename not in _watched:
        path = inside(filename) if filename.startswith(PROJECT) else None
        _watched[filename] = None if path is None or path not in LINES else (path, LINES[path])
    return _watched[filename]


def _trace(frame: FrameType, event: str, _: Any) -> Any:
    found = _rows(frame.f_code.co_filename)
    if found is None:
        return None
    path, rows = found

    def local(frame: FrameType, event: str, _: Any) -> Any:
        if event == "line" and frame.f_lineno in rows:
            _reached.add((path, frame.f_lineno))
        return local

    return local


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None]:
    _reached.clear()
    sys.settrace(_trace)
    yield
    sys.settrace(None)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
    outcome = yield
    report = outcome.get_result()
    if report.when != "call" and report.outcome == "passed":
        return
    found = {
        "id": item.nodeid,
        "outcome": report.outcome,
        "reached": sorted(_reached),
        "frames": [],
        "error": "",
        "about_torch": False,
    }
    if call.excinfo is not None and report.outcome == "failed":
        found.update(told(call.excinfo.value, call.excinfo.tb))
    write(found)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        write(
            {
                "id": report.nodeid,
                "outcome": "not collected",
                "reached": [],
                "frames": [],
                "error": str(report.longrepr)[-200:],
                "about_torch": False,
            }
        )
