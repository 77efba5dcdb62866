"""What the project of a file requires: the oldest torch, and packages that a rule asks for."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from harness.launcher import launch

SCALER = "import torch\n\nscaler = torch.cuda.amp.GradScaler()\n"  # its safe fix needs torch 2.3
PLACES = ("train.py", "tools/train.py", "trainer/train.py", "trainer/craft/train.py", "trainer/craft/a/b.py")


class Project:
    """A repository with the same old code in several places."""

    def __init__(self, path: Path) -> None:
        self.path = path
        (path / ".git").mkdir(parents=True)
        for name in PLACES:
            self.write(name, SCALER)

    def write(self, name: str, text: str) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def run(
        self, *arguments: str | Path, cwd: Path | None = None, stdin: str = ""
    ) -> subprocess.CompletedProcess[str]:
        done = launch(cwd or self.path, *arguments, stdin=stdin)
        assert "Traceback" not in done.stderr and "internal error" not in done.stderr, done.stderr
        return done

    def findings(self, *arguments: str | Path, cwd: Path | None = None, stdin: str = "") -> Any:
        return json.loads(
            self.run("check", "--output-format", "json", *arguments, cwd=cwd, stdin=stdin).stdout
        )

    def safe(self, *arguments: str | Path, cwd: Path | None = None) -> set[str]:
        """The files in which the fix is safe."""
        found = self.findings("--select", "TM202", *arguments, cwd=cwd)
        return {
            Path(os.path.relpath(os.path.realpath(item["filename"]), os.path.realpath(self.path))).as_posix()
            for item in found
            if item["fix"]["applicability"] == "safe"
        }

    def codes(self, *arguments: str | Path) -> list[str]:
        return sorted({item["code"] for item in self.findings(*arguments)})


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


OUTSIDE_OF_CRAFT = {"train.py", "tools/train.py", "trainer/train.py"}


@pytest.mark.parametrize("root", ["torch\n", "torch>=2.4\n"], ids=["root says nothing", "root is newer"])
def test_an_older_torch_below_the_root_counts_there(project: Project, root: str) -> None:
    project.write("requirements.txt", root)
    project.write("trainer/craft/requirements.txt", "numpy\ntorch==1.13.1\n")
    assert project.safe() == OUTSIDE_OF_CRAFT


def test_the_answer_does_not_depend_on_what_is_given(project: Project, tmp_path: Path) -> None:
    project.write("requirements.txt", "torch>=2.4\n")
    project.write("trainer/craft/requirements.txt", "torch==1.13.1\n")
    absolute = [project.path / name for name in PLACES]
    for number in range(len(PLACES)):  # as pre-commit does
        for some in (PLACES[: number + 1], PLACES[number:], PLACES[number : number + 1]):
            assert project.safe(*some) == OUTSIDE_OF_CRAFT.intersection(some)
    (tmp_path / "link").symlink_to(project.path / "trainer")
    (tmp_path / "b.py").symlink_to(absolute[-1])
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert project.safe(*absolute, cwd=elsewhere) == OUTSIDE_OF_CRAFT
    assert project.safe(".", cwd=project.path / "trainer" / "craft") == set()
    assert project.safe("..", cwd=project.path / "trainer" / "craft") == {"trainer/train.py"}
    assert project.safe("../../train.py", "a", cwd=project.path / "trainer" / "craft") == {"train.py"}
    assert project.safe("trainer/craft/../train.py") == {"trainer/train.py"}
    assert project.safe(tmp_path / "link", cwd=elsewhere) == {"trainer/train.py"}
    assert project.safe("../b.py", "../project/train.py", cwd=elsewhere) == {"train.py"}
    for jobs in "123":
        assert project.safe("--jobs", jobs) == OUTSIDE_OF_CRAFT


def test_a_newer_torch_below_the_root_does_not(project: Project) -> None:
    project.write("setup.cfg", "[options]\ninstall_requires = torch>=2.0\n")
    project.write("trainer/requirements.txt", "torch==2.6\n")
    assert project.safe() == set()


def test_a_newer_torch_counts_where_nothing_else_is_said(project: Project) -> None:
    project.write("tools/requirements.txt", "torch==1.4\n")
    project.write("trainer/requirements.txt", "torch==2.6\n")
    project.write("trainer/craft/environment.yml", "dependencies: ['pytorch=1.9']\n")
    assert project.safe() == {"train.py", "trainer/train.py"}
    assert project.safe("trainer", "--target", "2.5") == {
        "trainer/train.py"
    }  # newer than the target: not used


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "pyproject.toml",
            '[project]\nname = "a"\nrequires-python = ">=3.12"\ndependencies = ["torch>=1.8"]\n',
        ),
        ("pyproject.toml", '[tool.poetry.dependencies]\npython = "^3.12"\ntorch = "^1.8"\n'),
        ("setup.cfg", "[options]\npython_requires = >=3.12\ninstall_requires = torch>=1.8\n"),
        ("setup.py", "OLDEST = '~=3.12'\nsetup(python_requires=OLDEST, install_requires=['torch>=1.8'])\n"),
    ],
)
def test_a_torch_that_the_oldest_python_never_had_does_not_count(
    project: Project, name: str, text: str
) -> None:
    project.write(name, text)
    run = project.run("check", "--verbose", "--target", "2.6")
    assert f"minimum: torch 2.2 (the first for Python 3.12), from {project.path / name}" in run.stderr
    assert project.safe() == set()
    project.write(name, text.replace("3.12", "3.13"))  # torch 2.5
    assert project.safe() == {*PLACES}
    project.write(name, text.replace("3.12", "3.8"))
    assert "minimum: torch 1.8, from" in project.run("check", "--verbose").stderr


def test_what_is_needed_is_the_release_of_the_whole_name(project: Project) -> None:
    project.write("requirements.txt", "torch>=1.6\n")
    project.write("train.py", "import torch\n\nn = torch.linalg.vector_norm(torch.ones(3))\n")
    (finding,) = project.findings("--select", "TM005")
    assert finding["message"].startswith("`torch.linalg.vector_norm` exists since torch 1.9")
    assert finding["help"] == "raise the minimum to torch 1.9, or check the torch version before you use it"


def test_a_test_for_a_release_tells_what_is_supported(project: Project) -> None:
    text = """\
