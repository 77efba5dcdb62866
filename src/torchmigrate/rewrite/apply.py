"""Applying fixes to a text: which ones fit together, how offsets move, the diff, and the file."""

from __future__ import annotations

import os
import re
import stat
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import accumulate
from pathlib import Path

from msgspec import Struct, field

from torchmigrate.files.reading import explain_os_error
from torchmigrate.findings import Edit, Fix, edit_key, in_order
from torchmigrate.source.changes import changes
from torchmigrate.source.text import Source, SourceError

_CHANGED = "changed while torchmigrate was checking it: not written"
_Key = tuple[int, int, bool, str]


class Applied(Struct):
    """A text with fixes applied.

    applied: the fixes that are in `text`, in the order of their places.
    deferred: those that overlap an applied one; they may fit in a next round.
    edits: what was done to the old text, in order, without overlaps; for `map_offset`.
    """

    text: str
    applied: list[Fix] = field(default_factory=list)
    deferred: list[Fix] = field(default_factory=list)
    edits: list[Edit] = field(default_factory=list)


def apply(text: str, fixes: Iterable[Fix]) -> Applied:
    """Apply as many fixes as fit together, each completely or not at all.

    Equal fixes are applied once. Fixes are taken in the order of their first place, whatever order they
    come in; one that gets in the way of an earlier one is deferred. Edits of different fixes get in each
    other's way if they overlap or touch: two rewrites of neighboring tokens were not made with each
    other in mind. Mergeable edits (imports) may touch others, may be part of several fixes, and several
    mergeable insertions at one place are all applied, in the order of their text, before the existing text.
    Raises ValueError for a fix that has a `flaw`.
    """
    result = Applied(text)
    taken = _Taken()
    for fix in sorted(dict.fromkeys(fixes), key=_order):
        why = flaw(fix, len(text))
        if why is not None:
            raise ValueError(f"{fix.code} {fix.title!r}: {why}")
        edits = in_order(fix.edits)
        if any(taken.blocks(edit) for edit in edits):
            result.deferred.append(fix)
            continue
        for edit in edits:
            taken.add(edit)
        result.applied.append(fix)
    result.edits = taken.edits()
    result.text = splice(text, result.edits)
    return result


def splice(text: str, edits: Iterable[Edit]) -> str:
    """The text with edits applied that are sorted and do not overlap."""
    parts: list[str] = []
    position = 0
    for edit in edits:
        parts += (text[position : edit.start], edit.text)
        position = edit.end
    parts.append(text[position:])
    return "".join(parts)


def line_edits(old: str, new: str) -> list[Edit]:
    """The edits of whole lines that turn one text into another one."""
    before, after = _lines(old), _lines(new)
    starts = list(accumulate(map(len, before), initial=0))
    return [Edit(starts[i1], starts[i2], "".join(after[j1:j2])) for i1, i2, j1, j2 in changes(before, after)]


