"""What is found in one source: names, hits, findings; and the imports that fixes leave behind.

Loaded only for files that may hold something, so that a run without any starts quickly.
"""

from __future__ import annotations

import functools
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from torchmigrate.catalogue.codes import OF_API
from torchmigrate.catalogue.index import Catalogue
from torchmigrate.catalogue.prefilter import passes
from torchmigrate.codemods import codemod
from torchmigrate.config.settings import Settings
from torchmigrate.engine.api_rules.api import Api
from torchmigrate.engine.api_rules.finder import ApiFinder
from torchmigrate.engine.held_back import held_back
from torchmigrate.engine.suppressions import Suppressions
from torchmigrate.failures import Failures
from torchmigrate.files.paths import entries, exists, repository_of
from torchmigrate.findings import Finding, Fix, Release
from torchmigrate.match.rule_matches import Hit, HitFinder
from torchmigrate.project.index import ProjectIndex
from torchmigrate.rewrite.apply import flaw, splice
from torchmigrate.rewrite.comments import without_silent_losses
from torchmigrate.rewrite.imports.planner import ImportPlanner
from torchmigrate.rewrite.planner import FixPlanner
from torchmigrate.semantics.exports import Exports
from torchmigrate.semantics.libraries import LIBRARY_ROOTS
from torchmigrate.semantics.model import Binding, Names
from torchmigrate.semantics.walk.resolver import resolve
from torchmigrate.source.text import Source
from torchmigrate.versions.range import VersionRange


