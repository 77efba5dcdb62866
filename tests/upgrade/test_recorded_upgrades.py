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
    repository = Repository(tmp_path, {"model.py": MODEL, "test_model.py": TESTS})
    repository.upgrade("--unsafe-fixes")
    assert repository.result("model.py") == MODEL.replace("torch.ger", "torch.outer").replace(
        "a.symeig(eigenvectors=True)", 'torch.linalg.eigh(a, UPLO="U")'
    )
    assert set(repository.report["after"]["tests"].values()) == {"passed"}


def test_without_evidence_nothing_is_recorded(tmp_path: Path) -> None:
    repository = Repository(tmp_path, {"model.py": MODEL, "test_model.py": TESTS})
    repository.upgrade("--no-evidence", code=1)
    assert not (repository.work / "evidence.json").exists()
    assert "a.symeig(eigenvectors=True)" in repository.result("model.py")
