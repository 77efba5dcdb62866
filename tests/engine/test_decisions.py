"""What is decided once is found once: the other places are listed in the finding."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from harness.launcher import launch
from harness.program import FIX_ALL, fixed, only, run

BACKEND = """\
from caffe2.python import core, workspace
import caffe2.python.onnx.backend as backend


def run(net):
    workspace.ResetWorkspace()
    return backend.prepare(core.Net(net))
"""
CONVOLUTIONS = """\
from torch import nn


class Block(nn.Module):
    def __init__(self):
        self.a = nn.utils.weight_norm(nn.Conv1d(1, 2, 3))
        self.b = nn.utils.weight_norm(nn.Conv1d(2, 2, 3))

        def more():
            return nn.utils.weight_norm(nn.Conv1d(2, 4, 3))

    def head(self):
        return nn.Sequential(nn.utils.weight_norm(nn.Linear(1, 2)), nn.utils.weight_norm(nn.Linear(2, 2)))
"""


def rows(text: str, *options: str) -> list[list[int]]:
    """The rows of every finding: its own, and those of its places."""
    return [
        [text.count("\n", 0, start) + 1 for start in (item.start, *(place[0] for place in item.places))]
        for item in run(text, *options).findings
    ]


def test_a_package_that_is_gone() -> None:
    assert [sorted(set(found)) for found in rows(BACKEND, *only(["TM062"]))] == [[1, 2, 6, 7]]


def test_advice_that_repeats() -> None:
    text = "import torch\n" + "torch.jit.script(f)\n" * 3 + "torch.jit.trace(f, x)\n"
    assert rows(text, *only(["TM640"])) == [[2, 3, 4], [5]]


def test_suppressed_places_are_none() -> None:
    text = "import torch\ntorch.jit.script(f)  # noqa: TM640\ntorch.jit.script(f)\ntorch.jit.script(f)\n"
    assert rows(text, *only(["TM640"])) == [[3, 4]]


def test_in_a_function_all_places_are_fixed_together() -> None:
    assert rows(CONVOLUTIONS, *only(["TM497"])) == [[6, 7, 10], [13, 13]]
    new = fixed(CONVOLUTIONS, *only(["TM497"]), *FIX_ALL)
    assert new.count("parametrizations.weight_norm(") == 5


def test_in_every_format(tmp_path: Path) -> None:
    (tmp_path / "old.py").write_text("import torch\n" + "torch.jit.script(f)\n" * 12)

    def out(form: str) -> str:
        command = ("check", "--isolated", "--select", "TM640")
        return launch(tmp_path, *command, "--output-format", form, "old.py").stdout

    (finding,) = json.loads(out("json"))
    assert finding["location"]["row"] == 2
    assert [place["location"]["row"] for place in finding["places"]] == list(range(3, 14))
    listed = "also in lines 3, 4, 5, 6, 7, 8, 9, 10 and 3 more"
    assert out("concise").rstrip().endswith(f"({listed})")
    assert f"= note: {listed}\n" in out("full")
    assert f"%0A  note: {listed}%0A" in out("github")


# Findings as their rule, their row, and the rows of their places.
IMPORTS = {
    "uses": (
        "from torch import ger\nx = ger(a, b)\nf = [ger, ger(a, b)]\n",
        [("TM110", 1, [2, 3, 3])],
    ),
    "another name": ("from torch import ger as g\nx = g(a, b)\n", [("TM110", 1, [2])]),
    "several names of a statement": (
        "from torch import chain_matmul, ger\nger(a, b)\nchain_matmul(a, b)\n",
        [("TM118", 1, [3]), ("TM110", 1, [2])],
    ),
    "each import has its uses": (
        "def f():\n    from torch import ger\n    ger(a, b)\n\ndef g():\n    from torch import ger\n    ger(a, b)\n",
        [("TM110", 2, [3]), ("TM110", 6, [7])],
    ),
    "no import of it": (
        "import torch\ntorch.ger(a, b)\ntorch.ger(a, b)\n",
        [("TM110", 2, []), ("TM110", 3, [])],
    ),
    "annotations": (
        "from torch.cuda.amp import GradScaler\n\ndef f(s: GradScaler) -> GradScaler: ...\n",
        [("TM202", 1, [3, 3])],
    ),
    "each use with a fix of its own": (
        "from torch import svd\nu, s, v = svd(a)\nprint(u, s, v)\nprint(svd(b).S)\n",
        [("TM105", 1, [2, 4])],
    ),
    "only some uses are fixed": (
        "from torch import symeig\nl, v = symeig(a, eigenvectors=True)\nsymeig(*b)\n",
        [("TM100", 1, []), ("TM100", 2, []), ("TM100", 3, [])],
    ),
    "a module as another name": (
        "import torch.legacy.nn as nn\nnn.Linear(1, 2)\n",
        [("TM063", 1, [2])],
    ),
    "a module": ("import torch.legacy\ntorch.zeros(1)\ntorch.legacy.nn.Linear(1, 2)\n", [("TM063", 1, [3])]),
    "no fix": ("from torch._six import PY3\nprint(PY3)\nif PY3:\n    pass\n", [("TM022", 1, [2, 3])]),
}


@pytest.mark.parametrize("name", IMPORTS)
def test_an_import_and_its_uses_are_one_finding(name: str) -> None:
    text, expected = IMPORTS[name]

    def row(offset: int) -> int:
        return text.count("\n", 0, offset) + 1

    found = run(text, "--target", "2.13").findings
    shown = [(item.code, row(item.start), [row(start) for start, _ in item.places]) for item in found]
    assert shown == expected


def test_the_fix_at_an_import_makes_all() -> None:
    text = "from torch import svd\nu, s, v = svd(a)\nprint(u, s, v)\nprint(svd(b).S)\n"
    assert "svd(a" in text
    new = fixed(text, *only(["TM105"]), *FIX_ALL)
    assert "from torch import svd" not in new and new.count("linalg") >= 2
    (finding,) = run(text, *only(["TM105"])).findings
    assert finding.fix is not None and "; replace with" in finding.fix.title


def test_an_import_that_others_take_stays_a_finding() -> None:
    text = "from torch import svd\nu, s, v = svd(a)\nprint(u, s, v, svd(b).S)\n__all__ = ['svd']\n"
    assert rows(text, *only(["TM105"])) == [[1], [2], [3]]


@pytest.mark.parametrize("comment", ["# noqa: TM110", "# torchmigrate: ignore[TM110] later"])
def test_a_comment_hides_its_own_line_of_a_joined_finding(comment: str) -> None:
    text = "from torch import ger\nx = ger(a, b)\ny = ger(a, b)\n"
    lines = text.splitlines()
    for hidden, left in enumerate([[[2], [3]], [[1, 3]], [[1, 2]]]):
        marked = [f"{line}  {comment}" if number == hidden else line for number, line in enumerate(lines)]
        assert rows("\n".join(marked) + "\n", *only(["TM110"])) == left


def test_a_plan_counts_the_places_of_joined_findings(tmp_path: Path) -> None:
    (tmp_path / "old.py").write_text("from torch import symeig\nsymeig(*a)\nsymeig(*b)\nsymeig(*c)\n")

    def out(*command: str) -> Any:
        return json.loads(launch(tmp_path, *command).stdout)

    assert len(out("plan", "--isolated", "--output-format", "json", ".")["places"]) == 3  # with the import
    assert len(out("check", "--isolated", "--output-format", "json", ".")) == 1


NEW = """\
import torch

