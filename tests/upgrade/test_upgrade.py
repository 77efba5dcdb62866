"""Whole upgrades of small projects, with real git and real pytest; with a stand-in for torch, unless `real`."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from harness.launcher import launch
from harness.project import environment
from harness.repository import Repository
from harness.stand_in import shared_environment

pytestmark = pytest.mark.one_python

MODEL = """\
import torch


def outer(a, b):
    return torch.ger(a, b)


def twice(a, b):
    return torch.ger(a, b) * 2


def decomposed(a):
    return torch.symeig(a, eigenvectors=True)
"""
TESTS = """\
import inspect

import torch

import model


def test_outer():
    assert model.outer(torch.ones(2), torch.ones(3)).shape == (2, 3)


def test_twice_is_what_it_was():
    assert "torch.ger(" in inspect.getsource(model.twice)


def test_decomposed():
    values, _ = model.decomposed(torch.eye(2))
    assert values.tolist() == [1, 1]
"""
PROJECT = {"model.py": MODEL, "test_model.py": TESTS, "requirements.txt": "torch==1.4.0\n"}


def test_what_breaks_a_test_is_taken_back_and_the_rest_is_committed(tmp_path: Path) -> None:
    repository = Repository(tmp_path, PROJECT)
    done = repository.upgrade()
    assert done.stdout.startswith("project on torch 2.13: 3 passed (2 before), 1 fixed, none failing.")
    assert repository.result("model.py") == MODEL.replace(
        "return torch.ger(a, b)\n", "return torch.outer(a, b)\n"
    ).replace("torch.symeig(a, eigenvectors=True)", "torch.linalg.eigh(a, UPLO='U')").replace(
        "UPLO='U'", 'UPLO="U"'
    )
    assert repository.result("requirements.txt") == "torch==2.13.0\n"
    report = repository.report
    assert report["before"]["tests"] == {
        "test_model.py::test_outer": "passed",
        "test_model.py::test_twice_is_what_it_was": "passed",
        "test_model.py::test_decomposed": "failed",
    }
    assert set(report["after"]["tests"].values()) == {"passed"}
    assert report["mended"] == ["test_model.py::test_decomposed"] and report["broken"] == []
    [taken] = report["taken_back"]
    assert taken["codes"] == ["TM110"]
    assert taken["places"] == [{"path": "model.py", "line": 9}]
    assert taken["tests"] == ["test_model.py::test_twice_is_what_it_was"]
    # A commit for each group, on a branch of its own that follows from what was there.
    log = repository.git("log", "--format=%s", "main..torchmigrate/upgrade-2.13").splitlines()
    assert log == [
        "Replace torch.ger with torch.outer",
        "Replace torch.symeig with torch.linalg.eigh",
        "Raise torch and its companion packages to 2.13",
    ]
    assert [step["title"] for step in reversed(report["applied"])] == [
        "Replace `torch.ger` with `torch.outer` (TM110)",
        "Replace `torch.symeig` with `torch.linalg.eigh` (TM100)",
        "Raise torch and its companion packages to 2.13",
    ]
    for name in ("report.md", "report.html"):
        text = (repository.work / name).read_text(encoding="utf-8")
        assert "model.py:9" in text and "test_twice_is_what_it_was" in text


def test_a_test_that_fails_is_explained_by_the_line_that_it_fails_at(tmp_path: Path) -> None:
    repository = Repository(
        tmp_path,
        {
            "model.py": (
                "import numpy as np\nimport torch\n\n\ndef solved(a, b):\n    return torch.gels(b, a)\n\n\n"
                "def whole(a):\n    return np.float(a)\n"
            ),
            "test_model.py": (
                "import torch\nimport model\n\n\ndef test_solved():\n    model.solved(torch.eye(2), torch.eye(2))\n\n\n"
                "def test_whole():\n    assert model.whole(1) == 1.0\n\n\ndef test_other():\n    assert 1 == 2\n\n\n"
                "def test_about():\n    import pytest\n\n    assert pytest.approx(1, 1)\n"
            ),
        },
    )
    repository.upgrade(code=1)
    failing = {each["tests"][0].rpartition("::")[2]: each for each in repository.report["failing"]}
    solved = failing["test_solved"]
    assert (solved["path"], solved["line"], solved["about_torch"]) == ("model.py", 6, True)
    assert solved["code"] and solved["cause"].startswith(solved["code"])
    assert "--also numpy" in failing["test_whole"]["cause"] and not failing["test_whole"]["about_torch"]
    assert failing["test_other"]["cause"].endswith("torchmigrate cannot tell whether torch is the cause")
    assert failing["test_about"]["cause"].startswith("not about torch: pytest rejects")
    [hand] = [each for each in repository.report["by_hand"] if each["tests"]]
    assert (hand["path"], hand["line"], hand["tests"]) == ("model.py", 6, 1)


def test_a_line_that_was_fixed_and_fails_as_before_is_not_blamed_on_the_fix(tmp_path: Path) -> None:
    test = "import torch\n\n\ndef test_some():\n    torch.testing.assert_allclose(torch.ones(2), torch.zeros(2))\n"
    repository = Repository(tmp_path, {"test_some.py": test})
    repository.upgrade("--unsafe-fixes", code=1)
    assert "assert_close" in repository.result("test_some.py")
    [failing] = repository.report["failing"]
    assert failing["cause"].startswith("a result differs from the one that the test expects")
    assert (failing["path"], failing["line"]) == ("test_some.py", 5)


SAMPLES = """\
from torch.distributions import Uniform


