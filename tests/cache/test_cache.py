"""The cache, as a user runs the program: with it, every run says what one without it does, in less time."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from harness.launcher import launch
from harness.project import environment

from torchmigrate.cache.trust import key_for, seal, unseal

FIXTURES = Path(__file__).parents[1] / "fixtures"
OLD = "import torch\n\ny = torch.ger(a, b)\n"
NEW = OLD.replace("ger", "outer")
DIRECTORY = ".torchmigrate_cache"
_TOLD = re.compile(r"cache: (\d+) of (\d+) files? are up to date\n")
_DIFFERENT = re.compile(r"(?:cache: .*|checked .* in .* s)\n")


class Project:
    """A directory in which the program runs, each time in a process of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)

    def write(self, name: str, text: str) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return path

    def run(self, *arguments: str | Path, **environ: str) -> subprocess.CompletedProcess[str]:
        done = launch(self.path, *arguments, **environ)
        assert "Traceback" not in done.stderr and "internal error" not in done.stderr, done.stderr
        return done

    def check(self, *options: str | Path, **environ: str) -> tuple[int, str]:
        """Check with the cache, compare with a check without; how many files were checked, and stdout."""
        cold = self.run("check", "-v", "--no-cache", *options, **environ)
        done = self.run("check", "-v", *options, **environ)
        assert done.stdout == cold.stdout
        assert _DIFFERENT.sub("", done.stderr) == _DIFFERENT.sub("", cold.stderr)
        assert done.returncode == cold.returncode
        told = _TOLD.search(done.stderr)
        assert told is not None, done.stderr
        return int(told[2]) - int(told[1]), done.stdout

    def checked(self, *options: str | Path, **environ: str) -> int:
        return self.check(*options, **environ)[0]

    @property
    def cache(self) -> Path:
        return self.path / DIRECTORY

    @property
    def store(self) -> Path:
        (store,) = self.cache.glob("?" * 32 + ".json")
        return store

    def content(self) -> Any:
        return json.loads(unseal(self.store, self.store.read_bytes(), key_for(self.cache, self.path)))

    def put(self, content: object) -> None:
        """Write the store as the program would."""
        data = json.dumps(content, separators=(",", ":")).encode()
        self.store.write_bytes(seal(self.store, data, key_for(self.cache, self.path)))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path / "project")
    made.write("old.py", OLD)
    made.write("plain.py", "x = 1\n")
    return made


# ---- what it saves ---------------------------------------------------------------------------------------


def test_what_has_not_changed_is_not_checked_again(project: Project) -> None:
    assert project.checked() == 2
    assert project.checked() == 0
    project.write("plain.py", "x = 2\n")
    assert project.checked() == 1
    assert project.checked() == 0
    project.write("more.py", NEW)
    assert project.checked("old.py") == 0, "what is elsewhere is not needed for this"
    assert project.checked() == 1


def test_the_directory_is_made_for_nobody_else(project: Project) -> None:
    project.check()
    assert (project.cache / ".gitignore").read_text().endswith("\n*\n")
    assert (
        (project.cache / "CACHEDIR.TAG")
        .read_text()
        .startswith("Signature: 8a477f597d28d172789f06886806bc55\n")
    )
    subprocess.run(["git", "init", "-q", "."], cwd=project.path, check=True)
    told = subprocess.run(["git", "status", "--short"], cwd=project.path, capture_output=True, text=True)
    assert DIRECTORY not in told.stdout


def test_it_is_in_the_root_of_the_project(project: Project) -> None:
    project.write("torchmigrate.toml", "")
    project.write("inner/deep.py", OLD)
    inner = Project(project.path / "inner")
    assert inner.checked() == 1
    assert project.cache.is_dir() and not inner.cache.exists()
    assert project.checked("inner") == 0


