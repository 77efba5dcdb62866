"""Notebooks: what is Python in them, and what a change leaves as it was."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from harness.program import FIX, FIX_ALL, engine

from torchmigrate.engine.results import FileResult
from torchmigrate.source.magics import masked
from torchmigrate.source.notebook import Notebook
from torchmigrate.source.notebook_file import read_notebook
from torchmigrate.source.text import SourceError

PATH = Path("work.ipynb")
PYTHON = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}


def code(text: str | list[str], **more: object) -> dict[str, object]:
    cell = {"cell_type": "code", "execution_count": 1, "metadata": {}, "outputs": [], **more}
    return {**cell, "source": text.splitlines(keepends=True) if isinstance(text, str) else text}


def notebook(*cells: str | dict[str, object], metadata: object = PYTHON) -> str:
    """The file with these cells; text is code."""
    made = [code(cell) if isinstance(cell, str) else cell for cell in cells]
    content = {"cells": made, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def read(data: str | bytes) -> Notebook:
    source = Notebook.from_bytes(data.encode() if isinstance(data, str) else data, PATH)
    assert isinstance(source, Notebook)
    return source


def checked(data: str | bytes, *options: str) -> FileResult:
    return engine(*options).check_source(read(data), PATH)


def fixed(data: str | bytes, *options: str) -> bytes:
    """The bytes after the fixes of a run, which a second run leaves as they are."""
    result = checked(data, *(options or FIX))
    if result.new is None:
        return data.encode() if isinstance(data, str) else data
    new = result.new.content()
    assert checked(new, *(options or FIX)).new is None, "a second run changes nothing"
    return new


def places(data: str | bytes, *options: str) -> list[str]:
    source = read(data)
    found = checked(data, *options).findings
    return ["{}:{}:{} {}".format(*source.place(finding.start), finding.code) for finding in found]


# ---- what is Python ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("x = 1\n%matplotlib inline\ny = 2", "x = 1\n__________________\ny = 2"),
        ("if x:\n    !ls -l\n", "if x:\n    ______\n"),
        ("files = !ls *.py", "files = ________"),
        ("a, b = %magic x", "a, b = ________"),
        ("row['a'] = !ls", "row['a'] = ___"),
        ('print("n = %d" % n)', 'print("n = %d" % n)'),
        ("log(f'a = {a}', 'b = %s' % b)", "log(f'a = {a}', 'b = %s' % b)"),
        ("ls -al output/", "______________"),
        ("cd ../data", "__________"),
        ("more - (a\n)", "more - (a\n)"),
        ("torch.load?", "___________"),
        ("torch.load??\nx", "____________\nx"),
        ("?torch.load", "___________"),
        ("%%time\nx = 1\n", "______\nx = 1\n"),
        ("\n%%timeit -n 3\nx", "\n_____________\nx"),
        ("%time x = f()", "_;    x = f()"),
        ("%time for x in y: pass", "______________________"),
        ("%timeit f(x)", "____________"),
        ("!echo a \\\n  b\nx", "_________\n   \nx"),
        ("pip install torch\nx = 1", "_________________\nx = 1"),
        ("ls = 3\nls + 1", "ls = 3\nls + 1"),
        ("f(a,\n%b)", "f(a,\n%b)"),
        ('"""\n!ls\n%x\n"""', '"""\n!ls\n%x\n"""'),
        ("x = a != b\nassert a\\\n!= b", "x = a != b\nassert a\\\n!= b"),
        ("x % y\n'%s' % x # really?\n", "x % y\n'%s' % x # really?\n"),
        ("x = 1;\nawait f()", "x = 1;\nawait f()"),
        ("/f 1 2\n", "______\n"),
    ],
)
def test_what_is_no_python_is_masked(text: str, shown: str) -> None:
    found = masked(text)
    assert found is not None and found.text == shown


@pytest.mark.parametrize("magic", ["bash", "html", "cython", "writefile x.py", "R", "unknown_one"])
def test_cells_of_other_languages_are_left_out(magic: str) -> None:
    text = notebook("import torch\n", f"%%{magic}\ntorch.ger(a, b)\n", "torch.ger(a, b)\n")
    assert places(text) == ["3:1:1 TM110"]


def test_notebooks_of_other_languages_are_clean() -> None:
    r = {"kernelspec": {"language": "R", "name": "ir"}, "language_info": {"name": "R"}}
    assert checked(notebook("x <- torch.ger(a, b)", metadata=r)).findings == []
    cell = code("x <- 1", metadata={"vscode": {"languageId": "julia"}})
    assert places(notebook("import torch\n", cell, "torch.ger(a, b)")) == ["3:1:1 TM110"]


# ---- one program ------------------------------------------------------------------------------------

TWO = notebook(
    {"cell_type": "markdown", "metadata": {}, "source": ["# Naïve\n", "torch.ger(a, b)"]},
    "%matplotlib inline\nimport torch as t\n",
    "!pip install torch\nx = t.ones(3)",
    "%%time\ny = t.ger(x, x)\nt.ger?\n",
)


def test_names_live_across_cells_and_places_count_in_cells() -> None:
    assert places(TWO) == ["4:2:5 TM110"]


def test_only_the_changed_line_changes() -> None:
    assert fixed(TWO) == TWO.encode().replace(b"y = t.ger(x, x)", b"y = t.outer(x, x)")


def test_a_timed_statement_is_python() -> None:
    text = notebook("import torch\n", "%time y = torch.ger(a, b)\n")
    assert fixed(text) == text.encode().replace(b"torch.ger", b"torch.outer")


def test_an_import_goes_where_the_one_is_that_it_replaces() -> None:
    text = notebook(
        "%%capture\n!pip install torch\n", "import os\nfrom torch import symeig", "symeig(x, True)[0]"
    )
    new = fixed(text, *FIX_ALL)
    assert json.loads(new)["cells"][1]["source"] == ["import os\n", "from torch.linalg import eigh"]


def test_a_cell_of_which_an_import_is_all_is_emptied() -> None:
    before = notebook("import torch", "from torch.autograd import Variable", "x = Variable(torch.ones(3))")
    cells = json.loads(fixed(before, "--fix", "--unsafe-fixes"))["cells"]
    assert [cell["source"] for cell in cells] == [["import torch"], [], ["x = torch.ones(3)"]]


def test_nothing_comes_before_the_magic_of_a_cell() -> None:
    text = notebook("%%time\nfrom torch.svd import x\n", "x = __import__('torch').ger(a, b)\n")
    assert json.loads(fixed(text))["cells"][0]["source"][0] == "%%time\n"


def test_an_import_that_a_magic_uses_stays() -> None:
    text = notebook("from torch import ger\n", "ger(a, b)", "%timeit ger(a, b)\n")
    assert "ger" in json.loads(fixed(text))["cells"][0]["source"][0]


def test_what_a_cell_shows_is_used() -> None:
    """The last expression is printed: as V, and not as V transposed or not at all."""
    shown = notebook("import torch\n", "torch.svd(x)  # shown\n")
    assert fixed(shown, *FIX_ALL) == shown.encode()
    hidden = notebook("import torch\n", "torch.svd(x);\n")
    assert fixed(hidden, *FIX_ALL) != hidden.encode()


def test_a_line_that_goes_takes_its_string_along() -> None:
    text = notebook("import os\nfrom torch._six import string_classes", "isinstance(x, string_classes)\n")
    cells = json.loads(fixed(text))["cells"]
    assert [cell["source"] for cell in cells] == [["import os"], ["isinstance(x, (str, bytes))\n"]]


def test_a_cell_may_become_empty() -> None:
    text = notebook("from torch._six import string_classes", "isinstance(x, string_classes)\n")
    assert b'"source": []' in fixed(text)


def test_suppressions() -> None:
    text = notebook("import torch\n", "torch.ger(a, b)  # noqa: TM110\n", "torch.ger(a, b)")
    assert places(text) == ["3:1:1 TM110"]
    text = notebook("import torch\n", "torch.ger(a, b)  # torchmigrate: ignore[TM110]")
    assert places(text) == []


# ---- byte for byte ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda text: text, id="as Jupyter writes it"),
        pytest.param(lambda text: text.rstrip("\n"), id="no newline at the end"),
        pytest.param(lambda text: text.replace("\n", "\r\n"), id="CRLF"),
        pytest.param(lambda text: json.dumps(json.loads(text)), id="one line, ASCII"),
        pytest.param(lambda text: json.dumps(json.loads(text), separators=(",", ":")), id="compact"),
        pytest.param(
            lambda text: json.dumps(json.loads(text), indent="\t", sort_keys=True), id="tabs, sorted"
        ),
        pytest.param(lambda text: "\ufeff" + text, id="byte order mark"),
        pytest.param(lambda text: text.replace("&lt;", "\\u003c"), id="escapes of Colab"),
    ],
)
def test_everything_else_stays_byte_for_byte(change) -> None:  # type: ignore[no-untyped-def]
    output = {"output_type": "stream", "name": "stdout", "text": ["torch.ger(a, b)\n", "&lt;b>é\u2028\n"]}
    text = change(
        notebook(
            "import torch  # é\n",
            code("a = '&lt;é\\n\\t\"'; b = torch.ger(a, 'ü')\nc = 1e400\n", outputs=[output]),
            metadata={**PYTHON, "x": 1.50, "big": 10**30},
        )
    ).encode()
    before, after = text.split(b"b = torch.ger(a, ", 1)
    assert fixed(text) == before + b"b = torch.outer(a, " + after


@pytest.mark.parametrize(
    "source",
    [
        "import torch\ny = torch.ger(a, b)\nz = 1",
        ["import torch\ny = torch.ger(a, b)\nz = 1"],
        ["import ", "torch\ny = torch", ".ger(a, b)", "", "\nz = 1"],
        ["import torch\r\n", "y = torch.ger(a, b)\r\n", "z = 1"],
    ],
)
def test_source_in_any_form(source: str | list[str]) -> None:
    text = notebook({**code(""), "source": source})
    after = fixed(text)
    assert after == text.encode().replace(b".ger(", b".outer(")


def test_new_lines_are_written_as_their_neighbours() -> None:
    text = notebook(
        "from torchvision.models import resnet18\nfrom torch.nn.init import xavier_uniform\n",
        "xavier_uniform(x)\n",
    )
    for given in (text, json.dumps(json.loads(text)), text.replace("\n", "\r\n")):
        new = fixed(given).decode()
        assert new == given.replace("import xavier_uniform", "import xavier_uniform_ as xavier_uniform") or (
            "xavier_uniform_(x)" in new
        )


def test_format_3() -> None:
    cells = [
        {"cell_type": "heading", "level": 1, "metadata": {}, "source": ["Old"]},
        {
            "cell_type": "code",
            "collapsed": False,
            "input": ["import torch\n", "torch.ger(a, b)"],
            "language": "python",
            "outputs": [],
        },
    ]
    text = json.dumps(
        {
            "metadata": {"name": ""},
            "nbformat": 3,
            "nbformat_minor": 0,
            "worksheets": [{"cells": cells, "metadata": {}}],
        }
    )
    assert places(text) == ["2:2:1 TM110"]
    assert fixed(text) == text.encode().replace(b"torch.ger", b"torch.outer")


# ---- what is broken ---------------------------------------------------------------------------------


def test_a_cell_that_does_not_parse_is_named_and_the_others_are_checked() -> None:
    text = notebook("import torch\n", "x = # your code\n", "torch.ger(a, b)\n", "def f(:\n")
    result = checked(text, *FIX)
    assert [(problem.cell, problem.line) for problem in result.problems] == [(2, 1)]
    assert result.problems[0].reason.endswith("(and 1 more of its cells)")
    assert [finding.code for finding in result.findings] == ["TM110"]
    assert result.new is None, "a broken cell may use what a fix changes"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "[]",
        "{}",
        "1",
        '{"cells": 3}',
        '{"cells": [',
        '{"cells": [{"cell_type": "code", "source": "x"}',
        '{"cells": [{"cell_type": "code", "source": 3}]} trailing',
        '{"cells": [{"cell_type": "code", "source": [3]}]}',
        '{"cells": [{"cell_type": "code", "source": "x", "source": "y"}]}',
        '{"cells": [], "nbformat": 2}',
        '{"cells": [{"cell_type": "code", "source": "a\nb"}]}',
        '{"cells": [{"cell_type": "code", "source": "\\q"}]}',
        '{"cells": ' + "[" * 100_000,
        '{"x": ' + '{"x": ' * 100_000,
        "<<<<<<< HEAD\n{}",
        "\0" * 20,
    ],
)
def test_what_is_no_notebook_is_said_in_a_line(text: str) -> None:
    with pytest.raises(SourceError) as raised:
        read(text)
    assert "\n" not in raised.value.reason and len(raised.value.reason) < 120


@pytest.mark.parametrize(
    "text",
    [
        '{"cells": []}',
        '{"cells": [3, null, "x", {}, {"cell_type": "code"}, {"cell_type": "code", "source": []}]}',
        '{"cells": [{"cell_type": "code", "source": "x = \\"\\\\ud800\\""}], "n": ' + "9" * 5000 + "}",
        '{"cells": [{"cell_type": "code", "source": "' + "# \\\\n" * 2000 + "%%" + '"}]}',
    ],
)
def test_odd_notebooks_are_read(text: str) -> None:
    assert checked(text).findings == []


def test_lone_surrogates_are_no_traceback() -> None:
    text = notebook("import torch\n", "torch.ger(a, b)\n").replace("ger(a", "ger('\\ud800', a")
    assert checked(text).problems


def test_only_code_cells_are_read() -> None:
    file = read_notebook(notebook({"cell_type": "raw", "metadata": {}, "source": "x"}, "y"))
    assert [(cell.number, cell.source.text) for cell in file.cells] == [(2, "y")]


def test_masking_takes_linear_time() -> None:
    for text in (
        "!" * 20_000,
        "(" * 20_000 + "%",
        "'''" * 9999,
        "%a\\\n" * 9000,
        "x=" * 9000 + "?",
        "[a]" * 9000 + "?",
    ):
        masked(text + "\n%x")


# ---- whole files ------------------------------------------------------------------------------------

FIXTURES = sorted((Path(__file__).parents[1] / "fixtures_of_notebooks").iterdir())


@pytest.mark.parametrize("directory", FIXTURES, ids=lambda directory: directory.name)
def test_life_like_notebooks(directory: Path) -> None:
    before, after = ((directory / f"{name}.ipynb").read_bytes() for name in ("before", "after"))
    assert fixed(before) == after
    code = re.compile(rb'^ +".*",?$', re.MULTILINE)
    assert code.sub(b"", before).split() == code.sub(b"", after).split(), "only strings of lists differ"
