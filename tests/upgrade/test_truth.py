"""Each sentence of a report where it is true, and where it would be false; with a stand-in for torch."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from harness.repository import Repository

from torchmigrate.upgrade.fixer import _title

LIB = """\
import numpy as np
import torch
from torch import nn


def decomposed(a):
    return torch.symeig(a, eigenvectors=True)


def outer(a, b):
    return torch.ger(a, b.missing)


def solved(a):
    return torch.gels(a, a)


def solved_whole(a):
    return np.float(torch.gels(a, a))


def raises(error, path):
    if error is None:
        torch.save(1, path)
    raise error


def loss():
    return nn.MSELoss(size_average=False)


def product(a, b):
    return torch.ger(a, b)


def sampled(x, grid):
    return nn.functional.grid_sample(x, grid)


try:
    import package_of_others
except ImportError:
    pass


def with_package(x):
    if x is None:
        torch.save(1, "path")
    return package_of_others.run(x)
"""
TESTS = """\
import unittest
from unittest import mock

import lib
import torch


def group(*errors):
    raised = []
    for error in errors:
        try:
            raise error
        except Exception as caught:
            raised.append(caught)
    return ExceptionGroup("2 failures", raised)


def test_fails_otherwise_since_the_fix():
    lib.decomposed(None)


def test_fails_as_before_the_fix():
    lib.outer(torch.ones(2), None)


def test_removed():
    lib.solved(1)


def test_removed_but_numpy_fails_first():
    lib.solved_whole(1)


def test_another_change_in_the_same_function():
    lib.raises(RuntimeError("expected m1 and m2 to have the same dtype: float != double"), "x")


def test_package_that_is_missing():
    lib.with_package(1)


def test_another_default():
    assert lib.np is None


def test_companion_that_is_missing():
    raise ModuleNotFoundError("No module named 'torchvision'")


def test_old_argument_of_a_mock():
    with mock.patch("torch.nn.MSELoss", create=True) as made:
        lib.loss()
    made.assert_called_once_with(size_average=False)


def test_a_mock_that_is_not_called():
    with mock.patch("torch.g" + "er", create=True) as made:
        lib.product(torch.ones(1), torch.ones(1))
    made.assert_called_once()


def test_group_about_masks():
    raise group(ValueError("x"), RuntimeError("masked_fill_ only supports boolean masks"))


def test_group_about_nothing():
    raise group(ValueError("x"), KeyError("y"))


class Parts(unittest.TestCase):
    def test_part(self):
        for number in range(2):
            with self.subTest(number=number):
                if number:
                    raise IndexError("invalid index of a 0-dim tensor")

    def test_parts_that_pass(self):
        for number in range(2):
            with self.subTest(number=number):
                pass
"""


@pytest.mark.skipif(sys.version_info < (3, 11), reason="groups of exceptions")
def test_each_failure_has_its_own_cause(tmp_path: Path) -> None:
    repository = Repository(tmp_path, {"lib.py": LIB, "test_lib.py": TESTS})
    done = repository.upgrade("--unsafe-fixes", code=1)
    report = repository.report
    causes = {name.rpartition("::")[2]: each["cause"] for each in report["failing"] for name in each["tests"]}
    changed = "possibly about torch: a fix changed this line: "
    assert causes.pop("test_fails_otherwise_since_the_fix").startswith(changed)
    assert causes.pop("test_fails_as_before_the_fix") == "not about torch, according to the traceback"
    assert causes.pop("test_removed").startswith("TM1")
    assert causes.pop("test_removed_but_numpy_fails_first").startswith("not about torch: NumPy removed")
    assert "TM123" not in causes.pop("test_another_change_in_the_same_function")
    for name, package in (("package", "package_of_others"), ("companion", "torchvision")):
        said = f"not about torch: the package {package} is not installed"
        assert causes.pop(f"test_{name}_that_is_missing") == said
    assert causes.pop("test_another_default") == (
        "a result differs from the one that the test expects: possibly TM417 in lib.py: pass "
        "`align_corners=False`, or True for code and models from before torch 1.3"
    )
    assert "add `.bool()`" in causes.pop("test_group_about_masks")
    assert causes.pop("test_group_about_nothing") == "not about torch, according to the traceback"
    assert "use `.item()`" in causes.pop("test_part")
    # A test that expects the old call is to be changed; one in which a call is missing shows a wrong fix.
    assert causes.pop("test_old_argument_of_a_mock") == (
        "change this test: its mock expects `MSELoss(size_average=False)`, "
        "and a fix made this `MSELoss(reduction='sum')`"
    )
    assert causes == {}
    assert report["to_change"] == ["test_lib.py::test_old_argument_of_a_mock"] and report["broken"] == []
    text = repository.result("lib.py")
    assert 'nn.MSELoss(reduction="sum")' in text and "torch.ger(a, b)" in text
    assert [taken["tests"] for taken in report["taken_back"]] == [
        ["test_lib.py::test_a_mock_that_is_not_called"]
    ]
    assert done.stdout.startswith("project on torch 2.13: ") and "that passed still fail" not in done.stdout


def test_warnings_are_of_the_final_tree(tmp_path: Path) -> None:
    """The line that is warned of is in a file that no fix changes."""
    old = (
        "import warnings\n\nimport torch\n\n\ndef outer(a, b):\n    return torch.ger(a, b)\n\n\n"
        "def warns(name):\n    if name in outer.__code__.co_names:\n"
        "        warnings.warn(f'torch.{name} is deprecated', stacklevel=2)\n"
    )
    files = {
        "old.py": old,
        "first.py": "import old\n\n\ndef call():\n    old.warns('ger')\n",
        "second.py": "import old\n\n\ndef call():\n    old.warns('outer')\n",
        "test_some.py": "import first\nimport second\n\n\ndef test_some():\n    first.call()\n    second.call()\n",
    }
    repository = Repository(tmp_path, files)
    repository.upgrade()
    assert "torch.outer" in repository.result("old.py")
    assert [each["path"] for each in repository.report["before"]["warnings"]] == ["first.py"]
    assert [each["path"] for each in repository.report["after"]["warnings"]] == ["second.py"]
    notes = [note for note in repository.report["notes"] if "torch warned here" in note]
    assert len(notes) == 1 and notes[0].startswith("second.py:5: ")


@pytest.mark.parametrize(
    ("titles", "symbols", "title"),
    [
        (["Replace with `torch.outer`"], ["torch.ger"], "Replace `torch.ger` with `torch.outer`"),
        (["Replace with `b`"], ["torch.x", "torch.y"], "Replace `torch.x` and `torch.y` with `b`"),
        (["Replace with `b`", "Replace with `c`"], ["x", "y", "z"], "Replace `x`, `y` and `z`"),
        (["Pass `weights_only=True`"], ["torch.load"], "Pass `weights_only=True` for `torch.load`"),
        (["Remove the wrapper"], ["torch.autograd.Variable"], "Update `torch.autograd.Variable`"),
        (["Rewrite the loop", "Replace with `x`"], ["a"], "Update `a`"),
        (["Sort the imports"], [], "Sort the imports"),
        (["Replace with `" + "x" * 60 + "`"], ["y" * 30], "Replace with `" + "x" * 60 + "`"),
        (["Replace with `b`"], ["x" * 40, "y" * 40], "Replace `" + "x" * 40 + "` and 1 more with `b`"),
    ],
)
def test_titles_say_what_fixes_do_to_which_names(titles: list[str], symbols: list[str], title: str) -> None:
    assert _title(titles, symbols) == title
