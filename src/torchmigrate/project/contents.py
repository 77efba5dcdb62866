"""The bytes of the files of a project, in one piece: a word is looked for in all of them at once.

And what is worked out of them, kept.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from torchmigrate.patterns import pattern

K = TypeVar("K")
V = TypeVar("V")
# Every byte that is not part of a word as a space; of names that are not ASCII all bytes are parts.
_SPACED = bytes(
    byte if byte >= 128 or chr(byte).isalnum() or byte == ord("_") else ord(" ") for byte in range(256)
)
_ESCAPED = pattern(rb"\\[abfnrtv](\w+)")  # the word in "\nword"


class Kept(dict[K, V]):
    """What is worked out for a key when it is first looked up.

    Args:
        work: does so.
    """

    def __init__(self, work: Callable[[K], V]) -> None:
        super().__init__()
        self._work = work

    def __missing__(self, key: K) -> V:
        self[key] = found = self._work(key)
        return found


class Contents:
    """What files hold.

    Args:
        files: each with its content.
    """

    def __init__(self, files: Iterable[tuple[Path, bytes]]) -> None:
        self.paths: list[Path] = []
        self._starts: list[int] = []
        self._number: dict[Path, int] = {}
        self._data = bytearray()
        for path, data in files:
            self._number[path] = len(self.paths)
            self.paths.append(path)
            self._starts.append(len(self._data))
            self._data += data
            self._data += b"\n"  # no word goes from one file into the next
        self._starts.append(len(self._data))

    def get(self, path: Path) -> bytes | None:
        """The content of a file; None: it is not one of these."""
        return self[path] if path in self._number else None

    def __getitem__(self, path: Path) -> bytes:
        return self._content(self._number[path])

    def _content(self, number: int) -> bytes:
        with memoryview(self._data) as data:
            return bytes(data[self._starts[number] : self._starts[number + 1] - 1])

    def holding(self, word: bytes) -> Iterator[Path]:
        """The files in which some bytes are."""
        start = self._data.find(word)
        while start >= 0:
            number = bisect_right(self._starts, start) - 1
            yield self.paths[number]
            start = self._data.find(word, self._starts[number + 1])

    def naming(self, words: frozenset[bytes]) -> dict[bytes, list[Path]]:
        """The files that have each of some words, which are identifiers, in code or in a string."""
        found: dict[bytes, list[Path]] = {}
        for number, path in enumerate(self.paths):
            data = self._content(number)
            named = words.intersection(data.translate(_SPACED).split())
            for word in named.union(words.intersection(_ESCAPED.findall(data))):
                found.setdefault(word, []).append(path)
        return found

    def by_word(self, pattern: re.Pattern[bytes]) -> dict[bytes, set[Path]]:
        """The files in which a pattern matches, by what its only group holds; it goes over no line's end."""
        found: dict[bytes, set[Path]] = {}
        for number, path in enumerate(self.paths):
            for word in set(pattern.findall(self._data, *self._starts[number : number + 2])):
                found.setdefault(word, set()).add(path)
        return found