@pytest.mark.parametrize(
    "options",
    [(), ("--select", "ALL", "--minimum", "1.8"), ("--embedded", "--target", "2.0", "--unsafe-fixes")],
)
def test_every_format_says_the_same(tmp_path: Path, options: tuple[str, ...]) -> None:
    fixtures = Project(tmp_path / "fixtures")
    for path in sorted(FIXTURES.rglob("*.py"))[::4]:
        target = fixtures.path / path.relative_to(FIXTURES)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    assert fixtures.checked("--isolated", *options) > 15
    for output_format in ("full", "concise", "json", "github"):
        assert fixtures.checked("--isolated", "--output-format", output_format, *options) == 0
    assert fixtures.checked("--isolated", "--statistics", "--jobs", "2", *options) == 0


def test_what_does_not_parse_is_said_again(project: Project) -> None:
    project.write("broken.py", "import torch\nx = (\n")
    assert project.checked() == 3
    assert project.checked() == 0


def test_fixes_are_made_with_it_as_without(project: Project) -> None:
    assert project.checked() == 2
    twin = Project(project.path.parent / "twin")
    shutil.copytree(project.path, twin.path, dirs_exist_ok=True)
    shutil.rmtree(twin.cache)
    for options in (("--diff",), ("--fix", "--show-fixes"), ("--fix",), ()):
        done, expected = project.run("check", *options), twin.run("check", "--no-cache", *options)
        assert (done.stdout, done.stderr) == (expected.stdout, expected.stderr)
    assert (project.path / "old.py").read_text() == NEW
    assert not twin.cache.exists()


def test_clean_files_are_not_looked_at_for_fixes(project: Project) -> None:
    project.check()
    told = _TOLD.search(project.run("check", "--diff", "-v").stderr)
    assert told is not None and told.groups() == ("1", "2")


# ---- what makes a difference -----------------------------------------------------------------------------


def test_each_way_to_ask_has_its_own_results(project: Project) -> None:
    ways: list[tuple[str, ...]] = [
        (),
        ("--target", "1.8"),
        ("--minimum", "1.5"),
        ("--select", "TM9"),
        ("--ignore", "ALL"),
        ("--unsafe-fixes",),
        ("--isolated",),
    ]
    for way in ways:
        assert project.checked(*way) == 2, way
    for way in ways:
        assert project.checked(*way) == 0, way


@pytest.mark.parametrize(
    "configuration",
    [
        'target = "1.6"',
        'minimum = "1.5"',
        'ignore = ["TM110"]',
        'per-file-ignores = { "old.py" = ["TM110"] }',
        'extend-unsafe-fixes = ["TM110"]',
        "embedded = true",
    ],
)
def test_another_configuration(project: Project, configuration: str) -> None:
    project.check()
    project.write("torchmigrate.toml", configuration + "\n")
    assert project.checked() == 2
    assert project.checked() == 0


def test_another_requirement(project: Project) -> None:
    project.write("requirements.txt", "torch>=2.0\n")
    assert project.checked() == 3
    assert project.checked() == 0
    project.write("requirements.txt", "torch>=1.5\n")
    count, shown = project.check("--output-format", "json")
    assert count == 3
    fixes = [item["fix"] for item in json.loads(shown) if item["fix"]]
    assert any("torch 1.5" in (fix["reason"] or "") for fix in fixes)


def test_a_rule_of_the_project(project: Project) -> None:
    rule = """
- code: ABC100
  name: own-rule
  summary: "`{name}` is OURS"
  why: We say so.
  library: torch
  outdated: "1.7"
  symbols: [torch.dot]
  references: ["https://example.com"]
  examples:
    - report_only: |
        import torch
        torch.dot(a, b)
    - clean: |
        import torch
"""
    project.write("torchmigrate.toml", 'rules = ["lint"]\nextend-select = ["ABC"]\n')
    project.write("lint/own.yaml", rule)
    project.write("dot.py", "import torch\n\ntorch.dot(a, b)\n")
    project.check()
    assert project.checked() == 0
    project.write("lint/own.yaml", rule.replace("OURS", "THEIRS"))
    count, shown = project.check()
    assert count and "is THEIRS" in shown


