"""One file in, findings and fixed text out."""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from torchmigrate.catalogue.codes import ASYNC_ARGUMENT, OF_API
from torchmigrate.catalogue.prefilter import passes
from torchmigrate.config.settings import Settings
from torchmigrate.engine import async_argument
from torchmigrate.engine.suppressions import Suppressions
from torchmigrate.failures import Failures
from torchmigrate.files.reading import PARSED, UNRELATED, too_large
from torchmigrate.findings import Applicability, FileResult, Finding, Fix, Problem
from torchmigrate.semantics.libraries import mentions_library
from torchmigrate.source.kinds import KINDS, kind_of, read_source
from torchmigrate.source.other import OtherSource
from torchmigrate.source.text import Source, SourceError
from torchmigrate.versions.range import VersionRange, severity

if TYPE_CHECKING:
    from torchmigrate.catalogue.index import Catalogue
    from torchmigrate.catalogue.model import Rule, RuleHead
    from torchmigrate.engine.analysis import Analyser
    from torchmigrate.project.index import ProjectIndex
    from torchmigrate.rewrite.context import FileContext
    from torchmigrate.texts.file import Read
    from torchmigrate.texts.find import TextFinder

MAX_ROUNDS = 10  # without fewer fixes than ever before
MOST_ROUNDS = 200  # with fewer: calls in each other, which Python's parser takes up to that depth
NOTEBOOK = "notebooks are not read; convert it with `jupyter nbconvert --to script`"
ENDLESS = "{}: the fixes never come to an end; the file was left alone (please report)"
PYTHON = frozenset(["", *KINDS, ".pyw"])  # suffixes of what may be Python
TOO_DEEP = "nested too deeply to be checked"


def _reason(error: SourceError, path: Path) -> str:
    """Why a text cannot be checked; of one that is not even named as Python, not that it is Python 2."""
    if path.suffix in PYTHON:
        return error.reason
    return f"not a Python file (its name ends in `{path.suffix}`)"


