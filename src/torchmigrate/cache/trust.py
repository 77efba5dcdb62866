"""Which caches may be used: only those that this user wrote.

A stranger's repository can bring a cache along. Each file of a cache therefore carries a keyed digest, whose
key is kept outside of the project, and a cache that git tracks is not used at all.
"""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress
from pathlib import Path

from torchmigrate.files.digests import blake2b
from torchmigrate.files.git_index import tracks
from torchmigrate.files.paths import project_of, work_tree_of
from torchmigrate.files.reading import UnreadableError, is_below

_NAME = "secret"
_SIZE = 32  # bytes of the key, and of a digest
_HEAD = b'{"mac":"'
_FOOT = b'",'
_BODY = len(_HEAD) + 2 * _SIZE + len(_FOOT)


class UntrustedError(Exception):
    """A cache that is not used, with the reason in one line."""


def key_for(directory: Path, root: Path) -> bytes:
    """The key of a cache.

    Args:
        directory: of the cache.
        root: of the project.

    Raises:
        UntrustedError: this user may not have written the cache, or there is no safe place for its key.
    """
    _check(directory, root)
    around = [str(project_of(root))]
    if (tree := work_tree_of(Path(around[0]))) is not None:
        around.append(os.path.realpath(tree))
    for place, private in ((_user_directory(), False), (_temporary_directory(), True)):
        if place is None:
            continue
        real = os.path.realpath(place)
        if any(is_below(real, each) for each in around):
            continue  # the project may have brought the key along
        with suppress(OSError, UnreadableError):
            if not tracks(Path(real)):
                return _key(place, private=private)
    raise UntrustedError("no private directory outside of the project for its key; set XDG_CACHE_HOME to one")


def _check(directory: Path, root: Path) -> None:
    """Raise UntrustedError where the project may have brought a cache along."""
    project = project_of(root)
    real = Path(os.path.realpath(directory))
    # Relative to the project as it was given, which may itself be reached through a link.
    for top in (Path(os.path.abspath(root)), project):  # noqa: PTH100 (`..` is none of the path)
        absolute = Path(os.path.abspath(directory))  # noqa: PTH100
        if absolute.is_relative_to(top) and real != Path(os.path.realpath(top)) / absolute.relative_to(top):
            raise UntrustedError("a symbolic link leads to it")
    try:
        if tracks(real):
            raise UntrustedError("git tracks it")
    except UnreadableError as error:
        raise UntrustedError(f"cannot tell whether git tracks it: the index {error.reason}") from None


# ---- the key ---------------------------------------------------------------------------------------------


def _user_directory() -> Path | None:
    """Where the platform keeps caches of a user."""
    if os.name == "nt":
        base = os.environ.get("LOCALAPPDATA", "")
    else:
        base = os.environ.get("XDG_CACHE_HOME", "")
        if not Path(base).is_absolute():
            try:
                home = Path.home()
            except RuntimeError:  # a user without an entry in the list of users
                return None
            base = str(home / ("Library/Caches" if sys.platform == "darwin" else ".cache"))
    return Path(base) / "torchmigrate" if Path(base).is_absolute() else None


def _temporary_directory() -> Path | None:
    """A directory of this user alone among the temporary ones, for users without a home."""
    named = [os.environ.get(name, "") for name in ("TMPDIR", "TEMP", "TMP")]
    base = next((each for each in named if Path(each).is_absolute()), "" if os.name == "nt" else "/tmp")
    return Path(base) / f"torchmigrate-{_user()}" if base else None


def _user() -> int:
    return os.geteuid() if hasattr(os, "geteuid") else 0


def _key(directory: Path, *, private: bool) -> bytes:
    """The key in a directory, which is made where it is missing.

    private: no other user may have access to the directory. Raises OSError.
    """
    if private:
        with suppress(FileExistsError):
            directory.mkdir(mode=0o700)
        _is_ours(directory.lstat(), stat.S_ISDIR)
    else:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = directory / _NAME
    if not os.path.lexists(path):
        _make(path)
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    try:
        found = os.fstat(handle)
        _is_ours(found, stat.S_ISREG)
        data = os.read(handle, _SIZE + 1)
    finally:
        os.close(handle)
    if len(data) != _SIZE:
        raise OSError("not a key")
    return data


def _make(path: Path) -> None:
    """Make a key in one step; another process may be faster. Raises OSError."""
    temporary = path.with_name(f"{_NAME}.{os.getpid()}.{os.urandom(4).hex()}.tmp")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(os.urandom(_SIZE))
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            if os.name == "nt":
                temporary.rename(path)
            else:
                os.link(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _is_ours(found: os.stat_result, is_kind: object) -> None:
    """Raise OSError where something has another kind, is another user's, or others may read or write it."""
    if not is_kind(found.st_mode):  # type: ignore[operator]
        raise OSError("has another kind")
    if hasattr(os, "geteuid") and (found.st_uid != os.geteuid() or found.st_mode & 0o077):
        raise OSError("others may have written it")


# ---- files -----------------------------------------------------------------------------------------------


def seal(path: Path, body: bytes, key: bytes) -> bytes:
    """The content of a file of a cache: JSON that begins with its keyed digest.

    body: a JSON object that is not empty. path: the only one that the content is for.
    """
    return _HEAD + _digest(path, body[1:], key) + _FOOT + body[1:]


def unseal(path: Path, data: bytes, key: bytes) -> bytes:
    """The body in a file of a cache. Raises ValueError where it was not sealed for this path and key."""
    body = data[_BODY:]
    # A file on disk cannot be guessed by the time that this takes, so `hmac` need not be loaded.
    if data[:_BODY] != _HEAD + _digest(path, body, key) + _FOOT:
        raise ValueError("not sealed")
    return b"{" + body


def _digest(path: Path, body: bytes, key: bytes) -> bytes:
    digest = blake2b(os.fsencode(os.path.realpath(path)) + b"\0", digest_size=_SIZE, key=key)
    digest.update(body)
    return digest.hexdigest().encode()
