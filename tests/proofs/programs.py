"""What today's version of an old program gives here, beside what the old one gave on old releases."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any
from unittest import mock

from old_torch import compare, plain, recordings

from proofs import recorded_code, run, stubs

Outcome = dict[str, dict[str, Any]]  # `results` and `raised`, each by name, in plain form

SINGLE = {"kind": "tensor", "class": "Tensor", "dtype": "torch.float32", "shape": []}


def outcome(name: str, file: str, called: Callable[[int], None] = lambda line: None) -> Outcome:
    """What one of the files of a fixture gives on the installed torch.

    Args:
        called: told of each call of a function of the program, by the first line of that.

    Raises:
        ProofError: it does not even load.
    """

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_filename.endswith("program.py"):
            called(frame.f_code.co_firstlineno)

    code = recorded_code.driven(name, file)
    others = {item: members for item, members in stubs.MODULES.items() if item != "apex.amp"}
    # The drivers ask whether there is a real apex.amp, and do without it.
    with mock.patch.object(stubs, "MODULES", others), run.scratch(), _forgotten_afterwards():
        sys.setprofile(profile)
        try:
            return _apart(plain.plain_values(run.run(code, {}, old=False, both=code)))
        finally:
            sys.setprofile(None)


def recorded(name: str) -> dict[str, Outcome]:
    """What `before.py` of a fixture gave, by release; those on which it did not load are not there."""
    digest = recordings.digest(recorded_code.driven(name), "", {})
    return {
        release: _apart(line["values"])
        for line in run.recordings_at(digest)
        if "values" in line
        for release in line["releases"]
    }


def differences(old: Outcome, new: Outcome) -> Iterator[tuple[str, str]]:
    """(result, in what it differs) for everything that the old program gave."""
    for name, form in old["results"].items():
        if name in new["results"]:
            for line in compare.differences(_single(form), _single(new["results"][name]), name):
                yield name, line
        else:
            yield name, f"{name}: it raises now: {new['raised'][name]}"


def _single(form: Any) -> Any:
    """With numbers of Python as tensors of single precision, from which programs take them."""
    if isinstance(form, list):
        return [_single(item) for item in form]
    if not isinstance(form, dict):
        return form
    if form.get("kind") == "float":
        return {**SINGLE, "values": [form["value"]]}
    return {key: _single(value) for key, value in form.items()}


def _apart(values: dict[str, Any]) -> Outcome:
    return {kind: dict(values[kind]["items"]) for kind in ("results", "raised")}


@contextlib.contextmanager
def _forgotten_afterwards() -> Iterator[None]:
    """Neither the program, nor the modules that its driver made, nor what it did to its surroundings."""
    before = dict(sys.modules)
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.dict(os.environ))
        stack.enter_context(mock.patch.object(sys, "path", list(sys.path)))
        stack.enter_context(mock.patch.object(sys, "excepthook", sys.excepthook))
        try:
            yield
        finally:
            for name in set(sys.modules) - set(before):
                if not hasattr(sys.modules[name], "__file__") or name in ("program", "support"):
                    del sys.modules[name]
            sys.modules.update(before)
