"""The file that holds every release of one library: what is in `versions/api/LIBRARY.gz`.

The file is a row of gzip members, so that `zcat` shows all of it as text, and each member can be unpacked
alone. The first is the head: a line with the library and its releases, then a line for each further member
with its length in bytes and the first owner in it. The others hold one line per owner, sorted. An owner is
what has members: a module or a class; the empty owner has the library itself as its member.

    OWNER <TAB> HISTORY | NAME | NAME | <TAB> HISTORY | NAME | ...

Names with the same history share it. A history is a list of segments, each from a release (its number in the
head) to the next segment: the entry, or nothing where the name does not exist. An entry is a letter for its
kind, flags, and fields by their first character; the target of an alias ends with a dot if the name follows.
A field with `#` is the text of the warning, `~` what only the documentation says, `%` a parameter.
The separators cannot occur in a text: they are escaped, as is the backslash.

The file of a library with a `~` after its name in the head is partial: it only lists names that differ
between releases, and what leads to them. A name that it lists and that is not in a release does not exist
there; of names that it does not list, nothing is known.
"""

from __future__ import annotations

import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

from torchmigrate.versions.surface_model import ApiEntry, DeprecatedParameter, EntryKind, Release

Version = tuple[int, ...]
# From this release on (its number in the head), the name is this entry, or does not exist.
Segment = tuple[int, ApiEntry | None]

_FORMAT = "torchmigrate-api-1"
_BLOCK = 128 * 1024  # characters in a gzip member: some milliseconds to unpack, and few lookups need many
_GZIP = 31  # zlib's number for "with a gzip header"; it writes no time into it

_PARTIAL = "~"
_GROUP = "\t"
_SEGMENT = "\x1d"
_FIELD = "\x1e"
_NAME = "\x1f"
_LINE = "\n"
_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\t": "\\t", "\x1d": "\\s", "\x1e": "\\f", "\x1f": "\\u"}
_ESCAPED = str.maketrans(_ESCAPES)
_UNESCAPED = {code[1]: character for character, code in _ESCAPES.items()}

_LETTERS = {kind: kind.value[0] for kind in EntryKind}
_KINDS = {letter: kind for kind, letter in _LETTERS.items()}


class SurfaceFormatError(ValueError):
    """The bytes are not the API data of a library, or of a format that this version does not know."""


