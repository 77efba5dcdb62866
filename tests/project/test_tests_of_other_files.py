"""Version flags and helpers that a file has from other files of its project are read there."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent

import pytest
from harness.project import Project

HELPERS = """
import unittest

import pytest
import torch
from packaging.version import Version

TORCH = Version(torch.__version__)
FRESH = TORCH >= Version("1.9")
HAS_LINALG = hasattr(torch, "linalg")
BEFORE = (1, 9)
try:
    from torch.linalg import eigh
    CAN = True
except ImportError:
    CAN = False
SWITCH = False
torch_older_than_1_9 = FRESH
old_only = pytest.mark.skipif(FRESH, reason="old")


def reached(text, strictly=False):
    if not text:
        raise ValueError("which?")
    if strictly:
        return TORCH > Version(text)
    return TORCH >= Version(text)


def is_modern():
    return hasattr(torch, "linalg")


def on_old(test):
    return unittest.skipIf(FRESH, "old")(test)


def chosen(settings):
    return settings.modern
"""
IMPORTS = {
    "beside": "from {} import {}",
    "renamed": "from {} import {} as other",
    "module": "from . import helpers",
    "whole": "import pack.helpers as helpers",
    "dotted": "import pack.helpers",
    "dotted, and more": "import pack.other\nimport pack.helpers\nimport pack",
    "package": "import pack",
    "alias of the package": "import pack as p",
    "handed on": "from . import {}",
}
# How a name is written after these imports; plainly after the others.
OWNERS = {
    "module": "helpers.",
    "whole": "helpers.",
    "dotted": "pack.helpers.",
    "dotted, and more": "pack.helpers.",
    "package": "pack.helpers.",
    "alias of the package": "p.helpers.",
}
# A test, and whether what is under it runs on the target.
TESTS = [
    ("not {FRESH}", False),
    ("{FRESH}", True),
    ("not {HAS_LINALG}", False),
    ("not {CAN}", False),
    ("{TORCH} < Version('1.9')", False),
    ("{TORCH}.release[:2] < {BEFORE}", False),
    ("not {reached}('1.9')", False),
    ("{reached}('1.9', strictly=True)", True),
    ("not {is_modern}()", False),
    ("{SWITCH}", True),
    ("not {SWITCH}", True),
    ("{chosen}(x)", True),
]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    project = Project(tmp_path, monkeypatch)
    project.write("pack/helpers.py", HELPERS)
    (tmp_path / ".git").mkdir()
    return project


def written(test: str, how: str) -> str:
    names = test[test.index("{") + 1 : test.index("}")], *test.partition("}")[2].split("{")[1:]
    names = tuple(name.partition("}")[0] for name in names)
    if how == "renamed" and len(names) > 1:
        how = "beside"
    owner = OWNERS.get(how, "")
    spelled = {name: owner + name for name in names}
    if how == "renamed":
        spelled = dict.fromkeys(names, "other")
    listed = ", ".join(names)
    line = IMPORTS[how].format(*([".helpers", listed] if how in ("beside", "renamed") else [listed]))
    body = indent(f"if {test.format(**spelled)}:\n    return torch.symeig(x)\nreturn x\n", "    ")
    return f"import torch\nfrom packaging.version import Version\n{line}\n\ndef f(x):\n{body}"


@pytest.mark.parametrize("how", IMPORTS)
@pytest.mark.parametrize(("test", "runs"), TESTS)
def test_what_a_test_of_another_file_says(project: Project, test: str, runs: bool, how: str) -> None:
    if how == "handed on":
        project.write("pack/__init__.py", "from .helpers import *\n" + reexports())
    else:
        project.write("pack/__init__.py", "")
    project.write("pack/code.py", written(test, how))
    assert project.codes("pack/code.py") == (["TM100"] if runs else [])


@pytest.mark.parametrize("how", ["beside", "renamed", "handed on"])
def test_what_it_is_counts_not_what_it_is_called(project: Project, how: str) -> None:
    project.write("pack/__init__.py", reexports() if how == "handed on" else "")
    project.write(
        "pack/code.py", written("{torch_older_than_1_9}", how).replace(" as other", " as torch_1_8")
    )
    project.write(
        "pack/code.py", (project.path / "pack/code.py").read_text().replace("if other", "if torch_1_8")
    )
    assert project.codes("pack/code.py") == ["TM100"]


def reexports() -> str:
    names = "TORCH, FRESH, HAS_LINALG, BEFORE, CAN, SWITCH, torch_older_than_1_9, reached, is_modern, chosen"
    return f"from .helpers import {names}\n"


@pytest.mark.parametrize("mark", ["old_only", "on_old"])
@pytest.mark.parametrize(
    ("line", "owner"),
    [
        ("from .helpers import {}", ""),
        ("from . import helpers", "helpers."),
        ("import pack.helpers", "pack.helpers."),
    ],
)
def test_decorators(project: Project, mark: str, line: str, owner: str) -> None:
    text = f"import torch\n{line.format(mark)}\n\n@{owner}{mark}\ndef test_it(x):\n    torch.symeig(x)\n"
    project.write("pack/__init__.py", "")
    project.write("pack/test_it.py", text)
    assert project.codes("pack/test_it.py") == []


def test_what_nobody_can_read_counts_by_its_name(project: Project) -> None:
    """A helper that asks its settings says by its name alone what it compares."""
    project.write(
        "pack/other.py",
        dedent("""
        import torch
        from packaging.version import Version
        SETTINGS = {}

        def torch_version_ge(text):
            return compare(SETTINGS, torch.__version__, text)
        """),
    )
    text = """
    import torch
    from .other import torch_version_ge

    def f(x):
        if not torch_version_ge("1.9"):
            return torch.symeig(x)
        return x
    """
    project.write("pack/__init__.py", "")
    project.write("pack/code.py", dedent(text))
    assert project.codes("pack/code.py") == []


def test_two_files_of_one_name(project: Project) -> None:
    """Which of them Python takes is not known: nothing is said by what is in one of them."""
    project.write("one/flags.py", "import torch\nFRESH = hasattr(torch, 'linalg')\n")
    project.write("two/flags.py", "FRESH = False\n")
    text = "import torch\nfrom flags import FRESH\nif not FRESH:\n    torch.symeig(1)\n"
    project.write("code.py", text)
    assert project.codes("code.py") == ["TM100"]


def test_files_that_ask_each_other(project: Project) -> None:
    project.write("a.py", "import torch\nfrom b import FRESH\nif not FRESH:\n    torch.symeig(1)\n")
    project.write("b.py", "from a import FRESH\n")
    assert project.codes("a.py") == ["TM100"]


def test_functions_that_call_each_other(project: Project) -> None:
    project.write(
        "helpers.py",
        "import torch\ndef is_new():\n    return is_old()\ndef is_old():\n    return is_new()\n# version\n",
    )
    project.write(
        "code.py", "import torch\nfrom helpers import is_new\nif not is_new():\n    torch.symeig(1)\n"
    )
    assert project.codes("code.py") == ["TM100"]


@pytest.mark.parametrize(
    "constant", ['"1.9"', '(\n    "1.9.0.a0+32f93b1"  # of a container\n)', '"1.9"  # torch']
)
def test_a_helper_and_a_constant_of_other_files(project: Project, constant: str) -> None:
    project.write("pack/__init__.py", "")
    project.write("pack/constants.py", f"MODES = ['torch']\nSOLVER_VERSION = {constant}\n")
    project.write(
        "pack/versions.py",
        dedent("""
        import importlib.metadata
        from packaging.version import parse
        from .operators import OPERATORS

        torch_version = parse(importlib.metadata.version("torch"))

        def compare_versions(version, operation, other):
            if operation not in OPERATORS:
                raise ValueError(operation)
            return OPERATORS[operation](version, parse(other))

        def is_torch_version(operation, version):
            return compare_versions(torch_version, operation, version)
        """),
    )
    project.write(
        "pack/imports.py",
        dedent("""
        from packaging.version import parse
        from .versions import is_torch_version

        def is_solver_available():
            return is_torch_version(">=", "1.9")
        """),
    )
    text = """
    import torch
    from .constants import SOLVER_VERSION
    from .imports import is_solver_available
    from .versions import is_torch_version

    def f(x):
        if not is_torch_version(">=", SOLVER_VERSION):
            return torch.symeig(x)

    def g(x):
        if not is_solver_available():
            return torch.symeig(x)
    """
    project.write("pack/code.py", dedent(text))
    assert project.codes("pack/code.py") == []
