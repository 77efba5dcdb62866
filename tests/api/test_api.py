"""What `torchmigrate` exports: it says what the command line says, and its signatures stay."""

from __future__ import annotations

import doctest
import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest
from harness.project import Project, environment

import torchmigrate

OLD = "import torch\n\ny = torch.ger(a, b)\nz = torch.load(path)\n"
NOTEBOOK = json.dumps(
    {
        "cells": [
            {"cell_type": "markdown", "metadata": {}, "source": ["# A"]},
            {
                "cell_type": "code",
                "execution_count": None,
                "metadata": {},
                "outputs": [],
                "source": ["import torch\n", "y = torch.ger(a, b)"],
            },
        ],
        "metadata": {},
        "nbformat": 4,
        "nbformat_minor": 4,
    },
    indent=1,
)
SIGNATURES = {
    "check_paths": "(paths, *, target=None, minimum=None, select=None, ignore=(), config=None, isolated=False, jobs=1)",
    "check_text": "(text, *, path=None, target=None, minimum=None, select=None, ignore=(), config=None, isolated=False)",
    "fix_text": (
        "(text, *, path=None, unsafe_fixes=False, target=None, minimum=None, select=None, ignore=(), config=None,"
        " isolated=False)"
    ),
    "plan": "(paths, *, target=None, minimum=None, title=None, config=None, isolated=False, jobs=1)",
}
FIELDS = {
    "Edit": "content row column end_row end_column cell",
    "Fix": "applicability message reason edits",
    "Finding": (
        "code name message severity path row column end_row end_column cell symbol help url fix unsafe_fix"
    ),
    "Problem": "kind message path row cell",
    "Report": "findings problems",
    "FixedText": "text fixed report",
    "UpgradePlan": "project minimum target headline runs effort problems data",
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.chdir(tmp_path)
    return Project(tmp_path, monkeypatch)


# ---- what stays ------------------------------------------------------------------------------------------


def test_the_signatures_stay() -> None:
    def shown(function: object) -> str:
        signature = inspect.signature(function)  # type: ignore[arg-type]
        bare = [each.replace(annotation=each.empty) for each in signature.parameters.values()]
        return str(signature.replace(parameters=bare, return_annotation=signature.empty))

    assert {name: shown(getattr(torchmigrate, name)) for name in SIGNATURES} == SIGNATURES
    assert {name: " ".join(getattr(torchmigrate, name).__slots__) for name in FIELDS} == FIELDS
    assert {*torchmigrate.__all__} == {*SIGNATURES, *FIELDS, "ConfigError", "__version__"}
    assert {*torchmigrate.__all__} <= {*dir(torchmigrate)}


def test_to_import_it_takes_nothing() -> None:
    code = "import sys, torchmigrate; print(torchmigrate.__version__, *sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(torchmigrate.__version__)
    assert not {"click", "yaml", "libcst", "ast", "torchmigrate.api"} & {*done.stdout.split()}


@pytest.mark.parametrize("name", ["plan", "check_text"])
def test_a_name_is_the_function_whatever_was_imported_before(name: str) -> None:
    code = f"import torchmigrate.planning.look, torchmigrate.cli.plan\nfrom torchmigrate import {name}\nprint({name}.__module__)"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout == "torchmigrate.api\n"


# ---- check -----------------------------------------------------------------------------------------------


def as_json(report: torchmigrate.Report) -> list[dict[str, object]]:
    return [
        {
            **{key: getattr(found, key) for key in ("code", "name", "message", "severity", "cell", "symbol")},
            "help": found.help,
            "url": found.url,
            "location": {"row": found.row, "column": found.column},
            "end_location": {"row": found.end_row, "column": found.end_column},
            "edits": None if found.fix is None else [edit.content for edit in found.fix.edits],
            "applicability": None if found.fix is None else found.fix.applicability,
        }
        for found in report.findings
    ]


def of_command_line(project: Project, *options: str) -> list[dict[str, object]]:
    done = project.run("check", "--output-format", "json", "--no-cache", *options)
    items = []
    for item in json.loads(done.stdout):
        fix = item["fix"]
        kept = {
            key: item[key] for key in ("code", "name", "message", "severity", "cell", "symbol", "help", "url")
        }
        items.append(
            {
                **kept,
                "location": item["location"],
                "end_location": item["end_location"],
                "edits": None if fix is None else [edit["content"] for edit in fix["edits"]],
                "applicability": None if fix is None else fix["applicability"],
            }
        )
    return items


def test_paths_are_checked_as_by_the_command_line(project: Project) -> None:
    project.write("a.py", OLD)
    project.write("b.ipynb", NOTEBOOK)
    project.write("inner/torchmigrate.toml", 'ignore = ["TM1"]\n')
    project.write("inner/c.py", OLD)
    project.write("requirements.txt", "torch>=1.9\n")
    report = torchmigrate.check_paths(["."])
    assert as_json(report) == of_command_line(project)
    assert {found.path for found in report.findings} == {Path("a.py"), Path("b.ipynb"), Path("inner/c.py")}
    assert as_json(
        torchmigrate.check_paths([project.path], select=["TM110"], target="2.0")
    ) == of_command_line(project, "--select", "TM110", "--target", "2.0")
    assert torchmigrate.check_paths([project.path], jobs=2) == torchmigrate.check_paths([project.path])


def test_what_could_not_be_done_is_a_problem(project: Project) -> None:
    project.write("broken.py", "import torch\nx = (\n")
    report = torchmigrate.check_paths(["broken.py", "gone.py"])
    assert [(each.kind, each.path, each.row) for each in report.problems] == [
        ("invalid-syntax", Path("broken.py"), 2),
        ("io-error", Path("gone.py"), None),
    ]
    (problem,) = torchmigrate.check_text("x = (\n").problems
    assert (problem.kind, problem.path, problem.row) == ("invalid-syntax", None, 1)


def test_a_text_without_a_name_is_python(project: Project) -> None:
    found = torchmigrate.check_text(OLD, isolated=True).findings
    assert [(each.code, each.row, each.column, each.path) for each in found] == [
        ("TM110", 3, 5, None),
        ("TM600", 4, 5, None),
    ]
    fix = found[0].fix
    assert fix is not None and fix.applicability == "safe"
    assert [edit.content for edit in fix.edits] == ["torch.outer"]


def test_a_name_says_what_holds_and_what_is_beside(project: Project) -> None:
    project.write("torchmigrate.toml", 'ignore = ["TM110"]\nexclude = ["left"]\nforce-exclude = true\n')
    assert [each.code for each in torchmigrate.check_text(OLD, path="a.py").findings] == ["TM600"]
    assert not torchmigrate.check_text(OLD, path="left/a.py").findings
    (found,) = torchmigrate.check_text(NOTEBOOK, path="a.ipynb", isolated=True, select=["TM1"]).findings
    assert (found.cell, found.row, found.column) == (2, 2, 5)


def test_a_long_running_program_sees_what_has_changed(project: Project) -> None:
    project.write("a.py", OLD)
    assert [each.code for each in torchmigrate.check_paths(["a.py"]).findings] == ["TM110", "TM600"]
    project.write("torchmigrate.toml", 'select = ["TM110"]\n')
    assert [each.code for each in torchmigrate.check_paths(["a.py"]).findings] == ["TM110"]
    project.write("torch.py", "")
    assert not torchmigrate.check_paths(["a.py"]).findings


def test_what_cannot_be_used_is_an_error_of_the_caller(project: Project) -> None:
    project.write("a.py", OLD)
    with pytest.raises(torchmigrate.ConfigError, match="`77` is not a release"):
        torchmigrate.check_paths(["a.py"], target="77")
    with pytest.raises(torchmigrate.ConfigError, match="TM1x"):
        torchmigrate.check_text(OLD, select=["TM1x"])
    with pytest.raises(TypeError, match="lists"):
        torchmigrate.check_text(OLD, select="TM1")
    project.write("torchmigrate.toml", "nonsense = 1\n")
    with pytest.raises(torchmigrate.ConfigError, match="unknown key"):
        torchmigrate.fix_text(OLD, path="a.py")


# ---- fix -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (OLD, "a.py"),
        (OLD.replace("\n", "\r\n"), "a.py"),
        ("\ufeff" + OLD, "a.py"),
        ("# coding: latin-1\n" + OLD + "s = 'é'\n", "a.py"),
        (NOTEBOOK, "a.ipynb"),
        ("python -m torch.distributed.launch train.py\n", "run.sh"),
        ("x = 1\n", "a.py"),
        ("x = (\n", "a.py"),
    ],
)
@pytest.mark.parametrize("unsafe", [False, True])
def test_a_text_is_fixed_as_by_the_command_line(project: Project, text: str, name: str, unsafe: bool) -> None:
    fixed = torchmigrate.fix_text(text, path=name, unsafe_fixes=unsafe)
    encoding = "latin-1" if "latin-1" in text else "utf-8"
    options = ("--fix", "--unsafe-fixes") if unsafe else ("--fix",)
    expected = project.run_bytes(
        "check", "-", "--stdin-filename", name, *options, stdin=text.encode(encoding)
    )
    assert fixed.text == expected.stdout.decode(encoding)
    assert bool(fixed.fixed) == (fixed.text != text)
    again = torchmigrate.fix_text(fixed.text, path=name, unsafe_fixes=unsafe)
    assert (again.text, again.report) == (fixed.text, fixed.report)


