"""What git tracks: the files in a repository's index, which git does not ignore whatever the patterns say.

Read here without running git: the configuration of an untrusted repository may name programs for git to run,
git refuses repositories of other users (in containers, that is most of them), and it need not be installed.
"""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct

from torchmigrate.files.paths import exists, is_dir
from torchmigrate.files.reading import MEGABYTE, UnreadableError, read

INDEX = 100 * MEGABYTE  # a million files
_FIXED = 40  # bytes of an entry before the hash


class Tracked(Struct, frozen=True):
    """Paths relative to the top of the work tree, with slashes: files, and the directories that hold them."""

    files: frozenset[str] = frozenset()
    directories: frozenset[str] = frozenset()


def git_directory(top: Path, *, outside: bool = False) -> tuple[Path, Path] | None:
    """The git directory of the work tree at `top`, and the one that has what all its work trees share.

    None where that is not in the project, nor a repository that says itself that this is a work tree of it.

    outside: accept others too, as git does, for a reader that believes nothing of them.
    """
    git = top / ".git"
    try:
        if is_dir(git):
            real = Path(os.path.realpath(git))
            return (real, real) if outside or real.is_relative_to(os.path.realpath(top)) else None
        text = os.fsdecode(read(git, 8192))
        real = Path(os.path.realpath(top / text.removeprefix("gitdir:").strip()))
        shared = real
        if exists(real / "commondir"):
            shared = Path(os.path.realpath(real / os.fsdecode(read(real / "commondir", 8192)).strip()))
        if outside:
            return (real, shared) if is_dir(real) and is_dir(shared) else None
        above = (Path(os.path.realpath(parent / ".git")) for parent in top.absolute().parents)
        if any(
            real.is_relative_to(parent) and shared.is_relative_to(parent)
            for parent in above
            if is_dir(parent)
        ):
            return real, shared  # a submodule, or a work tree in another one
        back = os.fsdecode(read(real / "gitdir", 8192)).strip()
        if os.path.realpath(real / back) == os.path.realpath(git) and shared in real.parents:
            return real, shared  # a work tree of its own
    except (UnreadableError, ValueError, OSError):
        pass  # a repository that git itself cannot use
    return None


def tracked(git: Path, suffixes: tuple[str, ...]) -> Tracked:
    """The tracked files with these suffixes.

    Raises:
        UnreadableError: the index is there and cannot be read.
    """
    index = git / "index"
    if not exists(index):
        return Tracked()
    ends = tuple(os.fsencode(suffix) for suffix in suffixes)
    try:
        names, base = _names(read(index, INDEX, within=git))
        if base is not None:  # what was deleted since counts as tracked still
            names += _names(read(git / f"sharedindex.{base}", INDEX, within=git))[0]
        files = frozenset(os.fsdecode(name) for name in names if name.endswith(ends))
    except (IndexError, ValueError):
        raise UnreadableError("is not a git index that torchmigrate can read") from None
    directories: set[str] = set()
    for file in files:
        end = file.rfind("/")
        while end > 0 and file[:end] not in directories:
            directories.add(file[:end])
            end = file.rfind("/", 0, end)
    return Tracked(files, frozenset(directories))


def tracks(path: Path) -> bool:
    """Whether git tracks a path, something below it, or, in a sparse index, a directory above it.

    All repositories around the path count, and so do other spellings of it that some file systems take for
    the same. Raises UnreadableError where an index cannot be read.
    """
    for top in path.parents:
        if (
            not exists(top / ".git")
            or (found := git_directory(top)) is None
            or not exists(found[0] / "index")
        ):
            continue
        wanted = _folded(path.relative_to(top).as_posix())
        for name in tracked(found[0], ("",)).files:
            folded = _folded(name)
            if folded == wanted or folded.startswith(f"{wanted}/"):
                return True
            if folded.endswith("/") and wanted.startswith(folded):
                return True
    return False


def _folded(path: str) -> str:
    """A path as file systems compare it that ignore case, invisible characters, and the ends of names."""
    folded = path.casefold()
    if not folded.isascii():
        import unicodedata

        folded = unicodedata.normalize("NFC", "".join(c for c in folded if unicodedata.category(c) != "Cf"))
    if ":" in folded or ". " in folded or "./" in folded or " /" in folded or folded.endswith((".", " ")):
        folded = "/".join(part.partition(":")[0].rstrip(". ") for part in folded.split("/"))
    return folded


def _names(data: bytes) -> tuple[list[bytes], str | None]:
    """The paths in an index (gitformat-index), and the hash of the one that a split index adds to.

    It has version 2, 3, or 4, in which paths are shortened.
    """
    version = int.from_bytes(data[4:8], "big")
    if data[:4] != b"DIRC" or version not in (2, 3, 4):
        raise ValueError("unknown version")
    import hashlib  # with OpenSSL, which takes longer to load than most files to check

    sha256 = hashlib.sha256(data[:-32]).digest() == data[-32:]
    head = _FIXED + (32 if sha256 else 20)
    position = 12
    names = [name := b""]
    for _ in range(int.from_bytes(data[8:12], "big")):
        flags = position + head
        start = flags + (4 if data[flags] & 0x40 else 2)
        if version == 4:
            shorter = start
            drop = data[shorter] & 0x7F
            while data[shorter] & 0x80:
                shorter += 1
                drop = (drop + 1 << 7) | (data[shorter] & 0x7F)
            end = data.index(b"\0", shorter + 1)
            name = name[: len(name) - drop] + data[shorter + 1 : end]
            position = end + 1
        else:
            end = data.index(b"\0", start)
            name = data[start:end]
            position += (end - position + 8) // 8 * 8
        names.append(name)
    if data[position : position + 4] == b"link":
        return names, data[position + 8 : position + 8 + head - _FIXED].hex()
    return names, None
