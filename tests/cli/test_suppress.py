"""`torchmigrate suppress`: comments where findings are, and nothing else."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
from harness.project import Project

REASON = ("--reason", "old cluster, see #12")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    return Project(tmp_path, monkeypatch)


def suppressed(
    project: Project, text: str | bytes, *options: str, name: str = "a.py", code: int = 0
) -> bytes:
    """The file after the command, which a second time changes nothing; then it is clean."""
    path = project.write(name, text)
    project.run("suppress", name, *options, code=code)
    after = path.read_bytes()
    project.run("suppress", name, *options, code=code)
    assert path.read_bytes() == after
    if not code:
        kept = [option for option in options if option not in REASON]
        project.run("check", name, *kept, code=0)
    return after


def test_codes_and_a_reason(project: Project) -> None:
    after = suppressed(project, "import torch\n\nx = torch.ger(a, torch.symeig(b)[0])  \n", *REASON)
    assert after.decode().splitlines()[2] == (
        "x = torch.ger(a, torch.symeig(b)[0])  # torchmigrate: ignore[TM100, TM110] old cluster, see #12  "
    )


def test_selected_ones(project: Project) -> None:
    text = "import torch\n\nx = torch.ger(a, torch.symeig(b)[0])\n"
    after = suppressed(project, text, "--select", "TM110")
    assert after.decode().endswith("[0])  # torchmigrate: ignore[TM110]\n")
    project.run("check", "a.py", code=1)
    after = suppressed(project, after, *REASON)
    assert after.decode().endswith("  # torchmigrate: ignore[TM110, TM100]\n"), (
        "a comment that is there is used"
    )


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("x = torch.ger(a, b)  # why\n", "x = torch.ger(a, b)  # why  # torchmigrate: ignore[TM110]"),
        ("x = torch.ger(a, b)  # noqa: E501\n", "x = torch.ger(a, b)  # noqa: E501  # torchmigrate: ignore[TM110]"),
        ("x = torch.ger(a, b)  # type: ignore\n", "x = torch.ger(a, b)  # type: ignore  # torchmigrate: ignore[TM110]"),
        ("x = torch.ger(\n    a,\n    b,\n)\n", "x = torch.ger(  # torchmigrate: ignore[TM110]"),
        ('x = torch.ger(a, """\n"""), 1\n', '"""), 1  # torchmigrate: ignore[TM110]'),
        ("x = 1 + \\\n    torch.ger(a, b) + \\\n    2\n", "    2  # torchmigrate: ignore[TM110]"),
        ("x = torch.ger(a, b); y = 2\n", "x = torch.ger(a, b); y = 2  # torchmigrate: ignore[TM110]"),
        ("if torch.ger(a, b): pass\n", "if torch.ger(a, b): pass  # torchmigrate: ignore[TM110]"),
        ("@torch.ger(a, b)\ndef f(): pass\n", "@torch.ger(a, b)  # torchmigrate: ignore[TM110]"),
        ("x = torch.ger(a, b)", "x = torch.ger(a, b)  # torchmigrate: ignore[TM110]"),
        ("x = f'''{torch.ger(a, b)}\n'''\n", "'''  # torchmigrate: ignore[TM110]"),
        ("for i in torch.ger(\n    a, b\n):\n    pass\n", "for i in torch.ger(  # torchmigrate: ignore[TM110]"),
        ("x = (  # torchmigrate: ignore[TM100] no\n    torch.ger(a, b), torch.symeig(a))\n", "x = (  # torchmigrate: ignore[TM100, TM110] no"),
    ],
)  # fmt: skip
def test_where_it_stands(project: Project, text: str, line: str) -> None:
    after = suppressed(project, "import torch\n" + text).decode()
    assert line in after.splitlines()
    assert ast.dump(ast.parse(after)) == ast.dump(ast.parse("import torch\n" + text))


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_every_other_byte_stays(project: Project, end: str) -> None:
    text = f"# -*- coding: latin-1 -*-{end}import torch{end}s = 'größe'\t{end}\tx = 1{end}".replace(
        "\tx", "x"
    )
    text += f"x = torch.ger(a, b){end}\x0cy = 2{end}"
    after = suppressed(project, text.encode("latin-1"))
    assert after == text.replace("b)", "b)  # torchmigrate: ignore[TM110]").encode("latin-1")
    marked = suppressed(project, b"\xef\xbb\xbfimport torch\ntorch.ger(a, b)\n")
    assert marked == b"\xef\xbb\xbfimport torch\ntorch.ger(a, b)  # torchmigrate: ignore[TM110]\n"