a = torch.float8_e5m2
b = torch.float8_e4m3fn
c = torch.compile(f)
"""


def test_what_needs_a_release_is_one_finding_of_a_file() -> None:
    (finding,) = run(NEW, *only(["TM005"]), "--minimum", "2.0").findings
    assert finding.help == "raise the minimum to torch 2.1, or check the torch version before you use it"
    assert [finding.start, *(start for start, _ in finding.places)] == [18, 40]
    assert len(run(NEW, *only(["TM005"]), "--minimum", "1.13").findings) == 2


def test_what_is_beside_the_code_need_not_run_on_the_minimum() -> None:
    for name in (
        "tests/a.py",
        "examples/a.py",
        "test_a.py",
        "a_test.py",
        "docs/b/a.py",
        "test-data/conftest.py",
    ):
        assert run(NEW, *only(["TM005"]), "--minimum", "2.0", path=Path(name)).findings == [], name
    assert run(NEW, *only(["TM005"]), "--minimum", "2.0", path=Path("src/latest/attest.py")).findings


@pytest.mark.parametrize(
    ("path", "others", "expected"),
    [
        ("recipes/ppo/train.py", ["pkg/__init__.py", "pyproject.toml"], False),
        ("sota-implementations/a.py", ["pkg/__init__.py", "setup.py"], False),
        ("scripts/a.py", ["src/pkg/__init__.py", "setup.cfg"], False),
        ("pkg/a.py", ["pkg/__init__.py", "pyproject.toml"], True),
        ("pkg/deep/er/a.py", ["pkg/__init__.py", "pyproject.toml"], True),
        ("src/pkg/a.py", ["src/pkg/__init__.py", "pyproject.toml"], True),
        ("a.py", ["pkg/__init__.py", "pyproject.toml"], True),  # a module of its own
        ("plain/a.py", ["pyproject.toml"], True),  # no package is known: it may be one without __init__.py
        ("plain/a.py", ["tests/__init__.py", "pyproject.toml"], True),
        ("plain/a.py", ["other/__init__.py"], True),  # nothing is installed
        ("libs/one/a.py", ["tools/__init__.py", "pyproject.toml", "libs/one/setup.py"], True),
        (
            "libs/one/one/a.py",
            ["pkg/__init__.py", "setup.py", "libs/one/setup.py", "libs/one/one/__init__.py"],
            True,
        ),
    ],
)
def test_what_is_not_installed_need_not_run_on_the_minimum(
    path: str, others: list[str], expected: bool, tmp_path: Path
) -> None:
    for name, text in {path: NEW, **dict.fromkeys(others, "")}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    done = launch(tmp_path, "check", "--select", "TM005", "--minimum", "2.0", ".")
    assert ("TM005" in done.stdout) is expected, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("names", "title"),
    [
        (["custom_fwd"], "Replace with `torch.amp.custom_fwd`"),
        (
            ["custom_fwd", "custom_bwd"],
            "Replace with `torch.amp.custom_fwd`; replace with `torch.amp.custom_bwd`",
        ),
    ],
)
def test_a_fix_of_several_names_says_all(names: list[str], title: str) -> None:
    uses = "".join(f"@{name}\ndef {name}_(x): pass\n" for name in names)
    text = f"import torch\nfrom torch.cuda.amp import {', '.join(names)}\n{uses}"
    titles = {item.fix and item.fix.title for item in run(text, *only(["TM203"])).findings}
    assert titles == {title}


def test_an_import_is_as_severe_as_the_uses_that_its_fix_leaves() -> None:
    imported = "from torch.nn.utils import weight_norm\n"
    called = f"{imported}\n\ndef wrapped(layer):\n    return weight_norm(layer)\n"
    only_rule = only(["TM497"])
    assert [item.severity.label for item in run(imported, *only_rule).findings] == ["info"]
    (found,) = run(called, *only_rule).findings
    assert found.severity.label == "warning" and len(found.places) == 1
