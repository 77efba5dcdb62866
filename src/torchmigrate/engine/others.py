"""One file that is not Python: findings and fixed text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Set as Collection
from pathlib import Path
from typing import TYPE_CHECKING

from torchmigrate.engine.choosing import Choosing
from torchmigrate.engine.decisions import decided_once
from torchmigrate.engine.results import FileResult, History
from torchmigrate.failures import Failures
from torchmigrate.files.reading import SOURCE, UnreadableError, read, too_large
from torchmigrate.findings import Finding
from torchmigrate.rewrite import apply as editing
from torchmigrate.source.other import MARKDOWN, OtherSource, other_kind
from torchmigrate.source.text import SourceError
from torchmigrate.texts.find import may_hold

if TYPE_CHECKING:
    from torchmigrate.engine.engine import Engine

_ROUNDS = 10


def check_other(source: OtherSource, path: Path, engine: Engine) -> FileResult:
    """Check (and fix in memory) a text; the result's `new_text` is set when fixes were applied."""
    result = FileResult(path)
    original, fixed = source, Counter[str]()
    found = _found(source, path, engine, result)
    history = result.history = History(found, []) if engine.options.keeps_history else None
    choosing = Choosing(engine.options.chooser, path, engine.together)
    left = _ROUNDS if engine.settings.fix else 0
    while left:
        wanted = choosing.next(source, [finding for finding in found if engine.applies(finding)])
        left = _ROUNDS if choosing.asked else left - 1
        fixes = list(dict.fromkeys(finding.fix for finding in wanted if finding.fix is not None))
        done = editing.apply(source.text, fixes)
        if done.text == source.text:
            break
        if history is not None:
            history.rounds.append(list(done.edits))
        made = set(done.applied)
        result.requires |= {release for fix in done.applied for release in fix.requires}
        fixed.update(finding.code for finding in wanted if finding.fix in made)
        before, source = source, source.with_text(done.text)
        choosing.follow(done)
        if engine.options.focus is not None:
            engine.options.focus.follow(before, source, done.edits)
        found = _found(source, path, engine, result)
    if source.text != original.text:
        result.fixed = dict(fixed)
        result.old_text, result.new_text = original.text, source.text
        result.old, result.new = original, source
    result.findings = found
    return result


def read_other(path: Path, *, embedded: bool = False) -> OtherSource | None:
    """The text of a file that is not Python; None: it holds nothing for the rules.

    embedded: whether the examples in Markdown are checked.
    Raises SourceError if it is missing or cannot be read. What is larger than what people write, or no text,
    is none of ours.
    """
    try:
        data = read(path, SOURCE)
    except UnreadableError as error:
        if error.reason == too_large(SOURCE).reason:
            return None
        raise SourceError(error.reason) from None
    if b"\0" in data or not (may_hold(data) or (embedded and other_kind(path) == MARKDOWN)):
        return None
    return OtherSource.from_bytes(data, path)


def _found(source: OtherSource, path: Path, engine: Engine, result: FileResult) -> list[Finding]:
    failures = Failures(source, path)
    found = engine.texts.findings(source, path, failures)
    result.add(failures.problems)
    ignored = engine.settings.ignored_in(path)
    found = [finding for finding in found if finding.code not in ignored]
    suppressions = engine.hiding(source)
    enabled: Collection[str] = engine.enabled_elsewhere
    if engine.settings.embedded and source.kind == MARKDOWN:
        from torchmigrate.engine.embedded import found_in_examples

        result.examples = found_in_examples(
            source, path, engine.analyse, suppressions, engine.mentions, result
        )
        enabled = engine.enabled | enabled
    if suppressions is not None:
        found = suppressions.filter(found, enabled - ignored, engine.settings.known)
    found = engine.fixable(engine.in_focus(found, source))
    if len(found) > 1:
        found = decided_once(found, engine.rule, source)
    return sorted(found, key=lambda finding: (finding.start, finding.end, finding.code))