def wide(x):
    return Uniform(x, x + 1).sample()


def narrow(x):
    return Uniform(x, high=x).sample()
"""
GUESSED = {
    "requirements.txt": "torch==1.4.0\n",
    "samples.py": SAMPLES,
    "others.py": SAMPLES,
    "test_samples.py": (
        "import torch\nimport others\nimport samples\n\n\n"
        "def test_narrow():\n    assert samples.narrow(torch.ones(2)).tolist() == [1, 1]\n\n\n"
        "def test_wide():\n    assert others.wide(torch.ones(2)).shape == (2,)\n"
    ),
}


def test_rules_that_guess_are_tried_in_the_files_where_a_test_fails(tmp_path: Path) -> None:
    repository = Repository(tmp_path, GUESSED)
    repository.upgrade("--unsafe-fixes")
    assert repository.report["mended"] == ["test_samples.py::test_narrow"]
    assert repository.result("samples.py") == SAMPLES.replace("1)", "1, validate_args=False)").replace(
        "=x)", "=x, validate_args=False)"
    )
    assert repository.result("others.py") == SAMPLES
    assert [step["codes"] for step in repository.report["applied"]][-1] == ["TM407"]


RING = """\
from torch import nn


class Ring(nn.Module):
    def __init__(self):
        super().__init__()
        self.smooth = nn.Conv1d(1, 1, 4, padding=2, padding_mode="circular")

    def forward(self, x):
        return self.smooth(x).view(-1, WIDTH)
"""


def _ring(width: int) -> dict[str, str]:
    test = "import torch\nimport ring\n\n\ndef test_ring():\n    ring.Ring()(torch.ones(1, 1, 9))\n"
    ring = RING.replace("WIDTH", str(width))
    return {"requirements.txt": "torch==1.4.0\n", "ring.py": ring, "test_ring.py": test}


def test_a_guess_may_be_about_another_method_of_the_class(tmp_path: Path) -> None:
    repository = Repository(tmp_path, _ring(8))
    repository.upgrade("--unsafe-fixes")
    assert "padding=1" in repository.result("ring.py")
    assert repository.report["mended"] == ["test_ring.py::test_ring"]


def test_a_guess_that_mends_nothing_is_taken_back(tmp_path: Path) -> None:
    repository = Repository(tmp_path, _ring(9))
    repository.upgrade("--unsafe-fixes", code=1)
    assert "padding=2" in repository.result("ring.py")
    assert all("TM406" not in step["codes"] for step in repository.report["applied"])
    [failing] = repository.report["failing"]
    assert failing["cause"].startswith("possibly TM406, in the same class: ")
    assert failing["cause"].endswith("; its fix was tried, and mended no test")


def test_without_unsafe_fixes_they_explain_every_line_that_they_are_about(tmp_path: Path) -> None:
    repository = Repository(tmp_path, GUESSED)
    repository.upgrade(code=1)
    assert repository.result("samples.py") == SAMPLES
    [failing] = repository.report["failing"]
    assert (failing["code"], failing["path"], failing["line"]) == ("TM407", "samples.py", 9)


SHAPES = """\
import torch
from torch.distributions import Uniform
from torch.testing import assert_allclose


