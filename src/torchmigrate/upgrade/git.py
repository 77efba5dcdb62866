"""Running git: every call names its directory, runs no hook, and asks nobody."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from torchmigrate.upgrade.model import UpgradeError

# Hooks, signatures and line endings are the user's own business: a commit here is what was fixed, no more.
_QUIET = ["-c", "core.hooksPath=/dev/null", "-c", "commit.gpgsign=false", "-c", "advice.detachedHead=false"]
_QUIET += ["-c", "core.quotepath=false", "-c", "gc.auto=0", "-c", "core.fsmonitor=false"]


class Git:
    """git in one directory.

    Raises UpgradeError from every method where git fails, with what it said.
    """

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
            raise UpgradeError(f"git {arguments[0]} in {self.directory}: {what}")
        return done.stdout

    def says(self, *arguments: str) -> str | None:
        """What a call prints; None where it fails."""
        done = self._call(arguments, None)
        return None if done.returncode else done.stdout.decode("utf-8", "surrogateescape").rstrip("\n")

    def _call(self, arguments: tuple[str, ...], data: bytes | None) -> subprocess.CompletedProcess[bytes]:
        git = shutil.which("git")
        if git is None:
            raise UpgradeError("git is not installed: an upgrade is made in a work tree of git")
        # Variables that name another repository are those of a hook that this runs in.
        kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
        environment = {**kept, "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
        try:
            return subprocess.run(
                [git, *_QUIET, *arguments],
                cwd=self.directory,
                input=data,
                stdin=None if data is not None else subprocess.DEVNULL,
                capture_output=True,
                env=environment,
                check=False,
            )
        except OSError as error:
            raise UpgradeError(f"git in {self.directory}: {error.strerror or error}") from None

    # ---- questions -----------------------------------------------------------------------------------

    @property
    def top(self) -> Path | None:
        """The root of the work tree that the directory is in; None: it is in none."""
        said = self.says("rev-parse", "--show-toplevel")
        return Path(said) if said else None

    @property
    def head(self) -> str | None:
        """The commit that is checked out; None: there is none yet."""
        return self.says("rev-parse", "--verify", "--quiet", "HEAD^{commit}")

    def tree_of(self, commit: str) -> str:
        """The hash of what a commit holds."""
        return self.run("rev-parse", f"{commit}^{{tree}}")

    @property
    def is_dirty(self) -> bool:
        """Whether files differ from the commit, or are neither in it nor ignored."""
        return bool(self.run("status", "--porcelain", "--untracked-files=normal", "--ignore-submodules=none"))

    def untracked(self) -> set[str]:
        """The files that git neither has nor ignores, relative to the root of the work tree."""
        said = self.run("ls-files", "--others", "--exclude-standard", "-z")
        return set(filter(None, said.split("\0")))

    def submodules(self) -> list[str]:
        """The directories in which other repositories are, relative to the root of the work tree."""
        said = self.run("ls-files", "--stage", "-z")
        return [
            line.partition("\t")[2]
            for line in said.split("\0")
            if line.startswith("160000 ") and "\t" in line
        ]

    def has_branch(self, branch: str) -> bool:
        return self.says("rev-parse", "--verify", "--quiet", f"refs/heads/{branch}") is not None

    # ---- changes ---------------------------------------------------------------------------------------

    def commit(self, message: str) -> str:
        """Commit what is changed in tracked files; the hash of the commit."""
        who = [] if self.says("var", "GIT_COMMITTER_IDENT") else ["-c", "user.name=torchmigrate"]
        if who:
            who += ["-c", "user.email=torchmigrate@localhost"]
        self.run(*who, "commit", "--quiet", "--no-verify", "--all", "--file=-", data=message.encode("utf-8"))
        return self.run("rev-parse", "HEAD")
