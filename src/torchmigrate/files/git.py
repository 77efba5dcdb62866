"""Running git on repositories that other people wrote.

`Git` runs every command that reads. The configuration of a repository can name programs (filters, text
conversion, an external diff, a file system monitor, signatures, what fetches missing objects, ...), so git
never sees it. Git gets a directory of ours in place of the repository's, with links to its refs, with its
objects, and with a configuration of nothing but values of `_DATA`. Git looks for no repository itself: the
work tree is found here, by its `.git`, so that files which look like a repository are ordinary files.

`Writer` runs the few commands that write or fetch: for the clones of `fleet`, and for the work trees, the
branches and the commits of `upgrade`.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from torchmigrate.files.git_index import git_directory
from torchmigrate.files.paths import exists, is_dir, is_file, with_parents
from torchmigrate.files.reading import UnreadableError, read
from torchmigrate.patterns import pattern

NETWORK = ("git", "http", "https", "ssh")  # protocols by which a `Writer` may reach other machines
LOCAL = ("file",)
_SECONDS = 600  # that a command may take which only reads: a named pipe in the place of a file never ends

# What git is given of a repository's own directory, and of the one that its work trees share.
_INFO = ("info/exclude", "info/attributes", "info/sparse-checkout")
_FILES = ("ORIG_HEAD", "FETCH_HEAD", "MERGE_HEAD", "packed-refs", "shallow", *_INFO)
_DIRECTORIES = ("refs", "reftable", "logs")
# Git reads these in nearly every work tree, and never returns if one is a named pipe.
_READ_FIRST = (".gitattributes", ".gitignore", ".gitmodules", ".mailmap")
# Values of a configuration that say how files and refs are read; none can name a program or a path.
_FORMAT = ("repositoryformatversion", "sparsecheckout", "sparsecheckoutcone", "filemode", "symlinks")
_CORE = ("autocrlf", "checkstat", "eol", "ignorecase", "precomposeunicode", "trustctime", *_FORMAT)
_EXTENSIONS = ("objectformat", "compatobjectformat", "refstorage")
_OTHERS = ("noop", "noop-v1", "partialclone", "preciousobjects", "relativeworktrees", "submodulepathconfig")
_NEEDLESS = ("worktreeconfig", *_OTHERS)
_DATA = pattern(rf"core\.({'|'.join(_CORE)})|extensions\.({'|'.join(_EXTENSIONS)})")
_UPSTREAM = pattern(r"branch\..*\.(remote|merge)|remote\..*\.fetch", re.DOTALL)  # for `@{upstream}`
_PLAIN = pattern(r"[A-Za-z0-9-]*")
_USERS = ("core.autocrlf", "core.eol", "core.excludesfile")  # that the user's own configuration may set
# For commands that write: hooks, signatures and maintenance are the user's own business.
_QUIET = (
    *("core.hooksPath=/dev/null", "core.fsmonitor=false", "core.quotepath=false", "gc.auto=0"),
    *("maintenance.auto=false", "advice.detachedHead=false", "commit.gpgsign=false", "tag.gpgsign=false"),
    *("log.showSignature=false", "submodule.recurse=false", "safe.bareRepository=explicit"),
    *("fetch.recurseSubmodules=false", "protocol.ext.allow=never"),
)


class GitError(Exception):
    """What git could not do, in one line for a person."""


class _Program:
    """git in one directory.

    Raises GitError, or what a subclass has in its place, from every method where git fails: what it says.
    """

    error: type[Exception] = GitError
    missing = "git is not installed"

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
            what = "".join(each if each.isprintable() else "?" for each in what)
            command = next(word for word in arguments if word[:1] != "-" and "=" not in word)
            raise self.error(f"git {command} in {self.directory}: {what}{self._hint()}")
        return done.stdout

    def says(self, *arguments: str, data: bytes | None = None) -> str | None:
        """What a call prints; None where it fails."""
        done = self._call(arguments, data)
        return None if done.returncode else done.stdout.decode("utf-8", "surrogateescape").rstrip("\n")

    def _hint(self) -> str:
        """What to add to an error."""
        return ""

    def _call(self, arguments: Sequence[str], data: bytes | None) -> subprocess.CompletedProcess[bytes]:
        raise NotImplementedError

    def _start(
        self,
        arguments: Sequence[str],
        data: bytes | None,
        variables: dict[str, str],
        *,
        keeps: tuple[str, ...] = (),
        seconds: float | None = None,
    ) -> subprocess.CompletedProcess[bytes]:
        """Run git. keeps: what variables of git begin with that it gets from the environment."""
        git = _executable()
        if git is None:
            raise self.error(self.missing)
        # Variables that name another repository are those of a hook that this runs in.
        kept = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith("GIT_") or key.startswith(keeps)
        }
        quiet = {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "GIT_EDITOR": ":", "LC_ALL": "C"}
        try:
            return subprocess.run(
                [git, "--no-pager", *arguments],
                cwd=self.directory,
                input=data,
                stdin=None if data is not None else subprocess.DEVNULL,
                capture_output=True,
                env={**kept, **quiet, **variables},
                check=False,
                timeout=seconds,
            )
        except subprocess.TimeoutExpired:
            raise self.error(f"git in {self.directory} did not end within {seconds:.0f} s") from None
        except (OSError, ValueError) as error:
            raise self.error(
                f"git in {self.directory}: {getattr(error, 'strerror', None) or error}"
            ) from None


class Git(_Program):
    """git in a directory of a work tree; it only reads, and a repository cannot make it run anything.

    The directory need not exist before the first call.
    """

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._configurations: dict[Path, bytes] = {}

    @property
    def top(self) -> Path | None:
        """The root of the work tree that the directory is in, as a real path; None: it is in none."""
        real = Path(os.path.realpath(self.directory))
        return next((place for place in with_parents(real) if _is_root(place)), None)

    @property
    def head(self) -> str | None:
        """The commit that is checked out; None: there is none yet."""
        return self.says("rev-parse", "--verify", "--quiet", "HEAD^{commit}")

    def says(self, *arguments: str, data: bytes | None = None) -> str | None:
        if _executable() is not None and self.top is None:
            return None
        return super().says(*arguments, data=data)

    def submodules(self, within: str = ".") -> dict[str, str]:
        """The commits of other repositories that the index has, by their paths from the root.

        within: a path from the directory. Empty where git fails.
        """
        asked = ("--literal-pathspecs", "ls-files", "--stage", "--full-name", "-z", "--", within)
        entries = (line.partition("\t") for line in (self.says(*asked) or "").split("\0"))
        return {path: mode.split(" ")[1] for mode, _, path in entries if mode.startswith("160000 ")}

    @property
    def is_clean(self) -> bool:
        """Whether the files in the directory are those of the commit, in submodules too, and no others."""
        asked = ("status", "--porcelain", "--untracked-files=normal", "--ignore-submodules=all", "--", ".")
        return self.run(*asked) == "" and all(
            self._is_at(path, commit) for path, commit in self.submodules().items()
        )

    def _is_at(self, path: str, commit: str) -> bool:
        """Whether a submodule is clean and at a commit, or not checked out."""
        place = (self.top or self.directory) / path
        if not os.path.lexists(place / ".git"):
            return not os.path.lexists(place) or is_dir(place)
        inner = type(self)(place)
        return inner.top == place and inner.head == commit and inner.is_clean  # a link leads elsewhere

    def _hint(self) -> str:
        found = git_directory(self.top, outside=True) if self.top is not None else None
        if found is None or not any((found[1] / "objects" / "pack").glob("*.promisor")):
            return ""
        return "; the clone is partial, and torchmigrate fetches nothing: clone it without `--filter`"

    def _call(self, arguments: Sequence[str], data: bytes | None) -> subprocess.CompletedProcess[bytes]:
        top = self.top
        if _executable() is None:
            raise self.error(self.missing)
        if top is None:
            raise self.error(f"{self.directory} is not in a git repository")
        found = git_directory(top, outside=True)
        if found is None:
            raise self.error(f"{top / '.git'} is not a git repository")
        try:
            with _stand_in(*found, self._configurations) as (git, home):
                index = found[0] / "index"
                for path in (index, *(top / name for name in _READ_FIRST)):
                    if exists(path) and not (is_file(path) or is_dir(path)):
                        raise GitError(f"{path} is not a regular file")
                variables = {
                    **_reading(home),
                    "GIT_DIR": str(git),
                    "GIT_WORK_TREE": str(top),
                    "GIT_INDEX_FILE": str(index),
                }
                options = ("-c", "core.quotepath=false", "-c", "safe.bareRepository=explicit")
                return self._start([*options, *arguments], data, variables, seconds=_SECONDS)
        except GitError as error:
            raise self.error(str(error)) from None


class Writer(_Program):
    """The commands that write, or fetch, in a directory that is the root of a work tree, or becomes it.

    They obey the user's configuration (credentials, proxies, names of authors) and the configuration of the
    repository, which this program made, or whose code `upgrade` runs in any case. No hook is run.

    protocols: by which they may reach other repositories; the variable GIT_ALLOW_PROTOCOL replaces `NETWORK`.
    configured: whether the user's configuration counts.
    """

    # How the user gets credentials and trust to git.
    keeps = ("GIT_ASKPASS", "GIT_CONFIG", "GIT_HTTP", "GIT_PROXY", "GIT_SSH", "GIT_SSL")

    def __init__(
        self, directory: Path, protocols: Sequence[str] = NETWORK, *, configured: bool = True
    ) -> None:
        super().__init__(directory)
        self.protocols = protocols
        self.configured = configured

    def _call(self, arguments: Sequence[str], data: bytes | None) -> subprocess.CompletedProcess[bytes]:
        settings = [word for item in _QUIET for word in ("-c", item)]
        allowed = ":".join(self.protocols) or "none"
        if self.protocols == NETWORK:  # with which helpers of their own, users say as they do to git
            allowed = os.environ.get("GIT_ALLOW_PROTOCOL", allowed)
        real = Path(os.path.realpath(self.directory))
        # Git looks for the repository here and nowhere else, and refuses one of another user.
        variables = {"GIT_ALLOW_PROTOCOL": allowed, "GIT_CEILING_DIRECTORIES": str(real.parent)}
        if self.protocols != NETWORK:
            variables["GIT_NO_LAZY_FETCH"] = "1"
        if self.configured:
            return self._start([*settings, *arguments], data, variables, keeps=self.keeps)
        with _scratch() as home:
            variables.update(_without_user(home), GIT_DIR=str(real / ".git"), GIT_WORK_TREE=str(real))
            return self._start([*settings, *arguments], data, variables)


def list_remote(address: str, names: Sequence[str], protocols: Sequence[str]) -> str:
    """What `git ls-remote` prints of some names. Raises GitError."""
    with _scratch() as directory:  # not in the repository around the current directory
        return Writer(directory, protocols).run("ls-remote", "--", address, *names)


@contextmanager
def as_source(directory: Path) -> Iterator[Path]:
    """A directory from which a repository on this machine can be fetched without running what it says.

    directory: the root of a work tree, or a bare repository, which the user named.
    Raises GitError: it is neither.
    """
    real = Path(os.path.realpath(directory))
    found = git_directory(real, outside=True) if _is_root(real) else (real, real)
    if found is None or not is_dir(found[1] / "objects"):
        raise GitError(f"{directory} is not a git repository")
    with _stand_in(*found, {}) as (git, _):
        yield git


# ---- what git gets in place of a repository's directory ----------------------------------------------------


def _executable() -> str | None:
    """git on the PATH; never one of the current directory, where Windows looks first."""
    name = "git.exe" if os.name == "nt" else "git"
    for directory in os.environ.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(directory, name)  # noqa: PTH118 (an empty one is not a directory)
        if os.path.isabs(path) and (found := shutil.which(path)):  # noqa: PTH117
            return found
    return None


def _is_root(place: Path) -> bool:
    """Whether a directory is the root of a work tree; an empty `.git` is none, as for git."""
    git = place / ".git"
    return os.path.lexists(git) and not (is_dir(git) and not os.path.lexists(git / "HEAD"))


def _reading(home: Path) -> dict[str, str]:
    """Variables for commands that only read."""
    return {
        **_without_user(home),
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",  # older releases of git do not know the variable above
        "GIT_PROTOCOL_FROM_USER": "0",
    }


def _without_user(home: Path) -> dict[str, str]:
    """Variables by which git takes an empty directory for the user's own."""
    return {
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": str(home / "none"),
        "GIT_ATTR_NOSYSTEM": "1",
    }


