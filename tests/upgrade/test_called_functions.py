"""Functions of projects without tests, called in an old and in a new environment: two stand-ins for torch."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness.launcher import launch
from harness.repository import Repository
from harness.stand_in import KEPT, environment_with

pytestmark = pytest.mark.one_python

# Division of integers gives integers, as before torch 1.5.
OLD = """
class _Old(Tensor):
    def __truediv__(self, other):
        return self._with(other, lambda a, b: int(a / b))


def tensor(data, dtype=float32):
    made = _Old((len(data),), data, dtype) if dtype == int64 else Tensor((len(data),), data, dtype)
    made.reshape = lambda sizes: (_Old if dtype == int64 else Tensor)(sizes, made.values, dtype)
    return made


def symeig(a, eigenvectors=False, upper=True):
    return linalg.eigh(a)
"""
MODEL = """\
import torch
from torch import nn


def outer(a: torch.Tensor, b: torch.Tensor, factor: int):
    return torch.ger(a, b) * factor


def decomposed(a: torch.Tensor):
    return torch.symeig(a, eigenvectors=True)[0]


class Outer(nn.Module):
    def __init__(self, size=3):
        self.weight = torch.ones(size)

    def forward(self, x: torch.Tensor):
        return outer(x, self.weight, 2)


def trained():
    open("trained", "w").write("x")
"""


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> str:
    where = tmp_path_factory.mktemp("environments")
    return str(environment_with(where / "old", torch="1.4.0", more=KEPT + OLD))


def called(report: dict[str, object], run: str) -> dict[str, str]:
    tests = report[run]["tests"]  # type: ignore[index]
    return {name.partition(" ")[2]: outcome for name, outcome in tests.items() if name.startswith("call ")}


def test_functions_that_give_the_same_are_counted(tmp_path: Path, old: str) -> None:
    repository = Repository(tmp_path, {"model.py": MODEL})
    done = repository.upgrade("--old-env", old, "--call-functions")
    assert "compared the results of 3 functions on made inputs with those on torch 1.4.0" in done.stdout
    assert called(repository.report, "before") == {
        "model.outer": "passed",
        "model.decomposed": "failed",
        "model.Outer": "passed",
    }
    assert set(called(repository.report, "after").values()) == {"passed"}
    assert "torch.outer(a, b)" in repository.result("model.py")
    assert not (repository.work / "tree" / "trained").exists()


def test_nothing_is_called_without_the_option(tmp_path: Path, old: str) -> None:
    repository = Repository(tmp_path, {"model.py": MODEL})
    done = repository.upgrade("--old-env", old)
    assert repository.report["after"]["tests"] == {"import model": "passed"}
    assert "compared" not in done.stdout


def test_a_result_that_differs_is_reported_with_its_line(tmp_path: Path, old: str) -> None:
    text = "import torch\n\n\ndef half(x: torch.LongTensor):\n    y = x / 2\n    return y + 1\n"
    repository = Repository(tmp_path, {"model.py": text})
    done = repository.upgrade("--old-env", old, "--call-functions", code=1)
    [failing] = repository.report["failing"]
    assert failing["tests"] == ["call model.half"] and (failing["path"], failing["line"]) == ("model.py", 6)
    assert failing["message"] == (
        "the result is not the same as on torch 1.4.0 for x=int64 [6, 6]: "
        "result is float32 [6, 6], and was int64 [6, 6]"
    )
    assert failing["cause"] == (
        "since torch 1.6, quotients of integers are floats: use `//` where one is computed; "
        "here: `x / 2` in line 5"
    )
    assert repository.report["taken_back"] == [] and "1 still failing" in done.stdout


def test_a_fix_that_changes_a_result_is_taken_back(tmp_path: Path, old: str) -> None:
    new = environment_with(tmp_path / "new", more=KEPT + "def outer(a, b):\n    return ger(a, b) * 2\n")
    repository = Repository(tmp_path, {"model.py": MODEL})
    repository.upgrade("--env", str(new), "--old-env", old, "--call-functions", own=True)
    assert "torch.ger(a, b)" in repository.result("model.py")
    assert "torch.linalg.eigh(" in repository.result("model.py")
    [taken] = repository.report["taken_back"]
    assert taken["codes"] == ["TM110"] and taken["tests"] == ["call model.outer", "call model.Outer"]
    assert "number 1 of result is " in taken["message"]


def test_what_gives_nothing_in_the_old_environment_is_not_compared(tmp_path: Path, old: str) -> None:
    text = (
        "import torch\n\n\ndef fails(x: torch.Tensor):\n    raise ValueError('x')\n\n\n"
        "def hangs(x: torch.Tensor):\n    while True:\n        pass\n\n\ndef works():\n    return 1\n"
    )
    repository = Repository(tmp_path, {"model.py": text})
    repository.upgrade("--old-env", old, "--call-functions", "--test-timeout", "2")
    assert called(repository.report, "before_old") == {
        "model.fails": "skipped",
        "model.hangs": "hung",
        "model.works": "passed",
    }
    assert called(repository.report, "after") == {"model.works": "passed"}
    note = "not compared, because they give no result on torch 1.4.0: model.fails, model.hangs"
    assert note in repository.report["notes"]


def test_kinds_of_inputs_may_be_recorded(tmp_path: Path, old: str) -> None:
    model = (
        "import torch\n\n\ndef outer(a, b):\n    return torch.ger(a, b)\n\n\ndef other(a):\n    return a\n"
    )
    run = "import model\nimport torch\n\nmodel.outer(torch.ones(2), torch.ones(3))\n"
    repository = Repository(tmp_path, {"model.py": model, "run.py": run, ".gitignore": ".torchmigrate\n"})
    options = ("--old-env", old, "--call-functions")
    before = repository.upgrade(*options, "--dry-run").stdout
    assert "Functions to call on made inputs in both environments: none." in before
    done = launch(repository.path, "record", str(Path(old) / "bin/python"), "run.py")
    assert done.returncode == 0, done.stderr
    repository.upgrade(*options)
    assert called(repository.report, "after") == {"model.outer": "passed"}


def test_functions_of_other_modules_are_looked_at_too(tmp_path: Path, old: str) -> None:
    files = {
        "package/__init__.py": "from .core import one\n\n\ndef two():\n    return one() * 2\n",
        "package/core.py": "def one(factor=2):\n    return factor\n",
        "tools/script.py": "from beside import writes, size\n\n\ndef both():\n    return size(), writes\n\n\ndef sizes():\n    return size()\n",
        "tools/beside.py": "import os\n\n\ndef size():\n    return 1\n\n\ndef writes():\n    os.mkdir('x')\n",
    }
    repository = Repository(tmp_path, files)
    repository.upgrade("--old-env", old, "--call-functions")
    assert called(repository.report, "after") == {
        "package.two": "passed",
        "package.core.one": "passed",
        "tools.beside.size": "passed",
        "tools.script.sizes": "passed",
    }


FUNCTIONS = {
    "def f(): return 1": True,
    "def f(x=open('model.py')): return 1": False,
    "def f(x: int, *more, y: float, **rest): return x": True,
    "def f(x): return x": False,
    "def f(x: str): return x": False,
    "def f(x: torch.Tensor): return F.relu(x).to(torch.float64)": True,
    "def f(x: torch.Tensor): torch.save(x, 'x')": False,
    "def f(x: torch.Tensor): return list(map(torch.load, x))": False,
    "def f(x: torch.Tensor): return np.tanh(x)": True,
    "def f(x: torch.Tensor): np.save('x', x)": False,
    "def f(x: torch.Tensor): x.tofile('x')": False,
    "def f(): return os.getcwd()": False,
    "def f(): return torch.hub.load('x', 'y')": False,
    "from torch import hub\nkept = hub\ndef f(): return kept.download_url_to_file('x', 'y')": False,
    "def f(): return getattr(torch, 'save')": False,
    "def f(t=torch): return t": False,
    "def f(): return ().__class__.__base__": False,
    "def f(): return missing(1)": False,
    "def f():\n    import shutil": False,
    "def f():\n    yield 1": False,
    "async def f(): pass": False,
    "def f(): return [g(x) for x in range(3)]\n\ndef g(x): return x": True,
    "def f(): return g(3)\n\ndef g(x): return h(x)\n\ndef h(x): return f() if x else open(x)": False,
    "def f(): return SIZE\n\nSIZE = [max(1, 2)]": True,
    "def f(): return LOG.info('x')\n\nLOG = logging.getLogger()": False,
    "def f(): return helper(1)": True,
    "def f(): return writes(1)": False,
    "@writes\ndef f(): return 1": False,
    "@torch.no_grad()\ndef f(): return 1": True,
    "class f(torch.nn.Module):\n    def __init__(self): pass": True,
    "class f(torch.nn.Module):\n    def __init__(self, size): pass": False,
    "class f:\n    def __init__(self): pass": False,
    "def f(): return g()\n\nclass g:\n    def run(self): print(open('x'))": False,
    'def f(x: Float[torch.Tensor, "batch 3 *rest"]): return x': True,
}
IMPORTS = """\
import logging
import os

