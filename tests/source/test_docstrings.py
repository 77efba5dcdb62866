"""Examples in docstrings, and Python in Markdown beside commands: with `--embedded`, as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from harness.program import FIX_ALL, engine
from harness.project import Project

from torchmigrate.source.embedded import embedded_in
from torchmigrate.source.text import Source

MODULE = '''\
"""Tools.

Example::

    >>> import torch
    >>> y = torch.ger(
    ...     a,
    ...     b)
    torch.ger(a, b)
"""

import torch
from torchvision import models
from torch.autograd import Variable


def f(x):
    r"""Do it.

    ```python
    m = models.resnet18(pretrained=True)
    y = torch.ger(a, b)
    ```

    .. code-block:: python

        if x:
            z = torch.ger(a, b)

    >>> print("\\n", torch.ger(a, b))
    3
    """
    text = """
    >>> torch.ger(a, b)
    """
    return text


class A:
    """Text: torch.ger(a, b)

    >>> print("\\n", torch.ger(a, b))
    >>> torch.ger(a, b)"""

    async def g(self):
        """>>> torch.ger(a, b)"""
'''
FIXED = (
    MODULE.replace("y = torch.ger(", "y = torch.outer(")
    .replace("z = torch.ger(", "z = torch.outer(")
    .replace("pretrained=True", "weights=models.ResNet18_Weights.IMAGENET1K_V1")
    .replace('>>> print("\\n", torch.ger', '>>> print("\\n", torch.outer', 1)
)
README = """\
# Run it

```bash
python -m torch.distributed.launch --use_env train.py
```

```python
import torch
y = torch.ger(a, b)
```

    python -m torch.utils.bottleneck train.py
"""
SELECTED = ("--isolated", "--select", "TM110,TM722,TM970")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    return Project(tmp_path, monkeypatch)


def places(project: Project, *options: str, code: int = 1) -> list[str]:
    done = project.run("check", *SELECTED, "--output-format", "concise", "--quiet", *options, code=code)
    return [line.split(" ")[0].rstrip(":") + " " + line.split(" ")[1] for line in done.stdout.splitlines()]


def test_docstrings_are_read_where_that_is_asked_for(project: Project) -> None:
    project.write("a.py", MODULE)
    assert places(project, code=0) == []
    assert places(project, "--embedded") == [
        "a.py:6:13 TM110",
        "a.py:21:25 TM722",
        "a.py:22:9 TM110",
        "a.py:28:17 TM110",
        "a.py:30:21 TM110",
    ]
    project.write("other/a.py", MODULE)
    project.write("other/pyproject.toml", "[tool.torchmigrate]\nembedded = true\n")
    done = project.run("check", "other", "--select", "TM722", "--output-format", "concise", code=1)
    assert done.stdout.startswith("other/a.py:21:25: TM722 ")


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
def test_only_what_is_fixed_changes(project: Project, newline: str, encoding: str) -> None:
    head = "# -*- coding: latin-1 -*- é\n" if encoding == "latin-1" else "# é\n"

    def written(text: str) -> bytes:
        return (head + text).replace("\n", newline).encode(encoding)

    path = project.write("a.py", written(MODULE))
    project.run("check", *SELECTED, "--fix", code=0)
    assert path.read_bytes() == written(MODULE)
    project.run("check", *SELECTED, "--fix", "--embedded", code=0)
    assert path.read_bytes() == written(FIXED)
    assert "Fixed" not in project.run("check", *SELECTED, "--fix", "--embedded", code=0).stderr


def test_a_file_and_its_docstrings_are_fixed_together(project: Project) -> None:
    text = MODULE.replace("    return text", "    return torch.ger(x, x)")
    project.write("a.py", text)
    fixed = FIXED.replace("    return text", "    return torch.outer(x, x)")
    done = project.run("check", *SELECTED, "--embedded", "--diff", code=1)
    assert "Would fix 6 findings in 1 file." in done.stderr and done.stdout.count("\n+") == 7
    assert project.path.joinpath("a.py").read_text() == text
    done = project.run("check", *SELECTED, "--embedded", "--fix", "-", stdin=text, code=0)
    assert done.stdout == fixed
    project.run("check", *SELECTED, "--embedded", "--fix", code=0)
    assert project.path.joinpath("a.py").read_text() == fixed


def test_places_in_json_are_those_of_the_file(project: Project) -> None:
    project.write("a.py", MODULE)
    lines = MODULE.splitlines()
    done = project.run("check", *SELECTED, "--embedded", "--output-format", "json", "--quiet", code=1)
    for item in json.loads(done.stdout):
        assert item["cell"] is None
        for edit in item["fix"]["edits"]:
            (row, start), end = edit["location"].values(), edit["end_location"]
            assert end["row"] == row
            changed = lines[row - 1][start - 1 : end["column"] - 1]
            assert changed in ("torch.ger", "pretrained", "True")


def test_an_example_knows_what_its_module_imports_and_leaves_it_alone(project: Project) -> None:
    text = (
        "from torch.autograd import Variable\nfrom torch.nn.init import xavier_uniform\nfrom torchvision.models "
        'import resnet18\n\n\ndef f(w):\n    """\n    >>> xavier_uniform(w)\n    >>> resnet18(pretrained=True)\n'
        '    """\n    return Variable, xavier_uniform(w), resnet18\n'
    )
    path = project.write("a.py", text)
    project.run("check", "--isolated", "--select", "TM410,TM722", "--fix", "--embedded")
    fixed = path.read_text()
    compile(fixed, "a.py", "exec")
    # A name that is new to the example is imported there, as one does in an example.
    assert "    >>> from torchvision.models import ResNet18_Weights\n    >>> xavier_uniform(w)\n" in fixed
    assert "    >>> resnet18(weights=ResNet18_Weights.IMAGENET1K_V1)\n" in fixed


