"""Environments that an upgrade makes, with real pip; no other file of tests needs the network."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
from harness.repository import Repository

assert torch.__version__.startswith("2.13"), "the target of these upgrades"

PROJECT = {
    "model.py": "import numpy\nimport torch\n\n\ndef outer(a, b):\n    return torch.ger(a, b)\n",
    "test_model.py": (
        "import six\nimport torch\nimport model\n\n\ndef test_outer():\n"
        "    assert model.outer(torch.ones(2), torch.ones(3)).shape == (2, 3)\n"
    ),
    "requirements.txt": "torch==1.4.0\nsix==1.17.99\nno-such-package-of-torchmigrate>=1\npytest==5.0\nflake8==3.0\n",
}


def test_an_environment_is_made_and_what_cannot_be_installed_is_said(tmp_path: Path) -> None:
    repository = Repository(tmp_path, PROJECT)
    done = repository.upgrade(own=True)
    report = repository.report
    assert report["torch"].startswith("2.13.")
    assert report["after"]["tests"] == {"test_model.py::test_outer": "passed"}
    assert list(report["left_out"]) == ["no-such-package-of-torchmigrate>=1"]
    assert "cannot install six==1.17.99; installed six in another version" in report["notes"]
    assert "installed numpy, which the project imports but does not require" in report["notes"]
    assert "no-such-package-of-torchmigrate>=1 could not be installed" in done.stdout
    assert "torch.outer" in repository.result("model.py")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--index-url", "http://127.0.0.1:9/simple"], "cannot install packages: there is no network"),
        (
            ["--to", "2.99"],
            "torch 2.99 is unknown; the newest release that this version of torchmigrate knows is",
        ),
        (["--to", "1.4"], "torch 1.4 does not support Python 3."),
        (["--python", "2.99"], "there is no python2.99 on the path"),
        (["--python", "/no/such/python"], "/no/such/python does not exist"),
    ],
)
def test_what_cannot_be_made_gets_one_line(tmp_path: Path, options: list[str], says: str) -> None:
    repository = Repository(tmp_path, PROJECT)
    variables = {"PIP_RETRIES": "0", "UV_HTTP_RETRIES": "0", "PIP_CONFIG_FILE": os.devnull}
    variables |= {"PIP_EXTRA_INDEX_URL": "", "PIP_FIND_LINKS": ""}  # the machine may have another index
    done = repository.upgrade(*options, own=True, code=2, **variables)
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1 and says in errors[0], done.stderr
