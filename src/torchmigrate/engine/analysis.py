"""What is found in one source: names, hits, findings; and the imports that fixes leave unused.

Loaded only for files that may hold something, so that a run without any starts quickly.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from torchmigrate.catalogue.codes import OF_API
from torchmigrate.catalogue.index import Catalogue
from torchmigrate.catalogue.model import Rule
from torchmigrate.catalogue.prefilter import passes
from torchmigrate.codemods import codemod
from torchmigrate.config.settings import Settings
from torchmigrate.engine.api_rules.api import Api
from torchmigrate.engine.api_rules.finder import ApiFinder
from torchmigrate.engine.dependent import with_failing_imports, with_hidden_errors, within_attempts
from torchmigrate.engine.held_back import held_back
from torchmigrate.engine.suppressions import Suppressions
from torchmigrate.evidence.evidence import EvidenceOfFiles
from torchmigrate.failures import Failures
from torchmigrate.findings import Applicability, DroppedUse, Edit, Finding, Fix, Obstacle
from torchmigrate.match.rule_matches import RuleMatch, RuleMatcher
from torchmigrate.project.index import ProjectIndex
from torchmigrate.rewrite.apply import flaw
from torchmigrate.rewrite.comments import without_silent_losses
from torchmigrate.rewrite.context import FileContext
from torchmigrate.semantics.model import Binding, Value
from torchmigrate.source.text import Source
from torchmigrate.versions.range import VersionRange

if TYPE_CHECKING:
    from torchmigrate.engine.focus import Focus


class Analyser:
    """Looks for what a catalogue knows.

    Args:
        catalogue: the rules that are wanted.
        versions: the range of releases that the code is for.
        settings: of the run.
        whole: all rules, also those that are not wanted: the API rules leave their names to them.
        project: what other files do with the names of a file; None: there are no other files.
        everywhere, focus: see `EngineOptions`; what is not in focus is as good as hidden.
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
        focus: Focus | None = None,
    ) -> None:
        self.everywhere = everywhere
        self.versions = versions
        self.project = project or ProjectIndex(None)
        self.settings = settings
        self.evidence = EvidenceOfFiles(wanted=settings.evidence)
        api = Api(versions)
        self.exists = api.target.exists
        self.finder = RuleMatcher(catalogue, versions, self.exists)
        self.focus = focus
        self.api: ApiFinder | None = None
        if not OF_API.isdisjoint(settings.codes):
            self.api = ApiFinder(api, settings.codes, RuleMatcher(whole or catalogue, versions))
        self.catalogue = catalogue
        self._rewritten = [head for head in catalogue.heads if head.codemod]
        self._numbers = {head.code: number for number, head in enumerate(self._rewritten)}
        # Several rules look for the same words, and most texts have none of them.
        prefilters: defaultdict[str, list[str]] = defaultdict(list)
        for head in self._rewritten:
            if head.prefilter:
                prefilters[head.prefilter].append(head.code)
        self._prefilters = [(passes(pattern), codes) for pattern, codes in prefilters.items()]

    def _asked(self, text: str) -> set[str]:
        """The rules whose codemods look for themselves, and may find something in a text."""
        asked: set[str] = set()
        for is_in, codes in self._prefilters:
            if is_in(text):
                asked.update(codes)
        return asked

    def context(
        self,
        source: Source,
        path: Path,
        suppressions: Suppressions,
        like: FileContext | None = None,
        given: Mapping[str, Value] | None = None,
    ) -> FileContext:
        """What is known of a text; everything is computed when it is first needed.

        like, given: see `FileContext`.
        """

        def hides(code: str, name: str, offset: int) -> bool:
            hidden = suppressions.hides(code, name, source.position(offset)[0])
            return hidden or (self.focus is not None and not self.focus.may_concern(source, offset))

        return FileContext(
            *(source, path, self.versions, self.settings, self.project),
            exists=self.exists,
            hides=hides,
            like=like,
            given=given,
            seen=self.evidence.of(path, source),
        )

    def findings(self, file: FileContext, most: int | None = None) -> tuple[list[Finding], bool]:
        """The findings of one text that are not suppressed, in no particular order; whether more were left.

        A rule that fails is named in `file.failures`, and all others go on.

        most: hits of rules that are looked at, from the beginning of the text; the others count as suppressed
            ones do. None: all.

        Raises:
            SourceError: the source cannot be parsed.
            RecursionError: it is nested too deeply.
        """
        names, source, failures = file.names, file.source, file.failures
        # Hidden ones must not be part of a fix that an import shares with its uses.
        all_hits = self.finder.find(file.facts, source, failures)
        hits = [hit for hit in all_hits if not file.hides(hit.rule.code, hit.rule.name, hit.match.start)]
        more = most is not None and len(hits) > most
        if more:
            hits = hits[:most]
        found: list[Finding] = []
        asked = self._asked(source.text)
        if hits or asked:
            file.hits = hits
            if len(hits) < len(all_hits):
                kept = set(map(id, hits))
                file.partly_suppressed = {
                    hit.rule.together for hit in all_hits if hit.rule.together and id(hit) not in kept
                }
            found = file.fixes.findings([hit for hit in hits if not hit.rule.codemod])
            by_code: defaultdict[str, list[RuleMatch]] = defaultdict(list)
            for hit in hits:
                by_code[hit.rule.code].append(hit)
            for number in sorted(map(self._numbers.__getitem__, self._numbers.keys() & {*by_code, *asked})):
                head = self._rewritten[number]
                rule = self.catalogue.find(head.code) if head.code in asked or not head.prefilter else None
                if rule is not None and rule.codemod is not None:
                    with failures.caught(rule.code, "every finding"):
                        mine = by_code.get(rule.code, [])
                        found.extend(list(codemod(rule.codemod).find(rule, mine, file)))
            found = self._settled(found, file)
        if self.api is not None:
            root = None if self.everywhere else self.settings.root.absolute()
            seen: defaultdict[int, list[Rule]] = defaultdict(list)
            for hit in all_hits:
                # A codemod about a better use of a name says nothing about releases that lack the name.
                if not hit.rule.opt_in and not (hit.rule.codemod and hit.rule.outdated):
                    seen[id(hit.use)].append(hit.rule)
            with failures.caught(", ".join(sorted(OF_API & self.settings.codes)), "every finding"):
                found.extend(self.api.findings(names, source, file.path, seen, root))
        found = with_hidden_errors(found, file)
        return list(_with_sound_fixes(found, source, failures)), more

    def _settled(self, found: list[Finding], file: FileContext) -> list[Finding]:
        """The findings with the fixes that may be made, seen from all of them and from other files."""
        with_two = [finding for finding in found if finding.fix and finding.fix.unsafe]
        if not with_two:
            return self._settled_ones(found, file)
        unsafe = self.settings.unsafe_fixes
        fixes: dict[int, Fix] = {}  # those that findings share stay one object
        found = self._settled_ones([_with_one(finding, fixes, unsafe=unsafe) for finding in found], file)
        more = [_with_one(finding, fixes, unsafe=not unsafe) for finding in with_two]
        others = {(item.code, item.start): item.fix for item in self._settled_ones(more, file)}
        both: dict[int, Fix] = {}
        for finding in found:
            other = others.get((finding.code, finding.start))
            # Display-only fixes cannot be applied.
            if finding.fix is None or other is None or other.applicability is Applicability.DISPLAY:
                continue
            fix = finding.fix
            both.setdefault(id(fix), replace(fix, lesser=other) if unsafe else replace(fix, unsafe=other))
        return [replace(finding, fix=both.get(id(finding.fix), finding.fix)) for finding in found]

    def _settled_ones(self, found: list[Finding], file: FileContext) -> list[Finding]:
        """As `_settled`, for findings with at most one fix each."""
        found = file.fixes.settled(file.fixes.at_target(found))
        if any(finding.fix is not None for finding in found):
            found = within_attempts(found, file, self.catalogue.find)
            found = with_failing_imports(found, file)
            found = held_back(found, file)
        return found


