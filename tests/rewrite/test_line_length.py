"""Fixes keep to the line length that a project declares where brackets and commas allow it."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from harness.editor import Editor
from harness.project import Project

LIMIT = "[tool.black]\nline-length = 60\n"
FIX = ("check", "--fix", "--unsafe-fixes", "--no-cache")

# What is below `import torch`, before and after fixes.
LAYOUTS = {
    "fits": (
        "x = torch.meshgrid(height, width)\n",
        'x = torch.meshgrid(height, width, indexing="ij")\n',
    ),
    "arguments on one row": (
        "grid = torch.meshgrid(the_height_, the_width_)\n",
        'grid = torch.meshgrid(\n    the_height_, the_width_, indexing="ij"\n)\n',
    ),
    "one argument a row": (
        "torch.meshgrid(the_height_of_it_all_, the_width_of_it_all__)\n",
        'torch.meshgrid(\n    the_height_of_it_all_,\n    the_width_of_it_all__,\n    indexing="ij",\n)\n',
    ),
    "the arguments have a row": (
        "grid = torch.meshgrid(\n    the_height_of_all_images, the_width_of_all_ima\n)\n",
        "grid = torch.meshgrid(\n    the_height_of_all_images,\n    the_width_of_all_ima,\n"
        '    indexing="ij",\n)\n',
    ),
    "each argument has a row": (
        "grid = torch.meshgrid(\n    the_height_of_all_images,\n    the_width_of_all_images,\n)\n",
        "grid = torch.meshgrid(\n    the_height_of_all_images,\n    the_width_of_all_images,\n"
        '    indexing="ij",\n)\n',
    ),
    "in another call": (
        "print(torch.meshgrid(the_height, the_width), flush=True)\n",
        'print(\n    torch.meshgrid(the_height, the_width, indexing="ij"),\n    flush=True,\n)\n',
    ),
    "in a row of another call": (
        "print(\n    1,\n    torch.meshgrid(the_height, the_width_of_all),\n)\n",
        'print(\n    1,\n    torch.meshgrid(\n        the_height, the_width_of_all, indexing="ij"\n    ),\n)\n',
    ),
    "with a star": (
        "grid = torch.meshgrid(*the_heights_and_the_width_of_all)\n",
        'grid = torch.meshgrid(\n    *the_heights_and_the_width_of_all, indexing="ij"\n)\n',
    ),
    "no comma behind a star": (
        "grid = torch.meshgrid(\n    a, *the_heights_and_the_widths_of_all_of_them\n)\n",
        'grid = torch.meshgrid(\n    a,\n    *the_heights_and_the_widths_of_all_of_them,\n    indexing="ij"\n)\n',
    ),
    "a comma behind a star, in a file that needs Python 3.6": (
        'y = f"{x}"\ngrid = torch.meshgrid(\n    a, *the_heights_and_the_widths_of_all_of_them\n)\n',
        'y = f"{x}"\ngrid = torch.meshgrid(\n    a,\n    *the_heights_and_the_widths_of_all_of_them,\n'
        '    indexing="ij",\n)\n',
    ),
    "no comma behind a generator": (
        "x = sum(torch.meshgrid(a, b)[0] for a in heights)\n",
        'x = sum(\n    torch.meshgrid(a, b, indexing="ij")[0] for a in heights\n)\n',
    ),
    "a method of the result": (
        "grid = torch.stack(torch.meshgrid(height, width)).float()\n",
        'grid = torch.stack(\n    torch.meshgrid(height, width, indexing="ij")\n).float()\n',
    ),
    "an operator": (
        "grid = torch.meshgrid(height, width)[0] + offset + 1\n",
        'grid = torch.meshgrid(\n    height, width, indexing="ij"\n)[0] + offset + 1\n',
    ),
    "returned": (
        "def f(a):\n    return torch.meshgrid(the_height, the_width)\n",
        'def f(a):\n    return torch.meshgrid(\n        the_height, the_width, indexing="ij"\n    )\n',
    ),
    "a header": (
        "for a in torch.meshgrid(the_height, the_width):\n    pass\n",
        'for a in torch.meshgrid(\n    the_height, the_width, indexing="ij"\n):\n    pass\n',
    ),
    "a comment": (
        "grid = torch.meshgrid(the_height, width)  # of it\n",
        'grid = torch.meshgrid(\n    the_height, width, indexing="ij"\n)  # of it\n',
    ),
    "tabs": (
        "def f(a):\n\treturn torch.meshgrid(the_height, the_width)\n",
        'def f(a):\n\treturn torch.meshgrid(\n\t\tthe_height, the_width, indexing="ij"\n\t)\n',
    ),
    "two columns": (
        "def f(a):\n  return torch.meshgrid(the_height, the_width_)\n",
        'def f(a):\n  return torch.meshgrid(\n    the_height, the_width_, indexing="ij"\n  )\n',
    ),
    "a hanging indent": (
        "grid = torch.meshgrid(the_height,\n                      the_width, the_depth_of_it)\n",
        "grid = torch.meshgrid(the_height,\n                      the_width, the_depth_of_it,\n"
        '                      indexing="ij")\n',
    ),
    "wide characters": (
        'grid = torch.meshgrid(height, width["幅幅幅"])\n',
        'grid = torch.meshgrid(\n    height, width["幅幅幅"], indexing="ij"\n)\n',
    ),
    "an f-string": (
        'x = torch.meshgrid(f"{h(a, b)} of all these words", w)\n',
        'x = torch.meshgrid(\n    f"{h(a, b)} of all these words", w, indexing="ij"\n)\n',
    ),
    "two fixes of a row": (
        "pair = torch.meshgrid(a, b), torch.meshgrid(c, d), 10\n",
        'pair = torch.meshgrid(a, b, indexing="ij"), torch.meshgrid(\n    c, d, indexing="ij"\n), 10\n',
    ),
}

# Rows that stay as the fix makes them.
LEFT = {
    "too long before": "grid_of_all_images_of_the_set = torch.meshgrid(height_of_all, width_of_all)\n",
    "a backslash": "x = \\\n    torch.meshgrid(the_height, the_width_of_it)[0]\n",
    "two statements": "x = 1; grid = torch.meshgrid(the_height, the_width)\n",
    "a body beside its header": "if x: grid = torch.meshgrid(the_height, the_width)\n",
    "a comment for a tool": "grid = torch.meshgrid(the_height, b)  # noqa: F841\n",
    "a string of several rows": 'x = torch.meshgrid(height, width)[0], """a b c d e f\n"""\n',
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    return Project(tmp_path, monkeypatch)


def fixed(project: Project, texts: Sequence[str], *, limit: str = LIMIT, newline: str = "\n") -> list[str]:
    """Texts after all fixes, which a second run leaves as they are."""
    project.write("pyproject.toml", limit)
    paths = [
        project.write(f"a{number}.py", ("import torch\n" + text).replace("\n", newline))
        for number, text in enumerate(texts)
    ]
    project.run(*FIX)
    new = [path.read_bytes() for path in paths]
    project.run(*FIX)
    assert [path.read_bytes() for path in paths] == new
    assert newline == "\n" or all(data.count(b"\n") == data.count(b"\r\n") for data in new)
    return [data.decode().replace(newline, "\n").removeprefix("import torch\n") for data in new]


def tree(text: str) -> str:
    return ast.dump(ast.parse(text))


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_layout(project: Project, newline: str) -> None:
    befores = [before for before, _ in LAYOUTS.values()]
    laid_out = fixed(project, befores, newline=newline)
    assert dict(zip(LAYOUTS, laid_out, strict=True)) == {name: after for name, (_, after) in LAYOUTS.items()}
    plain = fixed(project, befores, limit="", newline=newline)
    assert list(map(tree, laid_out)) == list(map(tree, plain))


def test_rows_that_stay(project: Project) -> None:
    plain = fixed(project, [*LEFT.values()], limit="")
    assert fixed(project, [*LEFT.values()]) == plain
    assert all(new != old for new, old in zip(plain, LEFT.values(), strict=True))


ARGUMENTS = [
    "a",
    "height_of_all",
    "x[a, b]",
    "x[1:2]",
    "[a, b]",
    "(a, b)",
    "(a)",
    "()",
    "{1: a, **b}",
    "*heights",
]
ARGUMENTS += [
    'f"{h(a, b)}, {c}"',
    '"a, (b"',
    "(lambda a, b: (a, b))",
    "lambda a: a",
    "[a for a, b in c]",
    "not a",
]
ARGUMENTS += [
    "*(a, b)",
    "a if b else c",
    "-a + b",
    "f(a, *b, **c)",
    "f(x for x in y)",
    "x.y(a)(b, c)[d]",
    "f(a,)",
]
STATEMENTS = [
    "x = {}",
    "x[{}] = a",
    "a, b = {}",
    "f({})",
    "f({})[0].g(a, b)",
    "x = [{}, a]",
    "x = ({})",
    "x = {},",
]
STATEMENTS += [
    "assert {}, a",
    "x = {{{}: 1, 2: 3}}",
    "f(a, k={})",
    "f({} for a in b)",
    "x = {} + a",
    "x = x[{}, a]",
]
STATEMENTS += [
    "if {}:\n    pass",
    "for a in {}:\n    pass",
    "with f({}) as a, b:\n    pass",
    "@f({})\ndef g(a, *b):\n    c",
]
STATEMENTS += [
    "def g(a, k={}, *, b):\n    return k",
    "class A(B, k={}): pass",
    "x = lambda a, b: {}",
    "f(lambda a: {}, b)",
]
CALLED = ["torch.meshgrid", "torch.ger", "torch.cross", "torch.cholesky"]
COMMAS = [", ", ", ", ",\n  ", ",  # a, (b\n        ", "  # a\n,", " , ", ",\n", ",\\\n "]
ENDS = ["", "", "  # of it", "; y = 1", "  # noqa"]


def some_code(random: Random) -> str:
    """A statement with calls that fixes make longer."""
    arguments = [random.choice(ARGUMENTS) for _ in range(random.randint(1, 3))]
    end = random.choice(["", "", ",", " ", "\n"])
    call = f"{random.choice(CALLED)}({random.choice(COMMAS).join(arguments)}{end})"
    if random.random() < 0.3:
        call = f"{random.choice(CALLED)}({call}, {random.choice(ARGUMENTS[:8])})"
    statement, *body = random.choice(STATEMENTS).format(call).split("\n    ")
    rows = [statement + (random.choice(ENDS) if not body else ""), *("    " + row for row in body)]
    return "\n".join(rows) if random.random() < 0.7 else "if x:\n\t" + "\n\t".join(rows)


def parses(code: str) -> bool:
    try:
        return bool(ast.parse(code))
    except SyntaxError:
        return False


@pytest.mark.parametrize("beginning", ["", "if x := 1:\n  pass\n"], ids=["any Python", "newer Python"])
def test_layout_keeps_the_meaning(project: Project, beginning: str) -> None:
    random = Random(beginning)
    codes = [code for code in (some_code(random) for _ in range(150)) if parses(code)]
    assert len(codes) > 100
    text = "import torch\n" + beginning + "".join(f"{code}\n" for code in codes)
    for limit in (0, 30, 45, 60):
        project.write(f"{limit}/a.py", text)
        project.write(f"{limit}/pyproject.toml", f"[tool.black]\nline-length = {limit}\n" if limit else "")
    project.run(*FIX)
    plain, *laid_out = ((project.path / f"{limit}/a.py").read_text() for limit in (0, 30, 45, 60))
    for limit, new in zip((30, 45, 60), laid_out, strict=True):
        assert tree(new) == tree(plain)
        assert re.sub(r"[\s,()]", "", new) == re.sub(r"[\s,()]", "", plain)
        assert sum(len(row) > limit for row in new.splitlines()) < sum(
            len(row) > limit for row in plain.splitlines()
        )
        # Rows that no fix changed are there as before.
        assert not Counter(set(text.splitlines()) & set(plain.splitlines())) - Counter(new.splitlines())


def test_the_result_is_formatted(project: Project) -> None:
    """Ruff's formatter, which does as Black does, leaves what was formatted before."""
    for number, (name, (_, after)) in enumerate(LAYOUTS.items()):
        if name not in UNFORMATTED:
            project.write(f"{number}.py", after)
    command = [
        sys.executable,
        "-m",
        "ruff",
        "format",
        "--isolated",
        "--line-length=60",
        "--diff",
        project.path,
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


# These need parentheses, or belong to another style.
UNFORMATTED = (
    *("an operator", "two fixes of a row"),
    *("tabs", "two columns", "a hanging indent", "no comma behind a star"),
)

LONG = "grid = torch.meshgrid(the_height_of_all_images, the_width)\n"
ONE = LONG.replace(")", ', indexing="ij")')
BROKEN = 'grid = torch.meshgrid(\n    the_height_of_all_images, the_width, indexing="ij"\n)\n'

DECLARED = [
    ({"pyproject.toml": "[tool.ruff]\nline-length = 60\n"}, True),
    ({"pyproject.toml": "[tool.ruff.lint.pycodestyle]\nmax-line-length = 60\n"}, True),
    ({"pyproject.toml": "[tool.ruff]\nline-length = 79\n[tool.black]\nline-length = 60\n"}, False),
    ({"pyproject.toml": "[tool.ruff.lint]\nselect = ['E']\n[tool.black]\nline-length = 60\n"}, True),
    ({"pyproject.toml": "[tool.black]\n", ".flake8": "[flake8]\nmax-line-length = 60\n"}, True),
    ({"pyproject.toml": "[tool.black]\nline-length = '60'\n"}, False),
    ({"pyproject.toml": "[tool.black]\nline-length = true\n"}, False),
    ({"pyproject.toml": "[tool.black\n"}, False),
    ({"pyproject.toml": "[tool]\nblack = 1\nruff = []\n"}, False),
    ({"ruff.toml": "line-length = 60\n"}, True),
    ({".ruff.toml": "line-length = 60\n"}, True),
    ({"setup.cfg": "[flake8]\nmax-line-length = 60\n"}, True),
    ({"setup.cfg": "[pycodestyle]\nmax_line_length: 60\n"}, True),
    ({"tox.ini": "[pep8]\nmax-line-length = 60 \n"}, True),
    ({".flake8": "[flake8]\nmax-line-length = %(x)s\n"}, False),
    ({".flake8": "max-line-length = 60\n"}, False),
    ({"setup.cfg": "[metadata]\nname = x\n"}, False),
    ({".git/config": "", "pyproject.toml": LIMIT}, True),
    (
        {".git/config": "", "pyproject.toml": LIMIT, "src/pyproject.toml": "[tool.ruff]\nline-length = 99\n"},
        False,
    ),
    (
        {
            ".git/config": "",
            "pyproject.toml": "[tool.ruff]\n",
            "src/tox.ini": "[flake8]\nmax-line-length=60\n",
        },
        True,
    ),
    ({}, False),
]


def test_where_it_is_declared(project: Project) -> None:
    paths = []
    for number, (files, _) in enumerate(DECLARED):
        for name, text in files.items():
            project.write(f"{number}/{name}", text)
        source = "src/a.py" if ".git/config" in files else "a.py"
        paths.append(project.write(f"{number}/{source}", "import torch\n" + LONG))
    project.run(*FIX)
    rows = [path.read_text().removeprefix("import torch\n") for path in paths]
    assert rows == [BROKEN if breaks else ONE for _, breaks in DECLARED]


def test_formatters_have_a_default(project: Project) -> None:
    names = ["x" * (size - len('= torch.meshgrid(a, indexing="ij")') - 1) for size in (87, 88, 89)]
    texts = [f"{name} = torch.meshgrid(a)\n" for name in names]
    for table in ("black", "ruff"):
        new = fixed(project, texts, limit=f"[tool.{table}]\n")
        assert [text.count("\n") for text in new] == [1, 1, 3]


def test_isolated_reads_no_limit(project: Project) -> None:
    project.write("pyproject.toml", LIMIT)
    path = project.write("a.py", "import torch\n" + LONG)
    project.run(*FIX, "--isolated", "a.py")
    assert path.read_text() == "import torch\n" + ONE


def test_imports(project: Project) -> None:
    use = "resnet50(pretrained=True)\n"
    new_use = "resnet50(weights=ResNet50_Weights.IMAGENET1K_V1)\n"
    rows = "    resnet50,\n    resnet101,\n    ResNet50_Weights,\n)"
    found = "from torchvision.models import"
    before, after = zip(
        (f"{found} resnet50, resnet101\n", f"{found} (\n{rows}\n"),
        (f"{found} resnet50, resnet101  # both\n", f"{found} (\n{rows}  # both\n"),
        (
            f"{found} resnet50, resnet101  # noqa\n",
            f"{found} resnet50, resnet101, ResNet50_Weights  # noqa\n",
        ),
        (
            f"{found} (\n    resnet50, resnet101, resnet152, resnet34\n)\n",
            f"{found} (\n    resnet50,\n    resnet101,\n    resnet152,\n    resnet34,\n    ResNet50_Weights,\n)\n",
        ),
        strict=True,
    )
    assert fixed(project, [text + use for text in before]) == [text + new_use for text in after]


def test_every_way_to_fix(project: Project) -> None:
    project.write("pyproject.toml", LIMIT)
    path = project.write("a.py", "import torch\n" + LONG)
    added = "".join(f"+{line}\n" for line in BROKEN.splitlines())
    for cache in ((), ("--no-cache",)):
        assert added in project.run("check", "--diff", "--unsafe-fixes", *cache, "a.py").stdout
    text = "import torch\n" + LONG
    piped = project.run(*FIX, "--stdin-filename", "a.py", "-", stdin=text)
    assert piped.stdout == "import torch\n" + BROKEN
    # Another limit holds at once, with what is cached.
    project.write("pyproject.toml", "")
    assert f"+{ONE}" in project.run("check", "--diff", "--unsafe-fixes", "a.py").stdout
    assert path.read_text() == text


def test_notebooks(project: Project) -> None:
    project.write("pyproject.toml", LIMIT)
    cells = ["import torch\n%matplotlib inline", "!ls\n" + LONG.rstrip()]
    notebook = {
        "cells": [{"cell_type": "code", "metadata": {}, "outputs": [], "source": cell} for cell in cells],
        "metadata": {},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    path = project.write("a.ipynb", json.dumps(notebook))
    project.run(*FIX, "a.ipynb")
    sources = [cell["source"] for cell in json.loads(path.read_text())["cells"]]
    assert ["".join(source) for source in sources] == [cells[0], "!ls\n" + BROKEN.rstrip()]


def test_an_editor_applies_a_fix(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(LIMIT)
    text = "import torch\n" + LONG
    with Editor(tmp_path) as editor:
        for only in (["quickfix"], ["source.fixAll"]):
            name = editor.open(tmp_path / "a.py", text)
            fix, *_ = editor.actions(name, editor.area(name, "torch.meshgrid"), only=only)
            editor.apply(fix.edit)
            assert editor.texts[name] == "import torch\n" + BROKEN
            editor.leave(name)
