"""One file in, findings and fixed text out."""

from __future__ import annotations

import functools
import importlib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

from torchmigrate import async_argument
from torchmigrate import edits as editing
from torchmigrate.builtin import RULES
from torchmigrate.catalogue.model import Catalogue, Rule, RuleHead
from torchmigrate.config import Settings
from torchmigrate.fixes import FixPlanner
from torchmigrate.hits import HitFinder
from torchmigrate.imports import ImportPlanner
from torchmigrate.model import Applicability, FileResult, Finding, Fix, Problem, Release
from torchmigrate.names.model import Names
from torchmigrate.names.resolver import LIBRARY_ROOTS, resolve
from torchmigrate.source import Source, SourceError
from torchmigrate.suppress import Suppressions
from torchmigrate.versions.range import VersionRange, severity

MAX_ROUNDS = 10
TOO_DEEP = "nested too deeply to be checked"


class Engine:
    """Checks and fixes files by a catalogue; can be sent to another process.

    Args:
        catalogue: all rules; those that are not selected, or say nothing at the target, are left out.
        settings: what to report, what to fix, and for which versions.
    """

    def __init__(self, catalogue: Catalogue, settings: Settings) -> None:
        self.settings = settings
        self.versions = VersionRange(settings.target, settings.minimum)
        self.catalogue = catalogue.where(self._wanted)
        self.finder = HitFinder(self.catalogue, self.versions)
        codes = [head.code for head in self.catalogue.heads if head.codemod]
        self.codemods = [rule for rule in map(self.catalogue.find, codes) if rule is not None]
        self.unscreened = any(not getattr(codemod(rule), "NEEDS_HITS", False) for rule in self.codemods)
        own = {rule.code for rule in RULES if settings.selects(rule.code)}
        self.enabled = own.union(head.code for head in self.catalogue.heads)

    def _wanted(self, head: RuleHead) -> bool:
        return self.settings.selects(head.code) and severity(head, self.versions) is not None

    # ---- files ---------------------------------------------------------------------------------------

    def check(self, path: Path) -> FileResult:
        """Check (and fix in memory) one file; whatever is wrong with it becomes a problem of the result."""
        try:
            source = Source.read(path)
        except SourceError as error:
            return FileResult(path, problems=[Problem(path, error.reason, error.line)])
        return self.check_source(source, path)

    def check_source(self, source: Source, path: Path) -> FileResult:
        """Check (and fix in memory) a source; the result's `new_text` is set when fixes were applied."""
        result = FileResult(path)
        try:
            found = self.analyse(source, path)
            if self.settings.fix and any(self._applies(finding) for finding in found):
                found = self._fix(source, path, found, result)
        except SourceError as error:
            result.problems.append(Problem(path, error.reason, error.line))
            return result
        except RecursionError:
            result.problems.append(Problem(path, TOO_DEEP))
            return result
        result.findings = found
        return result

    # ---- one round -----------------------------------------------------------------------------------

    def analyse(self, source: Source, path: Path) -> list[Finding]:
        """The findings of one source, suppressed ones left out, in order of place.

        Raises:
            SourceError: the source cannot be parsed.
            RecursionError: it is nested too deeply.
        """
        found: list[Finding] = []
        suppressions = Suppressions.of(source)
        if self.screen(source.text):
            names = resolve(source.parse(), source, roots=LIBRARY_ROOTS - own_packages(path))
            found = self._findings(names, source, path, suppressions)
            names.release()
            if async_argument.CODE in self.enabled:
                found += async_argument.findings(source.async_arguments)
        ignored = self.settings.ignored_in(path)
        found = [item for item in found if item.code not in ignored]
        found = suppressions.filter(found, self.enabled - ignored, self.settings.known)
        found.sort(key=lambda item: (item.start, item.end, item.code))
        return found

    def screen(self, text: str) -> bool:
        """Whether the text may hold anything for the rules; cheap, and never wrong the other way."""
        if not any(root in text for root in LIBRARY_ROOTS):
            return False
        return self.catalogue.screen(text) or self.unscreened

    def _findings(
        self, names: Names, source: Source, path: Path, suppressions: Suppressions
    ) -> list[Finding]:
        # Hidden ones must not be part of a fix that an import shares with its uses.
        hits = [
            hit
            for hit in self.finder.find(names, source)
            if not suppressions.hides(hit.rule.code, hit.rule.name, source.position(hit.match.start)[0])
        ]
        found: list[Finding] = []
        if hits or self.unscreened:
            planner = FixPlanner(
                names,
                source,
                self.versions,
                self.settings,
                is_init=is_init(path),
            )
            found = planner.findings([hit for hit in hits if not hit.rule.codemod])
            for rule in self.codemods:
                mine = [hit for hit in hits if hit.rule is rule]
                found.extend(codemod(rule).find(rule, mine, planner))
        return found

    # ---- fixing --------------------------------------------------------------------------------------

    def _applies(self, finding: Finding) -> bool:
        if finding.fix is None:
            return False
        least = Applicability.UNSAFE if self.settings.unsafe_fixes else Applicability.SAFE
        return finding.fix.applicability >= least

    def _fix(self, source: Source, path: Path, found: list[Finding], result: FileResult) -> list[Finding]:
        """Apply fixes in rounds until none is left; the findings that remain."""
        original = source
        fixed: Counter[str] = Counter()
        released: set[str] = set()
        for _ in range(MAX_ROUNDS):
            wanted = [finding for finding in found if self._applies(finding)]
            if not wanted:
                break
            fixes = list(dict.fromkeys(finding.fix for finding in wanted if finding.fix is not None))
            done = editing.apply(source.text, fixes)
            if not done.applied or done.text == source.text:
                break
            after = source.with_text(done.text)
            bad = self._breaks(after)
            if bad:
                self._blame(source, done.applied, path, result)
                return self.analyse(original, path)
            applied = set(done.applied)
            fixed.update(finding.code for finding in wanted if finding.fix in applied)
            released.update(self._released(source, done.applied))
            source = after
            found = self.analyse(source, path)
        if released:
            source = self._remove_imports(source, path, released)
            found = self.analyse(source, path)
        if source.text != original.text:
            result.fixed = dict(fixed)
            result.old_text, result.new_text = original.text, source.text
        return found

    def _breaks(self, source: Source) -> bool:
        try:
            source.parse()
        except SourceError:
            return True
        return False

    def _blame(self, source: Source, fixes: Iterable[Fix], path: Path, result: FileResult) -> None:
        """Name the rules whose fix, alone, leaves a file that does not parse."""
        guilty = []
        for fix in fixes:
            done = editing.apply(source.text, [fix])
            if self._breaks(source.with_text(done.text)):
                guilty.append(fix.code)
        codes = ", ".join(dict.fromkeys(guilty)) or "several together"
        result.problems.append(
            Problem(
                path,
                f"the fixes ({codes}) gave code that does not parse; the file was left alone (please report)",
            )
        )

    def _released(self, source: Source, fixes: Iterable[Fix]) -> Iterator[str]:
        """What the applied fixes no longer use, as `local name=qualified name`: ids change every round."""
        wanted = {release.binding for fix in fixes for release in fix.releases}
        if wanted:
            names = resolve(source.parse(), source)
            for number in wanted:
                binding = names.bindings[number]
                yield f"{binding.name}={binding.target}"

    def _remove_imports(self, source: Source, path: Path, released: set[str]) -> Source:
        """Remove the imports that fixes left without a use."""
        names = resolve(source.parse(), source)
        planner = ImportPlanner(names, source, is_init=is_init(path))
        unused = [
            Release(binding.id, ())
            for binding in names.bindings
            if binding.is_import and f"{binding.name}={binding.target}" in released and not binding.uses
        ]
        removals = planner.removals(unused)
        if not removals:
            return source
        done = editing.apply(source.text, [Fix("Remove unused imports", Applicability.SAFE, tuple(removals))])
        after = source.with_text(done.text)
        return source if self._breaks(after) else after


