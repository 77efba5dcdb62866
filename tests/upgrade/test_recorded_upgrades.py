"""An upgrade records what its tests call outdated places with, and uses that step by step."""

from __future__ import annotations

from pathlib import Path

import torch
from harness.repository import Repository

assert torch.__version__.startswith("2.13"), "the target of these upgrades"

MODEL = """\
import torch


class Lazy:
    def symeig(self):
        return "of another class"


def outer(a, b):
    return torch.ger(a, b)


def decomposed(a):
    return a.symeig(eigenvectors=True)


def plain(a):
    return a.symeig()
"""
TESTS = """\
import torch

import model


def test_outer():
    assert model.outer(torch.ones(2), torch.ones(3)).shape == (2, 3)


def test_decomposed():
    assert model.decomposed(torch.eye(2))[0].tolist() == [1, 1]


def test_plain():
    assert model.plain(model.Lazy()) == "of another class"
"""


def test_what_tests_show_is_used_also_in_files_that_other_fixes_changed_before(tmp_path: Path) -> None:
    repository = Repository(tmp_path, {"model.py": MODEL, "test_model.py": TESTS}, real=True)
    repository.upgrade("--unsafe-fixes")
    assert repository.result("model.py") == MODEL.replace("torch.ger", "torch.outer").replace(
        "a.symeig(eigenvectors=True)", 'torch.linalg.eigh(a, UPLO="U")'
    )
    assert set(repository.report["after"]["tests"].values()) == {"passed"}


def test_what_runs_only_since_the_first_fixes_is_seen_as_well(tmp_path: Path) -> None:
    model = "from torch._six import inf\n\n" + MODEL
    repository = Repository(tmp_path, {"model.py": model, "test_model.py": TESTS})
    repository.upgrade("--unsafe-fixes")
    assert repository.result("model.py") == model.replace("torch._six", "torch").replace(
        "torch.ger", "torch.outer"
    ).replace("a.symeig(eigenvectors=True)", 'torch.linalg.eigh(a, UPLO="U")')
    assert set(repository.report["after"]["tests"].values()) == {"passed"}
    assert [step["codes"] for step in repository.report["applied"]] == [["TM020"], ["TM110"], ["TM100"]]


SHAPES = """\
import pytest
import torch
from torch.testing import assert_allclose


@pytest.mark.parametrize("size", [1, 2])
def test_batches(size):
    x = torch.ones(size, 3)
    assert_allclose(x, x + 0)
    assert_allclose(x, torch.ones(1, 3))
    assert_allclose(x * 2, torch.full((1, 3), 2.0))
    if size:
        assert_allclose(x, x + 0)


def test_equal():
    assert_allclose(torch.ones(2), torch.ones(2))
"""


def test_shapes_that_differ_are_broadcast_also_where_no_test_came_to(tmp_path: Path) -> None:
    repository = Repository(tmp_path, {"test_some.py": SHAPES})
    repository.upgrade("--unsafe-fixes")
    lines = repository.result("test_some.py").splitlines()
    assert ["broadcast" in line for line in lines if "assert_close(" in line] == [
        False,
        True,
        True,
        False,
        False,
    ]
    assert len(repository.report["mended"]) == 1 and repository.report["failing"] == []


FILLED = """\
import torch


def filled(size, value):
    return torch.full((size,), value)


def least(x):
    return torch.finfo(x.dtype).min
"""


def test_a_guess_may_be_about_another_function_of_a_file_that_a_test_leads_to(tmp_path: Path) -> None:
    test = (
        "import lib\n\n\ndef test_least():\n    assert lib.least(lib.filled(2, 1)) < 0\n\n\n"
        "def test_whole():\n    assert lib.filled(2, 1.5).sum() == 3\n"
    )
    requires = "torch==1.4.0\n"
    files = {"lib.py": FILLED, "other.py": FILLED, "test_lib.py": test, "requirements.txt": requires}
    repository = Repository(tmp_path, files)
    repository.upgrade("--unsafe-fixes")
    new = "torch.full((size,), value, dtype=torch.get_default_dtype())"
    assert repository.result("lib.py") == FILLED.replace("torch.full((size,), value)", new)
    assert repository.result("other.py") == FILLED
    assert repository.report["mended"] == ["test_lib.py::test_least"]


def test_warnings_that_no_finding_is_about_are_listed(tmp_path: Path) -> None:
    lib = (
        "import torch\n\n\ndef put(x, places):\n    x[places] = 0.0\n\n\n"
        "def outer(a):\n    return torch.ger(a, a)\n"
    )
    test = (
        "import lib\nimport torch\n\n\ndef test_put():\n"
        "    lib.put(torch.zeros(1).expand(3), torch.tensor([0, 1]))\n\n\n"
        "def test_outer():\n    lib.outer(torch.ones(2))\n"
    )
    repository = Repository(tmp_path, {"lib.py": lib, "test_lib.py": test}, real=True)
    repository.upgrade("--unsafe-fixes")
    assert "torch.outer" in repository.result("lib.py")
    [note] = [note for note in repository.report["notes"] if "torch warned" in note]
    assert note.startswith(
        "lib.py:5: torch warned here, and no finding is about it: UserWarning: Use of index_put_"
    )


def test_without_evidence_nothing_is_recorded(tmp_path: Path) -> None:
    repository = Repository(tmp_path, {"model.py": MODEL, "test_model.py": TESTS})
    repository.upgrade("--no-evidence", code=1)
    assert not list(repository.work.glob("evidence*"))
    assert "a.symeig(eigenvectors=True)" in repository.result("model.py")
