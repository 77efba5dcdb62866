"""The cache of a run: which files need no check, and what is kept of the others.

A result counts as long as its file and what is around it have the same key, and all queries about other files
have the same answers. That is certain while the project they are in is in the same state; else the queries
are repeated, which takes far less than a check.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from torchmigrate.cache.contents import Contents, Status, status_of
from torchmigrate.cache.keys import key_of_file, key_of_settings
from torchmigrate.cache.location import directory_for
from torchmigrate.cache.records import Reader, record_of
from torchmigrate.cache.store import CacheEntry, Store
from torchmigrate.cache.trust import UntrustedError, key_for
from torchmigrate.engine.results import FileResult
from torchmigrate.files.digests import digest_of
from torchmigrate.files.paths import real_directory
from torchmigrate.files.reading import NOTEBOOK, SOURCE, UnreadableError, read
from torchmigrate.findings import Trouble
from torchmigrate.project import listing
from torchmigrate.project.discover import SettingsIn
from torchmigrate.project.questions import TEXT, plain
from torchmigrate.source.kinds import kind_of
from torchmigrate.source.text import SourceError

if TYPE_CHECKING:
    from torchmigrate.config.settings import Settings
    from torchmigrate.project.index import ProjectIndex
    from torchmigrate.run.configurations import Scope


class _FileState(Struct, frozen=True):
    """What was looked up for a file.

    name: its path in the store. directory: in which it really is. status: of the file before it was read.
    digest: of what it held then.
    """

    store: Store
    name: str
    directory: str
    key: str
    status: Status
    digest: bytes


class Cache:
    """The cache of one run.

    Args:
        scopes: what holds for each file.
        settings_in: what holds in a directory that is only looked at.
        index: the index of the projects that a file is in; loaded when it is first queried.
        note: receives, in a line, why a part of the cache is not used.
        warn: receives, in a line, why there is no cache.
        fixing: fixes are made: only that there is nothing in a file counts, and nothing is kept.
    """

    def __init__(
        self,
        scopes: Mapping[Path, Scope],
        settings_in: SettingsIn,
        index: Callable[[Path], ProjectIndex],
        note: Callable[[str], None],
        warn: Callable[[str], None],
        *,
        fixing: bool = False,
    ) -> None:
        self.scopes = scopes
        self.settings_in = settings_in
        self.index = index
        self.note = note
        self.warn = warn
        self.fixing = fixing
        self._by_settings: dict[int, Store | None] = {}
        self._keys: dict[Path, bytes | None] = {}  # of directories; None: not used
        self._stores: dict[Path, Store] = {}
        self._looked: dict[Path, _FileState] = {}
        self._reals: dict[str, str] = {}
        self._roots: dict[str, Path] = {}
        self._contents: dict[Path, Contents] = {}
        self._digests: dict[str, bytes] = {}  # of what files hold, by real paths
        self._states: dict[Path, str] = {}

    def results(self, files: Iterable[Path]) -> dict[Path, FileResult]:
        """What is known of some files."""
        found: dict[Path, FileResult] = {}
        depending: list[tuple[Path, CacheEntry, Any]] = []
        for path in files:
            store = self._store(self.scopes[path])
            looked = None if store is None else self._look(path, store)
            if store is None or looked is None:
                continue
            entry = store.get(looked.name)
            if entry is None or entry.key != looked.key:
                continue
            if self.fixing and (entry.record, entry.asked) != (None, None):
                continue
            result = self._result(path, entry, looked.digest)
            if result is None:
                continue
            if entry.asked is not None:
                depending.append((path, entry, result))
            else:
                found[path] = result
        for path, entry, result in depending:  # when the content of all files is known
            if self._holds(path, entry):
                found[path] = result
        return found

    def keep(self, result: FileResult) -> None:
        """Keep what was found in a file."""
        looked = self._looked.get(result.path)
        asked = result.asked
        if self.fixing or looked is None or asked is None or not asked.whole:
            return
        if any(
            problem.kind not in (Trouble.SYNTAX, Trouble.MANY) or problem.path != result.path
            for problem in result.problems
        ):
            return  # what may not happen again
        if looked.status != self._status(result.path)[1]:
            return  # it may have been read in two states
        kept = asked if asked.states or asked.questions else None
        looked.store.put(looked.name, looked.key, record_of(result), kept)

    def save(self) -> None:
        """Write what is new."""
        for store in self._stores.values():
            store.save()
        for contents in self._contents.values():
            contents.save()

    # ---- files ---------------------------------------------------------------------------------------

    def _store(self, scope: Scope) -> Store | None:
        number = id(scope.settings)
        if number not in self._by_settings:
            settings = scope.settings
            directory = directory_for(settings.root, settings.cache_dir)
            if directory is None:
                self.note(f"cache: none in {settings.root}, which many projects share")
            key = None if directory is None else self._key(directory, settings.root)
            store = None
            if directory is not None and key is not None:
                place = directory / key_of_settings(settings, scope.rules)
                if place not in self._stores:
                    self._stores[place] = Store(directory, place.name, key, self.note)
                    if directory not in self._contents:
                        self._contents[directory] = Contents(directory, key, self.note)
                store = self._stores[place]
            self._by_settings[number] = store
        return self._by_settings[number]

    def _key(self, directory: Path, root: Path) -> bytes | None:
        """The key of a cache; None: it is not used."""
        if directory not in self._keys:
            self._keys[directory] = None
            try:
                self._keys[directory] = key_for(directory, root)
            except UntrustedError as error:
                self.warn(f"cache: not used: {directory}: {error}")
        return self._keys[directory]

    def _look(self, path: Path, store: Store) -> _FileState | None:
        """Work out the key of a file. None: it is not for a cache."""
        is_link, status = self._status(path)
        if status is None:
            return None
        name = os.path.abspath(path)  # noqa: PTH100 (`..` is none of the path)
        directory, _, last = name.rpartition(os.sep)
        if directory not in self._reals:
            self._reals[directory] = str(real_directory(Path(directory or os.sep)))
        directory = self._reals[directory]
        if is_link:
            directory, _, last = os.path.realpath(path).rpartition(os.sep)
        real = directory + os.sep + last
        digest = self._contents[store.path.parent].digest(real, status)
        if digest is None:
            try:
                data = read(path, _most(path))
            except UnreadableError:
                return None
            digest = digest_of(data)
            if self._status(path)[1] == status:
                self._contents[store.path.parent].keep(real, status, digest)
        if status[2] <= SOURCE:  # larger files are not read elsewhere
            self._digests[real] = digest
        key = key_of_file(path, name, directory, self.scopes[path].settings, digest).hex()
        looked = self._looked[path] = _FileState(store, name, directory, key, status, digest)
        return looked

    def _status(self, path: Path) -> tuple[bool, Status | None]:
        """Whether a path is a link, and what changes when the file is written; None: it is not there."""
        try:
            found = os.lstat(path)
            is_link = stat.S_ISLNK(found.st_mode)
            if is_link:
                found = os.stat(path)  # noqa: PTH116 (of every file)
        except (OSError, ValueError):
            return False, None
        return is_link, status_of(found)

    def _result(self, path: Path, entry: CacheEntry, digest: bytes) -> FileResult | None:
        """What was found in a file that has this digest; None: that cannot be read."""
        if entry.record is None:
            return FileResult(path)
        settings = self.scopes[path].settings
        try:
            data = read(path, _most(path))
            if digest_of(data) != digest:  # it was written just now
                return None
            size, examples = _sizes(path, data, settings)
            return Reader(path, size, examples, settings.known).result(entry.record)
        except (SourceError, UnreadableError, ValueError, TypeError, RecursionError):
            return None

    # ---- other files ---------------------------------------------------------------------------------

    def _holds(self, path: Path, entry: CacheEntry) -> bool:
        """Whether the queries for a file still have the same answers."""
        try:
            asked, same = entry.asked, True
            assert asked is not None
            if asked.states:
                same = asked.states == {str(self._root(path)): self._state(path)}
                if not same and not (asked.again and [*asked.states] == [str(self._root(path))]):
                    return False
            for question, arguments, answer in asked.questions:
                if question == TEXT:
                    now: object = self._text(path, arguments)
                elif same:
                    continue
                else:
                    now = plain(self.index(path).ask_again(path, question, arguments))
                if now != answer:
                    return False
        except Exception as error:  # not written by this program
            from torchmigrate.files.signals import interrupt_in

            if (interrupt := interrupt_in(error)) is not None:
                raise interrupt from None
            return False
        if not same:
            looked = self._looked[path]
            states = {str(self._root(path)): self._state(path)}
            looked.store.put(looked.name, entry.key, entry.record, replace(asked, states=states))
        return True

    def _root(self, path: Path) -> Path:
        """The project that a file's queries go to."""
        real = self._looked[path].directory
        if real not in self._roots:
            directory = Path(real or os.sep)
            settings = self.settings_in(directory)
            self._roots[real] = listing.project_root(directory, Path(os.path.realpath(settings.root)))
        return self._roots[real]

    def _state(self, path: Path) -> str:
        root = self._root(path)
        if root not in self._states:
            contents = self._contents[self._looked[path].store.path.parent]

            def digest(file: Path) -> bytes:
                return self._digests.get(str(file)) or contents.content_digest(file, SOURCE)

            self._states[root] = listing.state_of(root, self.settings_in, digest)
        return self._states[root]

    def _text(self, path: Path, arguments: Any) -> str | None:
        (name,) = arguments
        within = listing.project_around(path, self.scopes[path].settings.root)
        try:
            return digest_of(read(name, within=within)).hex()
        except UnreadableError:
            return None


def _most(path: Path) -> int:
    """How many bytes of a file are read."""
    return NOTEBOOK if path.suffix == listing.NOTEBOOK else SOURCE


def _sizes(path: Path, data: bytes, settings: Settings) -> tuple[int, list[int]]:
    """How many characters a text has, and the examples in it."""
    source = kind_of(path, embedded=settings.embedded).from_bytes(data, path)
    if not settings.embedded:
        return len(source.text), []
    from torchmigrate.source.embedded import embedded_in

    return len(source.text), [len(example.text) for example in embedded_in(source)]