@contextmanager
def _scratch() -> Iterator[Path]:
    """An empty directory, for a while. Raises GitError."""
    try:
        with tempfile.TemporaryDirectory(prefix="torchmigrate-", ignore_cleanup_errors=True) as name:
            yield Path(os.path.realpath(name))
    except OSError as error:
        raise GitError(f"cannot write a temporary directory: {error.strerror or error}") from None


@contextmanager
def _stand_in(own: Path, shared: Path, known: dict[Path, bytes]) -> Iterator[tuple[Path, Path]]:
    """A directory that stands for a repository's, and an empty one.

    own, shared: the directory of a work tree, and the one that it shares with others, often the same.
    known: configurations that were made before, by `own`.
    Raises GitError: it is not a repository, or one that this program does not know.
    """
    with _scratch() as scratch:
        git, common, home = scratch / "git", scratch / "common", scratch / "home"
        home.mkdir()
        common = git if own == shared else common
        for real, made in dict.fromkeys([(shared, common), (own, git)]):
            _link_all(real, made)
        if common is not git:
            (git / "commondir").write_text("../common\n")
        borrow_objects(common, shared)
        if own not in known:
            (common / "config").write_text("")
            known[own] = _configuration(own, shared, common, home)
        (common / "config").write_bytes(known[own])
        yield git, home