def test_each_docstring_is_a_program_of_its_own() -> None:
    text = (
        'def f():\n    """\n    >>> import torch\n    """\n\n\n'
        'def g():\n    """\n    >>> torch.ger(a, b)\n    """\n'
    )
    result = engine("--embedded").check_source(Source.from_text(text, Path("a.py")), Path("a.py"))
    assert result.examples == {}


def test_comments_hide_findings_in_examples(project: Project) -> None:
    text = (
        'import torch\n\n\ndef f():\n    """\n    >>> torch.ger(a, b)  # torchmigrate: ignore[TM110]\n    >>> torch.ger(a, b)\n'
        '    """{}\n'
    )
    project.write("a.py", text.format(""))
    assert places(project, "--embedded") == ["a.py:7:9 TM110"]
    project.write("a.py", text.format("  # torchmigrate: ignore[TM110] so it was"))
    assert places(project, "--embedded", "--extend-select", "TM011", code=0) == []
    assert places(project, "--extend-select", "TM011") == ["a.py:8:10 TM011"]  # nothing was looked for
    project.write("a.py", "# torchmigrate: ignore-file[TM110]\n" + text.format(""))
    assert places(project, "--embedded", code=0) == []
    done = project.run("check", *SELECTED, "--fix", "--embedded", code=0)
    assert "Fixed" not in done.stderr


@pytest.mark.parametrize(
    "literal",
    [
        '"""\n>>> torch.ger(a, b)\n""" """\n"""',
        '"\\\n>>> torch.ger(a, b)\\\n"',
        'f"""\n>>> torch.ger(a, b)\n"""',
        'b"""\n>>> torch.ger(a, b)\n"""',
        '"""\n>>> torch.ger(\\""" \\""", b)\n"""',
        '"""\n>>> torch.ger(a,\n"""',
        '"""\n```python\n"""',
        '"""```python\n"""',
    ],
)
def test_what_is_no_plain_docstring_is_left_alone(literal: str) -> None:
    source = Source.from_text(f"{literal}\nimport torch\n", Path("a.py"))
    result = engine("--embedded", *FIX_ALL, "--select", "TM110").check_source(source, Path("a.py"))
    assert result.examples == {} and result.new is None and not result.problems


def test_a_file_that_does_not_parse_is_named_once(project: Project) -> None:
    project.write("a.py", 'import torch\n"""\n>>> torch.ger(a, b)\n"""\nx = (\n')
    for options in ((), ("--fix",)):
        done = project.run("check", *SELECTED, "--embedded", *options, code=2)
        assert done.stderr.count("a.py:5") == 1


def test_docstrings_are_read_in_linear_time() -> None:
    for inside in (">>> x\n\n" * 5_000, "```python\n" * 10_000, "::\n" * 20_000):
        text = f'def f():\n    """torch\n{inside}    """\n'
        embedded_in(Source.from_text(text, Path("a.py")))
    many = 'def f():\n    """\n    >>> torch.x\n    """\n' * 1_000
    imports = "".join(f"import torch.a{number} as b{number}\n" for number in range(5_000))
    assert len(embedded_in(Source.from_text(imports + many, Path("a.py")))) == 1_000


def test_markdown_is_read_for_commands_and_for_python(project: Project) -> None:
    project.write("README.md", README)
    assert places(project) == ["README.md:4:8 TM970"]
    assert places(project, "--embedded") == ["README.md:4:8 TM970", "README.md:9:5 TM110"]
    done = project.run("check", *SELECTED, "--embedded", "--fix", code=0)
    assert "Fixed 2 findings in 1 file." in done.stderr
    expected = README.replace("python -m torch.distributed.launch --use_env", "torchrun")
    assert project.path.joinpath("README.md").read_text() == expected.replace("torch.ger", "torch.outer")


def test_comments_of_markdown_hide_both(project: Project) -> None:
    hidden = "<!-- torchmigrate: ignore-file[TM110, TM970] -->\n"
    project.write("README.md", hidden + README)
    assert places(project, "--embedded", "--extend-select", "TM011", code=0) == []


def test_a_plan_counts_examples_where_that_is_asked_for_and_as_nothing_that_breaks(project: Project) -> None:
    for directory in ("plain", "embedded"):
        project.write(
            f"{directory}/a.py", 'import torch\n\n\ndef f():\n    """\n    >>> torch.symeig(a)\n    """\n'
        )
        project.write(f"{directory}/README.md", "```python\nimport torch\ntorch.symeig(a)\n```\n")
        project.write(
            f"{directory}/torchmigrate.toml", f"embedded = {str(directory == 'embedded').lower()}\n"
        )
    plain, embedded = (
        json.loads(project.run("plan", directory, "--output-format", "json", code=0).stdout)
        for directory in ("plain", "embedded")
    )
    assert plain["places"] == []
    assert [(each["path"], each["location"]["row"], each["effect"]) for each in embedded["places"]] == [
        ("embedded/README.md", 3, "outdated"),
        ("embedded/a.py", 6, "outdated"),
    ]
    assert embedded["runs"]["last"] == plain["runs"]["last"] == "2.15"


def test_the_lines_of_the_file_are_shown(project: Project) -> None:
    project.write("a.py", MODULE)
    done = project.run("check", *SELECTED, "--embedded", code=1)
    shown = [
        "a.py:6:13: TM110 [*] `torch.ger` is deprecated; use `torch.outer`",
        "  |",
        "5 |     >>> import torch",
        "6 |     >>> y = torch.ger(",
        "  |             ^^^^^^^^^ info",
        "7 |     ...     a,",
        "  |",
    ]
    assert done.stdout.splitlines()[: len(shown)] == shown