def sample(x):
    return Uniform(x, x).sample()


def test_other_shapes():
    a = torch.ones(3)
    assert_allclose(sample(a).expand(2, 3), a)
    assert_allclose(a, a)
    assert_allclose(a, sample(torch.ones(1)))


def test_same_shapes():
    assert_allclose(sample(torch.ones(3)), torch.ones(3))
"""


def test_a_fix_is_chosen_again_by_what_tests_show_that_got_there_later(tmp_path: Path) -> None:
    """The samples are mended by a rule that only guesses, after the fixes that depend on what is recorded."""
    repository = Repository(tmp_path, {"test_some.py": SHAPES, "requirements.txt": "torch==1.4.0\n"})
    repository.upgrade("--unsafe-fixes")
    text = repository.result("test_some.py")
    assert text.count("torch.broadcast_tensors(") == 3 and "assert_allclose" not in text
    assert repository.report["after"]["counts"]["passed"] == 2
    assert [step["codes"] for step in repository.report["applied"]][-1] == ["TM025"]
    titles = [step["title"] for step in repository.report["applied"]]
    assert titles[-1] == "Choose other fixes by what the tests now show (TM025)"
    log = repository.git("log", "--format=%s", "torchmigrate/upgrade-2.13")
    assert (
        log.splitlines()[0] == "Choose other fixes by what the tests now show" and "To be recorded" not in log
    )


CORNERS = """\
from torch import nn


def corner(x, grid):
    return nn.functional.grid_sample(x, grid)
"""


@pytest.mark.parametrize("expected", [1.0, 0.25, 7.0])
def test_the_old_default_is_tried_where_a_result_is_another_one(tmp_path: Path, expected: float) -> None:
    test = (
        "import torch\nimport corners\n\n\ndef test_corner():\n"
        f"    assert corners.corner(torch.ones(1), None).tolist() == [{expected}]\n\n\n"
        "def test_whole():\n    pass\n"
    )
    files = {"corners.py": CORNERS, "test_corners.py": test, "requirements.txt": "torch>=1.1\n"}
    repository = Repository(tmp_path, files)
    repository.upgrade("--unsafe-fixes", code=1 if expected == 7.0 else 0)
    assert f"functional.grid_sample(x, grid, align_corners={expected == 1.0})" in repository.result(
        "corners.py"
    )
    if expected == 7.0:
        assert "TM417 in corners.py: pass" in repository.report["failing"][0]["cause"]


def test_a_fix_that_no_other_one_replaces_stays_as_it_is(tmp_path: Path) -> None:
    text = SHAPES.replace("sample(a).expand(2, 3), a)", "sample(a), a + 1)")
    repository = Repository(tmp_path, {"test_some.py": text, "requirements.txt": "torch==1.4.0\n"})
    repository.upgrade("--unsafe-fixes", code=1)
    [failing] = repository.report["failing"]
    assert failing["tests"] == ["test_some.py::test_other_shapes"] and failing["line"] == 12
    assert "assert_allclose" not in repository.result("test_some.py")


def test_the_python_that_is_required_is_raised_with_the_pins(tmp_path: Path) -> None:
    setup = """\
[metadata]
name = work
classifiers =
    Programming Language :: Python :: 3.6
    Programming Language :: Python :: 3.11
[options]
python_requires = >=3.6
install_requires =
    torch<1.8
