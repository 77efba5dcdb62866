"""How often an upgrade runs the tests; with a stand-in for torch."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from harness.repository import Repository

from torchmigrate.upgrade.reach import Reach

OLD = "import torch\n\n\ndef vectors(a, b):\n    return torch.symeig(a, eigenvectors=True), b\n"
NEW = "def same(a):\n    return a\n"


def counting(name: str, body: str) -> str:
    """A test that leaves a letter in a file each time that it runs."""
    return (
        f"import pathlib\n\nimport torch\n\n\ndef test_{name}():\n"
        f"    with pathlib.Path('../{name}').open('a') as stream:\n        stream.write('x')\n{body}"
    )


def runs(repository: Repository, *names: str) -> list[int]:
    return [len((repository.work / name).read_text()) for name in names]


def test_tests_that_no_fix_affects_run_once_and_the_others_twice(tmp_path: Path) -> None:
    repository = Repository(
        tmp_path,
        {
            "old.py": OLD,
            "new.py": NEW,
            "requirements.txt": "torch==1.4.0\n",
            "test_old.py": counting("old", "    import old\n    old.vectors(torch.eye(2), 1)\n"),
            "test_new.py": counting(
                "new", "    import warnings\n    warnings.warn('torch.x is deprecated')\n"
            ),
        },
    )
    done = repository.upgrade()
    assert runs(repository, "old", "new") == [2, 1]
    assert "1 test not run again: no fix changes what they use" in done.stderr
    assert repository.report["mended"] == ["test_old.py::test_old"]
    assert set(repository.report["after"]["tests"].values()) == {"passed"}
    assert [each["message"] for each in repository.report["after"]["warnings"]] == ["torch.x is deprecated"]
    assert 1 < repository.report["cost"] <= 2.5


def test_fixes_of_requirements_run_no_test_again(tmp_path: Path) -> None:
    test = counting("some", "")
    repository = Repository(tmp_path, {"requirements.txt": "torch==1.4.0\n", "test_some.py": test})
    repository.upgrade()
    assert repository.result("requirements.txt") == "torch==2.13.0\n"
    assert runs(repository, "some") == [1]


TREE = {
    "pkg/__init__.py": "",
    "pkg/old.py": "",
    "pkg/new.py": "",
    "pkg/more/__init__.py": "from .. import old\n",
    "pkg/more/deep.py": "",
    "train.py": "",
    "tests/conftest.py": "",
    "tests/test_none.py": "import torch\n",
    "tests/test_package.py": "import pkg.new\n",
    "tests/test_member.py": "from pkg import old\n",
    "tests/test_through.py": "import pkg.more.deep\n",
    "tests/test_patched.py": "from unittest import mock\n\nmock.patch('pkg.old.name')\n",
    "tests/test_inside.py": "def test():\n    from pkg.old import name\n",
    "tests/test_program.py": "import subprocess\n",
    "tests/test_script.py": "SCRIPT = '../train.py'\n",
    "tests/test_broken.py": "def (\n",
    "requirements.txt": "",
}


@pytest.mark.parametrize(
    ("changed", "affected"),
    [
        (["pkg/old.py"], "member through patched inside program"),
        (["pkg/new.py"], "package program"),
        (["pkg/__init__.py"], "package member through patched inside program"),
        (["train.py"], "script program"),
        (["tests/test_none.py"], "none program"),
        (["requirements.txt"], ""),
        ([], ""),
        (["tests/conftest.py"], "none package member through patched inside program script broken"),
        (["csrc/op.cpp"], "none package member through patched inside program script broken"),
    ],
)
def test_what_a_change_affects(tmp_path: Path, changed: list[str], affected: str) -> None:
    for name, text in TREE.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    tests: Iterable[str] = [name for name in TREE if "test_" in name]
    found = Reach(tmp_path, [*TREE]).affected(changed, tests)
    assert found == {f"tests/test_{name}.py" for name in affected.split()}


def test_what_imports_a_changed_conftest_is_affected(tmp_path: Path) -> None:
    for name, text in {"tests/conftest.py": "import lib\n", "lib.py": "", "tests/test_some.py": ""}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    paths = ["tests/conftest.py", "lib.py", "tests/test_some.py"]
    assert Reach(tmp_path, paths).affected(["lib.py"], ["tests/test_some.py"]) == {"tests/test_some.py"}