def borrow_objects(git: Path, other: Path) -> None:
    """Let a repository's directory have the objects of another one."""
    quoted = os.fsencode((other / "objects").as_posix())
    for special, written in ((b"\\", b"\\\\"), (b'"', b'\\"'), (b"\n", b"\\n")):
        quoted = quoted.replace(special, written)
    (git / "objects" / "info").mkdir(parents=True, exist_ok=True)
    (git / "objects" / "info" / "alternates").write_bytes(b'"' + quoted + b'"\n')


def format_of(commit: str) -> Sequence[str]:
    """Options of `git init` for a repository that has such a commit."""
    return ("--object-format=sha256",) if len(commit) == 64 else ()


def _link_all(real: Path, made: Path) -> None:
    """Fill a directory with what may be believed of a repository's: refs, and which files it ignores."""
    (made / "info").mkdir(parents=True)
    try:
        if os.path.islink(real / "HEAD"):  # noqa: PTH114 (an old way to write it)
            head = b"ref: " + os.fsencode(os.readlink(real / "HEAD"))  # noqa: PTH115
        else:
            head = read(real / "HEAD", 8192)
    except (UnreadableError, OSError):
        raise GitError(f"{real} is not a git repository") from None
    (made / "HEAD").write_bytes(head)
    shared_indexes = (name for name in os.listdir(real) if name.startswith("sharedindex."))  # noqa: PTH208
    for name in (*_FILES, *_DIRECTORIES, *shared_indexes):
        try:
            mode = (real / name).stat().st_mode
        except OSError:
            continue
        if (stat.S_ISDIR if name in _DIRECTORIES else stat.S_ISREG)(mode):
            _link(real / name, made / name)
    (made / "refs").mkdir(exist_ok=True)