def test_a_reason_that_the_encoding_lacks(project: Project) -> None:
    text = "# coding: latin-1\nimport torch\ntorch.ger(a, b)\n"
    path = project.write("a.py", text)
    done = project.run("suppress", "--reason", "später ✓", code=2)
    assert "does not exist in iso-8859-1" in done.stderr
    assert path.read_text() == text


def test_one_decision_of_several_places(project: Project) -> None:
    text = "from torch.autograd import Variable\n\nx = Variable(a)\ny = Variable(b)\n"
    after = suppressed(project, text).decode()
    assert after.count("torchmigrate: ignore[TM330]") == 3


def test_notebooks(project: Project) -> None:
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    cells = [
        {**cell, "source": ["import torch\n", "x = torch.ger(a, b)"]},
        {**cell, "source": ["%matplotlib inline\n", "torch.ger(c, d);\n", "1"]},
    ]
    book = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
    after = json.loads(suppressed(project, json.dumps(book, indent=1), name="a.ipynb"))
    assert after["cells"][0]["source"][1] == "x = torch.ger(a, b)  # torchmigrate: ignore[TM110]"
    assert after["cells"][1]["source"] == [
        "%matplotlib inline\n",
        "torch.ger(c, d);  # torchmigrate: ignore[TM110]\n",
        "1",
    ]


def test_examples_in_docstrings(project: Project) -> None:
    text = 'def f():\n    """Doc.\n\n    >>> import torch\n    >>> torch.ger(a, b)\n    """\n    return 1\n'
    after = suppressed(project, text, "--embedded").decode()
    assert after.splitlines()[5] == '    """  # torchmigrate: ignore[TM110]'


def test_files_that_are_not_python(project: Project) -> None:
    shell = "#!/bin/sh\npython -m torch.distributed.launch \\\n    a.py 'it works'\n"
    after = suppressed(project, shell, name="run.sh").decode()
    assert after.startswith(shell.removesuffix("\n") + "  # torchmigrate: ignore[TM97")
    code = "#include <torch/extension.h>\nvoid f(at::Tensor a) {\n  AT_CHECK(a.defined());\n}\n"
    after = suppressed(project, code, name="a.cpp").decode()
    assert "  AT_CHECK(a.defined());  // torchmigrate: ignore[TM97" in after


def test_lines_that_cannot_take_one(project: Project) -> None:
    text = "FROM x\nRUN python -m torch.distributed.launch a.py\n"
    path = project.write("Dockerfile", text)
    project.write("a.py", "import torch\ntorch.ger(a, b)\n")
    done = project.run("suppress", code=1)
    lines = done.stderr.splitlines()
    assert lines[0].startswith("Dockerfile:2:") and " is not suppressed: " in lines[0]
    assert lines[-1].startswith("Suppressed 1 finding in 1 file. ") and lines[-1].endswith(" left.")
    assert path.read_text() == text
    shell = "cat <<EOF\npython -m torch.distributed.launch a.py\nEOF\n"
    assert suppressed(project, shell, name="b.sh", code=1).decode() == shell


def test_comments_about_comments(project: Project) -> None:
    text = "import torch  # torchmigrate: ignore\n"
    assert suppressed(project, text, code=1).decode() == text


