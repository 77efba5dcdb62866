"""What happens where a rule or a fix fails: it is named, everything else is done."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from harness.project import Project

from torchmigrate.codemods.pretrained import urls as model_urls
from torchmigrate.findings import Applicability, Edit, Finding, Fix, Severity
from torchmigrate.source.fstrings import fit_old_python

# Two rules with safe fixes, and one, TM721, that is to fail.
CODE = """\
import torch
from torchvision.models.resnet import model_urls

y = torch.ger(a, b)
z = torch.nn.utils.clip_grad_norm(y, 1)
"""
FIXED = CODE.replace("torch.ger", "torch.outer").replace("clip_grad_norm(", "clip_grad_norm_(")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    project = Project(tmp_path, monkeypatch)
    project.write("a.py", CODE)
    return project


def make_it(monkeypatch: pytest.MonkeyPatch, *edits: Edit) -> None:
    """Let TM721 offer a safe fix with these edits."""

    def find(rule, hits, file):
        fix = Fix("Change it", Applicability.SAFE, edits, code=rule.code)
        return [
            Finding(
                rule.code, rule.name, "change it", Severity.ERROR, CODE.index(" model_urls") + 1, 40, fix=fix
            )
        ]

    monkeypatch.setattr(model_urls, "find", find)


@pytest.mark.parametrize("unsafe", [[], ["--unsafe-fixes"]])
@pytest.mark.parametrize(
    ("edits", "why"),
    [
        ([], "the fix has no edits"),
        ([Edit(0, 6, "x"), Edit(3, 9, "y")], "its edits overlap"),
        ([Edit(0, 100_000, "")], "an edit is outside the text"),
        ([Edit(13, 17, "from from")], "the fixed code does not parse"),
    ],
)
def test_a_bad_fix_is_named_and_the_others_are_applied(project, monkeypatch, unsafe, edits, why) -> None:
    make_it(monkeypatch, *edits)
    done = project.run("check", "--fix", *unsafe, "a.py", code=2)
    (line,) = [line for line in done.stderr.splitlines() if "TM721" in line]
    assert line.startswith("error: a.py:2: TM721: the fix was skipped, because " + why)
    assert (project.path / "a.py").read_text() == FIXED
    assert "TM721" in done.stdout, "it is still a finding"


def test_several_bad_fixes(project, monkeypatch) -> None:
    """Each is found among the good ones."""

    def find(rule, hits, file):
        for number in (0, 20, 80):
            start = file.source.text.index("\n", number)
            fix = Fix(f"Change {number}", Applicability.SAFE, (Edit(start, start, " ("),), code=rule.code)
            yield Finding(rule.code, rule.name, "change it", Severity.ERROR, start - 3, start, fix=fix)

    monkeypatch.setattr(model_urls, "find", find)
    done = project.run("check", "--fix", "a.py", code=2)
    assert done.stderr.count("TM721: the fix was skipped, because the fixed code does not parse") == 3
    assert (project.path / "a.py").read_text() == FIXED


@pytest.mark.parametrize("error", [IndexError("list index out of range"), AssertionError(), RecursionError()])
@pytest.mark.parametrize("when", ["at once", "after the first finding"])
@pytest.mark.parametrize("fix", [[], ["--fix"], ["--fix", "--unsafe-fixes"], ["--diff"]])
def test_a_rule_that_raises_does_not_take_the_others_along(project, monkeypatch, error, when, fix) -> None:
    def find(rule, hits, file):
        if when != "at once":
            yield Finding(rule.code, rule.name, "change it", Severity.ERROR, 3, 6)
        raise error

    monkeypatch.setattr(model_urls, "find", find)
    done = project.run("check", *fix, "a.py", code=2)
    (line,) = [line for line in done.stderr.splitlines() if "TM721" in line]
    assert line.startswith("error: a.py: TM721: every finding was skipped, because ")
    if fix == []:
        assert "TM106" in done.stdout or "TM110" in done.stdout
    elif fix == ["--diff"]:
        assert "+y = torch.outer(a, b)" in done.stdout
    else:
        assert (project.path / "a.py").read_text() == FIXED


def test_a_fix_that_raises_leaves_its_finding(project, monkeypatch) -> None:
    from torchmigrate.rewrite.cases import rewriting as rewrite

    def fail(rule, *arguments):
        raise IndexError(rule.code) if rule.code == "TM414" else None

    real = rewrite.rewrite
    monkeypatch.setattr(
        rewrite, "rewrite", lambda rule, *others: fail(rule) if rule.code == "TM414" else real(rule, *others)
    )
    done = project.run("check", "--fix", "--select=TM1,TM4", "a.py", code=2)
    assert "a.py:5: TM414: the fix was skipped, because the rule failed (IndexError in test_failures.py:" in (
        done.stderr
    )
    assert (project.path / "a.py").read_text() == CODE.replace("torch.ger", "torch.outer")
    assert "TM414" in done.stdout


@pytest.mark.parametrize("unsafe", [[], ["--unsafe-fixes"]])
def test_fixes_without_an_end_leave_the_file_alone(project, monkeypatch, unsafe) -> None:
    def find(rule, hits, file):
        end = len(file.source.text)
        fix = Fix("More", Applicability.SAFE, (Edit(end, end, "# more\n"),), code=rule.code)
        yield Finding(rule.code, rule.name, "change it", Severity.ERROR, 30, 33, fix=fix)

    monkeypatch.setattr(model_urls, "find", find)
    done = project.run("check", "--fix", *unsafe, "a.py", code=2)
    assert "a.py: TM721: applying fixes does not end; the file was not changed" in done.stderr
    assert (project.path / "a.py").read_text() == CODE
    assert "TM721" in done.stdout


@pytest.mark.parametrize("depth", [3, 30])
def test_calls_in_each_other_are_fixed_however_many_rounds_that_takes(project, depth) -> None:
    code = f"from torch.autograd import Variable\n\ny = {'Variable(' * depth}x{')' * depth}\n"
    project.write("b.py", code)
    project.run("check", "--fix", "--unsafe-fixes", "--select=TM330", "b.py", code=0)
    assert (project.path / "b.py").read_text() == "y = x\n"


# ---- comments ---------------------------------------------------------------------------------------

DROPS_A_COMMENT = """\
import torch

