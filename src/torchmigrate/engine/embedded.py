"""The examples in a file: findings in them, and their fixes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from torchmigrate.catalogue.codes import NEEDS_NEWER
from torchmigrate.engine.results import FileResult
from torchmigrate.findings import Finding, Trouble, because
from torchmigrate.rewrite.imports.borrowed import own_fix
from torchmigrate.source.document import Document
from torchmigrate.source.embedded import embedded_in, with_embedded
from torchmigrate.source.text import Source, SourceError

if TYPE_CHECKING:
    from torchmigrate.engine.suppressions import Suppressions
    from torchmigrate.rewrite.context import FileContext

    Analyse = Callable[[Source, Path, FileResult], tuple[list[Finding], FileContext | None]]
    Mentions = Callable[[str], bool]
    CheckText = Callable[[Source, Path], FileResult]

_BORROWED = because("the fix would change an import of the module that the example uses")


def examples_in(
    source: Source, around: Suppressions | None, mentions: Mentions
) -> list[tuple[int, Document]]:
    """The documents in a file that mention a library, each with its number among all of them.

    around: what hides findings in the file, which it does in them, too. mentions: as `Engine.mentions`.

    Raises SourceError if the file cannot be parsed.
    """
    if source.in_pieces or not mentions(source.text):
        return []
    return [
        (number, document if around is None else document.hidden_by(around.hides))
        for number, document in enumerate(embedded_in(source))
        if mentions(document.text)
    ]


def found_in_examples(
    source: Source,
    path: Path,
    analyse: Analyse,
    around: Suppressions | None,
    mentions: Mentions,
    result: FileResult,
) -> dict[int, list[Finding]]:
    """What is found in the examples of a file, by the number of the document.

    around: what hides findings in the file. result: problems are added to it.

    Raises SourceError if the file cannot be parsed.
    """
    found: dict[int, list[Finding]] = {}
    for number, document in examples_in(source, around, mentions):
        try:
            findings, file = analyse(document, path, result)
        except SourceError:  # too large, or blocks that do not fit together
            continue
        if file is not None:
            file.close()
        if findings:
            found[number] = findings
    return found


def with_fixed_examples(
    source: Source,
    path: Path,
    check_text: CheckText,
    around: Suppressions | None,
    mentions: Mentions,
    result: FileResult,
) -> Source:
    """The file with the fixes of its examples, which are counted in `result`.

    Raises SourceError if the file cannot be parsed.
    """
    changed: list[Document] = []
    fixed: Counter[str] = Counter()
    for _, document in examples_in(source, around, mentions):
        one = check_text(document, path)
        result.add(problem for problem in one.problems if problem.kind is Trouble.OTHER)
        if isinstance(one.new, Document):
            changed.append(one.new)
            fixed.update(one.fixed)
            result.requires |= one.requires
    if not changed:
        return source
    try:
        after = with_embedded(source, changed)
    except SourceError:
        return source  # what the fixes would bring ends the docstring: they stay findings
    result.fixed = dict(fixed)
    return after


def own_findings(found: list[Finding], document: Document) -> Iterator[Finding]:
    """Findings in the text of a document, with fixes that change nothing else.

    The rule on names that an older release lacks does not apply to examples.
    """
    first = document.own_start
    for finding in found:
        if finding.start < first or finding.code == NEEDS_NEWER:
            continue
        if finding.fix is not None and first:
            fix = own_fix(finding.fix, document)
            if fix is None:
                finding = replace(finding, fix=None, blocked_by=(*finding.blocked_by, *_BORROWED))
            elif fix is not finding.fix:
                finding = replace(finding, fix=fix)
        places = tuple(place for place in finding.places if place[0] >= first)
        yield finding if len(places) == len(finding.places) else replace(finding, places=places)
