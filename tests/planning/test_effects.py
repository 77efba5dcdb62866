"""What a plan says of a place: when it raises, what is left to do by hand, what is one decision."""

from __future__ import annotations

import json
import re
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from harness.project import Project


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    (tmp_path / "demo").mkdir()
    return Project(tmp_path / "demo", monkeypatch)


def planned(project: Project, source: str, *arguments: str, name: str = "code.py") -> dict[str, Any]:
    """The plan of one file."""
    project.write(name, dedent(source))
    command = ("plan", "--isolated", "--output-format", "json", "--to", "2.13", *arguments)
    made: dict[str, Any] = json.loads(project.run(*command, code=0).stdout)
    return made


def effects(made: dict[str, Any]) -> dict[int, str]:
    """Row -> effect."""
    return {place["location"]["row"]: place["effect"] for place in made["places"] if place["effect"]}


# ---- when it raises ------------------------------------------------------------------------------------


def test_what_runs_with_the_import_breaks_it(project: Project) -> None:
    made = planned(
        project,
        """\
        import torch
        from torch._six import inf

        class Model(torch.nn.Module):
            scale = torch.symeig

            def forward(self, x, old=torch.lstsq):
                return torch.gesv(x, x)

        with open("a") as file:
            torch.eig(file)
        f = lambda: torch.btrifact(x)
        if f():
            torch.potrf(x)
        """,
    )
    assert effects(made) == {
        2: "breaks_on_import",
        5: "breaks_on_import",
        7: "breaks_on_import",
        8: "raises",
        11: "breaks_on_import",
        12: "raises",
        14: "raises",
    }


def test_imports_within_functions_and_for_type_checkers(project: Project) -> None:
    made = planned(
        project,
        """\
        from typing import TYPE_CHECKING

        if TYPE_CHECKING:
            from torch.utils.serialization import load_lua

        def build():
            from torch.legacy import nn
            return nn

        try:
            import torch.utils.serialization
        except ImportError:
            pass

        try:
            from torch.utils.ffi import _wrap_function
        except ImportError:
            raise RuntimeError("no extension")
        """,
    )
    assert effects(made) == {4: "outdated", 7: "raises", 16: "breaks_on_import"}


def test_a_decision_does_what_the_worst_of_its_places_does(project: Project) -> None:
    made = planned(
        project,
        """\
        import torchaudio

        def play(stream: "torchaudio.io.StreamReader"):
            return torchaudio.io.StreamReader(stream)

        player = torchaudio.io.StreamWriter("out")
        """,
        "--select",
        "TM811",
    )
    assert effects(made) == {3: "breaks_on_import"}
    assert made["places"][0]["rows"] == [4, 6]


def test_annotations_that_nobody_evaluates(project: Project) -> None:
    source = "import torch\n\ndef f(x: torch.legacy.nn.Module) -> None:\n    pass\n"
    assert effects(planned(project, source)) == {3: "breaks_on_import"}
    lazy = "from __future__ import annotations\n" + source
    assert effects(planned(project, lazy)) == {4: "outdated"}
    local = "import torch\n\ndef f(x):\n    y: torch.legacy.nn.Module = x\n"
    assert effects(planned(project, local)) == {4: "outdated"}
    text = (
        'import torch\nfrom typing import Optional\n\ndef f(x: "torch.legacy.nn.Module") -> None:\n    pass\n'
    )
    assert effects(planned(project, text)) == {4: "outdated"}
    inner = text.replace('"torch.legacy.nn.Module"', 'Optional["torch.legacy.nn.Module"]')
    assert effects(planned(project, inner)) == {4: "outdated"}


def test_a_class_of_the_old_form_raises_when_it_is_used(project: Project) -> None:
    old = """
        class {name}(Function):
            def __init__(self, scale):
                self.scale = scale

            def forward(self, x):
                self.size = helper(self, x)
                return x

            def backward(self, grad):
                return other(self, grad)
        """
    source = "from torch.autograd import Function\n" + dedent(old.format(name="A") + old.format(name="B"))
    source += "\ndef f(x):\n    return A(1)(B(2)(x))\n"
    made = planned(project, source, "--select", "TM332")
    assert set(effects(made).values()) == {"raises"}
    assert len(made["places"]) == 2  # a class is a decision, not its lines
    assert all(place["rows"] for place in made["places"])


def test_a_changed_default_may_raise(project: Project) -> None:
    source = "import torch\n\ndef f(p):\n    return torch.load(p).run()\n"
    assert effects(planned(project, source)) == {4: "may_raise"}
    out = project.run("plan", "--isolated", "--to", "2.13", code=0).stdout
    assert "1 place may raise on 2.13." in out and "results" not in out.splitlines()[0]


def test_only_what_asks_for_a_class_changes_its_results(project: Project) -> None:
    source = """\
        from typing import Type
        from torch.optim.lr_scheduler import _LRScheduler

        def f(x):
            kinds = [_LRScheduler]
            return isinstance(x, _LRScheduler)
        """
    found = effects(planned(project, source, "--select", "TM456"))
    assert found == {5: "outdated", 6: "changes"}


# ---- guesses ---------------------------------------------------------------------------------------------


