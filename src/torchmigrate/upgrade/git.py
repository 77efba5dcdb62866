"""What an upgrade asks git for, and the commits that it makes."""

from __future__ import annotations

from torchmigrate.files import git
from torchmigrate.upgrade.model import UpgradeError


class Git(git.Git):
    """git in one directory.

    Raises UpgradeError from every method where git fails, with what it said.
    """

    error = UpgradeError
    missing = "git is not installed, but an upgrade needs a git work tree"

    # ---- questions -----------------------------------------------------------------------------------

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