import torch

try:
    from torch.cuda.amp import autocast
except ImportError:
    pass

if torch.__version__ >= "1.7" and enabled:
    region = torch.cuda.amp.autocast()
if torch.__version__ >= "2.4":
    region = torch.cuda.amp.autocast()


def make():
    return autocast()
"""
    project.write("train.py", text)
    found = project.findings("--select", "TM201", "train.py")
    levels = {
        row: (item["fix"]["applicability"], item["fix"]["reason"])
        for item in found
        for row in [place["location"]["row"] for place in (item, *item["places"])]
    }
    old = "needs torch 1.12, but the project supports torch 1."
    first = ("unsafe", f"{old}6")  # the first that has the class
    assert levels == {4: first, 9: ("unsafe", f"{old}7"), 11: ("safe", None), 15: first}
    assert [item["location"]["row"] for item in found] == [4, 9, 11]  # the use in row 15 is of the import
    project.write("requirements.txt", "torch>=1.8\n")
    found = project.findings("--select", "TM201", "train.py")
    assert [item["fix"]["applicability"] for item in found] == ["unsafe", "unsafe", "safe"]
    project.write("requirements.txt", "torch>=2.6\n")
    found = project.findings("--select", "TM201", "train.py")
    assert {item["fix"]["applicability"] for item in found} == {"safe"}


def test_the_nearest_python_counts(project: Project) -> None:
    project.write("pyproject.toml", '[project]\nrequires-python = ">=3.8"\n')
    project.write("requirements.txt", "torch>=1.8\n")
    project.write("trainer/setup.py", "setup(python_requires='>=3.13')\n")
    project.write("trainer/craft/setup.py", "setup(python_requires='new')\n")  # nobody knows
    assert project.safe() == {name for name in PLACES if name.startswith("trainer/")}


def test_conda_environments_of_any_name_beside_a_readme(project: Project) -> None:
    project.write("linux_gpu.yml", "dependencies:\n- python=3.7\n- pytorch=1.5.1\n")
    project.write("mkdocs.yml", "extra: !!python/name:torch.x\ndependencies: [\n")
    assert project.safe() == {*PLACES}
    project.write("README.md", "conda env create -f linux_gpu.yml\n")
    run = project.run("check", "--verbose")
    assert project.safe() == set()
    assert f"minimum: torch 1.5, from {project.path / 'linux_gpu.yml'}" in run.stderr
    assert "mkdocs" not in run.stderr


def test_what_is_said_counts_for_all(project: Project) -> None:
    project.write("trainer/craft/requirements.txt", "torch==1.13.1\n")
    assert project.safe("--minimum", "2.3") == {*PLACES}
    assert project.safe("--minimum", "2.2") == set()
    assert project.safe("--isolated") == {*PLACES}
    project.write("torchmigrate.toml", 'minimum = "2.3"\n')
    assert project.safe() == {*PLACES}


def test_fixes_are_made_only_where_they_are_safe(project: Project) -> None:
    project.write("trainer/craft/requirements.txt", "torch==1.13.1\n")
    done = project.run("check", "--fix", ".")
    assert done.returncode == 1
    changed = {name for name in PLACES if (project.path / name).read_text() != SCALER}
    assert changed == OUTSIDE_OF_CRAFT


def test_stdin_is_where_its_name_says(project: Project) -> None:
    project.write("trainer/craft/requirements.txt", "torch==1.13.1\n")
    for name, level in (("trainer/craft/new.py", "unsafe"), ("trainer/new.py", "safe")):
        (item,) = project.findings("-", "--stdin-filename", name, stdin=SCALER)
        assert item["fix"]["applicability"] == level
    (item,) = project.findings("-", cwd=project.path / "trainer" / "craft", stdin=SCALER)
    assert item["fix"]["applicability"] == "unsafe"


def told(done: subprocess.CompletedProcess[str]) -> list[str]:
    """What is said of minimums, before the end."""
    return [line for line in done.stderr.splitlines() if "minimum: " in line]


def test_verbose_says_which_minimum_holds_where(project: Project) -> None:
    project.write("trainer/requirements.txt", "torch==2.0\n")
    craft = project.write("trainer/craft/requirements.txt", "torch==1.13.1\n")
    done = project.run("check", "--verbose", ".")
    assert told(done) == [
        "minimum: unknown (2 files)",
        f"minimum: torch 1.13, from {craft} (2 files)",
        f"minimum: torch 2.0, from {project.path / 'trainer' / 'requirements.txt'} (1 file)",
    ]
    done = project.run("check", "--verbose", "trainer", "--target", "1.13")
    assert told(done) == [
        f"minimum: torch 1.13, from {craft} (2 files)",
        f"minimum: ignoring torch 2.0 in {project.path / 'trainer' / 'requirements.txt'}, which is newer than the "
        "target (1 file)",
    ]
    done = project.run("check", "--verbose", ".", "--minimum", "1.9")
    assert told(done) == ["target: torch 2.15; minimum: 1.9"]


def test_each_directory_is_read_once(project: Project) -> None:
    project.write("trainer/requirements.txt", "torch>=new\n-r gone.txt\n")
    done = project.run("check", "--verbose", ".")
    assert done.stderr.count("`torch>=new` is not a requirement") == 1
    assert done.stderr.count("gone.txt: cannot read") == 1


def test_what_is_refused_is_an_error_only_for_files_below(project: Project) -> None:
    project.write("trainer/requirements.txt", "-r /etc/hostname\ntorch>=2.6\n")
    assert project.run("check", ".").returncode == 2
    assert project.run("check", "tools").returncode == 1
    assert project.run("check", ".", "--minimum", "1.9").returncode == 1


def test_a_submodule_belongs_to_the_repository(project: Project) -> None:
    project.write("requirements.txt", "torch==1.9\n")
    project.write("trainer/craft/.git", "gitdir: ../../.git/modules/craft\n")
    project.write("trainer/craft/requirements.txt", "torch==2.6\n")
    assert project.safe("trainer/craft") == set()


def test_without_a_repository(project: Project, tmp_path: Path) -> None:
    (project.path / ".git").rmdir()
    project.write("requirements.txt", "torch==1.9\n")
    project.write("trainer/craft/requirements.txt", "torch==2.6\n")
    assert (
        project.safe("project/trainer/craft", cwd=tmp_path)
        == project.safe("a", cwd=project.path / "trainer/craft")
        == set()
    )


def test_a_plan_for_several_minimums(project: Project) -> None:
    project.write("requirements.txt", "torch>=1.10\n")
    project.write("trainer/craft/requirements.txt", "torch==1.8\n")
    new = "import torch\n\nx = torch.linalg.diagonal(torch.eye(2))\n"  # torch 1.11
    project.write("train.py", new)
    project.write("trainer/craft/train.py", new)
    plan = json.loads(project.run("plan", ".", "--output-format", "json").stdout)
    assert plan["minimum"] == "1.8"
    needing = {place["path"]: place["message"] for place in plan["places"] if place["code"] == "TM005"}
    assert {name: text.rpartition(" ")[2] for name, text in needing.items()} == {
        "train.py": "1.10",
        "trainer/craft/train.py": "1.8",
    }
    assert json.loads(project.run("plan", "tools", "--output-format", "json").stdout)["minimum"] == "1.10"
    (project.path / "requirements.txt").unlink()
    assert json.loads(project.run("plan", ".", "--output-format", "json").stdout)["minimum"] is None


# ---- what only changed --------------------------------------------------------------------------------

EXPORT = "import torch\n\ntorch.onnx.export(model, (x,), 'model.onnx')\n"
SAMPLE = "import torch.nn.functional as F\n\ny = F.grid_sample(x, grid)\n"
ORDER = """\
import torch

optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
for epoch in range(3):
    scheduler.step()
    for x in data:
        model(x).backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("code", "text", "before", "since"),
    [
        ("TM652", EXPORT, "2.8", "2.9"),
        ("TM600", "import torch\n\nx = torch.load(path)\n", "2.3", "2.6"),
        ("TM667", "import torch\n\nx = torch.export.export(model, (x,))\n", "2.7", "2.8"),
        ("TM912", "import torch\n\nx = torch.floor_divide(torch.ones(2), 3)\n", "1.12", "1.13"),
        ("TM960", "import torchvision\n\nx = torchvision.transforms.Resize(3)\n", "2.1", "2.2"),
    ],
)
def test_a_project_lives_with_a_change_that_its_minimum_has(
    project: Project, code: str, text: str, before: str, since: str
) -> None:
    project.write("new/old.py", text)
    select = ("--select", code, "new")
    assert project.codes(*select) == [code]
    project.write("requirements.txt", f"torch>={before}\n")
    assert project.codes(*select) == [code]
    project.write("requirements.txt", f"torch>={since}\n")
    assert project.codes(*select) == []
    assert project.codes(*select, "--minimum", before) == [code]
    assert project.codes(*select, "--isolated", "--target", before) == []
    shown = project.run("explain", code, "--target", "2.13", "--minimum", since).stdout
    assert "no finding, because both releases have the change." in shown
    shown = project.run("explain", code, "--target", before).stdout
    assert "no finding yet." in shown


