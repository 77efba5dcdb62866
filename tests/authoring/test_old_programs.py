"""Whole programs: what today's version of each fixture gives here, against what the old one gave on old releases.

`tests/recorded_programs/` holds a driver for each fixture that runs anywhere without a GPU, and in
`explained.yaml` what is not run and what differs, each with the reason. Both are exact: what is not listed is
run and the same, and what is listed is not.
"""

from __future__ import annotations

import ast
import functools
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml
from harness.summary import COMPANIONS, HAS_TORCH

DRIVERS = Path(__file__).parents[1] / "recorded_programs"
FIXTURES = {path.parent.name: path.parent for path in (DRIVERS.parent / "fixtures").glob("*/before.py")}
DRIVEN = sorted(path.stem for path in DRIVERS.glob("*.py") if path.stem != "support")
EXPLAINED = yaml.safe_load((DRIVERS / "explained.yaml").read_text(encoding="utf-8"))


def files(name: str) -> list[str]:
    """What the program makes of a fixture; the fixture itself where it leaves that alone."""
    found = [file for file in ("after.py", "after_unsafe.py") if (FIXTURES[name] / file).exists()]
    return found or ["before.py"]


def lacks(name: str) -> str | None:
    text = (FIXTURES[name] / "before.py").read_text("utf-8")
    return next((item for item in COMPANIONS if item in text and find_spec(item) is None), None)


RUNS = [
    pytest.param(name, file, marks=pytest.mark.skipif(bool(lacks(name)), reason=f"no {lacks(name)}"))
    for name in DRIVEN
    for file in files(name)
]


def test_every_fixture_is_run_or_has_a_reason():
    assert sorted([*DRIVEN, *EXPLAINED["fixtures"]]) == sorted(FIXTURES)
    assert set(EXPLAINED["functions"]) | set(EXPLAINED["differences"]) <= set(DRIVEN)


if HAS_TORCH:

    @pytest.mark.parametrize(("name", "file"), RUNS)
    def test_gives_what_it_gave(name: str, file: str) -> None:
        from proofs import programs

        new = outcome(name, file)[0]
        recorded = programs.recorded(name)
        assert recorded, "no old release ran it: record it again"
        never = set(new["results"]) - {result for old in recorded.values() for result in old["results"]}
        assert not never, "no old release gave these"
        found = {
            (result, release): line
            for release, old in recorded.items()
            for result, line in programs.differences(old, new)
        }
        given = {(result, release) for release, old in recorded.items() for result in old["results"]}
        expected = {item for item in given if is_explained(name, file, *item)}
        assert {item: line for item, line in found.items() if item not in expected} == {}
        assert expected - set(found) == set(), "these are the same after all"

    @pytest.mark.parametrize("name", [name for name in DRIVEN if not lacks(name)])
    def test_what_is_not_called_has_a_reason(name: str) -> None:
        called: Counter[str] = Counter()
        for file in files(name):
            called.update(outcome(name, file)[1])
        every = {function for _, function in functions((FIXTURES[name] / "before.py").read_text("utf-8"))}
        missing = every - set(called)
        assert sorted(missing) == sorted(EXPLAINED["functions"].get(name, {}))

    @functools.cache
    def outcome(name: str, file: str):
        from proofs import programs

        called: set[str] = set()
        lines = functions((FIXTURES[name] / file).read_text("utf-8"))
        by_line = dict(lines)
        return programs.outcome(name, file, lambda line: called.add(by_line.get(line, ""))), called


def is_explained(name: str, file: str, result: str, release: str) -> bool:
    """Whether a result is said to differ from that of a release: since one, until one, in one of the files."""
    for entry in EXPLAINED["differences"].get(name, ()):
        if result in entry["results"] and entry.get("file", file) == file:
            minor = tuple(map(int, release.split(".")[:2]))
            since, until = (
                tuple(map(int, entry.get(end, default).split(".")))
                for end, default in (("since", "0.0"), ("until", "99.0"))
            )
            if since <= minor <= until:
                return True
    return False


def functions(text: str) -> list[tuple[int, str]]:
    """The line that each function and method of a program begins with, and its name."""

    def below(node: ast.AST, prefix: str) -> Iterator[tuple[int, str]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef):
                first = child.decorator_list[0] if child.decorator_list else child
                yield first.lineno, f"{prefix}{child.name}"
            elif isinstance(child, ast.ClassDef):
                yield from below(child, f"{prefix}{child.name}.")
            elif isinstance(child, ast.If | ast.Try):
                yield from below(child, prefix)

    return list(below(ast.parse(text), ""))