def _lines(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def map_offset(edits: Sequence[Edit], offset: int) -> int:
    """Where the character at `offset` of the old text is in the new one; `edits` as in `Applied.edits`.

    A character that was replaced is where its replacement starts.
    """
    shift = 0
    for edit in edits:
        if edit.start > offset:
            break
        if offset < edit.end:
            return edit.start + shift
        shift += len(edit.text) - (edit.end - edit.start)
    return offset + shift


def _order(fix: Fix) -> tuple[_Key, list[_Key], str, str, int, str]:
    # By the rewrite itself, not by the import line that it shares with others.
    keys = sorted(map(edit_key, fix.edits))
    first = next((key for key in keys if key[2]), keys[0] if keys else (0, 0, True, ""))
    return (first, keys, fix.code, fix.title, fix.applicability, str(fix.held_by))


def flaw(fix: Fix, length: int) -> str | None:
    """Why a fix cannot be applied to a text of this many characters, whatever the text; None: it can."""
    if not fix.edits:
        return "the fix has no edits"
    end = 0
    previous: Edit | None = None
    for edit in in_order(fix.edits):
        if not 0 <= edit.start <= edit.end <= length:
            return f"an edit is outside the text: {edit}"
        ambiguous = previous is not None and _ambiguous(previous, edit)
        if edit.start < end or ambiguous:
            return f"its edits overlap: {previous} and {edit}"
        end = edit.end
        previous = edit
    return None


def _ambiguous(one: Edit, other: Edit) -> bool:
    """Whether two edits are insertions at one place that nothing puts in an order."""
    return one.start == one.end == other.start == other.end and not one.mergeable and not other.mergeable


class _Taken:
    """The edits so far, sorted; none overlaps another."""

    def __init__(self) -> None:
        self._keys: list[_Key] = []

    def add(self, edit: Edit) -> None:
        key = edit_key(edit)
        index = bisect_left(self._keys, key)
        if self._keys[index : index + 1] != [key]:
            self._keys.insert(index, key)

    def edits(self) -> list[Edit]:
        return [Edit(start, end, text, not alone) for start, end, alone, text in self._keys]

    def blocks(self, edit: Edit) -> bool:
        """Whether an edit of another fix gets in the way of one of these."""
        return any(_conflict(edit, other) for other in self._near(edit))

    def _near(self, edit: Edit) -> Iterator[_Key]:
        keys = self._keys
        index = bisect_left(keys, (edit.start, -1, False, ""))
        # Those that start before: at most the last of them reaches here.
        if index:
            yield keys[index - 1]
        while index < len(keys) and keys[index][0] <= edit.end:
            yield keys[index]
            index += 1


def _conflict(edit: Edit, other: _Key) -> bool:
    start, end, alone, _ = other
    if edit.mergeable and not alone and edit_key(edit) == other:
        return False
    if edit.mergeable or not alone:
        return edit.start < end and start < edit.end
    return edit.start <= end and start <= edit.end


# ---- showing and writing ----------------------------------------------------------------------------


def unified_diff(path: Path | str, old: str, new: str) -> str:
    """The change as `git diff` would print it (headers `a/` and `b/`, three lines of context).

    Lines end at `\\n` only, as they do for git and patch. Empty if nothing changed.
    """
    import difflib

    if old == new:
        return ""
    name = path.as_posix() if isinstance(path, Path) else path
    lines = difflib.unified_diff(
        _git_lines(old), _git_lines(new), _header("a", name), _header("b", name), lineterm="\n"
    )
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


def _git_lines(text: str) -> list[str]:
    lines = [line + "\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _header(side: str, name: str) -> str:
    full = f"{side}/{name.lstrip('/')}"
    if re.search(rf'["\\]|{_QUOTED}', full):
        quoted = re.sub(r'["\\]', r"\\\g<0>", full)
        return '"' + re.sub(_QUOTED, _octal, quoted) + '"'
    # A tab tells patch where a name with a space ends.
    return f"{full}\t" if " " in full else full


# Control characters, those that reorder text, and what the logs of some services take for a command.
_QUOTED = "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]|(?<=#)#"


def _octal(found: re.Match[str]) -> str:
    return "".join(f"\\{byte:03o}" for byte in found[0].encode())


def save(path: Path, new: Source) -> None:
    """Write the text of a changed source to its file, in its encoding; nothing else changes.

    Raises SourceError if the file is not what was read any more, if its encoding cannot express the text, or
    as `write_atomic` does.
    """
    write_atomic(path, new.content(), new.data)


def write_atomic(path: Path, data: bytes, old: bytes | None = None) -> None:
    """Replace the content of a file in one step: readers see the old bytes or the new, nothing else.

    Signals that end the program wait until it is done. Keeps mode, extended attributes and access control
    lists and, where the system lets us, owner, group and security context. A symbolic link stays one; the
    file that it leads to is replaced. Other hard links to the file keep the old content.

    old: what the file has to hold up to that step; None: that does not matter.

    Raises SourceError, and leaves everything as it was, if the file holds something else, if it or its
    directory is read-only (by its mode, even where the user could write all the same), the disk is full, or
    anything else fails.
    """
    from torchmigrate.files.signals import held  # only what writes needs it

    try:
        with held():
            _write(Path(os.path.realpath(path, strict=True)), data, old)
    except OSError as error:
        raise SourceError(f"cannot write: {explain_os_error(error)}") from None


def create_atomic(path: Path, data: bytes) -> None:
    """Make a file in one step: it is not there, or there as a whole.

    Raises SourceError where something of that name is there, or it cannot be made.
    """
    import tempfile

    from torchmigrate.files.signals import held

    try:
        with held():
            handle, name = tempfile.mkstemp(prefix=f".{path.name[:40]}.", suffix=".tmp", dir=path.parent)
            temporary = Path(name)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                os.umask(mask := os.umask(0))  # the only way to ask for it
                temporary.chmod(0o666 & ~mask)
                try:
                    path.hardlink_to(temporary)  # which fails where there is one, as a rename does not
                except OSError:  # there is one, or the file system has no hard links
                    if os.path.lexists(path):
                        raise
                    temporary.replace(path)
            finally:
                with suppress(OSError):
                    temporary.unlink()
    except OSError as error:
        raise SourceError(f"cannot write: {explain_os_error(error)}") from None


def _write(target: Path, data: bytes, old: bytes | None) -> None:
    import tempfile

    from torchmigrate.files.locks import alone_in

    status = target.stat()
    if not stat.S_ISREG(status.st_mode):
        raise SourceError("cannot write: is not a regular file")
    if not _writable(target, status.st_mode):
        raise SourceError("cannot write: the file is read-only")
    if not _writable(target.parent, target.parent.stat().st_mode):
        raise SourceError("cannot write: the directory is read-only")
    # Not ending in .py: another tool that is looking at the directory shall not take it for a module.
    handle, name = tempfile.mkstemp(prefix=f".{target.name[:40]}.", suffix=".tmp", dir=target.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            if hasattr(os, "chown"):
                with suppress(OSError):
                    os.chown(temporary, status.st_uid, status.st_gid)
            # After chown, which clears some bits.
            temporary.chmod(stat.S_IMODE(status.st_mode))
            _copy_attributes(target, temporary)
            os.fsync(file.fileno())
        with alone_in(target.parent):
            # As late as can be: an editor may have written the file meanwhile.
            if old is not None and target.read_bytes() != old:
                raise SourceError(_CHANGED)
            temporary.replace(target)
    except BaseException:  # an interrupt too must not leave the temporary file
        with suppress(OSError):
            temporary.unlink()
        raise


def _copy_attributes(source: Path, target: Path) -> None:
    """Extended attributes; access control lists and security contexts are some of them, on Linux."""
    if not hasattr(os, "listxattr"):
        return
    try:
        names = os.listxattr(source)
        # The directory may give its files lists of its own.
        for name in set(os.listxattr(target)).difference(names):
            with suppress(OSError):
                os.removexattr(target, name)
    except OSError:
        return  # there are none here
    for name in names:
        try:
            os.setxattr(target, name, os.getxattr(source, name))
        except OSError:
            # Of the others, some are only the system's to set.
            if name.startswith("user.") or name == "system.posix_acl_access":
                raise


def _writable(path: Path, mode: int) -> bool:
    # Root may write anything: for root, too, a mode without any `w` says that it is not meant to be.
    return bool(mode & 0o222) and os.access(path, os.W_OK)
