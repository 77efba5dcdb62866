"""Running git: every call names its directory, runs nothing that a configuration names, and asks nobody."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

# Hooks, signatures and line endings are the user's own business: a commit here is what was fixed, no more.
_QUIET = ["-c", "core.hooksPath=/dev/null", "-c", "commit.gpgsign=false", "-c", "advice.detachedHead=false"]
_QUIET += ["-c", "core.quotepath=false", "-c", "gc.auto=0", "-c", "core.fsmonitor=false"]


class GitError(Exception):
    """What git could not do, in one line for a person."""


class Git:
    """git in one directory; it only reads.

    Raises GitError, or what a subclass has in its place, from every method where git fails: what it says.
    """

    error: type[Exception] = GitError
    missing = "git is not installed"
    options: tuple[str, ...] = ()  # before the name of the command
    keeps: tuple[str, ...] = ()  # what variables of git begin with that it gets

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def run(self, *arguments: str, data: bytes | None = None) -> str:
        """What a call of git prints, without the last line break."""
        return self.run_bytes(*arguments, data=data).decode("utf-8", "surrogateescape").rstrip("\n")

    def run_bytes(self, *arguments: str, data: bytes | None = None) -> bytes:
        """The same as bytes."""
        done = self._call(arguments, data)
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            what = next((line for line in said if line.startswith(("fatal:", "error:"))), "")
            what = what or (said[-1] if said else f"exit code {done.returncode}")
            raise self.error(f"git {arguments[0]} in {self.directory}: {what}")
        return done.stdout

    def says(self, *arguments: str, data: bytes | None = None) -> str | None:
        """What a call prints; None where it fails."""
        done = self._call(arguments, data)
        return None if done.returncode else done.stdout.decode("utf-8", "surrogateescape").rstrip("\n")

    def _call(self, arguments: tuple[str, ...], data: bytes | None) -> subprocess.CompletedProcess[bytes]:
        git = shutil.which("git")
        if git is None:
            raise self.error(self.missing)
        # Variables that name another repository are those of a hook that this runs in.
        kept = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith("GIT_") or key.startswith(self.keeps)
        }
        environment = {**kept, "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
        try:
            return subprocess.run(
                [git, *_QUIET, *self.options, *arguments],
                cwd=self.directory,
                input=data,
                stdin=None if data is not None else subprocess.DEVNULL,
                capture_output=True,
                env=environment,
                check=False,
            )
        except OSError as error:
            raise self.error(f"git in {self.directory}: {error.strerror or error}") from None

    @property
    def top(self) -> Path | None:
        """The root of the work tree that the directory is in; None: it is in none."""
        said = self.says("rev-parse", "--show-toplevel")
        return Path(said) if said else None

    @property
    def head(self) -> str | None:
        """The commit that is checked out; None: there is none yet."""
        return self.says("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