def _with_one(finding: Finding, made: dict[int, Fix], *, unsafe: bool) -> Finding:
    """The finding with one of its two fixes, the unsafe one that does more or the other one.

    made: by the id() of the fix that has both; findings that share it also share the new fix.
    """
    if finding.fix is None or finding.fix.unsafe is None:
        return finding
    if not unsafe:
        fix = made.setdefault(id(finding.fix), replace(finding.fix, unsafe=None))
        return replace(finding, fix=fix)
    left = tuple(reason for reason in finding.blocked_by if reason.kind is not Obstacle.UNSAFE)
    return replace(finding, fix=finding.fix.unsafe, blocked_by=left)


def _with_sound_fixes(found: Iterable[Finding], source: Source, failures: Failures) -> Iterator[Finding]:
    """The findings, without fixes that cannot be applied; a fix that loses a comment is not safe.

    A fix that findings share is looked at once: it may have as many edits as there are findings.
    """
    sound: dict[int, tuple[Fix, str | None]] = {}
    for finding in found:
        fix = finding.fix
        if fix is not None:
            if id(fix) not in sound:
                why = flaw(fix, len(source.text))
                if fix.unsafe is not None or fix.lesser is not None:
                    fix = replace(fix, unsafe=_sound(fix.unsafe, source), lesser=_sound(fix.lesser, source))
                sound[id(finding.fix)] = (fix if why else without_silent_losses(fix, source.text)), why
            fix, why = sound[id(finding.fix)]
            if why is not None:
                failures.left_out(finding, why)
                fix = None
        yield replace(finding, fix=fix)