def _link(real: Path, made: Path) -> None:
    try:
        made.symlink_to(real)
    except (OSError, NotImplementedError):  # Windows, for most users
        if is_dir(real):
            shutil.copytree(real, made, symlinks=True)
        else:
            shutil.copy2(real, made)


class _Setting(Struct, frozen=True):
    key: str
    value: str


def _configuration(own: Path, shared: Path, common: Path, home: Path) -> bytes:
    """The text of a configuration with what may be believed of a repository's own and of the user's."""
    asked = ("config", "--null", "--list")
    program = _Configuration(common)
    lines = ["[uploadpack]\n\tallowAnySHA1InWant = true\n"]
    taken = [each for each in program.settings(asked, None) if each.key in _USERS]
    taken = [replace(each, value=os.path.expanduser(each.value)) for each in taken]  # noqa: PTH111
    users = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")  # noqa: PTH111
    ignored = Path(users, "git", "ignore")
    if not any(each.key == "core.excludesfile" for each in taken) and is_file(ignored):
        taken.append(_Setting("core.excludesfile", str(ignored)))
    settings: list[_Setting] = []
    for path in (shared / "config", own / "config.worktree"):
        if not exists(path):
            continue
        if path.name != "config" and not any(each.key == "extensions.worktreeconfig" for each in settings):
            continue
        try:
            data = read(path)
        except UnreadableError as error:
            raise GitError(f"{path} {error.reason}") from None
        settings += program.settings((*asked, "--no-includes", "--file", "-"), data, home)
    for each in settings:
        section, _, name = each.key.partition(".")
        if _UPSTREAM.fullmatch(each.key):
            taken.append(each)
        elif _DATA.fullmatch(each.key):
            if not _PLAIN.fullmatch(each.value):
                raise GitError(f"{shared / 'config'}: torchmigrate does not know this value of {each.key}")
            taken.append(each)
        elif section == "extensions" and name not in _NEEDLESS:
            raise GitError(f"{shared / 'config'}: torchmigrate does not know {each.key}")
    for each in taken:
        section, _, name = each.key.partition(".")
        middle, _, last = name.rpartition(".")
        within = f' "{_escaped(middle)}"' if middle else ""
        value = _escaped(each.value).replace("\n", "\\n")
        lines.append(f'[{section}{within}]\n\t{last} = "{value}"\n')
    return "".join(lines).encode("utf-8", "surrogateescape")


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


class _Configuration(_Program):
    """git, as a reader of configurations; in a directory that holds none."""

    def settings(self, asked: Sequence[str], data: bytes | None, home: Path | None = None) -> list[_Setting]:
        """The settings of a text, or the user's own. home: None: with those of the user."""
        hidden = {} if home is None else _reading(home)
        variables = {**hidden, "GIT_DIR": str(self.directory)}
        done = self._start(asked, data, variables, keeps=("GIT_CONFIG",) if home is None else ())
        if done.returncode:
            if home is None:
                return []  # the user's own, which git complains of everywhere else
            said = done.stderr.decode("utf-8", "replace").strip().partition("\n")[0]
            raise GitError(f"the configuration of the repository cannot be read: {said}")
        found = []
        for item in done.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]:
            key, newline, value = item.partition("\n")
            found.append(_Setting(key, value if newline else "true"))
        return found