def test_what_is_guessed_is_counted_apart(project: Project) -> None:
    source = "import torch\n\ndef f(a, b):\n    return torch.full((2,), 1)\n"
    made = planned(project, source)
    assert effects(made) == {4: "may_differ"} and made["may_differ"] == 1
    last = made["releases"][-1]
    assert last["runs"] and not any(
        value["places"] for value in last.values() if isinstance(value, dict) and "places" in value
    )
    assert made["headline"].startswith("Works unchanged up to torch 2.13") and made["effort"] == {
        "safe": 0,
        "unsafe": 0,
        "by_hand": 0,
    }
    assert planned(project, source, "--ignore", "TM914")["places"] == []
    assert planned(project, source, "--select", "TM100")["places"] == []
    assert project.run("check", "--isolated", code=0).stderr.startswith("All checks passed!\n")


# ---- what is left ----------------------------------------------------------------------------------------


def test_an_import_goes_with_the_uses_that_fixes_mend(project: Project) -> None:
    source = """\
        from torch.autograd import Variable
        from torch._six import string_classes

        def f(x):
            return isinstance(x, string_classes)
        """
    made = planned(project, source)
    place = next(place for place in made["places"] if place["code"] == "TM021")
    assert place["effort"] == "safe" and made["effort"]["by_hand"] == 0


def test_an_import_is_one_decision_with_the_use_of_what_it_takes(project: Project) -> None:
    source = """\
        from torch.utils.ffi import create_extension

        ffi = create_extension("a")
        """
    (place,) = planned(project, source)["places"]
    assert (place["location"]["row"], place["rows"], place["effort"]) == (1, [3], "by_hand")
    out = project.run("plan", "--isolated", "--to", "2.13", code=0).stdout
    assert re.search(r"\nBY HAND\n  code.py:1:\d+  breaks on import +TM629 .* \(also in line 3\)\n", out)


# ---- what was not read ------------------------------------------------------------------------------------


def test_what_was_not_read_is_told_by_kind(project: Project) -> None:
    project.write("op.pyx", "import torch\n")
    project.write("old.pyx", "cimport torch\n")
    project.write("plain.pyx", "def main(): pass\n")
    project.write("README.md", "pip install torch\n")
    project.write("third/a.py", "import torch\n")
    made = planned(project, "import torch\n", "--extend-exclude", "third")
    told = {each["kind"]: (each["files"], each["matters"]) for each in made["not_read"]}
    assert {kind: told[kind] for kind in ("Cython files", "Python file")} == {
        "Cython files": (2, True),
        "Python file": (1, False),
    }
    assert made["is_whole"] is False and "It is unknown whether the project runs" in made["headline"]


def test_files_of_the_kinds_that_are_read_are_not_told(project: Project) -> None:
    project.write("a.py", "import torch\n")
    project.write("b.pyi", "import torch\n")
    assert planned(project, "import torch\n")["not_read"] == []


# ---- all formats -----------------------------------------------------------------------------------------


def test_all_formats_say_the_same_numbers(project: Project) -> None:
    project.write("op.pyx", "import torch\n")
    source = """\
        import torch
        from torch.utils.ffi import create_extension

        def f(x, p):
            torch.symeig(x, eigenvectors=True)
            torch.meshgrid(x, x)
            torch.full((2,), 1)
            return torch.load(p).run()
        """
    made = planned(project, source)
    labels = ("breaks_on_import", "raises", "may_raise", "changes", "warns")
    expected = {}
    for row in made["releases"]:
        shown = row["first"] if row["first"] == row["last"] else f"{row['first']} to {row['last']}"
        places = [(row[label]["places"], row["new"][label]["places"]) for label in labels]
        numbers = [f"{number or ''}{f' (+{new})' if new else ''}" for number, new in places]
        efforts = [str(sum(row[label][effort] for label in labels) or "") for effort in made["effort"]]
        expected[shown] = [*numbers, *efforts]
    assert any(any(cells) for cells in expected.values())

    def text(output_format: str) -> str:
        return project.run(
            "plan", "--isolated", "--to", "2.13", "--output-format", output_format, code=0
        ).stdout

    table, markdown, page = text("table"), text("markdown"), text("html")
    rows = [re.split("  +", line) for line in table.splitlines() if re.match(r"\d+\.\d+", line)]
    assert {row[0]: [cell.replace("·", "") for cell in row[1:]] for row in rows} == expected
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in markdown.splitlines()
        if re.match(r"\| \d", line)
    ]
    assert {row[0].partition(":")[0]: row[1:] for row in rows} == expected
    body = page.partition('id="releases"')[2].partition("<tbody>")[2].partition("</tbody>")[0]
    drawn = {}
    for row in re.findall(r"<tr[^>]*>(.*?)</tr>", body, re.DOTALL):
        head, *cells = re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)
        name = re.sub("<[^>]*>", "", head).partition(",")[0].strip()
        drawn[name] = [
            re.sub("<[^>]*>", "", re.sub(r"<small>(\+\d+)</small>", r" (\1)", cell)).strip() for cell in cells
        ]
    assert drawn == expected
    for out in (table, markdown, page):
        plain = re.sub(r"[\\`]|</?code>", "", out)
        assert made["headline"] in plain
        assert "1 Cython file (it mentions torch): op.pyx" in plain
        assert (
            "2 more places may behave differently" in plain or "1 more place may behave differently" in plain
        )
