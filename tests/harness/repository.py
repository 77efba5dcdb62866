"""Small projects in git repositories, upgraded with the program in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from harness.project import command, environment

_WHO = {
    f"GIT_{role}_{what}": "t@example.com" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
}


class Repository:
    """A project with its own repository; `where` holds it and what an upgrade makes beside it."""

    def __init__(self, where: Path, files: dict[str, str], *, git: bool = True) -> None:
        self.path = where / "project"
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

    def arguments(self, *more: str, own: bool = False) -> list[str]:
        """The command line. own: an environment is made; else that of the tests is used."""
        given = [] if own else ["--env", sys.prefix]
        return command("upgrade", str(self.path), "--to", "2.13", *given, *more)

    def upgrade(
        self, *more: str, code: int = 0, own: bool = False, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Upgrade; the checkout is as it was, and no traceback reaches the user."""
        return self.run(self.arguments(*more, own=own), code=code, **variables)

    def run(
        self, arguments: list[str], *, code: int = 0, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """The same with a whole command line."""
        before = self.state if (self.path / ".git").exists() else ()
        done = subprocess.run(
            arguments,
            cwd=self.path.parent,
            env=environment(**variables),
            capture_output=True,
            text=True,
            encoding="utf-8",
        )
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
