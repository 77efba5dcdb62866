"""Gets a repository onto the machine: its directory as it stands, or a shallow clone that is kept."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from torchmigrate.files.git import LOCAL, NETWORK, Git, GitError, Writer, as_source, format_of, list_remote
from torchmigrate.fleet.model import Failed, Repository, Trouble
from torchmigrate.fleet.repositories import file_name, shown_address
from torchmigrate.patterns import pattern

_COMMIT = pattern(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


def cache_directory() -> Path:
    """Where clones are kept on this machine, by default."""
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return (Path(base) if base else Path.home() / ".cache") / "torchmigrate" / "clones"


class Checkout:
    """A repository on this machine.

    Args:
        repository: which one.
        clones: the directory of all clones, which is made; None: the cache of this machine.

    Attributes:
        directory: that is looked at, and never written to where it is the user's own.
        is_clone: whether it is ours.

    Raises Failed, from every method, where git or the system fails.
    """

    def __init__(self, repository: Repository, clones: str | None) -> None:
        self.repository = repository
        self.clones = Path(clones).absolute() if clones is not None else cache_directory()
        self.is_clone = not (repository.is_directory and repository.revision is None)
        if not self.is_clone:
            self.directory = Path(repository.address)
        else:
            key = hashlib.sha256(f"{repository.address}\0{repository.revision}".encode()).hexdigest()[:12]
            self.directory = self.clones / f"{file_name(repository.name)}-{key}"

    def state(self) -> str:
        """What changes when the repository does, without getting it: the commit, or a digest of the files."""
        if not self.is_clone:
            return self._state_of_directory()
        address, revision = self.repository.address, self.repository.revision or "HEAD"
        if _COMMIT.fullmatch(revision):
            return revision
        with self._caught(), self._source() as (source, protocols):
            said = list_remote(source, _names(revision), protocols)
        lines = (line.partition("\t") for line in said.splitlines())
        found = {name: commit for commit, _, name in lines}
        for name in (*reversed(_names(revision)), revision):  # what a tag points to, before the tag
            if name in found:
                return found[name]
        if re.fullmatch(r"[0-9a-f]{4,39}", revision):
            raise Failed(
                Trouble.CLONE, f"{revision} is neither a branch nor a tag; a commit needs all 40 digits"
            )
        raise Failed(Trouble.CLONE, f"there is no {revision} at {shown_address(address)}")

    def fetch(self, state: str) -> None:
        """Have the files of a state in `directory`."""
        if not self.is_clone:
            return
        with self._caught(), self._locked():
            try:
                git = Git(self.directory)
                kept = git.top == Path(os.path.realpath(self.directory)) and git.head == state
                if not (kept and git.is_clean):
                    self._check_out(state)
            except GitError:  # of a clone that was left half done, nothing is worth keeping
                shutil.rmtree(self.directory, ignore_errors=True)
                self._check_out(state)

    def _check_out(self, state: str) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        (self.directory / ".git" / "config").unlink(missing_ok=True)  # only `git init` writes it
        own = Writer(self.directory, (), configured=False)
        own.run("init", "--quiet", "--template=", *format_of(state))
        with self._source() as (source, protocols):
            git = Writer(self.directory, protocols)
            fetch = ("fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--depth=1", "--", source)
            try:
                git.run(*fetch, state)
            except GitError:  # a server may give branches and tags alone
                git.run(*fetch, self.repository.revision or "HEAD")
        own.run("checkout", "--quiet", "--force", "--detach", state)
        own.run("clean", "--quiet", "-ffdx")

    @contextmanager
    def _source(self) -> Iterator[tuple[str, Sequence[str]]]:
        """What git fetches from, and by which protocols; of a directory, not what its configuration says."""
        address = self.repository.address
        path = Path(address.removeprefix("file://"))
        if (self.repository.is_directory or address.startswith("file://")) and path.is_dir():
            with as_source(path) as source:
                yield str(source), LOCAL
        else:
            yield address, LOCAL if self.repository.is_directory else NETWORK

    def _state_of_directory(self) -> str:
        if not self.directory.is_dir():
            raise Failed(Trouble.CLONE, f"{self.directory} is not a directory")
        git, head = Git(self.directory), None
        with suppress(GitError):  # the files alone will do
            head = git.head
            # Of a directory that the repository around it ignores, git knows nothing.
            if head is not None and git.says("ls-files", "--", ".") and git.is_clean:
                return head
        return f"{head or 'no commit'}+{_digest(self.directory)}"

    @contextmanager
    def _caught(self) -> Iterator[None]:
        try:
            yield
        except GitError as error:
            said = str(error).replace(self.repository.address, shown_address(self.repository.address))
            said = said.partition(": fatal: ")[2] or said
            raise Failed(Trouble.CLONE, f"git: {_without_credentials(said)}") from None
        except OSError as error:
            raise Failed(Trouble.CLONE, f"cannot write the clone: {error.strerror or error}") from None

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other workers of the machine out of a clone."""
        from filelock import FileLock

        self.clones.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{self.directory}.lock"):
            yield


def _digest(directory: Path) -> str:
    """A digest of the names, sizes and times of all files but git's own."""
    found = hashlib.blake2b(digest_size=8)
    for top, directories, files in os.walk(directory):
        directories[:] = sorted(name for name in directories if name != ".git")
        for name in sorted(files):
            path = os.path.join(top, name)  # noqa: PTH118 (may be very many)
            with suppress(OSError):
                status = os.lstat(path)
                entry = f"{os.path.relpath(path, directory)}\0{status.st_size}\0{status.st_mtime_ns}\0"
                found.update(os.fsencode(entry))
    return found.hexdigest()


def _names(revision: str) -> list[str]:
    """What a revision may be called at the other end, the ones that count most last."""
    if revision == "HEAD" or revision.startswith("refs/"):
        return [revision]
    return [f"refs/heads/{revision}", f"refs/tags/{revision}", f"refs/tags/{revision}^{{}}"]


def _without_credentials(text: str) -> str:
    return re.sub(r"://[^/\s@]*@", "://", text)


def link_template(repository: Repository, state: str) -> str | None:
    """The address of a line in the repository, for a plan; None: it is in a directory, or unknown."""
    address = shown_address(repository.address).removesuffix(".git").rstrip("/")
    if (found := re.fullmatch(r"(?:[\w.-]+@)?([\w.-]+):([\w./~-]+)", address)) and "://" not in address:
        address = f"https://{found[1]}/{found[2]}"
    if not address.startswith("https://") or re.search(r"[\s\"'<>`\\{}\x00-\x1f]", address):
        return None
    with suppress(IndexError):
        host = address.split("/")[2]
        if "gitlab" in host:
            return f"{address}/-/blob/{state}/{{path}}#L{{line}}"
        if "bitbucket" in host:
            return f"{address}/src/{state}/{{path}}#lines-{{line}}"
        if "github" in host or "gitea" in host or "codeberg" in host:
            middle = "blob" if "github" in host else "src/commit"
            return f"{address}/{middle}/{state}/{{path}}#L{{line}}"
    return None
