"""Names and texts that mean something to a terminal or to the log of a service: nothing prints them as they are.

Every format of every command, with hostile names of files and directories, code, configuration and rules.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from harness.project import Project

from torchmigrate.printing import printable, terminal_text
from torchmigrate.report import FORMATS

INJECT = "\n::stop-commands::INJECT\nINJECT\r##vso[task.INJECT]##[add-mask]\x1b[31m\x9b1m\u202e\u2066\u2028\u2029\x07"
_FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_OWN_COLOUR = re.compile("\x1b\\[[\\d;]*m")
_OWN_COMMANDS = {"github": r"^::(?:error|warning|notice) file=", "azure": r"^##vso\[task\.logissue type="}

RULE = """
- code: ABC100
  name: own-rule
  summary: "`{{name}}` is ours {inject}"
  why: "We say so {inject}"
  library: torch
  outdated: "1.7"
  symbols: [torch.dot]
  advice: "call us {inject}"
  references: ["https://example.com"]
  examples:
    - report_only: |
        import torch
        torch.dot(a, b)
    - clean: |
        import torch
"""
CODE = f"""\
import torch
from unittest import mock

# ##vso[task.INJECT]##[add-mask]
y = torch.ger(a, b)  # {INJECT.partition(chr(13))[2]!s}
z = getattr(torch, "ger{INJECT.encode("unicode_escape").decode()}")
@mock.patch("torch.ger.{INJECT.encode("unicode_escape").decode()}")
def f(): torch.load({INJECT!r}); torch.load("x\u202e\x9b##[group]")
L, V = torch.symeig(a, eigenvectors="{INJECT.partition(chr(13))[2]}")
torch.dot(a, b)
"""


def hostile(text: str, output_format: str = "", *, colour: bool = False) -> list[str]:
    """What is wrong with an output."""
    if colour:
        text = _OWN_COLOUR.sub("", text)
    found = [repr(match[0]) for match in _FORBIDDEN.finditer(text)]
    for line in text.split("\n"):
        own = _OWN_COMMANDS.get(output_format)
        if own and re.match(own, line):
            line = re.sub(own, "", line)
        if line.lstrip().startswith(("::", "INJECT")) or re.search(r"##\w*\[", line):
            found.append(line)
    return found


@pytest.fixture
def evil(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    project = Project(tmp_path, monkeypatch)
    project.write("torchmigrate.toml", 'rules = ["lint"]\nextend-select = ["ABC"]\n')
    project.write("lint/own.yaml", RULE.format(inject="::x:: ##vso[task.INJECT] ##[x]"))
    for name in ("::stop-commands::INJECT", "##vso[task.INJECT]x", f"dir{INJECT}", "\u202eevil", "\x9b31m"):
        project.write(f"{name}/{name}.py".replace("\0", ""), CODE)
        project.write(f"{name}/bad{name}.py", f"import torch\nx = ({INJECT}\n")
    cells = [
        {
            "cell_type": "code",
            "id": f"a{INJECT}",
            "metadata": {},
            "source": "import torch\ny = torch.ger(a, b)",
            "outputs": [],
            "execution_count": None,
        }
    ]
    book = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    project.write(f"book{INJECT}.ipynb", json.dumps(book))
    project.write("##vso[x]setup.cfg", "")
    project.write("requirements.txt", f"torch>=1.4 # {INJECT}\ntorch ##[x] ::y::\n")
    return project


@pytest.mark.parametrize("colour", ["never", "always"])
@pytest.mark.parametrize("output_format", FORMATS)
def test_check(evil: Project, output_format: str, colour: str) -> None:
    done = evil.run("check", ".", "-v", "--output-format", output_format, "--color", colour)
    assert done.stdout.count("TM110") >= 5
    assert not hostile(done.stdout, output_format, colour=colour == "always")
    assert not hostile(done.stderr, colour=colour == "always")
    if output_format in ("json", "sarif", "gitlab", "rdjson"):
        json.loads(done.stdout)


@pytest.mark.parametrize(
    "options",
    [
        ("check", ".", "--statistics"),
        ("check", ".", "--statistics", "--output-format", "json"),
        ("check", "torchmigrate.toml", "--target", INJECT),
        ("check", f"missing{INJECT}"),
        ("check", ".", "--select", f"TM{INJECT}"),
        ("check", ".", "--config", f"missing{INJECT}"),
        ("check", ".", "--baseline", f"missing{INJECT}"),
        ("check", ".", "--changed-since", INJECT),
        ("check", "-", "--stdin-filename", f"x{INJECT}.py", "--fix"),
        ("config", f"x{INJECT}.py"),
        ("config", f"x{INJECT}.py", "--output-format", "json"),
        ("explain", "ABC100"),
        ("explain", INJECT),
        ("rules",),
        ("plan", "."),
        ("plan", ".", "--output-format", "markdown"),
        ("plan", ".", "--output-format", "json"),
        ("plan", ".", "--output-format", "html"),
        ("plan", ".", "--title", INJECT),
        ("suppress", ".", "--reason", "x"),
        ("suppress", ".", "--reason", INJECT),
        ("baseline", "."),
        ("baseline", ".", "--output", f"new{INJECT}"),
        ("clean", "--cache-dir", f"c{INJECT}"),
        ("fleet", "map", INJECT),
        (INJECT,),
        (f"--{INJECT}",),
    ],
)
def test_other_commands(evil: Project, options: tuple[str, ...]) -> None:
    for colour in (False, True):
        more = {"FORCE_COLOR": "1"} if colour else {}
        done = evil.run(*options, stdin=CODE, **more)
        stdout = "" if "--fix" in options else done.stdout
        assert not hostile(stdout, colour=colour)
        assert not hostile(done.stderr, colour=colour)


def test_fixes(evil: Project) -> None:
    done = evil.run("check", ".", "--diff", "--show-fixes", "--unsafe-fixes")
    assert not hostile(done.stderr)
    heads = [line for line in done.stdout.split("\n") if line.startswith(("--- ", "+++ "))]
    assert len(heads) == 12 and not hostile("\n".join(heads))
    for service in ("GITHUB_ACTIONS", "TF_BUILD"):
        assert not hostile(evil.run("check", ".", "--diff", "--unsafe-fixes", **{service: "true"}).stdout), (
            "for a log"
        )
    (evil.path / f"book{INJECT}.ipynb").unlink()  # cells are no files that a diff can be applied to
    done = evil.run("check", ".", "--diff", "--unsafe-fixes")
    subprocess.run(["git", "apply", "--check"], cwd=evil.path, input=done.stdout.encode(), check=True)
    assert not hostile(evil.run("check", ".", "--fix", "--unsafe-fixes", "--show-fixes").stderr)


@pytest.mark.parametrize(
    "configuration",
    [
        'target = "{}"',
        'select = ["{}"]',
        'exclude = ["{}"]',
        'cache-dir = "{}"',
        'baseline = "{}"',
        'extend = "{}"',
        'rules = ["{}"]',
        'per-file-ignores = {{"{}" = ["TM1"]}}',
        '"{}" = 1',
        "{}",
    ],
)
def test_configurations(evil: Project, configuration: str) -> None:
    value = INJECT if configuration == "{}" else json.dumps(INJECT)[1:-1]
    evil.write("torchmigrate.toml", configuration.format(value))
    for command in ("check", "config", "plan", "baseline", "suppress"):
        done = evil.run(command, "requirements.txt" if command == "config" else ".")
        assert not hostile(done.stdout) and not hostile(done.stderr)


def test_the_frame_marks_what_it_shows(evil: Project) -> None:
    evil.write("a.py", 'import torch\n\nx = ["##[group]\x9b", torch.ger(a, b)]  # ##vso[x]\n')
    shown = evil.run("check", "a.py", "--isolated").stdout.split("\n")
    row = next(number for number, line in enumerate(shown) if "torch.ger(a" in line and "|" in line)
    begin = shown[row + 1].index("^")
    assert shown[row][begin : begin + 9] == "torch.ger"
    assert not hostile("\n".join(shown))


def test_flake8(evil: Project) -> None:
    pytest.importorskip("flake8")
    done = subprocess.run(
        [*__import__("harness.project").project.command()[:2], "flake8", "--select", "TM", "."],
        cwd=evil.path,
        capture_output=True,
        text=True,
    )
    lines = [line.split(": ", 1)[-1] for line in done.stdout.split("\n") if "TM" in line]
    assert lines and not hostile("\n".join(f"x: {line}" for line in lines))


def test_what_is_printed_is_printed_once_more_the_same() -> None:
    for text in (INJECT, "::a::", "  ::b", "##[c]", "##vso[d]", "plain", "\t# x"):
        once = printable(text)
        assert not hostile(once) and printable(once) == once
        assert terminal_text(once, color=False) == once
        assert not hostile(terminal_text(text.replace("INJECT", ""), color=True))
    assert printable("a::b # c") == "a::b # c"
