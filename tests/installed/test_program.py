"""The whole program as a process, where the world around it misbehaves."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from harness.launcher import quick_command
from harness.program import heed_interrupts
from harness.project import command as own_command

OLD = "import torch\n\ny = torch.ger(a, b)\n"
NEW = OLD.replace("ger", "outer")
ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


def command(*arguments: str | Path, start: Callable[..., list[str]] = own_command) -> list[str]:
    return start("check", "--isolated", *arguments)


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONIOENCODING": "utf-8"}


def run(
    directory: Path, *arguments: str | Path, before: Sequence[str] = (), **options: object
) -> subprocess.CompletedProcess[str]:
    """Run a check in a directory; there is never a traceback.

    before: a program that runs the check as one of its own.
    """
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    done = subprocess.run(  # type: ignore[call-overload]
        [
            *before,
            *command(
                "--output-format",
                "concise",
                *arguments,
                start=own_command if before else quick_command,
            ),
        ],
        cwd=directory,
        env=environment(),
        text=True,
        timeout=120,
        **options,
    )
    assert "Traceback" not in done.stderr and "internal error" not in done.stderr, done.stderr
    return done


def bound_by_permissions() -> list[str]:
    """What to put before a command so that permissions bind it: root ignores them."""
    if not ROOT:
        return []
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("root needs `setpriv` to give up its right to everything")
    return [setpriv, "--bounding-set=-dac_override,-dac_read_search"]


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    """A directory with an old file."""
    (tmp_path / "old.py").write_text(OLD)
    yield tmp_path
    for path in tmp_path.rglob("*"):
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o755)


def test_the_reader_goes_away(project: Path) -> None:
    for number in range(50):
        (project / f"old{number}.py").write_text(OLD * 20)
    process = subprocess.Popen(
        command("."), cwd=project, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None and process.stderr is not None
    assert b"TM110" in process.stdout.readline()
    process.stdout.close()
    said = process.stderr.read().decode()
    process.stderr.close()
    assert process.wait(60) == 1
    assert said.startswith("Found ") and len(said.splitlines()) == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_stdout_is_full(project: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = run(project, ".", stdout=full)
    assert done.returncode == 2
    assert done.stderr == "error: cannot write the output: no space left on device\n"


def test_stdin_is_closed(project: Path) -> None:
    script = "import os, sys; os.close(0); os.execv(sys.executable, sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-c", script, *command("-")],
        cwd=project,
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "error: stdin is closed.\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import torch\nprint 'x'\n", "error: a/b.py:2: Python 2 code (print statement)"),
        ("import torch\ndef f(:\n", "error: a/b.py:2: syntax error"),
        ("# coding: klingon\nimport torch\n", "error: a/b.py:1: unknown encoding: klingon"),
    ],
)
def test_bad_text_on_stdin(project: Path, text: str, message: str) -> None:
    done = run(project, "--stdin-filename", "a/b.py", "-", stdin=None, input=text)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith(message)


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_interrupted(project: Path, jobs: str) -> None:
    for number in range(300):
        (project / f"old{number}.py").write_text(OLD * 200)
    process = subprocess.Popen(
        command("--jobs", jobs, "."),
        cwd=project,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=heed_interrupts,
    )
    time.sleep(1)
    os.killpg(process.pid, signal.SIGINT)
    out, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == b"" and said.split() == [b"Interrupted."]


@pytest.mark.parametrize(
    ("name", "text", "checked"),
    [
        ("parentheses", "(" * 180 + "torch.ger(a, b)" + ")" * 180, True),
        ("more parentheses", "(" * 2000 + "torch.ger(a, b)" + ")" * 2000, False),
        ("attributes", "torch.ger(a, b)" + ".t" * 3000, None),
        ("methods", "torch.ger(a, b)" + ".t()" * 3000, False),
        ("calls", "f(" * 500 + "torch.ger(a, b)" + ")" * 500, False),
        ("lists", "[" * 90 + "torch.ger(a, b)" + "]" * 90, True),
        ("more lists", "[" * 500 + "torch.ger(a, b)" + "]" * 500, False),
        ("sum", "0" + " + 1" * 900 + " + torch.ger(a, b)", None),
        ("powers", "2 ** " * 900 + "torch.ger(a, b)", None),
        ("negations", "not " * 900 + "torch.ger(a, b)", None),
        ("lambdas", "lambda: " * 900 + "torch.ger(a, b)", None),
        ("choices", "1 if a else " * 900 + "torch.ger(a, b)", None),
        ("conditions", " and ".join(["torch.ger(a, b)"] * 500), True),
    ],
)
def test_deeply_nested(project: Path, name: str, text: str, checked: bool | None) -> None:
    """Found, or said in one line why not; how deep Python's own parser goes depends on its release."""
    (project / "deep.py").write_text(f"import torch\nx = {text}\n")
    done = run(project, ".")
    lines = done.stdout.splitlines()
    deep = [line for line in lines if line.startswith("deep.py:")]
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert any(line.startswith("old.py:") for line in lines)
    assert bool(deep) != bool(errors)
    if checked is not None:
        assert bool(deep) == checked
    if errors:
        assert done.returncode == 2 and len(errors) == 1
        assert errors[0].startswith("error: deep.py:") and ("nested" in errors[0])


