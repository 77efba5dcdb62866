"""What the files of a project save, as far as other files of it may read that."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable
from pathlib import Path

from torchmigrate.files.paths import entries
from torchmigrate.project.checkpoints import (
    GROUPS,
    RENAMES,
    SAVES,
    STATES,
    WRITERS,
    Saved,
    is_numeric,
    last_in_string,
    may_hold_settings,
    may_save,
    may_write,
)
from torchmigrate.project.contents import Contents
from torchmigrate.semantics.flow.values import ValueFlow
from torchmigrate.semantics.walk.resolver import resolve
from torchmigrate.source.text import Source, SourceError


class SavedFiles:
    """The files that write checkpoints, or what they have in them.

    Args:
        root: of the project.
        contents: what its files hold.
    """

    def __init__(self, root: Path, contents: Contents) -> None:
        self.root = root
        self.contents = contents
        self._saved_by: dict[Path, Saved | None] = {}
        self._objects_for: dict[Path, bool] = {}
        self._numeric: dict[str, bool] = {}
        self._with_settings: dict[Path, bool] = {}
        self._plain: dict[str, dict[Path, bool | None]] = {}

    @functools.cached_property
    def _writing(self) -> set[Path]:
        """The files that may write checkpoints themselves."""
        renaming = {path for path in self.contents.holding(RENAMES) if may_write(self.contents[path])}
        return renaming.union(self.contents.holding(SAVES))

    @functools.cached_property
    def _maybe_saving(self) -> list[Path]:
        return sorted(self._writing.union(*map(self.contents.holding, WRITERS)))

    def _saves_settings(self, path: Path) -> bool:
        """Whether a file seems to save settings as objects."""
        if path not in self._with_settings:
            self._with_settings[path] = may_hold_settings(self.contents[path])
        return self._with_settings[path]

    @functools.cached_property
    def _saving(self) -> list[Path]:
        """The files that may write checkpoints, or make them."""
        named = self._writing.union(*map(self.contents.holding, (STATES, GROUPS)))
        return sorted(path for path in named if may_save(self.contents[path]))

    def of(self, path: Path) -> Saved | None:
        """What a file saves; None: it cannot be parsed."""
        if path not in self._saved_by:
            try:
                source = Source.from_bytes(self.contents[path], path)
                flow = ValueFlow(resolve(source.parse(), source))
                self._saved_by[path] = Saved(flow, self.contents[path])
            except (SourceError, RecursionError):
                self._saved_by[path] = None
        return self._saved_by[path]

    def saves_objects(self, directory: Path) -> bool:
        """Whether a file writes checkpoints with more than tensors, which those of a directory may read."""
        if directory not in self._objects_for:
            self._objects_for[directory] = any(
                self._may_belong(directory, path.parent) and self._saves_settings(path)
                for path in self._maybe_saving
            ) or any(
                self._may_belong(directory, path.parent) and self._saves_objects(path)
                for path in self._saving
            )
        return self._objects_for[directory]

    def _saves_objects(self, path: Path) -> bool:
        """Whether what a file saves may hold numbers of NumPy or other objects in addition to state dicts."""
        saved = self.of(path)
        return saved is None or saved.holds_objects or any(map(self._gives_numbers, saved.measured_by))

    def _gives_numbers(self, function: str) -> bool:
        """Whether a function of this name stands in a file that computes with NumPy."""
        if function not in self._numeric:
            files = self.contents.holding(b"def %s(" % os.fsencode(function))
            self._numeric[function] = any(is_numeric(self.contents[path]) for path in files)
        return self._numeric[function]

    def _may_belong(self, one: Path, other: Path) -> bool:
        """Whether scripts in a directory may read what those in another write.

        They do not in a collection of separate things: `examples/first/`, `examples/second/`, where each
        saves its own, none is a package, and what they are in has no files of its own.
        """
        if one == other or one in other.parents or other in one.parents:
            return True
        if "__init__.py" in entries(one) or "__init__.py" in entries(other) or one not in self._saving_nearby:
            return True
        common = Path(os.path.commonpath([one, other]))
        return common == self.root or any(name.endswith(".py") for name in entries(common))

    @functools.cached_property
    def _saving_nearby(self) -> dict[Path, list[Path]]:
        """Directory -> its files that save something."""
        found: dict[Path, list[Path]] = {}
        for path in sorted(self._writing):
            found.setdefault(path.parent, []).append(path)
        return found

    def _ending(self, name: str, paths: Iterable[Path]) -> list[Path]:
        """Those of some files in which a string ends with a name."""
        ends = last_in_string(name)
        return [path for path in paths if ends.search(self.contents[path])]

    def saves_plainly(self, directory: Path, name: str) -> bool | None:
        """Whether what is saved under a name in or near a directory is plain; None: nothing is."""
        if name not in self._plain or directory not in self._plain[name]:
            plain = self._written_plainly(name, self._ending(name, self._saving_nearby.get(directory, ())))
            if plain:
                every = [path for paths in self._saving_nearby.values() for path in paths]
                named = self._ending(name, every)
                near = [path for path in named if self._may_belong(directory, path.parent)]
                plain = self._written_plainly(name, near)
            self._plain.setdefault(name, {})[directory] = plain
        return self._plain[name][directory]

    def _written_plainly(self, name: str, paths: Iterable[Path]) -> bool | None:
        """Whether files save what is plain under a name, all that save any; None: none does."""
        written = [saved.plainly.get(name) if (saved := self.of(path)) else False for path in paths]
        return False if False in written else True in written or None