class Engine:
    """Checks and fixes files by a catalogue; can be sent to another process.

    Args:
        catalogue: all rules; those that are not selected, or say nothing at the target, are left out.
        settings: what to report, what to fix, and for which versions.
        in_project: whether other files of the project are asked what they need of a file.
        everywhere: whether what needs a newer release is said of tests and examples as well.
    """

    def __init__(
        self, catalogue: Catalogue, settings: Settings, *, in_project: bool = False, everywhere: bool = False
    ) -> None:
        self.settings = settings
        self.in_project = in_project
        self._first: Engine | None = None
        self.everywhere = everywhere
        self.beside: Read | None = None  # gives the text of other files, where they are not read
        self.versions = VersionRange(settings.target, settings.minimum)
        self.whole = catalogue
        self.catalogue = catalogue.where(self._wanted)

    def sibling(self, settings: Settings) -> Engine:
        """An engine for other requirements, which shares what this one knows of the project."""
        engine = Engine(self.whole, settings, in_project=self.in_project, everywhere=self.everywhere)
        engine._first = self
        return engine

    def _wanted(self, head: RuleHead) -> bool:
        if head.unless_declared in self.settings.packages:
            return False
        changes = {head.changed, head.last_change}  # of several symbols
        if head.files and not any((head.outdated, head.deprecated, head.changed, head.removed)):
            return self.settings.selects(head.code)  # it is about no release
        return self.settings.selects(head.code) and any(
            severity(head._replace(changed=changed), self.versions) is not None for changed in changes
        )

    def load(self) -> None:
        """Read the rules now, so that the processes that are forked share them."""
        self.catalogue.load()

    @cached_property
    def enabled(self) -> set[str]:
        """The codes of the rules that are looked for."""
        from torchmigrate.catalogue.builtin import RULES  # for the few files whose comments name a rule

        own = {rule.code for rule in RULES if self.settings.selects(rule.code)}
        return own.union(head.code for head in self.catalogue.heads)

    @cached_property
    def enabled_elsewhere(self) -> frozenset[str]:
        """The codes that are looked for in files that are not Python, those about comments among them."""
        from torchmigrate.catalogue.builtin import COMMENTS

        own = {rule.code for rule in COMMENTS if self.settings.selects(rule.code)}
        return frozenset(own.union(rule.code for rule in self.texts.rules))

    @cached_property
    def texts(self) -> TextFinder:
        """What looks at files that are not Python; loaded when the first one needs it."""
        from torchmigrate.texts.find import TextFinder

        return TextFinder(self.catalogue, self.versions, self.settings, self.beside)

    @cached_property
    def has_api_rules(self) -> bool:
        """Whether names are looked up in the API data."""
        return not OF_API.isdisjoint(self.settings.codes)

    @cached_property
    def prefilters(self) -> set[str]:
        """Those of the rules that are not found by their names alone."""
        return {head.prefilter for head in self.catalogue.heads if head.prefilter is not None}

    @cached_property
    def project(self) -> ProjectIndex:
        """What other files do with the names of a file."""
        from torchmigrate.project.index import ProjectIndex

        if self._first is not None:
            return self._first.project
        return ProjectIndex(self.settings if self.in_project else None)

    @cached_property
    def analyser(self) -> Analyser:
        """What does the work; loaded when the first file needs it."""
        from torchmigrate.engine.analysis import Analyser

        return Analyser(
            self.catalogue,
            self.versions,
            self.settings,
            self.whole,
            self.project,
            everywhere=self.everywhere,
        )

    # ---- files ---------------------------------------------------------------------------------------

    def check(self, path: Path) -> FileResult:
        """Check (and fix in memory) one file; whatever is wrong with it becomes a problem of the result."""
        if path.suffix == ".ipynb":
            return FileResult(path, problems=[Problem(path, NOTEBOOK)])
        try:
            if kind_of(path) is OtherSource:
                from torchmigrate.engine.others import read_other

                other = read_other(path)
                return FileResult(path) if other is None else self.check_source(other, path)
            source = read_source(path)
        except SourceError as error:
            return FileResult(path, problems=[Problem(path, error.reason, error.line)])
        return self.check_source(source, path)

    def check_source(self, source: Source, path: Path) -> FileResult:
        """Check (and fix in memory) a source; the result's `new_text` is set when fixes were applied."""
        try:
            return self._check_source(source, path)
        except RecursionError:
            pass
        from torchmigrate.source.depth import with_room

        try:
            return with_room(lambda: self._check_source(source, path))
        except RecursionError:
            return FileResult(path, problems=[Problem(path, TOO_DEEP)])

    def _check_source(self, source: Source, path: Path) -> FileResult:
        result = FileResult(path)
        if isinstance(source, OtherSource):
            from torchmigrate.engine.others import check_other

            return check_other(source, path, self)
        try:
            found, file = self.analyse(source, path, result)
            if self.settings.fix and any(map(self.applies, found)):
                found = self._fix(source, path, found, file, result)
            elif file is not None:
                file.close()
        except SourceError as error:
            result.problems.append(Problem(path, _reason(error, path), error.line))
            return result
        result.findings = found
        return result

    # ---- one round -----------------------------------------------------------------------------------

    def analyse(
        self, source: Source, path: Path, result: FileResult
    ) -> tuple[list[Finding], FileContext | None]:
        """The findings of one source, suppressed ones left out, in order of place.

        And what is known of it, which the caller closes; None where nothing was worked out. What rules fail
        at is added to the problems of `result`, once for all rounds.

        Raises:
            SourceError: the source cannot be parsed.
            RecursionError: it is nested too deeply.
        """
        found: list[Finding] = []
        file: FileContext | None = None
        suppressions = Suppressions.of(source)
        if mentions_library(source.text):
            if len(source.text) > PARSED:
                raise SourceError(too_large(PARSED, "not checked").reason)
            if self.screen(source.text):
                file = self.analyser.context(source, path, suppressions)
                found = self.analyser.findings(file)
                named = {problem.reason for problem in result.problems}
                result.problems += [item for item in file.failures.problems if item.reason not in named]
            else:
                source.check()  # without a name that is looked for; Python 2 and half a file are not clean
            if self.settings.selects(ASYNC_ARGUMENT):
                found += async_argument.findings(source.async_arguments)
            if path.name == "setup.py":
                failures = Failures(source, path)
                found += self.texts.findings(source, path, failures)
                result.problems += failures.problems
        elif len(source.text) <= UNRELATED:
            source.check()
        ignored = self.settings.ignored_in(path)
        found = [item for item in found if item.code not in ignored]
        known = self.settings.known
        if found or suppressions.concern(known):
            found = suppressions.filter(found, self.enabled - ignored, known)
        if len(found) > 1:
            from torchmigrate.engine.decisions import decided_once

            found = decided_once(found, self.rule, source)
        found.sort(key=lambda item: (item.start, item.end, item.code))
        return found, file

    def rule(self, code: str) -> Rule | None:
        """The rule with a code."""
        from torchmigrate.catalogue.builtin import RULES

        own = next((rule for rule in RULES if rule.code == code), None)
        return own or self.catalogue.find(code)

    def screen(self, text: str) -> bool:
        """Whether a text that mentions a library may hold anything for the rules.

        Cheap, and never wrong the other way.
        """
        if self.has_api_rules:
            return True
        return self.catalogue.screen(text) or any(passes(pattern)(text) for pattern in self.prefilters)

    # ---- fixing --------------------------------------------------------------------------------------

    def applies(self, finding: Finding) -> bool:
        """Whether its fix is wanted."""
        if finding.fix is None:
            return False
        least = Applicability.UNSAFE if self.settings.unsafe_fixes else Applicability.SAFE
        return finding.fix.applicability >= least

    def _fix(
        self, source: Source, path: Path, found: list[Finding], known: FileContext | None, result: FileResult
    ) -> list[Finding]:
        """Apply fixes in rounds until none is left; the findings that remain.

        known: what is known of the source; it is closed here.

        A fix that gives code that does not parse is named and left out. So are all fixes of a file that is
        never done: rules of which each undoes the other's work.
        """
        from torchmigrate.engine.analysis import released, without_unused_imports
        from torchmigrate.rewrite import apply as editing

        original = source
        fixed: Counter[str] = Counter()
        unused: set[str] = set()  # imports that a fix no longer needs
        left_out: set[tuple[str, int]] = set()  # code and place of findings whose fix does not parse
        fewest, rounds = sys.maxsize, 0
        for number in itertools.count():
            wanted = [
                finding
                for finding in found
                if self.applies(finding) and (finding.code, finding.start) not in left_out
            ]
            # Many findings may share one fix that has as many edits: each object is compared once.
            objects = {id(finding.fix): finding.fix for finding in wanted if finding.fix is not None}
            fixes = list(dict.fromkeys(objects.values()))
            done = editing.apply(source.text, fixes)
            if done.text == source.text:
                break
            rounds = 0 if len(fixes) < fewest else rounds + 1
            fewest = min(fewest, len(fixes))
            if rounds == MAX_ROUNDS or number == MOST_ROUNDS:
                codes = ", ".join(sorted({fix.code for fix in fixes}))
                result.problems.append(Problem(path, ENDLESS.format(codes)))
                source = original
                unused.clear()
                found, known = self._again(source, path, result, known)
                break
            after = source.with_text(done.text)
            if self._breaks(after, original):
                working = self._working(source, done.applied, original)
                bad = set(done.applied).difference(working)
                failures = Failures(source, path)
                broken = [item for item in wanted if item.fix in bad]
                left_out.update((finding.code, finding.start) for finding in broken)
                for finding in {finding.fix: finding for finding in reversed(broken)}.values():
                    failures.left_out(finding, "it gave code that does not parse")
                result.problems += reversed(failures.problems)
                done = editing.apply(source.text, working)
                after = source.with_text(done.text)
            applied = set(done.applied)
            made = {key for key, fix in objects.items() if fix in applied}
            fixed.update(finding.code for finding in wanted if id(finding.fix) in made)
            known = known or self._context(source, path)
            unused |= released(known, done.applied)
            left_out = {(code, editing.map_offset(done.edits, start)) for code, start in left_out}
            source = after
            found, known = self._again(source, path, result, known)
        if unused:
            known = known or self._context(source, path)
            after = without_unused_imports(known, unused)
            if after is not source and not self._breaks(after, original):
                source = after
                found, known = self._again(source, path, result, known)
        if known is not None:
            known.close()
        if source.text != original.text:
            result.fixed = dict(fixed)
            result.old_text, result.new_text = original.text, source.text
        return found

    def _context(self, source: Source, path: Path) -> FileContext:
        return self.analyser.context(source, path, Suppressions.of(source))

    def _again(
        self, source: Source, path: Path, result: FileResult, known: FileContext | None
    ) -> tuple[list[Finding], FileContext | None]:
        """`analyse` for another text; what is known of the one before is let go."""
        if known is not None:
            known.close()
        return self.analyse(source, path, result)

    def _breaks(self, source: Source, original: Source) -> bool:
        """Whether a text does not parse, or needs a newer Python than the original does for its f-strings."""
        from torchmigrate.source.fstrings import fit_old_python

        try:
            source.parse()
        except SourceError:
            return True
        return not fit_old_python(source.text) and fit_old_python(original.text)

    def _working(self, source: Source, fixes: list[Fix], original: Source) -> list[Fix]:
        """Those of some fixes, which fit together, that give code that parses.

        Halves are tried before single fixes: one bad fix of n takes about 2 * log2(n) parses.
        """
        from torchmigrate.rewrite import apply as editing

        def breaks(some: list[Fix]) -> bool:
            return self._breaks(source.with_text(editing.apply(source.text, some).text), original)

        def working(taken: list[Fix], rest: list[Fix]) -> list[Fix]:
            """`taken`, which parse, and what of `rest` still parses with them."""
            if not rest or not breaks([*taken, *rest]):
                return [*taken, *rest]
            if len(rest) == 1:
                return taken
            middle = len(rest) // 2
            return working(working(taken, rest[:middle]), rest[middle:])

        return working([], fixes)