y = torch.symeig(x)[
    0  # only the values
]
"""


def fix_of(project: Project, code: str, text: str, *arguments: str) -> dict[str, object]:
    """The fix of the only finding of a rule, as JSON."""
    project.write("c.py", text)
    done = project.run("check", "--output-format=json", f"--select={code}", *arguments, "c.py", code=1)
    (finding,) = json.loads(done.stdout)
    fix = finding["fix"]
    assert isinstance(fix, dict)
    return fix


@pytest.mark.parametrize("options", [[], ["--minimum=1.0"]])
def test_a_lost_comment_is_a_reason_of_its_own(project, options) -> None:
    """With the minimum the fix has another reason already: the new name is too young."""
    fix = fix_of(project, "TM100", DROPS_A_COMMENT, *options)
    assert fix["applicability"] == "unsafe"
    reason = str(fix["reason"])
    assert reason.endswith("the fix removes a comment")
    assert reason.startswith("needs torch 1.8") == bool(options)


def test_the_configuration_cannot_make_the_loss_of_a_comment_safe(project) -> None:
    project.write("pyproject.toml", '[tool.torchmigrate]\nextend-safe-fixes = ["TM100"]\n')
    assert fix_of(project, "TM100", DROPS_A_COMMENT)["applicability"] == "unsafe"


# ---- f-strings --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "old"),
    [
        ("f'{a}'", True),
        ("f'{a[\"x\"]}' 'b'", True),
        ("f'{a['x']}'", False),
        ("f'{a!r:>{n}}'", True),
        ("f'''{a[\"x\"]} ' {b['y']}'''", True),
        ("f'''{f'''{a}'''}'''", False),
        ("f'{a\n}'", False),
        ("f'''{a\n}'''", True),
        ("f'{\"\\n\"}'", False),
        ("f'\\n{a}'", True),
        ("f'''{a # c\n}'''", False),
        ("f'{f\"{a}\"}'", True),
        ("rf'\\d{a}' # '", True),
    ],
)
def test_f_strings_that_an_old_python_reads(text, old) -> None:
    """An old Python says so itself."""
    if not old and sys.version_info < (3, 12):
        with pytest.raises(SyntaxError):
            compile(text, "", "eval")
        return
    compile(text, "", "eval")
    assert fit_old_python(f"x = {text}\n") == old


def test_fixes_that_only_together_do_not_parse_are_made_one_after_the_other(project, monkeypatch) -> None:
    """Each takes one of two statements away, the last one of them leaves `pass`."""
    lines = ("    a = 1\n", "    b = 2\n")

    def find(rule, hits, file):
        text = file.source.text
        left = [line for line in lines if line in text]
        for line in left:
            at = text.index(line)
            edit = Edit(at, at + len(line), "" if len(left) > 1 else "    pass\n")
            fix = Fix("Take it away", Applicability.SAFE, (edit,), code=rule.code)
            yield Finding(rule.code, rule.name, "take it away", Severity.ERROR, at + 4, at + 5, fix=fix)

    monkeypatch.setattr(model_urls, "find", find)
    head = "from torchvision.models.resnet import model_urls\n\nif model_urls:\n"
    project.write("b.py", f"{head}{lines[0]}    # between them\n{lines[1]}")
    done = project.run("check", "--fix", "--select=TM721", "b.py", code=0)
    assert "was skipped" not in done.stderr
    assert (project.path / "b.py").read_text() == f"{head}    # between them\n    pass\n"


def test_names_of_one_statement_that_mean_the_same_elsewhere_stay_together(project) -> None:
    """One of them is imported twice, so that its uses cannot be told apart."""
    code = (
        "from functorch import (\n    vmap,\n    hessian,\n    functionalize,\n)\n\n\ndef model():\n    vmap()\n\n\n"
        "from functorch import (\n    vmap,\n)\n"
    )
    project.write("b.py", code)
    project.run("check", "--fix", "b.py", code=0)
    assert (project.path / "b.py").read_text() == (
        code.replace("from functorch", "from torch.func")
        .replace(")\n\n\ndef", ")\nimport torch\n\n\ndef")
        .replace("    vmap()", "    torch.func.vmap()")
    )
