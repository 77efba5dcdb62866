"""Environments that an upgrade makes, with real pip, of packages that an index on this machine has."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from harness.repository import Repository
from harness.stand_in import KEPT, PYTEST, torch_files, wheel

pytestmark = pytest.mark.one_python

PROJECT = {
    "model.py": "import numpy\nimport torch\n\n\ndef outer(a, b):\n    return torch.ger(a, b)\n",
    "test_model.py": (
        "import six\nimport torch\nimport model\n\n\ndef test_outer():\n"
        "    assert model.outer(torch.ones(2), torch.ones(3)).shape == (2, 3)\n"
    ),
    "requirements.txt": "torch==1.4.0\nsix==1.17.99\nno-such-package-of-torchmigrate>=1\npytest==5.0\nflake8==3.0\n",
}


# The machine may have other indexes, and a proxy.
ALONE = {"PIP_RETRIES": "0", "UV_HTTP_RETRIES": "0", "PIP_CONFIG_FILE": os.devnull}
ALONE |= {"PIP_EXTRA_INDEX_URL": "", "PIP_FIND_LINKS": "", "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}


class _Silent(SimpleHTTPRequestHandler):
    def log_message(self, *said: object) -> None:
        pass


@pytest.fixture
def index(tmp_path: Path) -> Iterator[str]:
    """The address of an index with a stand-in for torch: a directory for each package, as it is listed."""
    for name, version, files in (
        ("torch", "2.12.1", torch_files("2.12.1")),
        ("torch", "2.13.0", torch_files("2.13.0", KEPT)),
        ("numpy", "2.3.0", {"numpy/__init__.py": ""}),
        ("six", "1.17.0", {"six.py": ""}),
        ("pytest", "9.0.0", PYTEST),
        ("flake8", "7.0.0", {"flake8.py": ""}),
    ):
        wheel(tmp_path / "simple", name, version, files)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Silent, directory=str(tmp_path)))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/simple"
    server.shutdown()
    server.server_close()


def test_an_environment_is_made_and_what_cannot_be_installed_is_said(tmp_path: Path, index: str) -> None:
    repository = Repository(tmp_path, PROJECT)
    done = repository.upgrade("--index-url", index, own=True, **ALONE)
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
    done = repository.upgrade(*options, own=True, code=2, **ALONE)
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1 and says in errors[0], done.stderr
