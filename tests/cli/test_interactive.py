"""`check --interactive`, in a real terminal in which somebody presses keys."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from harness.project import Project
from harness.terminal import Terminal

QUESTION = "[?] help: "
TWO = "import torch\n\ny = torch.ger(a, b)\nz = torch.ger(b, a)\n"
MIXED = "import torch\n\ny = torch.ger(a, b)\nL = torch.symeig(A, eigenvectors=True)\nz = torch.ger(b, a)\n"
RFFT = "import torch\n\n\ndef f(x):\n    y = torch.rfft(x, 2)\n    return torch.irfft(y, 2)\n"
LOAD = "import torch\n\ny = torch.ger(a, b)\nm = torch.load('m.pt')\n"


def outer(text: str) -> str:
    return text.replace("ger", "outer")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    made = Project(tmp_path, monkeypatch)
    made.write("torchmigrate.toml", 'target = "2.15"\n')
    return made


class Session:
    """The command in a terminal; `shown` is what every question showed, then what came after the last answer."""

    def __init__(self, project: Project, *options: str, own: bool = False, **environ: str) -> None:
        arguments = ("check", "-i", "--color", "never", *options)
        self.terminal = Terminal(arguments, project.path, columns=100, own=own, **environ)
        self.shown: list[str] = []

    def question(self) -> str:
        self.shown.append(self.terminal.until(QUESTION))
        return self.shown[-1]

    def answer(self, keys: str) -> None:
        """Wait for a question before each key."""
        for key in keys:
            self.question()
            self.terminal.press(key)

    def end(self, code: int) -> str:
        """Wait for the end; what was shown since the last question."""
        ended = self.terminal.end()
        rest = self.terminal.shown[self.terminal.shown.rindex(QUESTION) + len(QUESTION) :]
        assert "Traceback" not in rest
        assert ended == code, self.terminal.shown
        return rest


def answered(project: Project, keys: str, *options: str, code: int) -> Session:
    """A whole run, in which there are exactly as many questions as keys."""
    session = Session(project, *options)
    session.answer(keys)
    session.shown.append(session.end(code))
    return session


def text(path: Path) -> str:
    return path.read_text("utf-8")


def test_it_shows_the_finding_and_what_the_fix_changes(project: Project) -> None:
    project.write("a.py", "import torch\n\ny = torch.ger(a, b)\n")
    session = answered(project, "y", code=0)
    assert session.shown[0] == (
        "\na.py:3:5: TM110 [*] `torch.ger` is deprecated; use `torch.outer`\n"
        "  |\n2 |\n3 | y = torch.ger(a, b)\n  |     ^^^^^^^^^ info\n  |\n"
        "  = fix: Replace with `torch.outer`\n"
        "  |\n2 |\n  - y = torch.ger(a, b)\n3 + y = torch.outer(a, b)\n  |\n\n"
        "Apply this fix?\n"
        "[y]es / [n]o / [a]ll of TM110 / [s]kip TM110 / all in this [f]ile / [q]uit / [?] help: "
    )
    assert session.shown[1].startswith("yes\nFixed 1 finding in 1 file.\nNo findings left.\n")


def test_it_is_in_colour_on_a_terminal(project: Project) -> None:
    project.write("a.py", TWO)
    terminal = Terminal(("check", "-i"), project.path)
    shown = terminal.until(QUESTION)
    assert "\x1b[32m+ y = torch.outer(a, b)\x1b[0m" in shown
    assert "\x1b[1;31m- y = torch.ger(a, b)\x1b[0m" in shown
    terminal.press("q")
    assert terminal.end() == 1


def test_yes_and_no_are_about_one_place(project: Project) -> None:
    path = project.write("a.py", TWO)
    session = answered(project, "yn", code=1)
    assert text(path) == TWO.replace("y = torch.ger", "y = torch.outer")
    assert "(2 left in this file)" in session.shown[0] and "left in this file" not in session.shown[1]
    assert "Found 1 finding (1 info)" in session.shown[-1]


def test_what_was_refused_is_not_asked_again(project: Project) -> None:
    """Not after a fix that moves it, nor after one that replaces what is around it."""
    path = project.write(
        "a.py",
        "import torch\n\nz = torch.ger(b, a)\ny = torch.ger(A, B).symeig(True)[0]\nx = torch.ger(c, d)\n",
    )
    session = answered(project, "ynyn", code=1)
    assert "y = torch.linalg.eigh(torch.ger(A, B), UPLO" in text(path), session.shown
    assert "z = torch.outer(b, a)" in text(path) and "x = torch.ger(c, d)" in text(path)


def test_all_of_a_rule_holds_over_files(project: Project) -> None:
    first, second = project.write("a.py", MIXED), project.write("b.py", MIXED)
    session = answered(project, "ann", code=1)
    for path in (first, second):
        assert text(path) == outer(MIXED)
    assert [shown.count("TM100 [*]") for shown in session.shown[:3]] == [0, 1, 1]
    assert "TM110 [*]" in session.shown[0]


def test_a_place_that_was_refused_stays_after_all_of_its_rule(project: Project) -> None:
    path = project.write("a.py", TWO + "x = torch.ger(c, d)\n")
    answered(project, "na", code=1)
    assert text(path) == outer(TWO + "x = torch.ger(c, d)\n").replace("y = torch.outer", "y = torch.ger")


def test_skip_holds_over_files(project: Project) -> None:
    first, second = project.write("a.py", MIXED), project.write("b.py", MIXED)
    answered(project, "syy", code=1)
    new = MIXED.replace("torch.symeig(A, eigenvectors=True)", 'torch.linalg.eigh(A, UPLO="U")')
    assert text(first) == text(second) == new


def test_all_in_a_file_is_about_that_file(project: Project) -> None:
    first, second = project.write("a.py", MIXED), project.write("b.py", TWO)
    session = answered(project, "fnn", code=1)
    assert "torch.ger" not in text(first) and "symeig" not in text(first)
    assert text(second) == TWO
    assert "b.py:3:5" in session.shown[1]


def test_quit_keeps_what_was_accepted(project: Project) -> None:
    first, second = project.write("a.py", TWO), project.write("b.py", TWO)
    project.write("c.py", TWO)
    session = answered(project, "yyyq", code=1)
    assert session.shown[-1] == ("quit\nKept the fixes of 3 findings in 2 files. 1 file was not checked.\n")
    assert text(first) == outer(TWO)
    assert text(second) == TWO.replace("y = torch.ger", "y = torch.outer")


def test_quit_at_once_changes_nothing(project: Project) -> None:
    path = project.write("a.py", TWO)
    before = path.stat()
    assert answered(project, "q", code=1).shown[-1] == "quit\nNothing was changed.\n"
    assert answered(project, "q", "--exit-zero", code=0).shown[-1] == "quit\nNothing was changed.\n"
    assert answered(project, "\x04", code=1).shown[-1] == "\nNothing was changed.\n"
    assert path.stat().st_mtime_ns == before.st_mtime_ns


def test_control_c_keeps_what_was_accepted(project: Project) -> None:
    path = project.write("a.py", TWO)
    session = answered(project, "y\x03", code=130)
    assert session.shown[-1] == "\nKept the fixes of 1 finding in 1 file.\n\nInterrupted.\n"
    assert text(path) == TWO.replace("y = torch.ger", "y = torch.outer")


def test_sigterm_keeps_what_was_accepted(project: Project) -> None:
    path = project.write("a.py", TWO)
    session = Session(project, own=True)
    session.answer("y")
    session.question()
    os.kill(session.terminal.process.pid, signal.SIGTERM)
    assert "Kept the fixes of 1 finding in 1 file." in session.end(-signal.SIGTERM)
    assert text(path) == TWO.replace("y = torch.ger", "y = torch.outer")


def test_help_and_other_keys_explain(project: Project) -> None:
    project.write("a.py", TWO)
    session = answered(project, "?x\rq", code=1)
    for shown in session.shown[1:4]:
        assert "\ny  apply this fix\n" in shown and "\nq  quit: keep what was applied" in shown
    assert session.shown[1].startswith("help\n") and session.shown[2].startswith("\n")


def test_unsafe_fixes_are_asked_where_they_are_wanted(project: Project) -> None:
    path = project.write("a.py", LOAD)
    answered(project, "y", code=1)
    assert text(path) == outer(LOAD)
    session = answered(project, "y", "--unsafe-fixes", code=0)
    assert "\nUnsafe: runs any code that the file contains; use it only for files from a" in session.shown[0]
    assert "Apply this unsafe fix?" in session.shown[0]
    assert text(path) == outer(LOAD).replace("'m.pt'", "'m.pt', weights_only=False")


def test_who_refuses_the_unsafe_fix_is_asked_about_the_safe_one(project: Project) -> None:
    path = project.write("a.py", RFFT)
    project.run("check", "--fix", code=0)
    safe = text(path)
    path.write_text(RFFT)
    project.run("check", "--fix", "--unsafe-fixes", code=0)
    assert safe != text(path) != RFFT
    path.write_text(RFFT)
    session = answered(project, "n?y", "--unsafe-fixes", code=0)
    assert text(path) == safe
    unsafe, safe_one, after_help, _ = session.shown
    assert "\n5 +     y = torch.fft.rfft2(x)\n" in unsafe
    assert (
        "\nIf you answer no, the next question is about the safe fix: Add `torch.view_as_complex` and\n"
        "  `torch.view_as_real` around the transform.\nApply this unsafe fix?\n"
    ) in unsafe
    assert "\n5 +     y = torch.view_as_real(torch.fft.rfft2(x))\n" in safe_one
    assert "Unsafe:" not in safe_one and "If you answer no" not in safe_one
    assert "\nApply this safe fix instead?\n" in safe_one
    assert "\nn  leave this place as it is\n" in after_help


def test_both_fixes_of_a_place_can_be_refused(project: Project) -> None:
    path = project.write("a.py", RFFT)
    session = answered(project, "?nn", "--unsafe-fixes", code=1)
    assert text(path) == RFFT
    assert "\nn  refuse this fix; the next question is about the safe fix of this place\n" in session.shown[1]


def test_the_unsafe_fix_of_two_can_be_taken(project: Project) -> None:
    path = project.write("a.py", RFFT)
    answered(project, "y", "--unsafe-fixes", code=0)
    assert "y = torch.fft.rfft2(x)" in text(path)


def test_all_safe_fixes_of_a_rule_do_not_answer_for_its_unsafe_ones(project: Project) -> None:
    """Of each place the unsafe fix is asked about first, and where it is refused, the safe one is known."""
    first, second = project.write("a.py", RFFT), project.write("b.py", RFFT)
    session = answered(project, "nan", "--unsafe-fixes", code=0)
    assert "Apply this unsafe fix?" in session.shown[2]
    assert text(first) == text(second) and "y = torch.view_as_real(" in text(first)


def test_who_skips_a_rule_is_not_asked_about_its_safe_fixes(project: Project) -> None:
    path = project.write("a.py", RFFT)
    answered(project, "s", "--unsafe-fixes", code=1)
    assert text(path) == RFFT


def test_all_said_of_a_safe_fix_is_about_safe_ones(project: Project) -> None:
    path = project.write("a.py", LOAD)
    session = answered(project, "f?n", "--unsafe-fixes", code=1)
    assert text(path) == outer(LOAD)
    assert "all other safe fixes" not in session.shown[2] and "all other fixes of TM600" in session.shown[2]


def test_each_question_is_about_the_text_of_then(project: Project) -> None:
    """The rounds of `--fix`: a fix makes room for one inside of it, and what it imports is there."""
    source = "import torch\n\nz = torch.ger(torch.ger(a, b), torch.symeig(A, True)[0])\n"
    path = project.write("a.py", source)
    session = answered(project, "yyy", code=0)
    assert "- z = torch.outer(torch.ger(a, b), torch.symeig(A, True)[0])" in session.shown[1]
    assert "- z = torch.outer(torch.outer(a, b), torch.symeig(A, True)[0])" in session.shown[2]
    result = text(path)
    path.write_text(source)
    project.run("check", "--fix", code=0)
    assert text(path) == result


def test_saying_yes_to_all_is_what_fix_does(project: Project) -> None:
    """Of more places than there are rounds without a question."""
    source = "import torch\n" + "".join(f"x{number} = torch.ger(a, b)\n" for number in range(25))
    path = project.write("a.py", source)
    answered(project, "y" * 25, code=0)
    assert text(path) == outer(source)


def test_a_decision_over_several_places_is_asked_once(project: Project) -> None:
    source = (
        "import torch.nn as nn\nfrom torch.nn.utils import remove_weight_norm, weight_norm\n\n\n"
        "layer = weight_norm(nn.Linear(2, 2))\nremove_weight_norm(layer)\n"
    )
    path = project.write("a.py", source)
    options = ("--unsafe-fixes", "--select", "weight-norm,remove-weight-norm")
    project.run("check", "--fix", *options)
    fixed = text(path)
    assert fixed != source
    path.write_text(source)
    session = answered(project, "y", *options, code=0)
    assert text(path) == fixed
    path.write_text(source)
    answered(project, "n", *options, code=1)
    assert text(path) == source
    assert session.shown[0].count("weight_norm\n") > 1 and "Apply these unsafe fixes?" in session.shown[0]
    assert "[a]ll of these rules" in session.shown[0]


def test_notebooks(project: Project) -> None:
    cells = [
        {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": source}
        for source in (
            ["%matplotlib inline\n", "import torch\n"],
            ["y = torch.ger(a, b)\n", "z = torch.ger(b, a)"],
        )
    ]
    notebook = {
        "cells": cells,
        "metadata": {"language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    path = project.write("a.ipynb", json.dumps(notebook, indent=1) + "\n")
    before = text(path)
    session = answered(project, "ny", code=1)
    assert "a.ipynb:cell 2:1:5: TM110" in session.shown[0]
    assert text(path) == before.replace("z = torch.ger", "z = torch.outer")


def test_other_files_and_examples(project: Project) -> None:
    shell = project.write("run.sh", "python -m torch.distributed.launch --use_env train.py\n")
    module = project.write("b.py", '"""Doc.\n\n>>> import torch\n>>> torch.ger(a, b)\n"""\n')
    session = answered(project, "yn", "--embedded", "--select", "TM110,TM970", "--unsafe-fixes", code=1)
    assert ">>> torch.outer(a, b)" in text(module)
    assert "run.sh:1" in session.shown[1]
    assert "torch.distributed.launch" in text(shell)


def test_a_file_that_somebody_else_changed_is_left_alone(project: Project) -> None:
    path = project.write("a.py", TWO)
    session = Session(project)
    session.answer("y")
    session.question()
    path.write_text(TWO + "mine = 1\n")
    session.terminal.press("y")
    assert "error: a.py: changed while torchmigrate was checking it: not written" in session.end(2)
    assert text(path) == TWO + "mine = 1\n"


def test_a_baseline_and_the_rest_of_the_run_are_those_of_fix(project: Project) -> None:
    project.write("a.py", TWO)
    project.write("b.py", TWO)
    project.run("baseline", "-q", code=0)
    baseline = project.path / ".torchmigrate-baseline.json"
    entries = text(baseline).count('"TM110"')
    options = ("--baseline", str(baseline), "--show-fixes", "--output-file", "report.txt")
    shown = answered(project, "yynq", *options, code=1).shown[-1]
    assert "Kept the fixes of 2 findings in 1 file." in shown
    assert text(baseline).count('"TM110"') <= entries
    assert "a.py" not in text(baseline) and "b.py" in text(baseline)


def test_whole_lines_where_the_terminal_sends_those(project: Project) -> None:
    path = project.write("a.py", TWO)
    session = Session(project, TERM="dumb")
    for line in ("no\n", "Yes\n"):
        session.question()
        session.terminal.type(line)
    session.end(1)
    assert text(path) == TWO.replace("z = torch.ger", "z = torch.outer")


@pytest.mark.parametrize("options", [("-",), ("--diff",), ("--watch",)])
def test_it_does_not_go_with(project: Project, options: tuple[str, ...]) -> None:
    done = project.run("check", "--interactive", *options, code=2)
    assert done.stderr.splitlines()[-1] == (
        "error: --interactive fixes files; it cannot be used with `-`, --diff or --watch."
    )


def test_it_needs_a_terminal(project: Project) -> None:
    path = project.write("a.py", TWO)
    done = project.run("check", "--interactive", code=2)
    assert done.stderr == "error: --interactive needs a terminal for stdin and stderr.\n"
    assert text(path) == TWO


def test_without_fixes_nothing_is_asked(project: Project) -> None:
    project.write("a.py", "import torch\n\ntorch.symeig(*args)\n")
    terminal = Terminal(("check", "-i"), project.path)
    assert terminal.end() == 1
    assert QUESTION not in terminal.shown and "TM100" in terminal.shown