BASE = """\
from torch.optim.lr_scheduler import StepLR, _LRScheduler


class Mine(_LRScheduler):
    pass


def known(x):
    return issubclass(x, _LRScheduler) and x is not StepLR
"""


def test_what_never_does_what_is_meant_is_reported_with_every_minimum(project: Project) -> None:
    project.write("new/old.py", BASE)
    project.write("requirements.txt", "torch>=2.1\n")
    assert sorted(project.codes("new")) == ["TM450", "TM456"]
    project.run("check", "--fix", "new")
    assert (
        project.path / "new/old.py"
    ).read_text() == BASE  # of `issubclass`, the public name is true of more


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("TM417", SAMPLE),
        ("TM454", ORDER),
        ("TM805", "import torchaudio\n\nx = torchaudio.load(path, backend='sox')\n"),
        ("TM806", "import torchaudio\n\nx = torchaudio.load(path, normalize=False)\n"),
    ],
)
def test_what_warns_for_ever_is_said_for_ever(project: Project, code: str, text: str) -> None:
    project.write("new/old.py", text)
    select = ("--select", code, "new", "--target", "2.13", "--minimum", "2.13")
    (item,) = project.findings(*select)
    assert item["severity"] == "warning"
    options = ("--select", code, "new", "--minimum", "2.9", "--output-format", "json")
    for row in json.loads(project.run("plan", *options).stdout)["releases"]:
        assert (row["changes"]["places"], row["warns"]["places"]) == (0, 1)


