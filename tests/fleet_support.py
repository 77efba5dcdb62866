"""Small fleets: repositories in a directory, and the program that examines them in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq
from harness.launcher import quick_command
from harness.project import command, environment

OLD = "import torch\n\nx = torch.ger(a, b)\nvalues, _ = torch.symeig(x, eigenvectors=True)\n"
NEW = "import torch\n\nx = torch.outer(a, b)\n"
# What git does in the clone of a repository whose name has one of these words; the worker is its grandparent.
BAD_GIT = """\
#!/bin/sh
case "$* $PWD" in
  *hanging*) sleep 600 ;;
  *crashing*) kill -9 $PPID; sleep 600 ;;
  *poisonous*) kill -9 $(ps -o ppid= -p $PPID); sleep 600 ;;
  *greedy*) exec "{python}" -c "held = bytearray(400_000_000); import time; time.sleep(600)" ;;
  *fetch*slow*) sleep 3 ;;
esac
exec "{git}" "$@"
"""
_WHO = {
    f"GIT_{role}_{what}": "t@example.com" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
}


# A cluster of two workers, for all tests of this process in which it is not the subject.
_CLUSTER = """
import sys
from distributed import LocalCluster

if __name__ == "__main__":
    options = {"n_workers": 2, "threads_per_worker": 1, "memory_limit": 0, "dashboard_address": None}
    with LocalCluster(**options, scheduler_kwargs={"dashboard_address": "127.0.0.1:0"}) as cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()
"""


@cache
def shared_cluster() -> tuple[str, subprocess.Popen[str]]:
    """The address of its scheduler, and the process, which ends with the tests."""
    process = subprocess.Popen(
        [sys.executable, "-c", _CLUSTER],
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    return process.stdout.readline().strip(), process


class Fleet:
    """Repositories below a directory, `repos.txt` with them, and the results in `out`.

    shared: examined by the workers that all tests share, with the program in a fork.
    """

    def __init__(self, path: Path, *, shared: bool = False) -> None:
        self.path = path
        self.shared = shared
        self.out = path / "out"
        self.list = path / "repos.txt"
        self.clones = path / "cache" / "torchmigrate" / "clones"
        self.environment = environment(**_WHO, HOME=str(path), XDG_CACHE_HOME=str(path / "cache"))

    def write(self, name: str, text: str) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def repository(self, name: str, files: dict[str, str] | None = None) -> Path:
        """Make a git repository with these files, or commit them to it."""
        root = self.path / name
        for file, text in (files or {"a.py": OLD}).items():
            self.write(f"{name}/{file}", text)
        if not (root / ".git").exists():
            self.git(root, "init", "--quiet", "--initial-branch=main")
        self.git(root, "add", "--all")
        self.git(root, "commit", "--quiet", "--message=as it is")
        return root

    def git(self, root: Path, *arguments: str) -> str:
        kept = {
            key: value for key, value in self.environment.items() if key not in ("GIT_DIR", "GIT_INDEX_FILE")
        }
        kept["PATH"] = os.environ["PATH"]  # the real one
        done = subprocess.run(["git", *arguments], cwd=root, env=kept, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def bad_git(self) -> None:
        """Put a git in front of the real one that fails in all ways, see BAD_GIT."""
        real = subprocess.run(["sh", "-c", "command -v git"], capture_output=True, text=True).stdout.strip()
        program = self.write("bin/git", BAD_GIT.format(python=sys.executable, git=real))
        program.chmod(0o755)
        self.environment["PATH"] = os.pathsep.join((str(program.parent), os.environ["PATH"]))

    def good_git(self) -> None:
        """Take it away again."""
        self.environment["PATH"] = os.environ["PATH"]

    def lists(self, *lines: str) -> None:
        self.list.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def arguments(self, *more: str) -> list[str]:
        where = ["--workers", "1"]
        if self.shared:  # whose workers have not the variables of this one
            where = ["--scheduler", shared_cluster()[0]]
            where += [] if "--clones" in more else ["--clones", str(self.clones)]
        given = ["fleet", str(self.list), "--to", "2.13", "--output", str(self.out)]
        return self.command(*given, *([] if "--scheduler" in more else where), *more)

    def command(self, *arguments: str) -> list[str]:
        """The command line of the program."""
        return quick_command(*arguments, program="torchmigrate fleet") if self.shared else command(*arguments)

    def run(self, *more: str, code: int = 0, **variables: str) -> str:
        """Run the fleet; what it says on stderr."""
        return self.torchmigrate(self.arguments(*more), code, **variables).stderr

    def ask(self, *more: str, code: int = 0) -> str:
        """Run another of its commands; what it prints, or where that fails says."""
        name, *rest = more
        done = self.torchmigrate(self.command("fleet", name, *rest, "--results", str(self.out)), code)
        return done.stdout if code == 0 else done.stderr

    def torchmigrate(
        self, arguments: list[str], code: int, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            arguments, cwd=self.path, env={**self.environment, **variables}, capture_output=True, text=True
        )
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        return done

    def started(self, *more: str) -> subprocess.Popen[str]:
        """The same, running."""
        return subprocess.Popen(
            self.arguments(*more),
            cwd=self.path,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )

    def wait_for(self, *files: str) -> None:
        """Wait until these are among the results."""
        end = time.monotonic() + 120
        while not all((self.out / name).exists() for name in files):
            assert time.monotonic() < end, f"{files} did not come"
            time.sleep(0.05)

    @property
    def runs(self) -> list[str]:
        return sorted(path.name for path in (self.out / "runs").iterdir())

    def table(self, name: str, run: str | None = None) -> list[dict[str, Any]]:
        """The rows of a table, of the newest run."""
        path = self.out / "runs" / (run or self.runs[-1]) / f"{name}.parquet"
        rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
        return rows

    def repositories(self, run: str | None = None) -> dict[str, dict[str, Any]]:
        return {row["repository"]: row for row in self.table("repositories", run)}


def workers_of(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """The processes of Dask that examine repositories; not a copy of one that is about to become git."""
    found: list[psutil.Process] = []
    for child in psutil.Process(process.pid).children(recursive=True):
        try:
            if "spawn_main" in " ".join(child.cmdline()) and child.ppid() not in {each.pid for each in found}:
                found.append(child)
        except psutil.Error:
            continue
    return found