def test_evidence(project: Project) -> None:
    project.write(".torchmigrate/evidence.json", "{}")
    project.check()
    assert project.checked() == 0
    project.write(".torchmigrate/evidence.json", '{"version": 1}')
    assert project.checked() == 2
    assert project.checked("--no-evidence") == 2


def test_same_size_and_same_time(project: Project) -> None:
    path = project.write("old.py", OLD)
    status = path.stat()
    project.check()
    path.write_text(OLD.replace("ger", "dot"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert path.stat().st_size == status.st_size
    count, shown = project.check()
    assert count == 1 and "torch.ger" not in shown


def test_another_time_makes_no_difference(project: Project) -> None:
    project.check()
    for path in project.path.glob("*.py"):
        os.utime(path, (1, 1))
    assert project.checked() == 0


@pytest.mark.parametrize("days", [-1000, 1000])
def test_a_clock_that_is_wrong(project: Project, days: int) -> None:
    project.check()
    content = project.content()
    content["day"] += days
    for entry in content["files"].values():
        entry[1] += days
    project.put(content)
    assert project.checked() == 0
    written = project.content()
    assert written["day"] == content["day"] - days and len(written["files"]) == 2


def test_another_release_of_the_program(project: Project, tmp_path: Path) -> None:
    """A copy of the package of which a module has changed."""
    project.check()
    import torchmigrate

    package = Path(torchmigrate.__file__).parent
    copy = tmp_path / "copy" / "torchmigrate"
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__"))
    if not (copy / "rules").is_dir():
        shutil.copytree(package.parents[1] / "rules", copy / "rules")

    def told() -> tuple[str, ...]:
        done = subprocess.run(
            [sys.executable, "-m", "torchmigrate", "check", "-v"],
            cwd=project.path,
            env=environment(PYTHONPATH=str(copy.parent)),
            capture_output=True,
            text=True,
        )
        found = _TOLD.search(done.stderr)
        assert found is not None, done.stderr
        return found.groups()

    assert told() == ("0", "2")
    assert told() == ("2", "2")
    with (copy / "engine" / "analysis.py").open("a") as file:
        file.write("# changed\n")
    assert told() == ("0", "2")


# Each file in several states, None: it is not there. What is said of most of them depends on others.
STATES: dict[str, list[str | None]] = {
    "app/__init__.py": ["", None, "import os\nos.environ['TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD'] = '1'\n"],
    "app/layers.py": [
        "from torch import ger\nfrom torch.autograd import Variable\n\n\ndef outer(a, b):\n    return ger(Variable(a), b)\n",
        "import torch\nfrom torch import symeig\n\n\ndef f(a):\n    return symeig(a, eigenvectors=True)\n",
    ],
    "app/uses.py": ["from app.layers import ger, Variable\n", "from .layers import *\n", "x = 1\n", None],
    "app/versions.py": [
        "import torch\nfrom packaging.version import parse\n\nTORCH_NEW = parse(torch.__version__) >= parse('1.8')\n",
        "TORCH_NEW = False\n",
        None,
    ],
    "app/guarded.py": [
        "import torch\nfrom app.versions import TORCH_NEW\n\nif not TORCH_NEW:\n    y = torch.rfft(x, 1)\n",
    ],
    "app/load.py": [
        "import torch\n\nstate = torch.load('model.pt')\nmodel.load_state_dict(state['state_dict'])\n"
    ],
    "app/save.py": [
        "import torch\n\ntorch.save({'state_dict': model.state_dict()}, 'model.pt')\n",
        "import torch\n\ntorch.save({'state_dict': model.state_dict(), 'args': args}, 'model.pt')\n",
        "import torch\n\ntorch.save(model, 'model.pt')\n",
        None,
    ],
    "app/trial.py": [
        "from app.keys import KEY\n\n\nclass Trial:\n    def state_dict(self):\n        return {KEY: 1}\n",
        "class Trial:\n    def state_dict(self):\n        return {'epoch': 1}\n",
        None,
    ],
    "app/keys.py": ["KEY = 'epoch'\n", "KEY = object()\n", None],
    "app/flows.py": [
        "import torch\n\n\nclass Flow(torch.distributions.Transform):\n    pass\n",
        "import torch\n\n\nclass Flow(torch.nn.Module):\n    pass\n",
        None,
    ],
    "app/flip.py": [
        "from app.flows import Flow\n\n\nclass Flip(Flow):\n    def __init__(self):\n        self.event_dim = 1\n",
    ],
    "app/resume.py": [
        "import torch\nfrom app.trial import Trial\n\nTrial().load_state_dict(torch.load('trial.pt'))\n",
    ],
    "tests/test_patch.py": [
        "from unittest import mock\n\n\n@mock.patch('torch.ger')\ndef test(ger):\n    pass\n",
        "from unittest import mock\n\n\ndef test():\n    with mock.patch('app.layers.ger'):\n        pass\n",
        None,
    ],
    "torch/__init__.py": [None, None, None, ""],
    "requirements.txt": ["torch>=1.6\n", "torch>=2.1\n", None],
    "setup.py": [
        "from setuptools import setup\n\nsetup(name='app', packages=['app'], install_requires=['torch>=1.4'])\n",
        None,
    ],
    "run.sh": ["python -m torch.distributed.launch --nproc_per_node 2 train.py\n", None],
    "train.py": [
        "import argparse\n\nparser = argparse.ArgumentParser()\nparser.add_argument('--local_rank')\n",
        "import os\n\nrank = os.environ['LOCAL_RANK']\n",
        None,
    ],
    "csrc/own.h": ["#define AT_CHECK TORCH_CHECK\n", "#include <torch/extension.h>\n", None],
    "csrc/code.cpp": ['#include "own.h"\n\nvoid f() { AT_CHECK(true); }\n'],
    "torchmigrate.toml": [None, 'exclude = ["tests", "app/uses.py"]\n', 'ignore = ["TM2"]\n'],
    ".gitignore": [None, "uses.py\n"],
}


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("repository", [True, False])
def test_whatever_changes(tmp_path: Path, seed: int, repository: bool) -> None:
    chosen = random.Random(seed)
    project = Project(tmp_path / "project")
    if repository:
        subprocess.run(["git", "init", "-q", "."], cwd=project.path, check=True)
    for name, states in STATES.items():
        if states[0] is not None:
            project.write(name, states[0])
    project.check()
    assert project.checked() == 0
    for _ in range(10):
        name = chosen.choice([name for name, states in STATES.items() if len(states) > 1])
        state = chosen.choice(STATES[name])
        if state is None:
            (project.path / name).unlink(missing_ok=True)
        else:
            project.write(name, state)
        paths = chosen.choice([(), (), ("app",), ("app/layers.py", "app/guarded.py")])
        project.check("--output-format", "json", *paths)


@pytest.mark.parametrize("name", sorted(name for name, states in STATES.items() if len(states) > 1))
def test_each_file_that_others_depend_on(tmp_path: Path, name: str) -> None:
    project = Project(tmp_path / "project")
    for other, states in STATES.items():
        if states[0] is not None:
            project.write(other, states[0])
    for state in [*STATES[name], STATES[name][0]]:
        if state is None:
            (project.path / name).unlink(missing_ok=True)
        else:
            project.write(name, state)
        project.check("--output-format", "json")


def test_what_others_say_is_asked_again_and_not_worked_out_again(tmp_path: Path) -> None:
    project = Project(tmp_path / "project")
    for other, states in STATES.items():
        if states[0] is not None:
            project.write(other, states[0])
    project.check()
    project.write("app/uses.py", "from app.layers import ger, Variable\n\nx = 1\n")
    assert project.checked() == 2, "itself, and guarded.py, which knows what versions.py says"
    project.write("app/uses.py", "x = 1\n")
    assert project.checked() > 2
    assert project.checked() == 0
