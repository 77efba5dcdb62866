"""`check --watch`: a run for every change, until the user interrupts."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.program import heed_interrupts
from harness.project import Project, command, environment

OLD = "import torch\n\ny = torch.ger(a, b)\n"
NEW = OLD.replace("ger", "outer")
END = "Watching for changes. Press Ctrl-C to stop.\n"
PATIENCE = 60.0


class Watched:
    """The command while it runs."""

    def __init__(self, path: Path, *options: str) -> None:
        self.process = subprocess.Popen(
            command("check", "--watch", "--output-format", "concise", *options),
            cwd=path,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=None if os.name == "nt" else heed_interrupts,
        )
        self.lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line)

    def round(self) -> str:
        """What the next run says."""
        said = []
        while (line := self.lines.get(timeout=PATIENCE)) != END:
            said.append(line)
        return "".join(said)

    def until(self, text: str) -> str:
        """What the first of the next runs says that says something: a change may be noticed in parts."""
        while text not in (said := self.round()):
            pass
        return said


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    return Project(tmp_path, monkeypatch)


@pytest.fixture
def watched(project: Project) -> Iterator[Watched]:
    project.write("a.py", OLD)
    made = Watched(project.path)
    yield made
    made.process.kill()
    made.process.wait()


def test_every_change_is_checked(project: Project, watched: Watched) -> None:
    assert "a.py:3:5: TM110" in watched.round()
    project.write("a.py", NEW)
    assert "TM110" not in watched.until("All checks passed!")
    project.write("pkg/b.py", OLD)
    assert "pkg/b.py:3:5: TM110" in watched.until("Found 1 finding")
    project.write("c.py", NEW).replace(project.path / "pkg" / "b.py")
    watched.until("All checks passed!")


def test_a_configuration_is_read_again(project: Project, watched: Watched) -> None:
    watched.round()
    project.write("torchmigrate.toml", 'ignore = ["TM110"]\n')
    watched.until("All checks passed!")
    project.write("torchmigrate.toml", "nonsense = 1\n")
    watched.until("unknown key")
    project.write("torchmigrate.toml", "")
    watched.until("Found 1 finding")


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_control_c_ends_it(watched: Watched) -> None:
    watched.round()
    watched.process.send_signal(signal.SIGINT)
    assert watched.process.wait(PATIENCE) == 130


def test_it_goes_with_findings_alone(project: Project) -> None:
    for options in (("-",), ("--fix",), ("--diff",), ("--fix-pins",)):
        assert (
            "--watch only reports findings in files"
            in project.run("check", "--watch", *options, code=2).stderr
        )


def test_what_is_not_there_cannot_be_watched(project: Project) -> None:
    done = project.run("check", "--watch", "gone/sub/a.py", code=2)
    assert done.stderr.startswith("error: --watch: cannot watch files: ")