def test_a_closed_directory_does_not_hide_the_others(project: Path) -> None:
    closed = project / "closed"
    closed.mkdir()
    (closed / "old.py").write_text(OLD)
    closed.chmod(0)
    for arguments in (["closed", "old.py"], ["."]):
        done = run(project, *arguments, before=bound_by_permissions())
        assert done.returncode == 2
        assert [line.partition(":")[0] for line in done.stdout.splitlines()] == ["old.py"]
        assert done.stderr.startswith("error: closed: ") and done.stderr.count("error: ") == 1


def test_what_cannot_be_written_is_said_and_left_alone(project: Path) -> None:
    (project / "old.py").chmod(0o444)
    locked = project / "locked"
    locked.mkdir()
    (locked / "old.py").write_text(OLD)
    (locked / "old.py").chmod(0o666)
    locked.chmod(0o555)
    done = run(project, "--fix", "old.py", "locked", before=bound_by_permissions())
    assert done.returncode == 2
    assert done.stderr.splitlines()[:2] == [
        "error: locked/old.py: cannot write: the directory is read-only",
        "error: old.py: cannot write: the file is read-only",
    ]
    assert (project / "old.py").read_text() == (locked / "old.py").read_text() == OLD


@pytest.fixture
def small_disk(project: Path) -> Iterator[Path]:
    disk = project / "disk"
    disk.mkdir()
    mounted = ROOT and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(disk)], capture_output=True
    )
    if not mounted or mounted.returncode:
        pytest.skip("cannot mount a file system here")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_full_disk(project: Path, small_disk: Path) -> None:
    (small_disk / "old.py").write_text(OLD)
    (small_disk / "rest").write_bytes(bytes(12 * 1024))
    done = run(project, "--fix", "disk", "old.py")
    assert done.returncode == 2
    assert "error: disk/old.py: cannot write: no space left on device\n" in done.stderr
    assert (small_disk / "old.py").read_text() == OLD
    assert sorted(path.name for path in small_disk.iterdir()) == ["old.py", "rest"]
    assert (project / "old.py").read_text() == NEW


def test_links_in_circles(project: Path) -> None:
    (project / "a").mkdir()
    (project / "a" / "up").symlink_to("../..")
    (project / "self.py").symlink_to("self.py")
    (project / "b").symlink_to("a/up")
    done = run(project, ".")
    assert [line.partition(":")[0] for line in done.stdout.splitlines()] == ["old.py"]