class SurfaceFile:
    """The releases of one library, read as far as somebody asks.

    Raises:
        SurfaceFormatError: the bytes are not such a file.
    """

    def __init__(self, data: bytes) -> None:
        try:
            unpacker = zlib.decompressobj(_GZIP)
            head, *blocks = unpacker.decompress(data).decode().split("\n")
        except (zlib.error, UnicodeDecodeError) as error:
            raise SurfaceFormatError(f"not a file of API data: {error}") from error
        words = head.split(" ")
        if words[0] != _FORMAT:
            raise SurfaceFormatError(f"not API data of the format {_FORMAT}")
        self.library = words[1].removesuffix(_PARTIAL)
        self.partial = words[1].endswith(_PARTIAL)
        self.versions: tuple[Version, ...] = tuple(
            tuple(int(part) for part in word.split(".")) for word in words[2:]
        )
        self._data = data
        self._firsts: list[str] = []  # the first owner in each block
        self._places: list[tuple[int, int]] = []
        self._texts: dict[int, str] = {}
        self._parsed: dict[int, list[tuple[str, dict[str, tuple[Segment, ...]]]]] = {}
        start = len(data) - len(unpacker.unused_data)
        for block in blocks:
            length, _, first = block.partition(" ")
            self._firsts.append(first)
            self._places.append((start, start + int(length)))
            start += int(length)

    def history(self, owner: str, name: str) -> tuple[Segment, ...]:
        """What a module or class lists under a name, by release; () if it never did."""
        text, start, end = self._line(owner)
        place = text.find(f"{_NAME}{name}{_NAME}", start, end)
        if place < 0:
            return ()
        start = text.rindex(_GROUP, start, place) + 1
        return _read_history(text[start : text.index(_NAME, start)], name)

    def members(self, owner: str) -> dict[str, tuple[Segment, ...]]:
        """What a module or class lists in any release."""
        text, start, end = self._line(owner)
        return _members(text[start:end])[1] if end else {}

    def owners_with(self, name: str) -> Iterator[str]:
        """The modules and classes that list this name in some release."""
        wanted = f"{_NAME}{name}{_NAME}"
        for number in range(len(self._firsts)):
            text = self._block(number)
            place = text.find(wanted)
            while place >= 0:
                start = text.rfind("\n", 0, place) + 1
                yield text[start : text.find(_GROUP, start)]
                place = text.find(wanted, text.find("\n", place))

    def release(self, version: Version) -> dict[str, ApiEntry]:
        """Everything in one release. Raises ValueError if there is no such release."""
        wanted = self.versions.index(version)
        found: dict[str, ApiEntry] = {}
        for owner, members in self._lines():
            for last, history in members.items():
                entry = entry_in(history, wanted)
                if entry is not None:
                    found[f"{owner}.{last}" if owner else last] = entry
        return found

    def _lines(self) -> Iterator[tuple[str, dict[str, tuple[Segment, ...]]]]:
        """Every module and class with what it lists."""
        for number in range(len(self._firsts)):
            if number not in self._parsed:
                lines = self._block(number)[1:-1].split("\n")
                self._parsed[number] = [_members(line) for line in lines]
            yield from self._parsed[number]

    def _line(self, owner: str) -> tuple[str, int, int]:
        """The block with the line of an owner, and where that begins and ends; 0, 0 if there is none."""
        number = bisect_right(self._firsts, owner) - 1
        if number < 0:
            return "", 0, 0
        text = self._block(number)
        low, high = 1, len(text)  # where the line begins, if it is there
        while low < high:
            start = text.rfind("\n", low - 1, (low + high) // 2) + 1 or low
            end = text.index(_GROUP, start)
            found = text[start:end]
            if found < owner:
                low = text.index("\n", end) + 1
            elif found > owner:
                high = start
            else:
                return text, start, text.index("\n", end)
        return "", 0, 0

    def _block(self, number: int) -> str:
        text = self._texts.get(number)
        if text is None:
            start, end = self._places[number]
            # A line is then always between two line ends.
            text = self._texts[number] = "\n" + zlib.decompress(self._data[start:end], _GZIP).decode()
        return text


def entry_in(history: tuple[Segment, ...], release: int) -> ApiEntry | None:
    """What a history says of a release, by its number in the head."""
    entry = None
    for start, later in history:
        if start > release:
            break
        entry = later
    return entry


def encode(library: str, releases: Sequence[tuple[Version, Release]], *, partial: bool = False) -> bytes:
    """The file for these releases, oldest first. The same releases always give the same bytes.

    partial: the releases only have the names that differ, see above.

    Raises:
        ValueError: the releases are not in order, or a name is not in the library.
    """
    versions = [version for version, _ in releases]
    if versions != sorted(set(versions)):
        raise ValueError("releases must be in order, each once")
    owners: dict[str, dict[str, list[str]]] = {}
    for name in sorted({name for _, release in releases for name in release}):
        if name != library and not name.startswith(library + "."):
            raise ValueError(f"`{name}` is not a name of {library}")
        owner, _, last = name.rpartition(".")
        history = _write_history(name, last, [release for _, release in releases])
        owners.setdefault(owner, {}).setdefault(history, []).append(last)
    lines = [
        _GROUP.join(
            [owner, *(_NAME.join([history, *names, ""]) for history, names in sorted(groups.items()))]
        )
        for owner, groups in sorted(owners.items())
    ]
    blocks = [(owner, _pack("\n".join(block) + "\n")) for owner, block in _blocks(lines)]
    head = [
        " ".join(
            [_FORMAT, library + _PARTIAL * partial, *(".".join(map(str, version)) for version in versions)]
        )
    ]
    head += [f"{len(packed)} {owner}" for owner, packed in blocks]
    return b"".join([_pack("\n".join(head)), *(packed for _, packed in blocks)])


def decode(data: bytes) -> list[tuple[Version, dict[str, ApiEntry]]]:
    """Every release in a file, complete: the opposite of `encode`.

    Raises:
        SurfaceFormatError: the bytes are not such a file.
    """
    file = SurfaceFile(data)
    return [(version, file.release(version)) for version in file.versions]


def with_release(data: bytes, version: Version, release: Release) -> bytes:
    """The same file with one more release, or with another content for one that it has."""
    file = SurfaceFile(data)
    releases: dict[Version, Release] = dict(decode(data))
    releases[version] = release
    return encode(file.library, sorted(releases.items(), key=lambda item: item[0]))


def _blocks(lines: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """The lines in blocks of about `_BLOCK` characters, with the owner of the first line in each."""
    block: list[str] = []
    size = 0
    for line in lines:
        if block and size + len(line) > _BLOCK:
            yield block[0].partition(_GROUP)[0], block
            block, size = [], 0
        block.append(line)
        size += len(line)
    if block:
        yield block[0].partition(_GROUP)[0], block


def _members(line: str) -> tuple[str, dict[str, tuple[Segment, ...]]]:
    """An owner and what it lists."""
    owner, *groups = line.split(_GROUP)
    found = {}
    for group in groups:
        history, *names, _ = group.split(_NAME)
        for name in names:
            found[name] = _read_history(history, name)
    return owner, found


def _pack(text: str) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, _GZIP, 9)
    return packer.compress(text.encode()) + packer.flush()


def _write_history(name: str, last: str, releases: Sequence[Release]) -> str:
    written: list[str] = []
    before: ApiEntry | None = None
    for number, release in enumerate(releases):
        entry = release.get(name)
        if entry != before:
            written.append(f"{number}:{'' if entry is None else _write_entry(entry, last)}")
        before = entry
    return _SEGMENT.join(written)


def _read_history(history: str, last: str) -> tuple[Segment, ...]:
    found: list[Segment] = []
    for text in history.split(_SEGMENT):
        number, _, entry = text.partition(":")
        found.append((int(number), _read_entry(entry, last) if entry else None))
    return tuple(found)


def _write_entry(entry: ApiEntry, last: str) -> str:
    fields = [_LETTERS[entry.kind] + "*" * entry.open + "!" * entry.gone + "-" * entry.unread]
    if entry.target:
        target = entry.target.removesuffix(last) if entry.target.endswith("." + last) else entry.target
        fields.append(f">{target.translate(_ESCAPED)}")
    fields += [f"={signature.translate(_ESCAPED)}" for signature in entry.signatures]
    fields += [f"<{base.translate(_ESCAPED)}" for base in entry.bases]
    if entry.deprecated is not None:
        fields.append(f"{'#' if entry.warns else '~'}{entry.deprecated.translate(_ESCAPED)}")
    fields += [f"%{f'{test}{_LINE}{said}'.translate(_ESCAPED)}" for test, said in entry.parameters]
    return _FIELD.join(fields)


def _read_entry(text: str, last: str) -> ApiEntry:
    head, *fields = text.split(_FIELD)
    by_mark: dict[str, list[str]] = {">": [], "=": [], "<": [], "#": [], "~": [], "%": []}
    for field in fields:
        by_mark[field[0]].append(_unescape(field[1:]))
    target = by_mark[">"][0] if by_mark[">"] else ""
    said = by_mark["#"] or by_mark["~"]
    return ApiEntry(
        kind=_KINDS[head[0]],
        target=target + last if target.endswith(".") else target,
        signatures=tuple(by_mark["="]),
        bases=tuple(by_mark["<"]),
        open="*" in head,
        gone="!" in head,
        deprecated=said[0] if said else None,
        warns=bool(by_mark["#"]),
        unread="-" in head,
        parameters=tuple(_parameter(text) for text in by_mark["%"]) if by_mark["%"] else (),
    )


def _parameter(text: str) -> DeprecatedParameter:
    test, _, said = text.partition(_LINE)
    return DeprecatedParameter(test, said)


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    characters = iter(text)
    return "".join(
        _UNESCAPED[next(characters)] if character == "\\" else character for character in characters
    )
