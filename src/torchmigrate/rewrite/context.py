"""What is known of one text of a file: computed when it is first needed, and shared by all rules."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

from torchmigrate.config.settings import Settings
from torchmigrate.failures import Failures
from torchmigrate.project.index import ProjectIndex
from torchmigrate.project.one_project import Project
from torchmigrate.project.own_packages import own_packages
from torchmigrate.rewrite.imports.planner import ImportPlanner
from torchmigrate.semantics.exports import Exports
from torchmigrate.semantics.facts.file_facts import FileFacts
from torchmigrate.semantics.flow.values import ValueFlow
from torchmigrate.semantics.guards.formulas import is_handled
from torchmigrate.semantics.libraries import LIBRARY_ROOTS
from torchmigrate.semantics.model import Binding, BindingKind, SemanticModel, Value
from torchmigrate.semantics.walk.resolver import resolve
from torchmigrate.source.text import Source
from torchmigrate.versions.range import VersionRange
from torchmigrate.versions.surface import surface_of
from torchmigrate.versions.surface_model import Status

if TYPE_CHECKING:
    from torchmigrate.evidence.evidence import SeenPlaces
    from torchmigrate.match.rule_matches import RuleMatch
    from torchmigrate.rewrite.fix_maker import FixMaker
    from torchmigrate.rewrite.statements import Rewriting
    from torchmigrate.semantics.facts.dtypes import ValueFacts

T = TypeVar("T")


class FileContext:
    """One text of a file, only read; a fix makes another text, and so another context.

    Args:
        source: the text.
        path: of the file.
        versions: the range of releases that the code is for.
        settings: of the run.
        project: what other files do with the names of this one; None: there are no other files.
        exists: whether the target has a name, None if unknown.
        hides: whether a rule (code and name) is suppressed at an offset.
        given: what names are that the file has from others (`values_from_imports`); None: not looked up.
        seen: what was seen while the text ran.
        like: another one of the same text, which stays open: what every name means is taken from it.
    """

    def __init__(
        self,
        source: Source,
        path: Path,
        versions: VersionRange,
        settings: Settings,
        project: ProjectIndex | None = None,
        *,
        exists: Callable[[str], bool | None] = lambda name: None,
        hides: Callable[[str, str, int], bool] = lambda code, name, offset: False,
        given: Mapping[str, Value] | None = None,
        like: FileContext | None = None,
        seen: SeenPlaces | None = None,
    ) -> None:
        self.source = source
        self.path = path
        self.versions = versions
        self.settings = settings
        self.project = project or ProjectIndex(None)
        self.exists = exists
        self.hides = hides
        self.given = given
        self.failures = Failures(source, path)
        self.hits: Sequence[RuleMatch] = ()  # the uses that rules are about, of all rules
        self.partly_suppressed: Collection[str] = ()  # the `together` words of rules with suppressed findings
        self._made: dict[Hashable, object] = {}
        self._like = like
        self._seen = seen

    @property
    def tree(self) -> ast.Module:
        """The syntax tree. Raises SourceError if there is none."""
        return self.source.parse()

    @cached_property
    def names(self) -> SemanticModel:
        """What every name means.

        Raises:
            SourceError: the source cannot be parsed.
            RecursionError: it is nested too deeply.
        """
        if self._like is not None:
            return self._like.names
        roots, given = LIBRARY_ROOTS - own_packages(self.path), self.given
        if self.settings.own_names:
            roots |= self.settings.own_roots
            given = {**self.project.own(self.path, self.tree, self.settings.own_names), **(given or {})}
        return resolve(self.tree, self.source, roots=roots, given=given, seen=self._seen)

    def values_from_imports(self, *, promising: bool = False) -> dict[str, Value]:
        """What other files say of the names in the tests of this one, of versions and of what there is.

        Few files have such, so that what every name means is first worked out without. promising: only where
        a name seems to be about a version.
        """
        if self.given is not None or self._like is not None:
            return {}  # known already
        return self.project.said(self.path, self.names, promising=promising)

    @cached_property
    def around(self) -> FileFacts:
        """What is around the uses of the file."""
        return FileFacts(self.names)

    @property
    def flow(self) -> ValueFlow:
        """Where values come from, and where they go."""
        return self.around.flow

    @cached_property
    def facts(self) -> ValueFacts:
        """What values are: tensors, their dtypes, numbers of dimensions and devices, and numbers."""
        from torchmigrate.semantics.facts.dtypes import ValueFacts

        return ValueFacts(self.names, self.around)

    @cached_property
    def exports(self) -> Exports:
        """Which names others take from the file."""

        def elsewhere(name: str, starred: bool | None) -> bool:
            if name in self.source.taken:
                return True
            if self.source.is_documentation:
                return False
            return self.project.ask(Project.needs, self.path, name, starred)

        is_init = self.path.name in ("__init__.py", "__init__.pyi")
        return Exports(self.names, is_init=is_init, elsewhere=elsewhere, fails=self._always_fails)

    @cached_property
    def imports(self) -> ImportPlanner:
        """How names are written at a place, and which imports that needs."""
        return ImportPlanner(self.names, self.source, self.exports)

    @cached_property
    def fixes(self) -> FixMaker:
        """What makes findings and fixes; created when the hits are known."""
        from torchmigrate.rewrite.fix_maker import FixMaker

        return FixMaker(self)

    def rewriting(self) -> Rewriting:
        """A new editor of the statements, with what all of the file know of its lines."""
        from torchmigrate.rewrite.statements import Lines, Rewriting

        return Rewriting(self.source, self.once(Lines, lambda: Lines(self.source, self.tree)))

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """What several rules share: made for the first of them, by `make`.

        Args:
            key: what it is; the same key always stands for the same kind of thing.
        """
        if key not in self._made:
            self._made[key] = make()
        return cast("T", self._made[key])

    def close(self) -> None:
        """Let go of all that is known, which is in circles, so that it is freed without a collection."""
        names = self.__dict__.get("names")
        if names is not None and self._like is None:
            names.release()
        self._made.clear()
        for key in ("names", "around", "facts", "exports", "imports", "fixes"):
            self.__dict__.pop(key, None)
        self.hits = ()

    # ---- versions ------------------------------------------------------------------------------------

    def target(self, library: str) -> tuple[int, ...] | None:
        """The release of a library that is moved to; None for one that is not known."""
        return self.versions.of(library)[0]

    def import_fails(self, binding: Binding, *, oldest: bool = False) -> bool:
        """Whether an import surely raises an error at the target, or on the oldest supported release."""
        name = (binding.target if binding.kind is BindingKind.FROM_IMPORT else binding.module) or ""
        surface = surface_of(name)
        release = self.versions.of(name.partition(".")[0])[oldest]
        if surface is None or release is None:
            return False
        # A function that only raises can be imported.
        return surface.status(name, release) is Status.ABSENT and surface.entry(name, release) is None

    def raised(self, name: str) -> type[Exception] | None:
        """What using a name raises at the target; None where it does not surely raise an error."""
        surface, release = surface_of(name), self.target(name.partition(".")[0])
        if surface is None or release is None or surface.status(name, release) is not Status.ABSENT:
            return None
        return AttributeError if surface.entry(name, release) is None else RuntimeError

    def _always_fails(self, binding: Binding) -> bool:
        """Whether an import fails, so that no other file can import its names, on every supported release."""
        return (
            binding.guards.is_nothing()
            and self.import_fails(binding)
            and (self.versions.minimum is None or self.import_fails(binding, oldest=True))
        )

    def runs_elsewhere(self, node: ast.AST) -> bool:
        """Whether a node is in code that does not run at the target; hits were checked already."""
        guards = self.names.guarded.of(node)
        return is_handled(guards, target=self.target, old=(), new=(), exists=self.exists)
