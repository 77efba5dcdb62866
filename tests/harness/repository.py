"""Small projects in git repositories, upgraded with the program, on a stand-in for torch or on the real one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from harness.launcher import launch
from harness.project import command
from harness.stand_in import shared_environment

_WHO = {
    f"GIT_{role}_{what}": "t@example.com" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
}


class Repository:
    """A project with its own repository; `where` holds it and what an upgrade makes beside it.

    real: it is upgraded on the torch that runs these tests, not on the stand-in of `harness.stand_in`.
    """

    def __init__(self, where: Path, files: dict[str, str], *, git: bool = True, real: bool = False) -> None:
        self.path = where / "project"
        self.real = real
        self.work = where / "project-upgrade-2.13"
        for name, text in files.items():
            self.write(name, text)
        self.path.mkdir(exist_ok=True)
        if git:
            self.git("init", "--quiet", "--initial-branch=main")
            self.commit()

    def write(self, name: str, text: str) -> None:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def commit(self) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message=as it was", "--allow-empty")

    def git(self, *arguments: str, at: Path | None = None) -> str:
        kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
        done = subprocess.run(
            ["git", *arguments], cwd=at or self.path, env={**kept, **_WHO}, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    @property
    def state(self) -> tuple[str, ...]:
        """All of the checkout that an upgrade must leave alone."""
        asked = (
            ("rev-parse", "HEAD"),
            ("symbolic-ref", "HEAD"),
            ("status", "--porcelain"),
            ("stash", "list"),
        )
        texts = [
            f"{path.relative_to(self.path)}: {path.read_bytes()!r}"
            for path in sorted(self.path.rglob("*"))
            if path.is_file() and ".git" not in path.parts
        ]
        return (*(self.git(*arguments) for arguments in asked), *texts)

    def options(self, *more: str, own: bool = False) -> list[str]:
        """The command line without the program. own: an environment is made, or is named in `more`."""
        given = [] if own else ["--env", sys.prefix if self.real else str(shared_environment())]
        return ["upgrade", str(self.path), "--to", "2.13", *given, *more]

    def arguments(self, *more: str, own: bool = False) -> list[str]:
        """The whole command line, for tests in which the process is the subject."""
        return command(*self.options(*more, own=own))

    def upgrade(
        self, *more: str, code: int = 0, own: bool = False, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Upgrade; the checkout is as it was, and no traceback reaches the user."""
        return self.run(self.options(*more, own=own), code=code, **variables)

    def run(
        self, arguments: list[str], *, code: int = 0, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """The same with a whole command line, without the program."""
        before = self.state if (self.path / ".git").exists() else ()
        if self.real:  # as the stand-in's environment has it
            variables.setdefault("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        done = launch(self.path.parent, *arguments, **variables)
        assert "Traceback" not in done.stderr and "internal error" not in done.stderr, done.stderr
        assert done.returncode == code, (done.stdout, done.stderr)
        assert not before or self.state == before
        return done

    @property
    def report(self) -> dict[str, Any]:
        return json.loads((self.work / "report.json").read_bytes())

    def result(self, name: str) -> str:
        """A file of the upgraded tree."""
        return (self.work / "tree" / name).read_text(encoding="utf-8")
