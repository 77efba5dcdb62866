"""An index of a project: what its files take from each other, and which names they patch."""

from __future__ import annotations

import ast
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from torchmigrate.project.discover import SettingsIn
from torchmigrate.project.listing import (
    project_root,
    state_of,
)
from torchmigrate.project.mentions import Name
from torchmigrate.project.module_values import (
    by_local,
)
from torchmigrate.project.one_project import STEPS, Project
from torchmigrate.project.questions import NO_ANSWER, Questions
from torchmigrate.project.tested import imported_from, imported_name, is_promising, tested_names
from torchmigrate.semantics.model import QualifiedName, SemanticModel, Value

WORTH_SHARING = 200  # files of a project in a run
T = TypeVar("T")


class ProjectIndex:
    """Answers for all files of a run; looks at a project when the first question about it comes.

    Can be sent to another process. What it says of a file depends on the files of its project only: neither
    on those that were given, nor on how many processes there are.

    Args:
        settings_in: says what is excluded in a directory; None: there are no other files.
        questions: records every query and its answer; None disables recording.
    """

    def __init__(self, settings_in: SettingsIn | None, questions: Questions | None = None) -> None:
        self.settings_in = settings_in
        self.questions = questions
        self._projects: dict[Path, Project] = {}
        self._states: dict[Path, str] = {}
        self._reals: dict[Path, Path] = {}

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_projects": {}, "_states": {}, "_reals": {}}

    def needed_elsewhere(self, path: Path, name: str, *, starred: bool | None = True) -> bool:
        """Whether another file of the project takes a name of the module at `path`.

        That is: imports it, reads it as an attribute of the module, or names it in a string, as for a patch.

        Args:
            starred: whether a star import takes it; None: only in a file that names it as well.
        """
        return self._recorded(
            "needed_elsewhere",
            path,
            self._project(path).needed(self._real(path), name, starred),
            name,
            starred,
        )

    def replaced(self, path: Path, name: str) -> bool:
        """Whether another file of the project puts something else in the place of a name of this module."""
        return self._recorded("replaced", path, self._project(path).replaces(self._real(path), name), name)

    def patched(self, path: Path, qualified: str) -> Path | None:
        """A file of the project of `path`, other than itself, that patches a name of a library."""
        return self._recorded(
            "patched", path, self._project(path).patches(self._real(path), qualified), qualified
        )

    def saves_objects(self, path: Path) -> bool:
        """Whether a file of the project writes checkpoints with more than tensors, which `path` may read."""
        return self._recorded(
            "saves_objects", path, self._project(path).saves_objects(self._real(path).parent)
        )

    def saves_plainly(self, path: Path, name: str) -> bool | None:
        """Whether a file in the directory of `path` saves what is plain under a file name.

        False: a file of the project saves anything else under it; None: no file of the directory saves any.
        """
        return self._recorded(
            "saves_plainly", path, self._project(path).saves_plainly(self._real(path).parent, name), name
        )

    def decides_loading(self, path: Path) -> bool:
        """Whether a package that `path` is in or imports says for all what `torch.load` reads."""
        return self._recorded("decides_loading", path, self._project(path).decides_loading(self._real(path)))

    def keeps_objects(self, path: Path, names: SemanticModel, made: ast.expr, called: Sequence[str]) -> bool:
        """Whether a class that a file imports puts objects into the state dict that it makes itself.

        Args:
            made: the class, as the file names it.
            called: as for `OwnStates.keeps_objects`.
        """
        real = self._real(path)
        name = imported_name(names, made, real)
        if name is None:
            return False
        found = self._project(path).keeps_objects(name, real, called)
        return self._recorded("keeps_objects", path, found, name, list(called))

    def library_bases(self, path: Path, names: SemanticModel, base: ast.expr, without: str) -> set[str]:
        """The classes of libraries that a class derives from which a file imports from the project.

        Empty where not all bases are known, or one of the classes names an attribute in `without` (words).
        """
        real = self._real(path)
        name = imported_name(names, base, real)
        if name is None:
            return set()
        found = self._project(path).library_bases(name, real, without)
        return self._recorded("library_bases", path, found, name, without)

    def is_plain(self, path: Path, names: SemanticModel, node: ast.expr) -> bool:
        """Whether what a file imports under a name is known to be text or a number."""
        real = self._real(path)
        name = imported_name(names, node, real)
        if name is None:
            return False
        return self._recorded("is_plain", path, self._project(path).is_plain(name, real), name)

    def qualified(self, name: Name, path: Path) -> set[str]:
        """The names of a library that a name in a file may mean, also through modules of the project."""
        return self._recorded("qualified", path, self._project(path).qualified(name, self._real(path)), name)

    def load(self, paths: Iterable[Path]) -> None:
        """Read the big projects of some files now, so that the processes that are forked share that."""
        directories = Counter(path.parent for path in paths)
        sizes: Counter[Project] = Counter()
        for directory, files in directories.items():
            sizes[self._project(directory / "_")] += files
        for project, size in sizes.items():
            if size >= WORTH_SHARING:
                project.load()

    def importers(self, path: Path) -> list[Path]:
        """The files of the project that cannot be imported if the module at `path` cannot, by real paths.

        Those that import it as soon as they are imported; and of a package, its modules. Not all of them:
        what is caught, or depends on anything, is not among them.
        """
        found = self._project(path).importers(self._real(path))
        self._recorded("importers", path, NO_ANSWER)  # by no rule
        return found

    def said(self, path: Path, names: SemanticModel, *, promising: bool = False) -> dict[str, Value]:
        """What other files say of names that tests in a file ask, by what they are called there.

        Only values about versions, or about the existence of names.

        Args:
            promising: read no other file unless one of the names seems to be about a version.
        """
        if promising and not is_promising(names):
            return {}
        real = self._real(path)
        tested = tested_names(names, real)
        if not tested:
            return {}
        project = self._project(path)
        found = {
            local: project.said(name, real, STEPS, attributes) for local, (name, attributes) in tested.items()
        }
        said = {local: value for local, value in found.items() if value}
        # The answers refer to syntax trees, which cannot be compared with later answers.
        self._recorded("said", path, NO_ANSWER if said else False, *tested.values())
        return by_local(said)

    def own(self, path: Path, tree: ast.Module, names: frozenset[str]) -> dict[str, Value]:
        """The names of the user's rules that a file imports, by local name.

        Covers relative imports and re-exports by modules of the project.
        """
        real, found = self._real(path), defaultdict[str, set[str | None]](set)
        for local, name in imported_from(tree, real.parent.parts, names):
            meant = self._project(path).own(name, real, names)
            found[local].add(self._recorded("own", path, meant, name, names))
        return {
            local: (QualifiedName(meant),)
            for local, several in found.items()
            for meant in several
            if meant is not None and len(several) == 1
        }

    def ask_again(self, path: Path, question: str, arguments: list[Any]) -> object:
        """The current answer to a query that `questions` recorded with these arguments.

        Raises ValueError for an unknown query; the arguments may hold anything.
        """
        project, real = self._project(path), self._real(path)
        match question, arguments:
            case "needed_elsewhere", [str(name), (bool() | None) as starred]:
                return project.needed(real, name, starred)
            case "replaced", [str(name)]:
                return project.replaces(real, name)
            case "patched", [str(name)]:
                return project.patches(real, name)
            case "saves_objects", []:
                return project.saves_objects(real.parent)
            case "saves_plainly", [str(name)]:
                return project.saves_plainly(real.parent, name)
            case "decides_loading", []:
                return project.decides_loading(real)
            case "keeps_objects", [[base, parts], list(called)]:
                return project.keeps_objects(_name(base, parts), real, list(map(str, called)))
            case "library_bases", [[base, parts], str(without)]:
                return project.library_bases(_name(base, parts), real, without)
            case "is_plain", [[base, parts]]:
                return project.is_plain(_name(base, parts), real)
            case "qualified", [[base, parts]]:
                return project.qualified(_name(base, parts), real)
            case "own", [[base, parts], list(names)]:
                return project.own(_name(base, parts), real, frozenset(map(str, names)))
            case "said", _:
                asked = [(_name(*name), frozenset(attributes)) for name, attributes in arguments]
                return any(project.said(name, real, STEPS, attributes) for name, attributes in asked)
        raise ValueError(question)

    def _recorded(self, question: str, path: Path, answer: T, *arguments: object) -> T:
        if self.questions is not None:
            self.questions.add(question, path, arguments, answer)
        return answer

    def _project(self, path: Path) -> Project:
        if self.settings_in is None:
            root = Path(os.devnull)
        else:
            directory = self._real(path).parent
            root = project_root(directory, self._real(self.settings_in(directory).root))
        if root not in self._projects:
            if self.questions is not None:  # before anything is read: what changes meanwhile is seen later
                self._states[root] = state_of(root, self.settings_in)
            self._projects[root] = Project(root, self.settings_in)
        if self.questions is not None:
            self.questions.of_state(root, self._states[root])
        return self._projects[root]

    def _real(self, path: Path) -> Path:
        if path not in self._reals:
            # Most files are not links themselves; their directories are looked at once.
            if path.is_symlink() or path.name in ("", ".."):
                self._reals[path] = Path(os.path.realpath(path))
            else:
                if path.parent not in self._reals:
                    self._reals[path.parent] = Path(os.path.realpath(path.parent))
                self._reals[path] = self._reals[path.parent] / path.name
        return self._reals[path]


def _name(base: Any, parts: Any) -> Name:
    """A name from what JSON has of it."""
    return Name(None if base is None else tuple(map(str, base)), tuple(map(str, parts)))