def test_what_a_baseline_hides_is_left_alone(project: Project) -> None:
    project.write("torchmigrate.toml", 'baseline = "b.json"\n')
    path = project.write("a.py", "import torch\ntorch.ger(a, b)\n")
    project.run("baseline", code=0)
    path.write_text("import torch\ntorch.ger(a, b)\ntorch.ger(c, d)\n")
    project.run("suppress", code=0)
    assert path.read_text() == (
        "import torch\ntorch.ger(a, b)\ntorch.ger(c, d)  # torchmigrate: ignore[TM110]\n"
    )
    project.run("suppress", "--no-baseline", code=0)
    project.run("check", code=0)
    assert path.read_text().count("ignore") == 2


def test_a_comment_of_ours_is_no_news_for_a_baseline(project: Project) -> None:
    project.write("torchmigrate.toml", 'baseline = "b.json"\n')
    path = project.write("a.py", "import torch\nx = torch.ger(a, b)\n")
    project.run("baseline", code=0)
    path.write_text("import torch\nx = torch.ger(a, b)  # torchmigrate: ignore[TM100]\n")
    assert [code for code in project.codes() if code == "TM110"] == []


@pytest.mark.parametrize("reason", ["two\nlines", "a # noqa", "\x1b[31m"])
def test_reasons_that_are_refused(project: Project, reason: str) -> None:
    text = "import torch\ntorch.ger(a, b)\n"
    path = project.write("a.py", text)
    project.run("suppress", "--reason", reason, code=2)
    assert path.read_text() == text


def test_what_does_not_parse_is_left_alone(project: Project) -> None:
    path = project.write("a.py", "import torch\ntorch.ger(a, b\n")
    project.run("suppress", code=2)
    assert path.read_text() == "import torch\ntorch.ger(a, b\n"


def test_an_unused_one_goes_with_its_reason(project: Project) -> None:
    path = project.write("a.py", "import torch\nx = 1  # torchmigrate: ignore[TM110] see #12\n")
    project.run("check", "--fix", code=0)
    assert path.read_text() == "import torch\nx = 1\n"


def test_every_place_of_a_decision_gets_its_comment(project: Project) -> None:
    text = (
        "from setuptools import setup\n\nsetup(\n    python_requires='>=3.6',\n    install_requires=['torch'],\n"
        "    classifiers=[\n        'Programming Language :: Python :: 3.6',\n"
        "        'Programming Language :: Python :: 3.7',\n    ],\n)\n"
    )
    after = suppressed(project, text, "--select", "ALL", name="setup.py").decode()
    assert after.count("ignore[TM986]") == 3


def test_what_is_said_once_of_a_file_is_hidden_at_every_place(project: Project) -> None:
    text = "import torch\n\n\ndef f(a):\n" + "    a = torch.matmul(a.cuda(), a)\n" * 12 + "    return a\n"
    after = suppressed(project, text, "--select", "ALL", "--minimum", "1.8").decode()
    assert 1 <= after.count("ignore[TM121]") <= 12


def test_yaml_with_tags_of_other_programs(project: Project) -> None:
    text = "name: old\ndependencies:\n  - torch==1.4.0\nprefix: !!python/unicode '/home/me'\n"
    after = suppressed(project, text, "--select", "ALL", name="environment.yml").decode()
    assert after.count("# torchmigrate: ignore[") == 1


def test_a_comment_that_hides_what_others_are_for_is_the_only_one(project: Project) -> None:
    text = (
        "import torch\n\n\nclass Twice(torch.autograd.Function):\n"
        "    def __init__(self, k):\n        self.k = k\n\n"
        "    def forward(self, x):\n        return x * 2\n\n"
        "    def backward(self, grad):\n        return grad * 2\n\n\ny = Twice(1)(torch.ones(2))\n"
    )
    after = suppressed(project, text, "--select", "ALL").decode()
    assert after.count("ignore[TM332]") < 4


def test_comments_that_had_no_use_before_stay(project: Project) -> None:
    text = "import torch\n\nx = 1  # torchmigrate: ignore[TM100]\ny = torch.ger(a, b)\n"
    after = suppressed(project, text, code=1).decode()
    assert "x = 1  # torchmigrate: ignore[TM100]\n" in after and after.count("ignore[TM110]") == 1