def _sound(fix: Fix | None, source: Source) -> Fix | None:
    if fix is None or flaw(fix, len(source.text)) is not None:
        return None
    return without_silent_losses(fix, source.text)


def released(file: FileContext, fixes: Iterable[Fix]) -> set[str]:
    """What fixes no longer use, as `local name=qualified name`: ids change with every round.

    These are the imports that they declare themselves, and every import whose name stands in text that they
    replace. New text may name it again: whether it is used is decided when all fixes are made.
    """
    wanted = {release.binding for fix in fixes for release in fix.releases}
    spans = sorted({(edit.start, edit.end) for fix in fixes for edit in fix.edits if edit.start < edit.end})
    if not wanted and not spans:
        return set()
    starts = [start for start, _ in spans]

    def is_replaced(offset: int) -> bool:
        index = bisect_right(starts, offset) - 1
        return index >= 0 and offset < spans[index][1]

    return {
        f"{binding.name}={binding.target}"
        for binding in file.names.imports
        if binding.id in wanted or any(map(is_replaced, binding.uses))
    }


def removals_of_imports(file: FileContext, unused: set[str]) -> list[Edit]:
    """What takes away those of these imports (as `released` gives them) that have no use left."""
    imports = file.names.imports
    here = {f"{binding.name}={binding.target}" for binding in imports}
    # A name that two fixes concern: one gave its import a new home, the other its use a new name.
    moved = {_home(item) for item in unused - here}
    releases = [
        DroppedUse(binding.id, ())
        for binding in imports
        if not binding.uses and not _bound_again(binding)
        for item in [f"{binding.name}={binding.target}"]
        if item in unused or _home(item) in moved
    ]
    return list(file.imports.removals(releases))


def _home(item: str) -> str:
    """Local name and library of what `released` gives."""
    name, _, target = item.partition("=")
    return f"{name}={target.partition('.')[0]}"


def _bound_again(binding: Binding) -> bool:
    """Whether another import gives the name that is still used: `import torch` in addition to `import
    torch.nn`."""
    others = binding.scope.bindings[binding.name]
    return any(other.is_import and other.uses for other in others)