def codemod(rule: Rule) -> ModuleType:
    """The module that finds and rewrites for a rule."""
    return importlib.import_module(f"torchmigrate.codemods.{rule.codemod}")


@functools.lru_cache(maxsize=4096)
def _package_of(directory: Path) -> str | None:
    """The top-level package that a directory belongs to, by its `__init__.py` files."""
    top = None
    while (directory / "__init__.py").exists():
        top = directory.name
        if directory.parent == directory:
            break
        directory = directory.parent
    return top


@functools.lru_cache(maxsize=4096)
def _shadows(directory: Path) -> frozenset[str]:
    """Library names that a directory holds as modules of its own (a script there imports those).

    A module of a package is not found that way: there, `import torch` gives the library.
    """
    if (directory / "__init__.py").exists():
        return frozenset()
    return frozenset(
        root
        for root in LIBRARY_ROOTS
        if (directory / f"{root}.py").exists() or (directory / root / "__init__.py").exists()
    )


def own_packages(path: Path) -> frozenset[str]:
    """Library roots that mean something else in this file: its own package, or a module beside it."""
    directory = path.absolute().parent
    own = _package_of(directory)
    return _shadows(directory) | (frozenset([own]) if own in LIBRARY_ROOTS else frozenset())


def is_init(path: Path) -> bool:
    """Whether other modules use what this file imports."""
    return path.name in ("__init__.py", "__init__.pyi")
