"""One file in, findings and fixed text out."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from torchmigrate.catalogue.codes import ASYNC_ARGUMENT, OF_API
from torchmigrate.catalogue.prefilter import passes
from torchmigrate.config.settings import Settings
from torchmigrate.engine import async_argument
from torchmigrate.engine.options import PLAIN, EngineOptions
from torchmigrate.engine.results import FileResult, History
from torchmigrate.engine.suppressions import Suppressions
from torchmigrate.failures import Failures
from torchmigrate.files.reading import PARSED, UNRELATED, too_large
from torchmigrate.findings import (
    Applicability,
    Edit,
    Finding,
    Fix,
    Problem,
    Reason,
    Trouble,
    because,
)
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
    from torchmigrate.texts.find import TextFinder

MAX_ROUNDS = 10  # rounds without progress: no fewer fixes than in the best round before
MOST_ROUNDS = 200  # rounds with progress: calls in each other, which Python's parser takes up to that depth
MOST_FINDINGS = 1000  # of a file that are listed
_AT_ONCE = 30  # times as many are worked out for fixes: each round costs another look at the whole file
_MORE = 8  # times as many, where that was not enough
ENDLESS = "{}: applying fixes does not end; the file was not changed (please report this)"
PYTHON = frozenset(["", *KINDS, ".pyw"])  # suffixes of what may be Python
_BROKEN = because("a cell does not parse and may use the changed names")
_UNFIXABLE = because("`fixable` or `unfixable` excludes its rule")
_ELSEWHERE = because("the fix includes lines that are not checked")
TOO_DEEP = "nested too deeply: not checked"


def _reason(error: SourceError, path: Path) -> str:
    """Why a text cannot be checked; of one that is not even named as Python, not that it is Python 2."""
    if path.suffix in PYTHON:
        return error.reason
    return f"not a Python file (its name ends with `{path.suffix}`)"


def _without_fix(finding: Finding, why: tuple[Reason, ...]) -> Finding:
    """A finding whose fix is only shown. why: the reasons."""
    if finding.fix is None:
        return finding
    fix = replace(finding.fix, applicability=Applicability.DISPLAY, held_by=why, unsafe=None, lesser=None)
    return replace(finding, fix=fix)


class Engine:
    """Checks and fixes files by a catalogue; can be sent to another process.

    Args:
        catalogue: all rules; those that are not selected, or say nothing at the target, are left out.
        settings: what to report, what to fix, and for which versions.
        options: what else is wanted.
        first: an engine that shares what it knows of the project.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        settings: Settings,
        options: EngineOptions = PLAIN,
        first: Engine | None = None,
    ) -> None:
        self.settings: Final = settings
        self.options: Final = options
        most = options.most if settings.baseline is None else None
        self.most: Final = most
        self._at_once = most and most * _AT_ONCE if settings.fix else most  # hits that are looked at
        self._more = False  # whether there were others in the text that was looked at last
        self._first: Final = first
        self.versions: Final = VersionRange(
            settings.target, settings.minimum, settings.written_for, settings.companions
        )
        self.whole: Final = catalogue
        self.catalogue: Final = catalogue.where(self._wanted)

    def sibling(
        self, settings: Settings, catalogue: Catalogue | None = None, options: EngineOptions | None = None
    ) -> Engine:
        """An engine for other settings and rules, which shares what this one knows of the project.

        options: by default those of this one, but for all lines, and all fixes that the settings want.
        """
        if options is None:
            options = replace(self.options, focus=None, chooser=None)
        return Engine(self.whole if catalogue is None else catalogue, settings, options, self)

    def _wanted(self, head: RuleHead) -> bool:
        if head.unless_declared in self.settings.packages:
            return False
        changes = {head.changed, head.last_change}  # of several symbols
        if head.files and not any((head.outdated, head.deprecated, head.changed, head.removed)):
            return self.settings.selects(head.code)  # it is about no release
        return self.settings.selects(head.code) and any(
            severity(replace(head, changed=changed), self.versions) is not None for changed in changes
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

        options = self.options
        return TextFinder(self.catalogue, self.versions, self.settings, options.read_other, options.questions)

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
        return ProjectIndex(self.options.settings_in, self.options.questions)

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
            everywhere=self.options.everywhere,
            focus=self.options.focus,
        )

    # ---- files ---------------------------------------------------------------------------------------

    def check(self, path: Path) -> FileResult:
        """Check (and fix in memory) one file; whatever is wrong with it becomes a problem of the result."""
        try:
            source = self.read(path)
        except SourceError as error:
            kind = Trouble.UNREADABLE if error.kind is Trouble.OTHER else error.kind
            return FileResult(path, problems=[Problem(path, error.reason, error.line, kind, error.cell)])
        return FileResult(path) if source is None else self.check_source(source, path)

    def read(self, path: Path) -> Source | None:
        """The text of a file; None: it is not Python, and holds nothing for the rules.

        Raises SourceError if it cannot be read.
        """
        embedded = self.settings.embedded
        if kind_of(path, embedded=embedded) is OtherSource:
            from torchmigrate.engine.others import read_other

            return read_other(path, embedded=embedded)
        return read_source(path, embedded=embedded)

    def check_source(self, source: Source, path: Path, like: FileContext | None = None) -> FileResult:
        """Check (and fix in memory) a source; the result's `new_text` is set when fixes were applied.

        Where that is wanted, the examples in it are checked as well.
        like: what is known of the same source, if it is.
        """
        if self.options.focus is not None:
            self.options.focus.start(source, path)
        at_once = self._at_once
        try:
            if not self.settings.embedded or not self.settings.fix or source.in_pieces:
                result = self.check_text(source, path, like)
            else:
                result = self._roomy(lambda: self._check_with_examples(source, path), path)
        finally:
            self._at_once = at_once
        if self.most is not None:
            result.leave_out(self.most, more=self._more)
        return result

    def check_text(self, source: Source, path: Path, like: FileContext | None = None) -> FileResult:
        """The same without fixes in the examples."""
        return self._roomy(lambda: self._check_text(source, path, like), path)

    def _roomy(self, check: Callable[[], FileResult], path: Path) -> FileResult:
        try:
            return check()
        except RecursionError:
            pass
        from torchmigrate.source.depth import with_room

        try:
            return with_room(check)
        except RecursionError:
            return FileResult(path, problems=[Problem(path, TOO_DEEP)])

    def _check_with_examples(self, source: Source, path: Path) -> FileResult:
        """Fix the examples first, each on its own, then the text around them."""
        from torchmigrate.engine.embedded import with_fixed_examples

        first = FileResult(path)
        try:
            after = with_fixed_examples(
                source, path, self.check_text, self.hiding(source), self.mentions, first
            )
        except SourceError:
            after = source  # which is reported below
        if after is not source and self.options.focus is not None:
            from torchmigrate.rewrite.apply import line_edits

            self.options.focus.follow(source, after, line_edits(source.text, after.text))
        result = self._check_text(after, path, None)
        result.add(first.problems)
        if after is not source:
            result.fixed = dict(Counter(first.fixed) + Counter(result.fixed))
            result.requires |= first.requires
            result.old, result.old_text = source, source.text
            result.new = result.new or after
            result.new_text = result.new.text
        return result

    def hiding(self, source: Source) -> Suppressions | None:
        """The comments of a file that hide findings."""
        if isinstance(source, OtherSource):
            from torchmigrate.engine.other_comments import suppressions_of

            return suppressions_of(source) if self.settings.suppressions else None
        return self._hiding(source)

    def _hiding(self, source: Source) -> Suppressions:
        return Suppressions.of(source) if self.settings.suppressions else Suppressions(source, [])

    def _check_text(self, source: Source, path: Path, like: FileContext | None) -> FileResult:
        result = FileResult(path)
        if isinstance(source, OtherSource):
            from torchmigrate.engine.others import check_other

            return check_other(source, path, self)
        try:
            result.findings, file = self.analyse(source, path, result, like)
            fixes = self.settings.fix and any(map(self.applies, result.findings))
            if self.options.keeps_history:
                result.history = History(result.findings, [], None if fixes else file)
            if fixes:
                self._fix(source, path, file, result, shared=like is not None)
            elif file is not None and not self.options.keeps_history:
                file.close()
        except SourceError as error:
            result.findings = []
            result.problems.append(Problem(path, _reason(error, path), error.line, error.kind, error.cell))
            return result
        if source.broken:
            first, more = source.broken[0], len(source.broken) - 1
            others = f" (and {more} more of its cells)" if more else ""
            result.problems.append(
                Problem(path, first.reason + others, first.line, Trouble.SYNTAX, first.cell)
            )
        return result

    # ---- one round -----------------------------------------------------------------------------------

    def analyse(
        self, source: Source, path: Path, result: FileResult, like: FileContext | None = None
    ) -> tuple[list[Finding], FileContext | None]:
        """The findings of one source, as many as are wanted; see `_analyse`."""
        while True:
            found, file = self._analyse(source, path, result, like)
            if not self._more or len(found) >= (self.most or 0):
                return found, file
            if file is not None:  # few of what was looked at are findings
                file.close()
            self._look_further()

    def _look_further(self) -> None:
        assert self._at_once is not None
        self._at_once *= _MORE

    def _analyse(
        self, source: Source, path: Path, result: FileResult, like: FileContext | None
    ) -> tuple[list[Finding], FileContext | None]:
        """The findings of one source, suppressed ones left out, in order of place.

        And what is known of it, which the caller closes; None where nothing was worked out. What rules fail
        at is added to the problems of `result`, once for all rounds.

        Raises:
            SourceError: the source cannot be parsed.
            RecursionError: it is nested too deeply.
        """
        found: list[Finding] = []
        self._more = False
        file: FileContext | None = None
        suppressions = self._hiding(source)
        if self.mentions(source.text):
            if len(source.text) > PARSED:
                raise SourceError(too_large(PARSED, "not checked").reason)
            if self.screen(source.text):
                file = self.analyser.context(source, path, suppressions, like)
                found, self._more = self.analyser.findings(file, self._at_once)
                said = file.values_from_imports(promising=not found)
                if said:
                    file.close()
                    file = self.analyser.context(source, path, suppressions, given=said)
                    found, self._more = self.analyser.findings(file, self._at_once)
                result.add(file.failures.problems)
            else:
                source.check()  # without a name that is looked for; Python 2 and half a file are not clean
            if self.settings.selects(ASYNC_ARGUMENT):
                found += async_argument.findings(source.async_arguments)
            if path.name == "setup.py" and not source.in_pieces:
                failures = Failures(source, path)
                found += self.texts.findings(source, path, failures)
                result.add(failures.problems)
        elif len(source.text) <= UNRELATED:
            source.check()
        if source.is_documentation:
            from torchmigrate.engine.embedded import own_findings
            from torchmigrate.source.document import Document

            if isinstance(source, Document):
                found = list(own_findings(found, source))
        elif self.settings.embedded and not source.in_pieces:
            from torchmigrate.engine.embedded import found_in_examples

            result.examples = found_in_examples(
                source, path, self.analyse, suppressions, self.mentions, result
            )
        ignored = self.settings.ignored_in(path)
        found = [item for item in found if item.code not in ignored]
        known = self.settings.known
        if found or suppressions.concern(known):
            found = suppressions.filter(found, self.enabled - ignored, known)
        found = self.fixable(self.in_focus(found, source))
        if len(found) > 1:
            from torchmigrate.engine.decisions import decided_once

            found = decided_once(found, self.rule, source, None if self.options.by_place else file)
        found.sort(key=lambda item: (item.start, item.end, item.code))
        if source.broken:
            found = [_without_fix(item, _BROKEN) for item in found]
        return found, file

    def in_focus(self, found: list[Finding], source: Source) -> list[Finding]:
        """Those findings that are about the lines that are looked at.

        What is decided for all of a file (`together`) is not fixed in a part of it.
        """
        focus = self.options.focus
        if focus is None:
            return found
        kept = [finding for finding in found if focus.concerns(source, finding)]
        ids = set(map(id, kept))
        left = [finding for finding in found if id(finding) not in ids and finding.fix is not None]
        words = {self.together(finding) for finding in left} - {None}
        if not words:
            return kept
        return [
            replace(finding, fix=None, blocked_by=(*finding.blocked_by, *_ELSEWHERE))
            if finding.fix is not None and self.together(finding) in words
            else finding
            for finding in kept
        ]

    def fixable(self, found: list[Finding]) -> list[Finding]:
        """The findings, without the fixes of rules that the user does not want to be fixed.

        Fixes that only make sense together with one of these are left out, too.
        """
        unfixable = self.settings.unfixable
        without = [finding for finding in found if finding.code in unfixable and finding.fix is not None]
        if not without:
            return found
        shared = {id(finding.fix) for finding in without}
        words = set(map(self.together, without)) - {None}
        return [
            _without_fix(finding, _UNFIXABLE)
            if id(finding.fix) in shared or self.together(finding) in words
            else finding
            for finding in found
        ]

    def together(self, finding: Finding) -> str | None:
        """The word by which its rule says what else is decided with it."""
        rule = self.rule(finding.code)
        return None if rule is None else rule.together

    def rule(self, code: str) -> Rule | None:
        """The rule with a code."""
        from torchmigrate.catalogue.builtin import RULES

        own = next((rule for rule in RULES if rule.code == code), None)
        return own or self.catalogue.find(code)

    def mentions(self, text: str) -> bool:
        """Whether a text mentions a library, or something that rules of the user are about."""
        return mentions_library(text) or self.settings.mentions_own(text)

    def screen(self, text: str) -> bool:
        """Whether a text that mentions a library may hold anything for the rules.

        Cheap, and never wrong the other way.
        """
        if self.has_api_rules or self.settings.mentions_own(text):
            return True
        return self.catalogue.screen(text) or any(passes(pattern)(text) for pattern in self.prefilters)

    # ---- fixing --------------------------------------------------------------------------------------

    def applies(self, finding: Finding) -> bool:
        """Whether its fix is wanted."""
        if finding.fix is None or finding.code in self.options.unfixed:
            return False
        least = Applicability.UNSAFE if self.settings.unsafe_fixes else Applicability.SAFE
        return finding.fix.applicability >= least

    def _fix(
        self, source: Source, path: Path, known: FileContext | None, result: FileResult, *, shared: bool
    ) -> None:
        """Apply fixes to the findings of the result in rounds until none is left; those that remain stay.

        known: what is known of the source; it is closed here. shared: whether the caller knows as much, and
        has nodes of the syntax tree.

        With a chooser, those fixes are applied that it chooses.

        A fix that gives code that does not parse is named and left out. So are all fixes of a file that is
        never done: rules that undo each other's work.
        """
        from torchmigrate.engine.analysis import released, removals_of_imports
        from torchmigrate.engine.choosing import Choosing
        from torchmigrate.rewrite import apply as editing

        original = source
        fixed: Counter[str] = Counter()
        made_edits: list[list[Edit]] = []
        unused: set[str] = set()  # imports that a fix no longer needs
        left_out: set[tuple[str, int]] = set()  # code and place of findings whose fix does not parse
        choosing = Choosing(self.options.chooser, path, self.together)
        fewest, rounds, number = sys.maxsize, 0, 0
        while True:
            wanted = [
                finding
                for finding in result.findings
                if self.applies(finding) and (finding.code, finding.start) not in left_out
            ]
            wanted = choosing.next(source, wanted)
            if choosing.asked:  # an interactive user decides when to stop
                fewest, rounds, number = sys.maxsize, 0, 0
            # Many findings may share one fix that has as many edits: each object is compared once.
            objects = {id(finding.fix): finding.fix for finding in wanted if finding.fix is not None}
            fixes = list(dict.fromkeys(objects.values()))
            done = editing.apply(source.text, fixes)
            if done.text == source.text:
                if not self._more:
                    break
                self._look_further()
                known = self._again(source, path, result, known)
                continue
            if self._more:  # the next round has as many fixes
                fewest = sys.maxsize
            rounds = 0 if len(fixes) < fewest else rounds + 1
            fewest = min(fewest, len(fixes))
            if rounds == MAX_ROUNDS or number == MOST_ROUNDS:
                codes = ", ".join(sorted({fix.code for fix in fixes}))
                result.problems.append(Problem(path, ENDLESS.format(codes)))
                source = original
                result.requires.clear()
                made_edits.clear()
                unused.clear()
                known = self._again(source, path, result, known)
                break
            number += 1
            known = known or self._context(source, path)
            no_use = released(known, done.applied)
            known.close()
            if source is not original or not shared:
                source.forget()  # before the new text is parsed: each tree may have hundreds of megabytes
            after = self._edited(source, done.text, done.edits, original)
            if after is None:
                working = self._working(source, done.applied, original)
                # What only does not fit in with others (two that empty one import) is made in the next round.
                bad = {
                    fix
                    for fix in set(done.applied).difference(working)
                    if not self._working(source, [fix], original)
                }
                failures = Failures(source, path)
                broken = [item for item in wanted if item.fix in bad]
                left_out.update((finding.code, finding.start) for finding in broken)
                for finding in {finding.fix: finding for finding in reversed(broken)}.values():
                    failures.left_out(finding, "the fixed code does not parse")
                result.problems += reversed(failures.problems)
                done = editing.apply(source.text, working)
                after = source.edited(done.text, done.edits)
                known = self._context(source, path)
                no_use = released(known, done.applied)
                known.close()
            applied = set(done.applied)
            made = {key for key, fix in objects.items() if fix in applied}
            fixed.update(finding.code for finding in wanted if id(finding.fix) in made)
            result.requires |= {release for fix in done.applied for release in fix.requires}
            unused |= no_use
            made_edits.append(done.edits)
            left_out = {(code, editing.map_offset(done.edits, start)) for code, start in left_out}
            choosing.follow(done)
            self._follow(path, source, after, done.edits)
            source = after
            del wanted, fixes, objects, applied, made, done
            known = self._again(source, path, result, known)

        def also(edits: list[Edit]) -> None:
            """Make further edits, unless there are none or their result does not parse."""
            nonlocal source, known
            after = (
                self._edited(source, editing.splice(source.text, edits), edits, original) if edits else None
            )
            if after is not None:
                self._follow(path, source, after, edits)
                source = after
                made_edits.append(edits)
                known = self._again(source, path, result, known)

        if unused:
            known = known or self._context(source, path)
            removals = removals_of_imports(known, unused)
            known.close()
            if source is not original or not shared:
                source.forget()
            also(removals)
        if source.text != original.text and self.settings.keeps_line_length:
            also(self._line_breaks(original, source, path))
        if known is not None:
            known.close()
        if source.text != original.text:
            result.fixed = dict(fixed)
            result.old_text, result.new_text = original.text, source.text
            result.old, result.new = original, source
            if result.history is not None:
                result.history.rounds.extend(made_edits)

    def _line_breaks(self, before: Source, after: Source, path: Path) -> list[Edit]:
        """The edits that keep a fixed text to the line length which its project declares."""
        from torchmigrate.config.line_length import line_length

        limit = line_length(path)
        if limit is None:
            return []
        from torchmigrate.rewrite.wrapping import wrapped

        return wrapped(before.text, after, limit)

    def _follow(self, path: Path, before: Source, after: Source, edits: Sequence[Edit]) -> None:
        """Let what was seen in a text be known of what fixes make of it, but for what they replace."""
        from torchmigrate.rewrite.apply import map_offset

        if self.options.focus is not None:
            self.options.focus.follow(before, after, edits)

        def moved(offset: int) -> int:
            return map_offset(edits, offset)

        changed = [(edit.start, edit.end) for edit in edits]
        self.analyser.evidence.follow(path, before, after, moved, changed)

    def _context(self, source: Source, path: Path) -> FileContext:
        return self.analyser.context(source, path, self._hiding(source))

    def _again(
        self, source: Source, path: Path, result: FileResult, known: FileContext | None
    ) -> FileContext | None:
        """`analyse` for another text; what was found in the one before, and is known of it, is let go."""
        if known is not None:
            known.close()
        result.findings = []
        result.findings, known = self.analyse(source, path, result)
        return known

    def _edited(self, source: Source, text: str, edits: Sequence[Edit], original: Source) -> Source | None:
        """A source after edits, which give `text`.

        None if it cannot be, does not parse, or needs a newer Python than the original (f-strings).
        """
        from torchmigrate.source.fstrings import fit_old_python

        try:
            after = source.edited(text, edits)
            after.parse()
        except SourceError:
            return None
        return None if not fit_old_python(after.text) and fit_old_python(original.text) else after

    def _working(self, source: Source, fixes: list[Fix], original: Source) -> list[Fix]:
        """Those of some fixes, which fit together, that give code that parses.

        Halves are tried before single fixes: one bad fix of n takes about 2 * log2(n) parses.
        """
        from torchmigrate.rewrite import apply as editing

        def breaks(some: list[Fix]) -> bool:
            done = editing.apply(source.text, some)
            return self._edited(source, done.text, done.edits, original) is None

        def working(taken: list[Fix], rest: list[Fix]) -> list[Fix]:
            """`taken`, which parse, and what of `rest` still parses with them."""
            if not rest or not breaks([*taken, *rest]):
                return [*taken, *rest]
            if len(rest) == 1:
                return taken
            middle = len(rest) // 2
            return working(working(taken, rest[:middle]), rest[middle:])

        return working([], fixes)
