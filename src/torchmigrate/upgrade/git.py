"""What an upgrade reads of git, and the commits that it makes."""

from __future__ import annotations

from pathlib import Path

from torchmigrate.files import git
from torchmigrate.files.git_index import git_directory
from torchmigrate.upgrade.model import UpgradeError


class Git(git.Git):
    """git in one directory; every method but `write`, `commit` and `share` only reads.

    Raises UpgradeError from every method if git fails, with its message.
    """

    error = UpgradeError
    missing = "git is not installed, but an upgrade needs a git work tree"

    # ---- questions -----------------------------------------------------------------------------------

    def tree_of(self, commit: str) -> str:
        """The hash of what a commit holds."""
        return self.run("rev-parse", f"{commit}^{{tree}}")

    def untracked(self) -> set[str]:
        """The files that git neither has nor ignores, relative to the root of the work tree."""
        said = self.run("ls-files", "--others", "--exclude-standard", "-z")
        return set(filter(None, said.split("\0")))

    def has_branch(self, branch: str) -> bool:
        return self.says("rev-parse", "--verify", "--quiet", f"refs/heads/{branch}") is not None

    # ---- changes ---------------------------------------------------------------------------------------
    #
    # An upgrade runs the project, so its configuration counts here: filters give tests the files that they
    # need, and what a partial clone lacks is fetched from where it came. No hook is run.

    def write(self, *arguments: str, data: bytes | None = None) -> str:
        """What a command prints that writes to the repository, or to the files of the work tree."""
        return self._writer.run(*arguments, data=data)

    def writes(self, *arguments: str, data: bytes | None = None) -> str | None:
        """The same; None where it fails."""
        return self._writer.says(*arguments, data=data)

    @property
    def _writer(self) -> _Writer:
        return _Writer(self.directory)

    def commit(self, message: str) -> str:
        """Commit what is changed in tracked files; the hash of the commit."""
        who = [] if self.writes("var", "GIT_COMMITTER_IDENT") else ["-c", "user.name=torchmigrate"]
        if who:
            who += ["-c", "user.email=torchmigrate@localhost"]
        self.write(
            *who, "commit", "--quiet", "--no-verify", "--all", "--file=-", data=message.encode("utf-8")
        )
        return self.run("rev-parse", "HEAD")

    def share(self, target: Path, commit: str) -> None:
        """Make a work tree of a commit elsewhere, which has its objects from here and nothing else."""
        found = git_directory(self.directory, outside=True)
        if found is None:
            raise self.error(f"{self.directory} is not a git repository")
        target.mkdir(parents=True, exist_ok=True)
        other = _Writer(target, ())
        other.run("init", "--quiet", "--template=", *git.format_of(commit))
        shallow = found[1] / "shallow"
        if shallow.is_file():
            (target / ".git" / "shallow").write_bytes(shallow.read_bytes())
        git.borrow_objects(target / ".git", found[1])
        other.run("checkout", "--quiet", "--detach", commit)


class _Writer(git.Writer):
    error = Git.error
    missing = Git.missing
