"""Completion, in real shells that are set up as the documentation says, in which somebody presses keys."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
from harness.launcher import shell_line
from harness.project import SOURCE
from harness.shells import SHELLS, lacking_shells
from harness.terminal import Terminal

pytestmark = pytest.mark.one_python

PAGE = Path(__file__).parents[2] / "docs" / "completion.md"
CODE = "import torch\n\ny = torch.ger(a, b)\nL, V = torch.symeig(A, eigenvectors=True)\n"


class Shell(NamedTuple):
    """program: starts it. rc: its configuration in the home directory, and what is in it before."""

    program: tuple[str, ...]
    rc: str
    before: str = ""


KINDS = {
    # One press lists what fits; bash needs two where nobody says so.
    "bash": Shell(
        ("bash", "--noprofile", "-i"), ".bashrc", "PS1='% '\nbind 'set show-all-if-ambiguous on'\n"
    ),
    "zsh": Shell(("zsh", "-d", "-i"), ".zshrc", "PS1='%% '\nautoload -Uz compinit; compinit -u -D\n"),
    "fish": Shell(
        ("fish", "-i"),
        ".config/fish/config.fish",
        "set -g fish_greeting\nfunction fish_prompt; echo -n '% '; end\n",
    ),
}
shells = pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name, marks=pytest.mark.skipif(name in lacking_shells(), reason=f"{name} is not installed")
        )
        for name in SHELLS
    ],
)


class Screen(Terminal):
    """A terminal of which only the words are looked at, not colours and where the cursor goes."""

    _CONTROL = re.compile(r"\x1b(\[[\d;?]*[A-Za-z]|\(B|\][^\x07]*\x07)")

    @property
    def shown(self) -> str:
        return self._CONTROL.sub("", super().shown)


class Typed:
    """A shell in which somebody types."""

    def __init__(self, name: str, home: Path) -> None:
        kind = KINDS[name]
        programs = home / "programs"
        programs.mkdir()
        program = programs / "torchmigrate"
        program.write_text(f"#!/bin/sh\n{shell_line()}\n")
        program.chmod(0o755)
        rc = home / kind.rc
        rc.parent.mkdir(parents=True, exist_ok=True)
        rc.write_text(kind.before)
        environ = {
            "HOME": str(home),
            "PATH": os.pathsep.join((str(programs), os.environ["PATH"])),
            "PYTHONPATH": str(SOURCE),
            "ZDOTDIR": str(home),
            "XDG_CONFIG_HOME": str(home / ".config"),
            "XDG_DATA_HOME": str(home / ".local"),
            "SHELL_SESSIONS_DISABLE": "1",
        }
        self.set_up(name, environ, home)
        project = home / "project"
        project.mkdir()
        (project / "some_long_name.py").write_text(CODE)
        self.terminal = Screen((), project, program=kind.program, columns=150, **environ)
        self.terminal.until("% ")

    @staticmethod
    def set_up(name: str, environ: dict[str, str], home: Path) -> None:
        """Run what the documentation says."""
        (script,) = re.findall(rf"^```{name}\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
        subprocess.run([name, "-c", script], check=True, env={**os.environ, **environ}, cwd=home)

    def type(self, text: str, *until: str) -> str:
        self.terminal.type(text)
        return self.terminal.until(*until)

    def end(self) -> None:
        self.terminal.type("\x15exit\r")
        self.terminal.end()


@shells
def test_rules_releases_and_paths_complete(name: str, tmp_path: Path) -> None:
    shell = Typed(name, tmp_path)
    shell.type("torchmigrate expl\tsymei\t\r", "TM100 symeig")
    shell.terminal.until("% ")
    line = "torchmigrate check --isol\t--sel\tTM110,symei\t--minim\t1.9\tsome_lo\t\r"
    shown = shell.type(line, "Found 2 findings")
    assert "some_long_name.py:3:5: " in shown and "some_long_name.py:4:8: " in shown
    shell.terminal.until("minimum torch 1.9")
    shell.terminal.until("% ")
    shell.end()


@shells
def test_what_may_be_meant_is_listed(name: str, tmp_path: Path) -> None:
    shell = Typed(name, tmp_path)
    shown = shell.type("torchmigrate check --ignore TM10\t", "TM100", "TM105", "TM109")
    assert "TM110" not in shown
    shown = shell.type("\x15torchmigrate check --target 2.1\t", "2.10", "2.14", "2.15")
    assert "2.9" not in shown
    shell.type("\x15torchmigrate check --select adopt-c\t", "adopt-compile")
    shell.type("\x15torchmigrate explain tf\t\r", "TM947")
    shell.end()


@shells
def test_a_broken_configuration_is_no_obstacle(name: str, tmp_path: Path) -> None:
    shell = Typed(name, tmp_path)
    (tmp_path / "project" / "torchmigrate.toml").write_text("nonsense = 1\n")
    shell.type("torchmigrate rules --help >x; torchmigrate explain --isol\tsymei\t\r", "TM100 symeig")
    shell.end()
