"""What the files of a project save, as far as other files of it may read that."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cached_property
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
from torchmigrate.project.contents import Contents, Kept
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
        self.of = Kept(self._saved)
        self.saves_objects = Kept(self._saves_objects_for)  # by the directory that may read that
        self.saves_plainly = Kept(self._saves_plainly)
        self._numeric = Kept(self._gives_numbers)
        self._with_settings = Kept(self._saves_settings)

    @cached_property
    def _writing(self) -> set[Path]:
        """The files that may write checkpoints themselves."""
        renaming = {path for path in self.contents.holding(RENAMES) if may_write(self.contents[path])}
        return renaming.union(self.contents.holding(SAVES))

    @cached_property
    def _maybe_saving(self) -> list[Path]:
        return sorted(self._writing.union(*map(self.contents.holding, WRITERS)))

    def _saves_settings(self, path: Path) -> bool:
        """Whether a file seems to save settings as objects."""
        return may_hold_settings(self.contents[path])

    @cached_property
    def _saving(self) -> list[Path]:
        """The files that may write checkpoints, or make them."""
        named = self._writing.union(*map(self.contents.holding, (STATES, GROUPS)))
        return sorted(path for path in named if may_save(self.contents[path]))

    def _saved(self, path: Path) -> Saved | None:
        """What a file saves; None: it cannot be parsed."""
        try:
            source = Source.from_bytes(self.contents[path], path)
            return Saved(ValueFlow(resolve(source.parse(), source)), self.contents[path])
        except (SourceError, RecursionError):
            return None

    def _saves_objects_for(self, directory: Path) -> bool:
        """Whether a file writes checkpoints with more than tensors, which those of a directory may read."""
        return any(
            self._may_belong(directory, path.parent) and self._with_settings[path]
            for path in self._maybe_saving
        ) or any(
            self._may_belong(directory, path.parent) and self._saves_objects(path) for path in self._saving
        )

    def _saves_objects(self, path: Path) -> bool:
        """Whether what a file saves may hold numbers of NumPy or other objects in addition to state dicts."""
        saved = self.of[path]
        return saved is None or saved.holds_objects or any(self._numeric[each] for each in saved.measured_by)

    def _gives_numbers(self, function: str) -> bool:
        """Whether a function of this name stands in a file that computes with NumPy."""
        files = self.contents.holding(b"def %s(" % os.fsencode(function))
        return any(is_numeric(self.contents[path]) for path in files)

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

    @cached_property
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

    def _saves_plainly(self, asked: tuple[Path, str]) -> bool | None:
        """Whether what is saved in or near a directory under a name is plain; None: nothing is."""
        directory, name = asked
        plain = self._written_plainly(name, self._ending(name, self._saving_nearby.get(directory, ())))
        if not plain:
            return plain
        every = [path for paths in self._saving_nearby.values() for path in paths]
        named = self._ending(name, every)
        return self._written_plainly(
            name, [path for path in named if self._may_belong(directory, path.parent)]
        )

    def _written_plainly(self, name: str, paths: Iterable[Path]) -> bool | None:
        """Whether files save what is plain under a name, all that save any; None: none does."""
        written = [saved.plainly.get(name) if (saved := self.of[path]) else False for path in paths]
        return False if False in written else True in written or None