class Analyser:
    """Looks for what a catalogue knows.

    Args:
        catalogue: the rules that are wanted.
        versions: the range of releases that the code is for.
        settings: of the run.
        whole: all rules, also those that are not wanted: the API rules leave their names to them.
        project: what other files do with the names of a file; None: there are no other files.
        everywhere: whether what needs a newer release is said of tests and examples as well.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        versions: VersionRange,
        settings: Settings,
        whole: Catalogue | None = None,
        project: ProjectIndex | None = None,
        *,
        everywhere: bool = False,
    ) -> None:
        self.everywhere = everywhere
        self.versions = versions
        self.project = project or ProjectIndex(None)
        self.settings = settings
        api = Api(versions)
        self.exists = api.target.exists
        self.finder = HitFinder(catalogue, versions, self.exists)
        self.api: ApiFinder | None = None
        if not OF_API.isdisjoint(settings.codes):
            self.api = ApiFinder(api, settings.codes, HitFinder(whole or catalogue, versions))
        codes = [head.code for head in catalogue.heads if head.codemod]
        self.rewritten = [rule for rule in map(catalogue.find, codes) if rule is not None]

    def _asked(self, text: str) -> set[str]:
        """The rules whose codemods look for themselves, and may find something in a text."""
        return {rule.code for rule in self.rewritten if rule.prefilter and passes(rule.prefilter)(text)}

    def findings(
        self, source: Source, path: Path, suppressions: Suppressions, failures: Failures
    ) -> list[Finding]:
        """The findings of one source that are not suppressed, in no particular order.

        A rule that fails is named in `failures`, and all others go on.

        Raises:
            SourceError: the source cannot be parsed.
            RecursionError: it is nested too deeply.
        """
        names = resolve(source.parse(), source, roots=LIBRARY_ROOTS - own_packages(path))
        # Hidden ones must not be part of a fix that an import shares with its uses.
        all_hits = self.finder.find(names, source, failures)
        hits = [
            hit
            for hit in all_hits
            if not suppressions.hides(hit.rule.code, hit.rule.name, source.position(hit.match.start)[0])
        ]
        found: list[Finding] = []
        asked = self._asked(source.text)
        if hits or asked:
            exports = exports_of(names, path, self.project)
            planner = FixPlanner(names, source, self.versions, self.settings, failures, exports)
            planner.hits = hits
            if len(hits) < len(all_hits):
                kept = set(map(id, hits))
                planner.halved = {
                    hit.rule.together for hit in all_hits if hit.rule.together and id(hit) not in kept
                }
            planner.exists = self.exists
            planner.saves_objects = functools.partial(self.project.saves_objects, path)
            planner.saves_plainly = functools.partial(self.project.saves_plainly, path)
            planner.decides_loading = functools.partial(self.project.decides_loading, path)
            planner.hides = lambda code, name, offset: suppressions.hides(
                code, name, source.position(offset)[0]
            )
            found = planner.findings([hit for hit in hits if not hit.rule.codemod])
            by_code: defaultdict[str, list[Hit]] = defaultdict(list)
            for hit in hits:
                by_code[hit.rule.code].append(hit)
            for rule in self.rewritten:
                mine = by_code.get(rule.code, [])
                if rule.codemod is not None and (rule.code in asked if rule.prefilter else mine):
                    with failures.caught(rule.code, "every finding"):
                        found.extend(list(codemod(rule.codemod).find(rule, mine, planner)))
            found = planner.settled(planner.at_target(found))
            if any(finding.fix is not None for finding in found):
                found = held_back(found, names, source, path, exports, self.project)
        if self.api is not None:
            root = None if self.everywhere else self.settings.root.absolute()
            seen = {id(hit.use) for hit in all_hits if not hit.rule.opt_in}
            with failures.caught(", ".join(sorted(OF_API & self.settings.codes)), "every finding"):
                found.extend(self.api.findings(names, source, path, seen, root))
        names.release()
        return list(_with_sound_fixes(found, source, failures))


def _with_sound_fixes(found: Iterable[Finding], source: Source, failures: Failures) -> Iterator[Finding]:
    """The findings, fixes left out where nobody could apply them, and not safe where a comment vanishes.

    A fix that findings share is looked at once: it may have as many edits as there are findings.
    """
    sound: dict[int, tuple[Fix, str | None]] = {}
    for finding in found:
        fix = finding.fix
        if fix is not None:
            if id(fix) not in sound:
                why = flaw(fix, len(source.text))
                sound[id(fix)] = (fix if why else without_silent_losses(fix, source.text)), why
            fix, why = sound[id(fix)]
            if why is not None:
                failures.left_out(finding, why)
                fix = None
        yield finding._replace(fix=fix)


def released(source: Source, fixes: Iterable[Fix]) -> set[str]:
    """What fixes no longer use, as `local name=qualified name`: ids change with every round.

    That is what they say themselves, and every import of which a name stands in text that they replace. New
    text may name it again: whether it is used is asked when all fixes are made.
    """
    wanted = {release.binding for fix in fixes for release in fix.releases}
    spans = sorted({(edit.start, edit.end) for fix in fixes for edit in fix.edits if edit.start < edit.end})
    if not wanted and not spans:
        return set()
    starts = [start for start, _ in spans]

    def is_replaced(offset: int) -> bool:
        index = bisect_right(starts, offset) - 1
        return index >= 0 and offset < spans[index][1]

    names = resolve(source.parse(), source)
    found = {
        f"{binding.name}={binding.target}"
        for binding in names.imports
        if binding.id in wanted or any(map(is_replaced, binding.uses))
    }
    names.release()
    return found


def without_unused_imports(source: Source, path: Path, unused: set[str], project: ProjectIndex) -> Source:
    """The source without those of these imports (as `released` gives them) that have no use left."""
    names: Names = resolve(source.parse(), source)
    planner = ImportPlanner(names, source, exports_of(names, path, project))
    here = {f"{binding.name}={binding.target}" for binding in names.imports}
    # A name that two fixes concern: one gave its import a new home, the other its use a new name.
    moved = {_home(item) for item in unused - here}
    releases = [
        Release(binding.id, ())
        for binding in names.imports
        if not binding.uses and not _bound_again(binding)
        for item in [f"{binding.name}={binding.target}"]
        if item in unused or _home(item) in moved
    ]
    removals = planner.removals(releases)
    names.release()
    return source.with_text(splice(source.text, removals)) if removals else source


def _home(item: str) -> str:
    """Local name and library of what `released` gives."""
    name, _, target = item.partition("=")
    return f"{name}={target.partition('.')[0]}"


def _bound_again(binding: Binding) -> bool:
    """Whether another import gives the name that is still used: `import torch` beside `import torch.nn`."""
    others = binding.scope.bindings[binding.name]
    return any(other.is_import and other.uses for other in others)


@functools.lru_cache(maxsize=4096)
def _package_of(directory: Path) -> str | None:
    """The top-level package that a directory belongs to, by its `__init__.py` files."""
    top = None
    while "__init__.py" in entries(directory) and exists(directory / "__init__.py"):
        top = directory.name
        if directory.parent == directory:
            break
        directory = directory.parent
    return top


@functools.lru_cache(maxsize=4096)
def _held(directory: Path) -> frozenset[str]:
    """Library names that the repository around a directory holds as packages, beside or above it.

    The tests of `apex/apex/`, and what stands next to them, mean that one.
    """
    top = repository_of(directory)
    above = [directory, *directory.parents] if top is not None else []
    inside = [place for place in above if top is not None and place.is_relative_to(top)]
    return frozenset(
        root
        for place in inside
        for root in LIBRARY_ROOTS & {*entries(place)}
        if exists(place / root / "__init__.py")
    )


@functools.lru_cache(maxsize=4096)
def _shadows(directory: Path) -> frozenset[str]:
    """Library names that a directory holds as modules of its own (a script there imports those).

    A module of a package is not found that way: there, `import torch` gives the library.
    """
    names = entries(directory)
    if "__init__.py" in names and exists(directory / "__init__.py"):
        return frozenset()
    return frozenset(
        root
        for root in LIBRARY_ROOTS
        if (f"{root}.py" in names and exists(directory / f"{root}.py"))
        or (root in names and exists(directory / root / "__init__.py"))
    )


def own_packages(path: Path) -> frozenset[str]:
    """Library roots that mean something else in this file: its own package, or a module beside it.

    Not the file itself: nobody imports a module into itself, so that a `functorch.py` with `import functorch`
    means the library, though Python would find the file first if that was run as a script.
    """
    directory = path.absolute().parent
    own = _package_of(directory)
    shadows = _shadows(directory)
    if path.stem in shadows and not exists(directory / path.stem / "__init__.py"):
        shadows -= {path.stem}
    return shadows | _held(directory) | (frozenset([own]) if own in LIBRARY_ROOTS else frozenset())


def exports_of(names: Names, path: Path, project: ProjectIndex) -> Exports:
    """Which names others take from a file."""

    def elsewhere(name: str, starred: bool) -> bool:
        return project.needed_elsewhere(path, name, starred=starred)

    return Exports(names, is_init=path.name in ("__init__.py", "__init__.pyi"), elsewhere=elsewhere)
