"""What a plan says of a small project is what happens on the torch that is installed (`tools/plan_claims.py`)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from harness.project import SOURCE

TOOL = Path(__file__).parents[2] / "tools" / "plan_claims.py"
PROJECT = {
    "pyproject.toml": "[project]\nname = 'work'\n",
    "work/__init__.py": "",
    # What is gone is used by the import: by name, at the level of the module, in a class, default, decorator.
    "work/by_name.py": "from torch._six import string_classes\n",
    "work/by_module.py": "import torch.utils.ffi\n",
    "work/called.py": "import torch\n\nVALUES = torch.symeig(torch.eye(2))\n",
    "work/in_class.py": "import torch\n\n\nclass A:\n    transform = torch.rfft\n",
    "work/default.py": "import torch\n\n\ndef f(x, transform=torch.irfft):\n    return transform(x)\n",
    # These import one of them.
    "work/through.py": "from .by_name import string_classes\n",
    "train.py": "from work import through\n",
    # These take care of it, or come to it later.
    "work/guarded.py": "try:\n    from torch._six import string_classes\nexcept ImportError:\n    string_classes = (str, bytes)\n",
    "work/late.py": "def names():\n    from torch._six import string_classes\n    return string_classes\n",
    "work/typed.py": (
        "from __future__ import annotations\nfrom typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from torch._six import string_classes\n"
    ),
    "work/core.py": """\
import torch


def whiten(x):
    values, vectors = torch.symeig(x.t() @ x, eigenvectors=True)
    return x @ vectors / values.sqrt()


def restore(path):
    return torch.load(path)


def scaler():
    return torch.cuda.amp.GradScaler(enabled=False)
""",
    "tests/test_work.py": """\
import fractions

import pytest
import torch

from work import core, guarded, late


def test_whiten():
    core.whiten(torch.eye(3))


def test_names():
    late.names()


def test_tensors(tmp_path):
    torch.save(torch.ones(2), tmp_path / "a.pt")
    assert core.restore(tmp_path / "a.pt").sum() == 2


def test_objects(tmp_path):
    torch.save(fractions.Fraction(1, 2), tmp_path / "a.pt")
    core.restore(tmp_path / "a.pt")


def test_scaler():
    with pytest.warns(FutureWarning):
        core.scaler()


def test_guarded():
    assert guarded.string_classes
""",
}


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    directory = tmp_path_factory.mktemp("work")
    for name, text in PROJECT.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    numbers = tmp_path_factory.mktemp("numbers") / "numbers.json"
    done = subprocess.run(
        [
            sys.executable,
            str(TOOL),
            str(directory),
            "--tests",
            "tests",
            "--skip",
            "tests",
            "--json",
            str(numbers),
        ],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return {"out": done.stdout, **json.loads(numbers.read_text())}


def test_all_that_is_said_is_so(compared: dict[str, Any]) -> None:
    assert compared["wrong"] == [] and torch.__version__


def test_what_breaks_on_import_does(compared: dict[str, Any]) -> None:
    assert compared["claimed"]["breaks_on_import"] == compared["seen"]["breaks_on_import"] == 5
    assert "cannot be imported through others: 2, of which 0 can" in compared["out"]


def test_what_may_raise_raises_for_some_and_not_for_others(compared: dict[str, Any]) -> None:
    assert compared["claimed"]["may_raise"] == compared["seen"]["may_raise"] == 1
    assert (
        "may_raise: reached by 2 tests, 1 raise there, 0 fail elsewhere, 1 pass: work/core.py:10"
        in compared["out"]
    )


def test_what_raises_when_it_is_reached_does(compared: dict[str, Any]) -> None:
    assert compared["claimed"]["raises"] == compared["seen"]["raises"] == 2