# ---- packages -----------------------------------------------------------------------------------------

LOAD = "import torchaudio\n\nx, rate = torchaudio.load(path)\n"


@pytest.mark.parametrize(
    ("name", "text", "declared"),
    [
        ("pyproject.toml", '[project]\ndependencies = ["torch>=2.11", "torchcodec>=0.1"]\n', True),
        (
            "pyproject.toml",
            "[project.optional-dependencies]\naudio = [\"TorchCodec; os_name != 'nt'\"]\n",
            True,
        ),
        (
            "pyproject.toml",
            '[project]\ndependencies = ["torch>=2"]\n[project.optional-dependencies]\na = ["torchcodec"]\n',
            True,
        ),
        ("pyproject.toml", '[dependency-groups]\ndev = ["torchcodec"]\n', True),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = "^2.0"\ntorchcodec = "*"\n', True),
        ("pyproject.toml", '[tool.poetry.group.audio.dependencies]\ntorchcodec = {version = "0.2"}\n', True),
        ("pyproject.toml", '[project]\nname = "torchcodec"\ndependencies = ["torch"]\n', False),
        ("setup.cfg", "[options.extras_require]\naudio =\n  torchcodec==0.1\n", True),
        (
            "setup.cfg",
            "[options]\ninstall_requires = torch>1\n[options.extras_require]\nx = torchcodec\n",
            True,
        ),
        ("setup.py", "setup(install_requires=['torch>=2'], extras_require={'a': ['torchcodec']})\n", True),
        ("requirements.txt", "torch\ntorchcodec  # for torchaudio\n", True),
        ("requirements-audio.txt", "torchcodec @ https://example.com/torchcodec-0.1.whl\n", True),
        ("requirements.txt", "# torchcodec\ntorchcodec-nightly\n", False),
        ("requirements.txt", "-r more.txt\n", False),
        ("environment.yml", "dependencies:\n- conda-forge::torchcodec=0.2\n", True),
        ("environment.yml", "dependencies:\n- pip:\n  - torchcodec\n", True),
    ],
)
def test_torchcodec_is_declared(project: Project, name: str, text: str, declared: bool) -> None:
    project.write("new/old.py", LOAD)
    project.write(name, text)
    for options in ((), ("--minimum", "1.13")):
        assert project.codes("new", *options) == ([] if declared else ["TM804"])
    assert project.codes("new", "--isolated") == ["TM804"]


def test_torchcodec_in_another_file_than_torch(project: Project) -> None:
    project.write("new/old.py", LOAD)
    project.write("old/old.py", LOAD)
    project.write("setup.py", "setup(install_requires=['torch>=2'])\n")
    project.write("requirements.txt", "-r more.txt\ntorch\n")
    project.write("more.txt", "torchcodec\n")
    assert project.codes("new") == []
    project.write("more.txt", "numpy\n")
    project.write("old/requirements.txt", "torchcodec\n")
    assert [Path(item["filename"]).parent.name for item in project.findings("new", "old")] == ["new"]
    # Files that do not count for the minimum are not complained about.
    project.write("environment.yml", "dependencies: [torchcodec\n")
    assert "environment.yml" not in project.run("check", "-v", "new").stderr
