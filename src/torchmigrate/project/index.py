"""The projects of a run: questions about the other files of a file's project, and how they are recorded."""

from __future__ import annotations

import ast
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar, get_type_hints

from msgspec import convert

from torchmigrate.project.discover import SettingsIn
from torchmigrate.project.listing import project_root, state_of
from torchmigrate.project.mentions import Name
from torchmigrate.project.module_values import by_local
from torchmigrate.project.one_project import Project
from torchmigrate.project.questions import NO_ANSWER, Questions
from torchmigrate.project.tested import imported_from, imported_name, is_promising, tested_names
from torchmigrate.semantics.model import QualifiedName, SemanticModel, Value

WORTH_SHARING = 200  # files of a project in a run
T = TypeVar("T")
P = ParamSpec("P")
# The questions that a later run can repeat: methods of `Project`, whose first argument is the real path of
# the file that they are for.
_QUESTIONS: Mapping[str, Callable[..., object]] = {
    question.__name__: question
    for question in (
        Project.needs,
        Project.replaces,
        Project.patches,
        Project.saves_objects,
        Project.saves_plainly,
        Project.decides_loading,
        Project.keeps_objects,
        Project.library_bases,
        Project.is_plain,
        Project.qualified,
        Project.own,
        Project.tells,
    )
}


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

    def ask(
        self,
        question: Callable[Concatenate[Project, Path, P], T],
        path: Path,
        *arguments: P.args,
        **named: P.kwargs,
    ) -> T:
        """The answer of the project that a file is in to one of `_QUESTIONS`."""
        answer = question(self._project(path), self._real(path), *arguments, **named)
        self._record(question.__name__, path, arguments, answer)
        return answer

    def ask_again(self, path: Path, question: str, arguments: Sequence[object]) -> object:
        """The current answer to a query that `questions` recorded with these arguments.

        Raises KeyError for an unknown query, `msgspec.ValidationError` for other arguments.
        """
        asked = _QUESTIONS[question]
        _, *types, _ = get_type_hints(asked).values()
        given = [convert(each, kind) for each, kind in zip(arguments, types, strict=True)]
        return asked(self._project(path), self._real(path), *given)

    def imported(self, path: Path, names: SemanticModel, node: ast.expr) -> Name | None:
        """What a dotted name in a file means that an import binds; None: it does not, or not for sure."""
        return imported_name(names, node, self._real(path))

    def importers(self, path: Path) -> list[Path]:
        """The files of the project that cannot be imported if the module at `path` cannot, by real paths.

        Those that import it as soon as they are imported; and of a package, its modules. Not all of them:
        what is caught, or depends on anything, is not among them.
        """
        return self._project(path).importers(self._real(path))

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
        found = {local: project.said(*asked, real) for local, asked in tested.items()}
        said = {local: value for local, value in found.items() if value}
        # The answers refer to syntax trees, which cannot be compared with later answers.
        self._record(Project.tells.__name__, path, ([*tested.values()],), NO_ANSWER if said else False)
        return by_local(said)

    def own(self, path: Path, tree: ast.Module, names: frozenset[str]) -> dict[str, Value]:
        """The names of the user's rules that a file imports, by local name.

        Covers relative imports and re-exports by modules of the project.
        """
        found = defaultdict[str, set[str | None]](set)
        for local, name in imported_from(tree, self._real(path).parent.parts, names):
            found[local].add(self.ask(Project.own, path, name, names))
        return {
            local: (QualifiedName(meant),)
            for local, several in found.items()
            for meant in several
            if meant is not None and len(several) == 1
        }

    def load(self, paths: Iterable[Path]) -> None:
        """Read the big projects of some files now, so that the processes that are forked share that."""
        directories = Counter(path.parent for path in paths)
        sizes: Counter[Project] = Counter()
        for directory, files in directories.items():
            sizes[self._project(directory / "_")] += files
        for project, size in sizes.items():
            if size >= WORTH_SHARING:
                project.load()

    def _record(self, question: str, path: Path, arguments: tuple[object, ...], answer: object) -> None:
        if self.questions is not None:
            self.questions.add(question, path, arguments, answer)

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