def test_a_hundred_thousand_lines(project: Path) -> None:
    (project / "long.py").write_text("import torch\n" + "x = 1 + 2\n" * 99_998 + "y = torch.ger(a, b)\n")
    done = run(project, "--fix", "long.py")
    assert (done.returncode, done.stdout) == (0, "")
    assert (project / "long.py").read_text().endswith("x = 1 + 2\ny = torch.outer(a, b)\n")


def test_thousands_of_findings(project: Path) -> None:
    (project / "long.py").write_text("import torch\n" + "y = torch.ger(a, b)\n" * 3000)
    done = run(project, "long.py")
    assert done.returncode == 1 and len(done.stdout.splitlines()) == 1000
    assert "long.py: has more than 1,000 findings: only the first 1,000 are listed" in done.stderr


NOTEBOOK = """{
 "cells": [
  {"cell_type": "markdown", "metadata": {}, "source": ["# Old"]},
  {"cell_type": "code", "metadata": {}, "outputs": [], "source": ["%matplotlib inline\\n", "import torch"]},
  {
   "cell_type": "code",
   "execution_count": 7,
   "metadata": {},
   "outputs": [],
   "source": [
    "# outer\\n",
    "y = torch.ger(a, b)"
   ]
  }
 ],
 "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}},
 "nbformat": 4,
 "nbformat_minor": 5
}
"""


def test_notebooks_are_found_and_every_format_names_the_cell(tmp_path: Path) -> None:
    (tmp_path / "old.ipynb").write_text(NOTEBOOK)
    (tmp_path / ".ipynb_checkpoints").mkdir()
    (tmp_path / ".ipynb_checkpoints" / "old-checkpoint.ipynb").write_text(NOTEBOOK)
    done = run(tmp_path, ".", "--output-format", "concise")
    assert done.returncode == 1
    assert done.stdout.startswith("old.ipynb:cell 3:2:5: TM110 [*] ") and done.stdout.count("TM110") == 1
    full = run(tmp_path, ".", "--output-format", "full").stdout
    assert "1 | # outer\n2 | y = torch.ger(a, b)\n  |     ^^^^^^^^^ info\n" in full
    (item,) = json.loads(run(tmp_path, ".", "--output-format", "json").stdout)
    assert (item["cell"], item["location"]) == (3, {"row": 2, "column": 5})
    (edit,) = item["fix"]["edits"]
    assert (edit["cell"], edit["location"]["row"]) == (3, 2)
    github = run(tmp_path, ".", "--output-format", "github").stdout
    line = NOTEBOOK.splitlines().index('    "y = torch.ger(a, b)"') + 1
    assert f"file=old.ipynb,line={line},title=" in github and "::old.ipynb:cell 3:2:5: TM110" in github


def test_notebooks_are_fixed_in_their_file_and_from_stdin(tmp_path: Path) -> None:
    new = NOTEBOOK.replace("torch.ger", "torch.outer")
    (tmp_path / "old.ipynb").write_text(NOTEBOOK)
    diff = run(tmp_path, "--diff", "old.ipynb").stdout
    assert "+++ b/old.ipynb:cell 3" in diff and "-y = torch.ger(a, b)\n+y = torch.outer(a, b)\n" in diff
    piped = run(tmp_path, "--fix", "--stdin-filename", "x.ipynb", "-", stdin=None, input=NOTEBOOK)
    assert piped.stdout == new
    done = run(tmp_path, "--fix", "old.ipynb")
    assert (done.returncode, (tmp_path / "old.ipynb").read_text()) == (0, new)


def test_what_is_no_notebook_is_a_problem_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "no.ipynb").write_text("import torch")
    (tmp_path / "half.ipynb").write_text(NOTEBOOK.replace("# outer", "def f(:"))
    (tmp_path / "old.py").write_text(OLD)
    done = run(tmp_path, ".", "--fix")
    assert done.returncode == 2
    assert "no.ipynb:1: not a notebook: not valid JSON" in done.stderr
    assert "half.ipynb:cell 3:1: " in done.stderr
    assert (tmp_path / "half.ipynb").read_text() == NOTEBOOK.replace("# outer", "def f(:")
