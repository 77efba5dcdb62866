"""The action: its own steps, run in bash as GitHub runs them, with the files that GitHub gives."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from harness.steps import bash, filled, outputs, variables

from torchmigrate import __version__

pytestmark = pytest.mark.one_python

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
INSTALL, CHECK, UPLOAD = ACTION["runs"]["steps"]
OLD = "import torch\n\ny = torch.ger(a, b)\nz = torch.load(p)\n"
FIXED = "import torch\n\ny = torch.outer(a, b)\nz = torch.load(p)\n"


class Run(NamedTuple):
    """What became of the second step."""

    done: subprocess.CompletedProcess[str]
    outputs: dict[str, str]
    summary: str

    @property
    def commands(self) -> list[str]:
        """What GitHub reads of the log: kind, file and line."""
        return re.findall(r"^::(\w+ file=[^,]+,line=\d+)", self.done.stdout, re.MULTILINE)


class Action:
    """A checkout, in which the action runs."""

    def __init__(self, path: Path) -> None:
        self.path = path / "checkout"
        self.temp = path / "temp"
        self.temp.mkdir()
        self.path.mkdir()
        subprocess.run(["git", "init", "--quiet", self.path], check=True)

    def write(self, name: str, text: str) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return path

    def run(self, **given: str) -> Run:
        """Run the step that checks, with the inputs that are given; the others have their defaults."""
        named = {name.replace("_", "-"): value for name, value in given.items()}
        assert named.keys() <= ACTION["inputs"].keys()
        inputs = {name: each["default"] for name, each in ACTION["inputs"].items()} | named
        values = {f"inputs.{name}": value for name, value in inputs.items()} | {
            "github.action_path": str(ROOT),
            "steps.install.outputs.python": sys.executable,
        }
        files = {name: self.temp / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        for file in files.values():
            file.write_text("")
        done = bash(
            CHECK["run"],
            self.path / filled(CHECK["working-directory"], values),
            **variables(CHECK, values),
            **{name: str(file) for name, file in files.items()},
            GITHUB_ACTIONS="true",
        )
        return Run(done, outputs(files["GITHUB_OUTPUT"]), files["GITHUB_STEP_SUMMARY"].read_text("utf-8"))


@pytest.fixture
def action(tmp_path: Path) -> Action:
    return Action(tmp_path)


def test_findings_are_annotations(action: Action) -> None:
    action.write("sub/a.py", OLD)
    run = action.run()
    assert run.done.returncode == 1
    assert run.commands == ["notice file=sub/a.py,line=3", "warning file=sub/a.py,line=4"]
    assert run.outputs == {"fixed": "false", "findings": "2", "exit-code": "1"}
    assert (
        run.summary
        == "### torchmigrate\n\n2 findings.\n\n```text\n1\tTM110\t[*]\tger\n1\tTM600\t[ ]\tload-weights-only\n```\n"
    )
    assert run.done.stderr.count("Found 2 findings") == 1


def test_no_module_of_the_checkout_is_imported(action: Action) -> None:
    for name in ("torchmigrate/__init__", "torchmigrate/__main__", "click", "json", "venv", "pip"):
        action.write(f"{name}.py", "open('ran', 'w')\n")
    run = action.run(fix="true")
    assert run.done.returncode == 0 and run.outputs["findings"] == "0"
    assert not (action.path / "ran").exists()


def test_clean(action: Action) -> None:
    action.write("a.py", "x = 1\n")
    run = action.run()
    assert run.done.returncode == 0 and not run.commands
    assert run.outputs == {"fixed": "false", "findings": "0", "exit-code": "0"}
    assert run.summary == "### torchmigrate\n\n0 findings.\n"


def test_findings_need_not_fail(action: Action) -> None:
    action.write("a.py", OLD)
    run = action.run(fail_on_findings="false", annotations="false")
    assert run.done.returncode == 0 and not run.commands and "a.py:3:5: TM110" in run.done.stdout
    assert run.outputs["findings"] == "2" and run.outputs["exit-code"] == "1"


def test_what_could_not_be_checked_fails(action: Action) -> None:
    action.write("a.py", OLD)
    action.write("b.py", "import torch\ndef f(:\n")
    run = action.run(fail_on_findings="false")
    assert run.done.returncode == 2 and "error file=b.py,line=2" in run.commands
    assert run.outputs["findings"] == "2" and run.outputs["exit-code"] == "2"
    assert "1 file could not be checked." in run.summary


def test_inputs_become_options(action: Action) -> None:
    action.write("one dir/a.py", OLD)
    action.write("b.py", OLD)
    assert action.run(paths="'one dir' ", args="--select TM6").commands == [
        "warning file=one dir/a.py,line=4"
    ]
    assert action.run(paths="b.py", args="--ignore=TM6", target="2.6").commands == ["notice file=b.py,line=3"]
    assert action.run(target="1.6", minimum="1.4").commands == []
    # Nothing of it is a command.
    run = action.run(paths="b.py; touch $(echo made) `touch made`", args="--select=TM1")
    assert run.done.returncode == 2 and not (action.path / "made").exists()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"target": "9.9"}, "torchmigrate could not run; see the log of this step"),
        ({"args": "--no-such-option"}, "torchmigrate could not run; see the log of this step"),
        ({"args": "--select 'TM1"}, "No closing quotation"),
        ({"fix": "all"}, "`fix` must be one of `true`, `false`, `unsafe`, and is `all`"),
        ({"fail_on_findings": "no"}, "`fail-on-findings` must be one of `true`, `false`, and is `no`"),
    ],
)
def test_what_cannot_be_used(action: Action, given: dict[str, str], message: str) -> None:
    action.write("a.py", OLD)
    run = action.run(**given)
    assert run.done.returncode == 2
    assert f"::error title=torchmigrate::{message}\n" in run.done.stdout
    assert (action.path / "a.py").read_text("utf-8") == OLD


def test_fix(action: Action) -> None:
    path = action.write("a.py", OLD)
    run = action.run(fix="true")
    assert run.done.returncode == 1 and path.read_text("utf-8") == FIXED
    assert run.outputs == {"fixed": "true", "findings": "1", "exit-code": "1"}
    assert run.commands == ["warning file=a.py,line=4"]
    assert "::group::Fixes by torchmigrate\n--- a/a.py\n" in run.done.stdout
    assert action.run(fix="true").outputs["fixed"] == "false"
    run = action.run(fix="unsafe")
    assert run.done.returncode == 0 and run.outputs == {"fixed": "true", "findings": "0", "exit-code": "0"}
    assert "torch.load(p, weights_only=False)" in path.read_text("utf-8")


def test_the_configuration_does_not_fix(action: Action) -> None:
    path = action.write("a.py", OLD)
    action.write("torchmigrate.toml", "fix = true\n")
    assert action.run().outputs["fixed"] == "false" and path.read_text("utf-8") == OLD


def test_the_cache_is_not_committed(action: Action) -> None:
    """By a workflow that commits what fixes have changed."""
    action.write("a.py", OLD)
    action.run(fix="true")
    done = subprocess.run(
        ["git", "status", "--porcelain", "--untracked-files=all"],
        cwd=action.path,
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == ["??", "a.py"]


def test_sarif(action: Action) -> None:
    action.write("sub/a.py", OLD)
    run = action.run(working_directory="sub", sarif_file="out/t.sarif", fail_on_findings="false")
    file = action.path / "sub" / "out" / "t.sarif"
    assert run.done.returncode == 0 and run.outputs["sarif-file"] == str(file)
    results = json.loads(file.read_text("utf-8"))["runs"][0]["results"]
    assert [result["ruleId"] for result in results] == ["TM110", "TM600"]
    run = action.run(upload_sarif="true")
    assert Path(run.outputs["sarif-file"]) == action.path / "torchmigrate.sarif"
    # The next step uploads it, even if this one has failed.
    assert run.done.returncode == 1
    assert "!cancelled()" in UPLOAD["if"] and "steps.check.outputs.sarif-file != ''" in UPLOAD["if"]
    assert UPLOAD["with"]["sarif_file"] == "${{ steps.check.outputs.sarif-file }}"


def test_install(tmp_path: Path) -> None:
    """The release of the action, from its own files, with the first Python that is there."""
    source = tmp_path / "action"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "hatch_build.py"):
        shutil.copy(ROOT / name, source)
    for name in ("src", "rules", "integrations"):
        ignored = shutil.ignore_patterns("__pycache__", "_compiled.rules")
        shutil.copytree(ROOT / name, source / name, ignore=ignored)
    file = tmp_path / "output"
    values = {"github.action_path": str(source), "inputs.python": sys.executable, "inputs.version": ""}
    given = {
        "RUNNER_TEMP": str(tmp_path / "temp"),
        "GITHUB_OUTPUT": str(file),
        "PYTHONPATH": "",
        "PIP_NO_COMPILE": "1",
    }
    (tmp_path / "temp").mkdir()
    done = bash(INSTALL["run"], tmp_path, **variables(INSTALL, values), **given)
    assert done.returncode == 0, done.stdout + done.stderr
    python = outputs(file)["python"]
    assert Path(python).is_relative_to(tmp_path / "temp")
    told = subprocess.run([python, "-Im", "torchmigrate", "--version"], capture_output=True, text=True)
    assert told.stdout == f"torchmigrate {__version__}\n", told


def test_a_release_that_cannot_be_installed(tmp_path: Path) -> None:
    values = {"github.action_path": str(ROOT), "inputs.python": sys.executable, "inputs.version": "v0.0.0"}
    given = {"RUNNER_TEMP": str(tmp_path), "GITHUB_OUTPUT": str(tmp_path / "o"), "PIP_NO_INDEX": "1"}
    done = bash(INSTALL["run"], tmp_path, **variables(INSTALL, values), **given)
    assert done.returncode == 2
    assert (
        "::error title=torchmigrate::torchmigrate could not be installed from torchmigrate==0.0.0\n"
        in done.stdout
    )


def test_an_old_python(tmp_path: Path) -> None:
    """It says what is missing; the script itself needs no newer one."""
    script = (ROOT / "integrations" / "github_action.py").read_text("utf-8")
    started = script.replace("sys.version_info < OLDEST", "(3, 9) < OLDEST")
    assert started != script
    (tmp_path / "integrations").mkdir()
    (tmp_path / "integrations" / "github_action.py").write_text(started, "utf-8")
    values = {"github.action_path": str(tmp_path), "inputs.python": sys.executable}
    done = bash(INSTALL["run"], tmp_path, **variables(INSTALL, values))
    assert (
        done.returncode == 2
        and "::error title=torchmigrate::torchmigrate needs Python 3.10 or newer" in done.stdout
    )