import numpy as np
import torch
import torch.nn.functional as F
from helpers import helper, writes
from jaxtyping import Float

"""
HELPERS = "import os\n\n\ndef helper(x): return x\n\n\ndef writes(x): os.remove(x)\n"


def test_only_what_has_no_effects_and_known_inputs_is_called(tmp_path: Path, old: str) -> None:
    files = {f"m{number}.py": f"{IMPORTS}\n{text}\n" for number, text in enumerate(FUNCTIONS)}
    repository = Repository(tmp_path, {**files, "helpers.py": HELPERS})
    done = repository.upgrade("--old-env", old, "--call-functions", "--dry-run")
    [line] = [line for line in done.stdout.splitlines() if line.startswith("Functions to call")]
    found = set(line.partition(": ")[2].strip(".").split(", "))
    assert {text: f"m{number}.f" in found for number, text in enumerate(FUNCTIONS)} == FUNCTIONS


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([], "--call-functions compares with an old environment: add --old-env DIR"),
        (
            ["--test", "pytest", "--old-env", "x"],
            "--call-functions is for projects without tests: remove --test",
        ),
    ],
)
def test_options_that_contradict_each_other_get_one_line(
    tmp_path: Path, options: list[str], says: str
) -> None:
    repository = Repository(tmp_path, {"model.py": MODEL})
    done = repository.upgrade("--call-functions", *options, code=2)
    assert done.stderr.splitlines()[-1] == f"error: {says}"
