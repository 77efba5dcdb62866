"""Which findings a baseline hides, and what is left of it when old findings disappear."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from torchmigrate.baseline.entries import BaselineEntry, Key, Spot, readable, spots, squeezed
from torchmigrate.baseline.file import BaselineError, Content, read_content, save
from torchmigrate.files.paths import real_directory
from torchmigrate.files.reading import is_below
from torchmigrate.findings import Finding
from torchmigrate.source.changes import changes
from torchmigrate.source.text import Source
from torchmigrate.versions.releases import parse_version

_ATTEMPTS = 100  # each that fails is another run that has written
_CHANGED = "changed while torchmigrate was writing it: not written"
_NEAR = 100  # lines before and after, where many lines in a row have changed
LooksFor = Callable[[str], bool]  # whether a run would have found something by the rule of this code


class Checked(Struct, frozen=True):
    """A file that a run has checked as a whole.

    target: the release that it was checked for. embedded: whether examples for readers were checked as well.
    """

    path: Path
    looks_for: LooksFor
    target: str
    embedded: bool


class Change(Struct, frozen=True):
    """The changes that a run makes to a baseline: by entry, how often it is accepted from now on.

    fewer: of entries without findings. more: of those that have moved to another file, or whose line a
    fix has changed.
    """

    fewer: Mapping[BaselineEntry, int]
    more: Mapping[BaselineEntry, int]


class _Use(NamedTuple):
    """An entry that hides a place of a finding."""

    entry: BaselineEntry
    spot: Spot


class _Accepted:
    """Entries that have not been used yet."""

    def __init__(self, counts: Mapping[BaselineEntry, int]) -> None:
        self.by_key: defaultdict[Key, Counter[BaselineEntry]] = defaultdict(Counter)
        for entry, count in counts.items():
            self.by_key[entry.key][entry] += count

    def take(self, key: Key, symbol: str | None) -> BaselineEntry | None:
        """Use an entry; None: there is none left. A symbol that one side does not know does not count."""
        for entry, count in self.by_key.get(key, {}).items():
            if count and (not symbol or not entry.symbol or symbol == entry.symbol):
                self.by_key[key][entry] -= 1
                return entry
        return None

    def give_back(self, entry: BaselineEntry) -> None:
        self.by_key[entry.key][entry] += 1


class Baseline:
    """A baseline in a run.

    Raises BaselineError where it cannot be read.
    """

    def __init__(self, path: Path, content: Content | None = None) -> None:
        self.path = path
        self.directory = os.path.realpath(path.absolute().parent)
        self.content = read_content(path) if content is None else content
        self._of_file: defaultdict[str, dict[BaselineEntry, int]] = defaultdict(dict)
        for entry, count in self.content.counts.items():
            self._of_file[entry.path][entry] = count
        # Files that no longer exist: they may have been renamed.
        self.gone = {name for name in self._of_file if not os.path.lexists(f"{self.directory}/{name}")}
        self._moved = _Accepted({e: count for name in self.gone for e, count in self._of_file[name].items()})
        self._uses: dict[str, list[_Use]] = {}

    def name_of(self, path: Path) -> str:
        """What a file is called in the baseline."""
        real = f"{real_directory(path.absolute().parent)}{os.sep}{path.name}"
        if os.path.islink(path):  # noqa: PTH114
            real = os.path.realpath(path)
        try:
            return os.path.relpath(real, self.directory).replace(os.sep, "/")
        except ValueError:  # on another drive
            return Path(real).as_posix()

    def is_in(self, name: str, directories: Iterable[str]) -> bool:
        """Whether a file of the baseline is, or was, in one of some directories, which are real paths."""
        place = os.path.normpath(f"{self.directory}{os.sep}{name}")
        return any(is_below(place, directory) for directory in directories)

    def new(
        self, path: Path, found: Iterable[tuple[Source, Finding]], before: tuple[Source, Source] | None = None
    ) -> list[tuple[Source, Finding]]:
        """Those findings of a file that the baseline does not hide, each with its text.

        found: all of them, each with the text that it is in. before: the text of the file before fixes and
        after them: what a fix has changed is known by what it was. May be called again for the same file.
        """
        name = self.name_of(path)
        for use in self._uses.pop(name, ()):
            if use.entry.path != name:
                self._moved.give_back(use.entry)
        own = self._of_file.get(name)
        if own is not None:
            accepted = _Accepted(own)
        else:  # what stdin is called need not be a file
            accepted = self._moved if os.path.lexists(path) else _Accepted({})
        former = _Former(*before) if before is not None and own is not None else None
        uses: list[_Use] = []
        new: list[tuple[Source, Finding]] = []
        for source, finding in found:
            places = list(spots(finding, source))
            taken: list[_Use] = []
            for spot in places:
                entry = accepted.take(spot.key, spot.symbol)
                if entry is None and former is not None and source is former.after:
                    entry = former.entry(spot, accepted)
                if entry is not None:
                    taken.append(_Use(entry, spot))
            uses += taken
            if len(taken) < len(places):
                new.append((source, finding))
        if uses:
            self._uses[name] = uses
        return new

    # ---- changes after a run ----------------------------------------------------------------------------

    def change(self, checked: Iterable[Checked], directories: Sequence[Path]) -> Change:
        """The entries to remove from the baseline, and the entries that have moved within it.

        checked: the files that were checked as a whole. directories: in which all files were: a file missing
        there was not moved elsewhere. Rules that were not looked for keep their entries; so do all, if the
        target is older than the target of the baseline, or if the baseline is about examples and these were
        not checked.
        """
        fewer: dict[BaselineEntry, int] = {}
        more: dict[BaselineEntry, int] = {}
        seen = {name: each for each in checked if (name := self.name_of(each.path)) in self._concerned}
        moved = Counter(use.entry for uses in self._uses.values() for use in uses)
        unseen = {use.entry for name, uses in self._uses.items() if name not in seen for use in uses}
        for name, each in seen.items():
            old, new = self._of_file.get(name, {}), Counter(map(_current(name), self._uses.get(name, ())))
            for entry, count in new.items():
                if count > old.get(entry, 0):
                    more[entry] = count
            for entry, count in old.items():
                unused = 0 if self._would_find(entry, each) else count - moved[entry]
                if new[entry] + unused < count:
                    fewer[entry] = new[entry] + unused
        inside = [str(real_directory(directory)) for directory in directories]
        for name in self.gone:
            if name in seen:
                continue
            left_out = self.is_in(name, inside)
            for entry, count in self._of_file[name].items():
                to_others = 0 if entry in unseen else moved[entry]
                if left_out or to_others:
                    fewer[entry] = 0 if left_out else count - to_others
        return Change(fewer, more)

    @property
    def _concerned(self) -> frozenset[str]:
        return frozenset([*self._of_file, *self._uses])

    def _would_find(self, entry: BaselineEntry, checked: Checked) -> bool:
        if not checked.looks_for(entry.code) or (self.content.embedded and not checked.embedded):
            return False
        try:
            return self.content.target is None or parse_version(checked.target) >= parse_version(
                self.content.target
            )
        except ValueError:  # what somebody wrote there
            return True

    def apply(self, change: Change) -> int:
        """Write the baseline with a change; how many findings fewer it has.

        What others write into it at the same time stays. Raises BaselineError where it cannot be written.
        """
        content = self.content
        for _ in range(_ATTEMPTS):
            counts = Counter(content.counts)
            before = counts.total()
            for entry, count in change.fewer.items():
                counts[entry] = min(counts[entry], count)
            for entry, count in change.more.items():
                counts[entry] = max(counts[entry], count)
            if +counts == Counter(content.counts) or save(self.path, counts, content):
                return before - (+counts).total()
            content = read_content(self.path)
        raise BaselineError(self.path, _CHANGED)


def fewer_in(change: Change, counts: Mapping[BaselineEntry, int]) -> int:
    """How many findings fewer a baseline has after a change."""
    gone = sum(counts[entry] - count for entry, count in change.fewer.items())
    return gone - sum(count - counts.get(entry, 0) for entry, count in change.more.items())


def write(
    path: Path,
    found: Sequence[tuple[Checked, Sequence[Spot]]],
    directories: Sequence[Path],
    target: str,
) -> int:
    """Write a baseline of all findings of some files; how many it has. Other files keep their entries.

    found: the files that were checked as a whole, with the places of what was found there. directories: as in
    `Baseline.change`. Raises BaselineError where it cannot be written.
    """
    for _ in range(_ATTEMPTS):
        there = os.path.lexists(path)
        baseline = Baseline(path, None if there else Content({}))
        inside = [str(real_directory(directory)) for directory in directories]
        counts = Counter(baseline.content.counts)
        for name in baseline.gone:
            if baseline.is_in(name, inside):
                counts = Counter({entry: count for entry, count in counts.items() if entry.path != name})
        checked = {baseline.name_of(each.path): each for each, _ in found}
        for entry in list(counts):
            each = checked.get(entry.path)
            if each is not None and each.looks_for(entry.code):
                del counts[entry]
        for each, some in found:
            counts.update(spot.entry(baseline.name_of(each.path)) for spot in some)
        embedded = any(each.embedded for each, _ in found)
        if save(path, counts, replace(baseline.content, target=target, embedded=embedded)):
            return counts.total()
    raise BaselineError(path, _CHANGED)


class _Former:
    """What lines were before fixes."""

    def __init__(self, before: Source, after: Source) -> None:
        self.after = after
        self._old = _lines(before)
        self._ranges = list(changes(self._old, _lines(after)))
        self._starts = [j1 for _, _, j1, _ in self._ranges]

    def entry(self, spot: Spot, accepted: _Accepted) -> BaselineEntry | None:
        """Use an entry about a line that a fix has made into that of a place."""
        first, last = spot.rows[0] - 1, spot.rows[-1]  # 0-based, the end exclusive
        index = max(0, bisect_right(self._starts, first) - 1)
        while index < len(self._ranges) and self._ranges[index][2] < last:
            i1, i2, j1, j2 = self._ranges[index]
            index += 1
            if first >= max(j2, j1 + 1):
                continue
            near = i1 + first - j1
            lines = self._old[max(i1, near - _NEAR) : min(i2, near + _NEAR)]
            for line in (*lines, " ".join(lines)):
                entry = accepted.take(Key(spot.code, squeezed(readable(line))), spot.symbol)
                if entry is not None:
                    return entry
        return None


def _lines(source: Source) -> list[str]:
    return [source.shown_line(row) for row in range(1, source.line_count + 1)]


def _current(name: str) -> Callable[[_Use], BaselineEntry]:
    """What an entry that is used is in a file of this name."""

    def current(use: _Use) -> BaselineEntry:
        entry, spot = use
        return entry._replace(path=name) if entry.key == spot.key else spot.entry(name)

    return current
