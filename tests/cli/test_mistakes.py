"""What somebody types who does not know the command line by heart, and what a narrow terminal shows."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness.project import Project
from harness.terminal import in_terminal

CODE = (
    "import torch\n\ny = torch.ger(a, b)\nL, V = torch.symeig(A, eigenvectors=True)\nm = torch.load(path)\n"
)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    made = Project(tmp_path, monkeypatch)
    made.write("torchmigrate.toml", 'target = "2.15"\n')
    made.write("src/a.py", CODE)
    return made


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (("src",), "No such command 'src'. Did you mean `torchmigrate check src`?"),
        (("-",), "No such command '-'. Did you mean `torchmigrate check -`?"),
        (("fix", "src"), "No such command 'fix'. Did you mean `torchmigrate check --fix`?"),
        (("--fix", "src"), "No such option '--fix'. Did you mean `torchmigrate check --fix`?"),
        (("-i", "src"), "No such option '-i'. Did you mean `torchmigrate check -i`?"),
        (
            ("check", "--select", "torch.symeig"),
            "--select: unknown rule `torch.symeig`: `torchmigrate explain torch.symeig` says which rule finds it",
        ),
        (("check", "--select", "symegi"), "--select: unknown rule `symegi`; did you mean `symeig`?"),
        (("check", "--select", "tm100"), "--select: unknown rule `tm100`; did you mean `TM100`?"),
        (("explain", "torch.symegi"), "unknown rule `torch.symegi`; did you mean `torch.symeig`?"),
    ],
    ids=" ".join,
)
def test_what_was_meant_is_said(project: Project, typed: tuple[str, ...], said: str) -> None:
    assert project.run(*typed, code=2).stderr.splitlines()[-1] == f"error: {said}"


@pytest.mark.parametrize("typed", ["chekc", "--nonsense"])
def test_what_is_meant_for_nothing_else_is_as_click_says_it(project: Project, typed: str) -> None:
    said = project.run(typed, code=2).stderr.splitlines()[-1]
    assert typed in said and "torchmigrate check" not in said


def test_click_looks_among_all_commands_for_one_that_is_meant(project: Project) -> None:
    """Also among those that nobody has imported yet."""
    assert "'explain'" in project.run("explian", "TM100", code=2).stderr.splitlines()[-1]


def test_the_summary_fits_the_terminal(project: Project) -> None:
    options = ("check", "src", "--color", "never", "--output-format", "concise")
    narrow = in_terminal(options, project.path, columns=60).splitlines()
    start = next(number for number, line in enumerate(narrow) if line.startswith("Found"))
    assert narrow[start:] == [
        "Found 3 findings (1 error, 1 warning, 1 info).",
        "2 fixable with `--fix` (1 more with `--unsafe-fixes`).",
        "Checked for torch 2.15.",
        "No minimum found, so fixes may not work on older releases;",
        "  set `minimum` in pyproject.toml.",
    ]
    wide = in_terminal(options, project.path, columns=130).splitlines()
    whole = project.run(*options, code=1).stderr.splitlines()
    assert wide[-2:] == whole and whole[0].startswith("Found 3 findings") and "2 fixable" in whole[0]