def test_what_was_fixed_is_counted(project: Project) -> None:
    fixed = torchmigrate.fix_text(OLD, isolated=True)
    assert fixed.fixed == {"TM110": 1}
    assert [each.code for each in fixed.report.findings] == ["TM600"]


# ---- plan ------------------------------------------------------------------------------------------------


def test_the_plan_is_that_of_the_command_line(project: Project) -> None:
    project.write("a.py", OLD)
    project.write("requirements.txt", "torch>=1.9\n")
    made = torchmigrate.plan(["."], target="2.6", title="mine")
    options = ("--target", "2.6", "--title", "mine", "--output-format", "json")
    assert made.data == json.loads(project.run("plan", *options).stdout)
    assert (made.project, made.minimum, made.target) == ("mine", "1.9", "2.6")
    assert made.headline == made.data["headline"] and made.effort == made.data["effort"]
    assert not made.problems


# ---- the documentation -----------------------------------------------------------------------------------


def test_the_documentation_is_true() -> None:
    page = Path(__file__).parents[2] / "docs" / "api.md"
    done = doctest.testfile(str(page), module_relative=False)
    assert done.attempted > 3 and not done.failed
    text = page.read_text("utf-8")
    for name in (*SIGNATURES, *FIELDS):
        assert f"`{name}" in text
    for fields in FIELDS.values():
        assert all(f"`{each}`" in text for each in fields.split())
