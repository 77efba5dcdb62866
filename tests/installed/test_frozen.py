"""`tools/frozen.py`: what it records of repositories, and the differences that it reports between two records."""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
from pathlib import Path
from typing import Any

import frozen
import pytest
from click.testing import CliRunner, Result
from freezing.compare import compare_rows, with_texts
from freezing.record import Program, read
from harness.catalogue import loaded_rules
from harness.project import SOURCE

NOTEBOOK = {
    "cells": [
        {"cell_type": "code", "metadata": {}, "outputs": [], "source": ["import torch\n", "torch.ger(a, b)"]}
    ],
    "metadata": {},
    "nbformat": 4,
    "nbformat_minor": 5,
}
PROJECT = {
    "setup.py": "from setuptools import setup\nsetup(name='p', install_requires=['torch>=1.8'])\n",
    "requirements.txt": "torch==1.8.0\n",
    "p/__init__.py": "",
    "p/old.py": "import torch\n\n\ndef outer(a, b):\n    return torch.ger(a, b)\n\n\nL, V = torch.symeig(A)\n",
    "p/broken.py": "def f(:\n",
    "p/latin.py": b"# -*- coding: latin-1 -*-\r\nimport torch\r\nx = torch.ger(a, b)  # \xe9\r\n",
    "p/new.py": "import torch.cuda.amp\nwith torch.cuda.amp.autocast():\n    pass\n",
    "p/test_new.py": "import mock\n\nwith mock.patch('torch.cuda.amp.autocast'):\n    pass\n",
    "book.ipynb": json.dumps(NOTEBOOK, indent=1),
}
# Stands in for the program: finds "old" in the files of a directory, and replaces it by "new".
STAND_IN = """
import json, pathlib, sys
if pathlib.Path("hang").exists() and "plan" in sys.argv:
    import time
    time.sleep(600)
if pathlib.Path("crash").exists():
    raise SystemError("broken")
places = []
for path in sorted(pathlib.Path().rglob("*.py")):
    text = path.read_text()
    if "--fix" in sys.argv:
        path.write_text(text.replace("old", "new"))
    for row, line in enumerate(text.split("\\n"), 1):
        if "old" in line:
            at = {"row": row, "column": 1}
            span = {"location": at, "end_location": at}
            places.append({"code": "TM1", "symbol": "old", "cell": None, "message": "m", "severity": "info", **span,
                           "places": [], "fix": None, "unsafe_fix": None, "filename": str(path.absolute())})
if "plan" in sys.argv:
    print(json.dumps({"places": [], "releases": [], "headline": len(places)}))
else:
    print("".join(json.dumps(place) + "\\n" for place in places), end="")
print(f"{len(places)} found in {pathlib.Path().absolute()}/x", file=sys.stderr)
"""


def make(directory: Path, files: dict[str, str | bytes]) -> Path:
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
    return directory