"""
    repository = Repository(tmp_path, {**PROJECT, "setup.cfg": setup})
    repository.upgrade()
    assert repository.result("setup.cfg") == setup.replace(
        "    Programming Language :: Python :: 3.6\n", ""
    ).replace(">=3.6", ">=3.10").replace("torch<1.8", "torch<2.14")
    assert repository.report["applied"][0]["codes"] == ["TM984", "TM986"]


def test_a_file_that_cannot_be_imported_or_a_test_that_fails_does_not_end_the_run(tmp_path: Path) -> None:
    repository = Repository(
        tmp_path,
        {
            "pytest.ini": "[pytest]\naddopts = --exitfirst\n",
            "test_first.py": "import no_such_package\n",
            "test_second.py": (
                "import torch\n\n\ndef test_fails():\n    assert 0\n\n\n"
                "def test_outer():\n    a = torch.ones(2)\n    assert torch.ger(a, a).shape == (2, 2)\n"
            ),
        },
    )
    repository.upgrade(code=1)
    assert repository.report["after"]["tests"] == {
        "test_first.py": "error",
        "test_second.py::test_fails": "failed",
        "test_second.py::test_outer": "passed",
    }
    assert "torch.outer(a, a)" in repository.result("test_second.py")


def test_a_test_that_hangs_and_one_that_crashes_do_not_keep_the_others_from_running(tmp_path: Path) -> None:
    repository = Repository(
        tmp_path,
        {
            "test_some.py": (
                "import os, time\n\n\ndef test_first():\n    pass\n\n\ndef test_hangs():\n    time.sleep(600)\n\n\n"
                "def test_crashes():\n    os.abort()\n\n\ndef test_last():\n    pass\n"
            )
        },
    )
    repository.upgrade("--test-timeout", "2", code=1)
    assert {name.rpartition("::")[2]: how for name, how in repository.report["before"]["tests"].items()} == {
        "test_first": "passed",
        "test_hangs": "hung",
        "test_crashes": "crashed",
        "test_last": "passed",
    }


def test_a_test_that_changes_by_itself_does_not_count(tmp_path: Path) -> None:
    counter = tmp_path / "counter"
    repository = Repository(
        tmp_path,
        {
            "model.py": MODEL,
            "test_some.py": (
                f"import pathlib\n\n\ndef test_changes():\n    path = pathlib.Path({str(counter)!r})\n"
                "    path.write_text(path.read_text() + 'x' if path.exists() else 'x')\n"
                "    assert len(path.read_text()) != 2\n"
            ),
        },
    )
    repository.upgrade()
    assert repository.report["unstable"] == ["test_some.py::test_changes"]
    assert repository.report["taken_back"] == [] and repository.report["mended"] == []


def test_a_pytest_that_a_test_runs_is_no_part_of_the_outcome(tmp_path: Path) -> None:
    repository = Repository(
        tmp_path,
        {
            "test_some.py": (
                "import os, subprocess, sys\n\n\ndef test_outer(tmp_path):\n"
                "    (tmp_path / 'test_inner.py').write_text('def test_inner():\\n    assert 0')\n"
                "    done = subprocess.run([sys.executable, '-m', 'pytest', str(tmp_path)])\n"
                "    assert done.returncode == 1\n    os.environ.clear()\n\n\ndef test_later():\n    pass\n"
            )
        },
    )
    repository.upgrade()
    assert repository.report["after"]["tests"] == {
        "test_some.py::test_outer": "passed",
        "test_some.py::test_later": "passed",
    }


def test_what_tests_write_into_the_tree_is_no_part_of_it(tmp_path: Path) -> None:
    repository = Repository(
        tmp_path,
        {
            "model.py": MODEL,
            "test_some.py": (
                "import pathlib\n\n\ndef test_writes():\n    pathlib.Path('new.txt').write_text('x')\n"
                "    pathlib.Path('model.py').write_text('broken')\n"
            ),
        },
    )
    repository.upgrade()
    assert "torch.outer" in repository.result("model.py")
    assert not (repository.work / "tree" / "new.txt").exists()
    changed = repository.git("diff", "--name-only", "main..torchmigrate/upgrade-2.13")
    assert changed == "model.py"


def test_a_command_that_is_no_pytest_counts_as_one_test(tmp_path: Path) -> None:
    check = "import torch\nimport model\n\nassert model.decomposed(torch.eye(2))[0].sum() == 2\n"
    repository = Repository(tmp_path, {"model.py": MODEL, "check.py": check})
    repository.upgrade("--test", "python check.py")
    report = repository.report
    assert report["before"]["tests"] == {"the test command": "failed"}
    assert report["after"]["tests"] == {"the test command": "passed"}


def test_without_tests_modules_are_imported_and_scripts_give_their_help(tmp_path: Path) -> None:
    repository = Repository(
        tmp_path,
        {
            "package/__init__.py": "",
            "package/layers.py": "from torch._six import string_classes\n\nnames = string_classes\n",
            "train.py": (
                "import argparse\n\nfrom package import layers\n\nif __name__ == '__main__':\n"
                "    argparse.ArgumentParser().parse_args()\n    open('trained', 'w')\n"
            ),
            "work.py": "print('hard work')\nopen('worked', 'w')\n",
            "warns.py": "import warnings\n\nNONE = warnings.warn('torch.old is deprecated')\n",
        },
    )
    done = repository.upgrade()
    assert [each["path"] for each in repository.report["after"]["warnings"]] == ["warns.py"]
    assert repository.report["before"]["tests"] == {
        "import package": "passed",
        "import package.layers": "failed",
        "help train.py": "failed",
        "import train": "failed",
        "import warns": "passed",
    }
    assert set(repository.report["after"]["tests"].values()) == {"passed"}
    assert (
        "no tests were found: only verified that" in done.stdout
        and "1 file skipped: importing would start real work" in done.stdout
    )
    assert not (repository.work / "tree" / "worked").exists()


def test_an_upgrade_that_was_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    tests = TESTS + "\n\ndef test_slow():\n    import time\n    time.sleep(3)\n"
    repository = Repository(tmp_path, {**PROJECT, "test_model.py": tests})
    before = repository.state
    log = repository.work / "log.txt"
    process = subprocess.Popen(repository.arguments(), env=environment(), stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not (log.exists() and b"pytest" in log.read_bytes()):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.1)
    process.kill()
    process.wait()
    assert repository.state == before
    again = repository.upgrade(code=2)
    assert "use --resume to continue it" in again.stderr
    repository.upgrade("--resume")
    runs = log.read_bytes().count(b"pytest -q")
    assert set(repository.report["after"]["tests"].values()) == {"passed"}
    # What is known is not found out anew.
    repository.upgrade("--resume")
    assert log.read_bytes().count(b"pytest -q") == runs


def test_an_upgrade_that_goes_on_with_other_options_does_not_take_what_was_made_without(
    tmp_path: Path,
) -> None:
    test = "import torch\n\n\ndef test_some():\n    torch.testing.assert_allclose(torch.ones(2), torch.ones(2))\n"
    repository = Repository(tmp_path, {"test_some.py": test})
    repository.upgrade()
    assert "assert_allclose" in repository.result("test_some.py")
    repository.upgrade("--resume", "--unsafe-fixes")
    assert "assert_close" in repository.result("test_some.py")


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_control_c_and_the_end_of_the_time_leave_what_was_done(tmp_path: Path) -> None:
    started = tmp_path / "started"
    slow = (
        "import pathlib\nimport time\n\n\n"
        f"def test_slow():\n    pathlib.Path({str(started)!r}).touch()\n    time.sleep(30)\n"
    )
    repository = Repository(tmp_path, {"model.py": MODEL, "test_slow.py": slow})
    before = repository.state
    done = repository.upgrade("--time-limit", "0.1", code=2)
    assert done.stderr.splitlines()[-1] == (
        f"error: the time limit was reached; the work so far is in {repository.work}; run the same command with --resume to continue"
    )
    started.unlink(missing_ok=True)
    process = subprocess.Popen(
        repository.arguments("--resume"),
        env=environment(),
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    end = time.monotonic() + 120
    while not started.exists() and time.monotonic() < end:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130 and b"with --resume to continue" in said and b"Traceback" not in said
    assert repository.state == before
    left = subprocess.run(
        ["pgrep", "-f", str(repository.work)], capture_output=True, text=True
    ).stdout.split()
    assert not left


def test_a_dry_run_says_what_would_be_done_and_makes_nothing(tmp_path: Path) -> None:
    repository = Repository(tmp_path, PROJECT)
    repository.write("notes.txt", "not committed\n")
    done = repository.upgrade("--dry-run")
    assert not repository.work.exists()
    assert repository.git("branch", "--list", "torchmigrate/*") == ""
    assert "uncommitted changes are not part of the upgrade" in done.stdout
    assert "Tests: `pytest -q`." in done.stdout and "(TM110): 1 file" in done.stdout


def test_the_work_directory_may_be_relative(tmp_path: Path) -> None:
    repository = Repository(tmp_path, PROJECT)
    options = ("--to", "2.13", "--env", shared_environment(), "--work", "../elsewhere", "--dry-run")
    done = launch(repository.path, "upgrade", ".", *options)
    assert done.returncode == 0 and "(TM110): 1 file" in done.stdout, done.stderr


def test_a_project_without_git_is_copied(tmp_path: Path) -> None:
    repository = Repository(tmp_path, PROJECT, git=False)
    done = repository.upgrade()
    assert "is not in a git repository: upgrading the copy" in done.stderr
    assert (repository.path / "model.py").read_text() == MODEL
    assert not (repository.path / ".git").exists()
    assert "torch.linalg.eigh" in repository.result("model.py")


def test_a_part_of_a_repository_is_upgraded_alone(tmp_path: Path) -> None:
    repository = Repository(
        tmp_path, {f"part/{name}": text for name, text in PROJECT.items()} | {"other.py": MODEL}
    )
    arguments = [
        argument.replace(str(repository.path), str(repository.path / "part"))
        for argument in repository.options()
    ]
    repository.run(arguments)
    assert "torch.linalg.eigh" in repository.result("part/model.py")
    assert repository.result("other.py") == MODEL


def test_submodules_are_used_and_not_upgraded(tmp_path: Path) -> None:
    library = Repository(tmp_path / "library", {"helper.py": MODEL})
    repository = Repository(
        tmp_path, {"test_some.py": "from deps.helper import outer\n\n\ndef test_some():\n    pass\n"}
    )
    repository.git(
        "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library.path), "deps"
    )
    repository.commit()
    done = repository.upgrade()
    assert "the submodule deps is used unchanged and not upgraded" in done.stderr
    assert repository.report["before"]["tests"] == {"test_some.py::test_some": "passed"}
    assert repository.result("deps/helper.py") == MODEL


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--test", "no-such-program"], "`no-such-program` cannot be run: "),
        (
            ["--test", "pytest -k nothing"],
            "`pytest -k nothing` runs no tests (3 deselected",
        ),
        (["--test", "'"], "cannot parse the test command `'`: "),
        (["--also", "perl"], "--also: `perl` is unknown; choose from python2, python, numpy"),
        (
            ["--work", "{path}/inside"],
            "is inside of the project: choose a directory outside of it with --work",
        ),
        (["--resume"], "there is no upgrade to continue; remove --resume"),
        (["--to", "2.9"], "it has torch 2.13.0"),
        (["--env", "{path}"], "not a virtual environment"),
    ],
)
def test_bad_options_get_one_line(tmp_path: Path, options: list[str], says: str) -> None:
    repository = Repository(tmp_path, PROJECT)
    done = repository.upgrade(*(each.format(path=repository.path) for each in options), code=2)
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1 and says in errors[0], done.stderr


def test_bad_places_get_one_line(tmp_path: Path) -> None:
    empty = Repository(tmp_path, {}, git=False)
    empty.git("init", "--quiet")
    done = launch(tmp_path, *empty.options())
    assert done.returncode == 2 and "the repository has no commits" in done.stderr
    (tmp_path / "file").write_text("")
    arguments = [argument.replace(str(empty.path), str(tmp_path / "file")) for argument in empty.options()]
    done = launch(tmp_path, *arguments)
    assert done.returncode == 2 and "not a directory" in done.stderr
    empty.commit()
    empty.git("branch", "torchmigrate/upgrade-2.13")
    assert "the branch torchmigrate/upgrade-2.13 exists" in empty.upgrade(code=2).stderr


def test_the_json_has_what_the_program_knows(tmp_path: Path) -> None:
    repository = Repository(tmp_path, {**PROJECT, "pytest.ini": "[pytest]\nfilterwarnings = default\n"})
    done = repository.upgrade("--output-format", "json")
    assert json.loads(done.stdout) == repository.report
    assert repository.report["branch"] == "torchmigrate/upgrade-2.13"
    assert repository.report["runs_from"] == "1.8"
    assert Path(repository.report["tree"]) == repository.work / "tree"


def test_other_tools_mend_what_is_not_about_torch(tmp_path: Path) -> None:
    repository = Repository(
        tmp_path,
        {
            "old.py": "def say(text):\n    print text\n",
            "model.py": "from collections import Sequence\n\nimport numpy as np\n\nwhole = np.int\nkind = Sequence\n",
            "test_some.py": "import model, old\n\n\ndef test_some():\n    assert model.whole is int\n",
        },
    )
    done = repository.upgrade("--also", "python2,numpy,python")
    assert "print(text)" in repository.result("old.py")
    assert "from collections.abc import Sequence" in repository.result("model.py")
    assert [step["title"][:6] for step in repository.report["applied"]] == ["Conver", "Update", "Replac"]
    assert "1 passed" in done.stdout


def test_what_changed_since_the_torch_that_the_project_supports(tmp_path: Path) -> None:
    """The target is what the fixes must run on, and not what the code was written for."""
    text = (
        "import torch\n\nfirst = torch.optim.Adam(model.parameters())\n"
        "second = torch.optim.Adam(other.parameters())\nsecond.load_state_dict({}first.state_dict(){})\n"
    )
    tests = "def test_nothing():\n    pass\n"
    for name, required, fixed in (
        ("old", "torch>=1.8", True),
        ("new", "torch>=2.2", False),
        ("any", "", True),
    ):
        place = tmp_path / name
        place.mkdir()
        files = {"model.py": text.format("", ""), "requirements.txt": required + "\n", "test_some.py": tests}
        repository = Repository(place, files)
        repository.upgrade()
        made = text.format("copy.deepcopy(", ")").replace("import torch\n", "import copy\n\nimport torch\n")
        assert repository.result("model.py") == (made if fixed else files["model.py"])


FAILING = {
    # a name that torch removed, through a module of the project
    "modes": (
        {"conftest.py": "import modes\n", "modes.py": "import torch\n\nMODE = torch.gels\n"},
        ("modes.py", 3),
    ),
    # a warning that the project turns into an error, in a directory below
    "warning": (
        {
            "pytest.ini": "[pytest]\nfilterwarnings = error\n",
            "tests/conftest.py": "import os\n\nimport torch\n\ntorch.set_default_tensor_type(os.environ.get('X', 'torch.DoubleTensor'))\n",
        },
        ("tests/conftest.py", 5),
    ),
}


@pytest.mark.parametrize("name", FAILING)
def test_a_conftest_that_fails_is_explained_by_the_line_that_it_fails_at(tmp_path: Path, name: str) -> None:
    files, place = FAILING[name]
    repository = Repository(tmp_path, {**files, "tests/test_some.py": "def test_some():\n    pass\n"})
    error = repository.upgrade(code=2).stderr.splitlines()[-1]
    assert error.startswith(f"error: `pytest -q` fails: {place[0]}:{place[1]}: ")
    assert "(TM" in error and "also with all fixes, so none is committed" in error
    assert repository.git("branch", "--list", "torchmigrate/*") == ""


def test_a_conftest_that_fails_for_another_reason_is_named_with_its_line(tmp_path: Path) -> None:
    conftest = "import torch\n\nLIMIT = int('many')\n"
    repository = Repository(
        tmp_path, {"conftest.py": conftest, "test_some.py": "def test_some():\n    pass\n"}
    )
    error = repository.upgrade(code=2).stderr.splitlines()[-1]
    assert error.startswith("error: `pytest -q` fails: conftest.py:3: ValueError: ")
    assert "so no fix can be verified" in error and not list(repository.work.glob("report*"))


def test_a_conftest_that_is_mended_gives_the_tests(tmp_path: Path) -> None:
    conftest = "from torch._six import string_classes\n\nNAMES = string_classes\n"
    repository = Repository(
        tmp_path, {"tests/conftest.py": conftest, "tests/test_some.py": "def test_some():\n    pass\n"}
    )
    repository.upgrade()
    assert repository.report["before"]["tests"] == {"the test command": "failed"}
    assert repository.report["after"]["tests"] == {"tests/test_some.py::test_some": "passed"}