def run(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(frozen.main, [*map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


@pytest.fixture
def stand_in(tmp_path: Path) -> str:
    return f"{sys.executable} {make(tmp_path, {'program.py': STAND_IN}) / 'program.py'}"


def rows(record: Path, kind: str) -> list[dict[str, Any]]:
    return [row for row in read(record) if row.get("kind") == kind]


# ---- record --------------------------------------------------------------------------------------------


def test_a_record_depends_on_program_and_content_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("TORCHMIGRATE_OUTPUT_FORMAT", "concise")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    project = make(tmp_path / "one" / "project", PROJECT)
    (project / ".git").mkdir()
    program = ("--command", f"{sys.executable} -m torchmigrate")
    assert run("record", tmp_path / "old", *program, project).exit_code == 0
    record = tmp_path / "old" / "project.jsonl.gz"

    found = [(row["path"], row["code"]) for row in rows(record, "finding")]
    assert ("p/old.py", "TM100") in found
    assert ("p/latin.py", "TM110") in found
    assert ("book.ipynb", "TM110") in found
    assert '"path": "p/test_new.py"' in json.dumps([row["fix"] for row in rows(record, "finding")])
    assert ("requirements.txt", "TM984") in found
    assert ("p/broken.py", "invalid-syntax") in found
    runs = {row["run"]: row for row in rows(record, "run")}
    assert [row["exit"] for row in runs.values()] == [2, 2, 2, 2, 2]
    assert runs["findings"]["stderr"][0].startswith("error: p/broken.py:1")
    assert {row["key"] for row in rows(record, "plan")} >= {"headline", "releases 1.8 to 1.8"}
    assert {row["path"] for row in rows(record, "place")} >= {"p/old.py", "book.ipynb", "requirements.txt"}
    fixed = {(row["run"], row["path"]): row["hunks"] for row in rows(record, "fixed")}
    assert fixed["safe fixes", "p/latin.py"] == [
        [3, ["x = torch.ger(a, b)  # \udce9\r"], ["x = torch.outer(a, b)  # \udce9\r"]]
    ]
    assert str(tmp_path) not in "".join(json.dumps(row) for row in [*read(record)][1:])
    assert {path: (project / path).read_bytes() for path in PROJECT} == {
        path: text.encode() if isinstance(text, str) else text for path, text in PROJECT.items()
    }

    other = tmp_path / "two" / "project"
    shutil.copytree(project, other)
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    assert run("record", tmp_path / "new", *program, "--jobs", "2", "--cached", other).exit_code == 0
    assert [*read(tmp_path / "new" / "project.jsonl.gz")][1:] == [*read(record)][1:]
    result = run("compare", tmp_path / "old", tmp_path / "new")
    assert (result.exit_code, result.stdout) == (0, "      0 differences\n")


def test_what_is_up_to_date_is_skipped(
    tmp_path: Path, stand_in: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        make(tmp_path / name, {"x.py": "old\n"})
    listed = make(tmp_path, {"list.txt": f"a\n{tmp_path / 'b'}\n"}) / "list.txt"
    command = ("record", tmp_path / "out", "--command", stand_in, listed)
    assert "a: 1 findings" in (first := run(*command)).stderr
    assert "b: 1 findings" in first.stderr
    (tmp_path / "out" / "b.jsonl.gz").unlink()  # as if the run had been stopped
    make(tmp_path / "a", {"x.py": "old\n"})  # the same content
    assert "a:" not in (second := run(*command)).stderr
    assert "b: 1 findings" in second.stderr
    make(tmp_path / "a", {"x.py": "old\nold\n"})
    assert "a: 2 findings" in (third := run(*command)).stderr
    assert "b:" not in third.stderr
    monkeypatch.setattr(Program, "fingerprint", lambda self: "another program")
    assert "b: 1 findings" in run(*command).stderr


def test_a_hang_or_a_crash_is_recorded_and_ends_nothing(tmp_path: Path, stand_in: str) -> None:
    make(tmp_path / "hangs", {"x.py": "old\n", "hang": ""})
    make(tmp_path / "crashes", {"x.py": "old\n", "crash": ""})
    make(tmp_path / "works", {"x.py": "old\n"})
    names = ("hangs", "crashes", "works")
    command = (
        "record",
        tmp_path / "out",
        "--command",
        stand_in,
        "--limit",
        "5",
        *(tmp_path / name for name in names),
    )
    result = run(*command)
    assert result.exit_code == 1
    assert "works: 1 findings, " in result.stderr
    assert "s, FAILED: plan\n" in result.stderr
    assert "s, FAILED: findings, plan, safe fixes, unsafe fixes, fixes of all rules\n" in result.stderr
    hung, crashed, worked = (rows(tmp_path / "out" / f"{name}.jsonl.gz", "run") for name in names)
    assert (hung[0]["exit"], hung[0]["stderr"]) == (0, ["1 found in x"])
    assert (hung[1]["exit"], hung[1]["stderr"]) == (-1, ["frozen: TimeoutExpired"])
    assert hung[2]["exit"] == 0
    assert crashed[0]["exit"] == 1
    assert crashed[0]["stderr"][-1] == "SystemError: broken"
    assert (crashed[1]["exit"], crashed[1]["stderr"][-1]) == (-1, "frozen: JSONDecodeError")
    assert (worked[0]["exit"], worked[0]["stderr"]) == (0, ["1 found in x"])
    again = run(*command)
    assert "crashes:" in again.stderr  # what failed is run again
    assert "works:" not in again.stderr


def test_links_are_not_followed(tmp_path: Path, stand_in: str) -> None:
    outside = make(tmp_path / "outside", {"x.py": "old\n"})
    project = make(tmp_path / "project", {"y.py": "old\n"})
    (project / "x.py").symlink_to(outside / "x.py")
    (project / "more").symlink_to(outside)
    assert run("record", tmp_path / "out", "--command", stand_in, project).exit_code == 0
    assert [row["path"] for row in rows(tmp_path / "out" / "project.jsonl.gz", "finding")] == ["y.py"]
    assert (outside / "x.py").read_text() == "old\n"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("{tmp}/list.txt",), "missing is not a directory"),
        (("{tmp}/a", "{tmp}/other/a"), "two repositories are named a"),
    ],
)
def test_wrong_lists(arguments: tuple[str, ...], problem: str, tmp_path: Path, stand_in: str) -> None:
    make(tmp_path, {"a/x.py": "", "other/a/x.py": "", "list.txt": "missing\n"})
    given = [argument.format(tmp=tmp_path) for argument in arguments]
    result = run("record", tmp_path / "out", "--command", stand_in, *given)
    assert result.exit_code == 2
    assert problem in result.stderr


def test_a_command_that_is_no_torchmigrate(tmp_path: Path) -> None:
    project = make(tmp_path / "a", {"x.py": ""})
    result = run("record", tmp_path / "out", "--command", "/bin/true", project)
    assert result.exit_code == 2
    assert "no torchmigrate package behind /bin/true" in result.stderr


# ---- compare -------------------------------------------------------------------------------------------


def test_differences_of_a_changed_program(tmp_path: Path, stand_in: str) -> None:
    make(tmp_path / "a", {"x.py": "a = old\nb = 1\n"})
    make(tmp_path / "b", {"y.py": "c = 1\n"})
    out = tmp_path / "out"
    assert run("record", out, "--command", stand_in, tmp_path / "a", tmp_path / "b").exit_code == 0
    changed = make(tmp_path, {"changed.py": STAND_IN.replace('"m"', '"n"').replace('"new"', '"newer"')})
    command = ("--command", f"{sys.executable} {changed / 'changed.py'}")
    result = run("compare", out, tmp_path / "changed", *command)
    assert result.exit_code == 1
    assert result.stdout == textwrap.dedent("""\
              1 TM1      finding message
              1 TM1      text after fixes of all rules changed
              1 TM1      text after safe fixes changed
              1 TM1      text after unsafe fixes changed
              4 differences

        TM1 finding message: 1
          a:x.py:1
            - m
            + n

        TM1 text after fixes of all rules changed: 1
          a:x.py:1
            - a = new
            + a = newer

        TM1 text after safe fixes changed: 1
          a:x.py:1
            - a = new
            + a = newer

        TM1 text after unsafe fixes changed: 1
          a:x.py:1
            - a = new
            + a = newer
        """)
    only = run("compare", out, tmp_path / "changed", "--rule", "TM2")
    assert (only.exit_code, only.stdout) == (0, "      0 differences\n")


def test_repositories_that_one_side_lacks_or_that_changed(tmp_path: Path, stand_in: str) -> None:
    for name in ("a", "b"):
        make(tmp_path / name, {"x.py": "x\n"})
    assert (
        run("record", tmp_path / "old", "--command", stand_in, tmp_path / "a", tmp_path / "b").exit_code == 0
    )
    make(tmp_path / "a", {"x.py": "y\n"})
    assert run("record", tmp_path / "new", "--command", stand_in, tmp_path / "a").exit_code == 0
    result = run("compare", tmp_path / "old", tmp_path / "new", "--samples", "0")
    assert result.exit_code == 1
    assert "1 -        repository content\n" in result.stdout
    assert "1 -        repository only in OLD\n" in result.stdout


def finding(**more: Any) -> dict[str, Any]:
    row = more.pop("row", 3)
    return {
        "kind": "finding",
        "path": "x.py",
        "code": "TM100",
        "symbol": "torch.symeig",
        "message": "removed",
        "severity": "error",
        "cell": None,
        "places": [],
        "fix": None,
        "unsafe_fix": None,
        "help": None,
        "location": {"row": row, "column": 5},
        "end_location": {"row": row, "column": 9},
        **more,
    }


def fix(**more: Any) -> dict[str, Any]:
    span = {"location": {"row": 3, "column": 5}, "end_location": {"row": 3, "column": 9}}
    return {"applicability": "safe", "reason": None, "edits": [{"content": "new", **span}], **more}


def fixed(*hunks: tuple[int, list[str], list[str]]) -> dict[str, Any]:
    return {"kind": "fixed", "run": "safe fixes", "path": "x.py", "hunks": hunks}


def plan_place(**more: Any) -> dict[str, Any]:
    return {**finding(), "kind": "place", "effect": "raises", "effort": "safe", **more}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ([finding()], [], [("TM100", "finding lost", "x.py:3", "removed", "")]),
        ([], [finding(cell=2)], [("TM100", "finding new", "x.py:cell 2:3", "", "removed")]),
        ([finding(), finding()], [finding()], [("TM100", "finding lost", "x.py:3", "removed", "")]),
        ([finding()], [finding(row=7)], [("TM100", "finding moved", "x.py:3", "", "x.py:7")]),
        (
            [finding()],
            [finding(row=7, severity="info")],
            [
                ("TM100", "finding moved", "x.py:3", "", "x.py:7"),
                ("TM100", "finding severity error -> info", "x.py:7", "", ""),
            ],
        ),
        (
            [finding()],
            [finding(message="other")],
            [("TM100", "finding message", "x.py:3", "removed", "other")],
        ),
        (
            [finding()],
            [finding(severity="info")],
            [("TM100", "finding severity error -> info", "x.py:3", "", "")],
        ),
        ([finding()], [finding(help="none")], [("TM100", "finding help", "x.py:3", "null", "none")]),
        (
            [finding(fix=fix())],
            [finding(fix=fix(applicability="unsafe", reason="why"))],
            [
                ("TM100", "finding fix applicability safe -> unsafe", "x.py:3", "", ""),
                ("TM100", "finding fix reason", "x.py:3", "null", "why"),
            ],
        ),
        ([finding()], [finding(fix=fix())], [("TM100", "finding fix None -> safe", "x.py:3", "null", None)]),
        (
            [finding(unsafe_fix=fix())],
            [finding(unsafe_fix=fix(edits=[]))],
            [("TM100", "finding unsafe fix edits", "x.py:3", None, "")],
        ),
        (
            [finding(), fixed((3, ["a", "b"], ["c"]))],
            [finding(), fixed((3, ["a", "b"], []))],
            [("TM100", "text after safe fixes changed", "x.py:3", "c", "(deleted)")],
        ),
        (
            [fixed((3, ["a"], ["c"])), finding(code="TM101"), finding(row=9)],
            [finding(code="TM101"), finding(row=9)],
            [("TM101", "text after safe fixes lost", "x.py:3", "c", "")],
        ),
        (
            [finding(cell=1)],
            [finding(cell=1), fixed((90, ["a"], ["c", "d"]))],
            [("TM100", "text after safe fixes new", "x.py:90", "", "c\nd")],
        ),
        (
            [plan_place()],
            [plan_place(effect="warns")],
            [("TM100", "plan place effect raises -> warns", "x.py:3", "", "")],
        ),
        (
            [plan_place(fix={"title": "a", "reason": None})],
            [plan_place()],
            [("TM100", "plan place fix some -> None", "x.py:3", None, "null")],
        ),
        (
            [{"kind": "plan", "key": "headline", "value": "a"}],
            [{"kind": "plan", "key": "headline", "value": "b"}],
            [("-", "plan value", "headline", "a", "b")],
        ),
        (
            [{"kind": "run", "run": "plan", "exit": 0, "stderr": []}],
            [{"kind": "run", "run": "plan", "exit": 2, "stderr": ["error"]}],
            [("-", "run exit 0 -> 2", "plan", "", ""), ("-", "run stderr", "plan", "", "error")],
        ),
    ],
)
def test_kinds_of_differences(
    old: list[dict[str, Any]], new: list[dict[str, Any]], expected: list[tuple[str | None, ...]]
) -> None:
    found = [*compare_rows(with_texts([*old]), with_texts([*new]))]
    assert [(each.rule, each.kind, each.place) for each in found] == [each[:3] for each in expected]
    for each, (*_, before, after) in zip(found, expected, strict=True):
        assert before in (None, each.old)
        assert after in (None, each.new)
    assert [*compare_rows(with_texts([*old]), with_texts([*old]))] == []


# ---- examples ------------------------------------------------------------------------------------------


def test_examples_are_projects(tmp_path: Path) -> None:
    assert run("examples", tmp_path / "examples").exit_code == 0
    written = {path.name for path in (tmp_path / "examples").iterdir()}
    numbers = {item.rule.code: len(item.examples) for item in loaded_rules()}
    assert written == {f"{code}-{number + 1}" for code, count in numbers.items() for number in range(count)}
    item, number, example = next(
        (item, number, example)
        for item in loaded_rules()
        for number, example in enumerate(item.examples, 1)
        if example.minimum is not None and example.file is None
    )
    directory = tmp_path / "examples" / f"{item.rule.code}-{number}"
    assert (directory / "example.py").read_text() == example.before
    assert f'minimum = "{example.minimum}"\n' in (directory / "torchmigrate.toml").read_text()
