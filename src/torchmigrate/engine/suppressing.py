"""Writing comments that hide findings: `# torchmigrate: ignore[TM100] reason`, as `suppressions` reads."""

from __future__ import annotations

import ast
import io
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from operator import attrgetter
from typing import NamedTuple

from msgspec import Struct

from torchmigrate.catalogue.codes import INVALID_SUPPRESSION, UNUSED_SUPPRESSION
from torchmigrate.engine.other_comments import suppressions_of
from torchmigrate.engine.suppressions import Comment, Suppressions
from torchmigrate.files.formats import FormatError, read_toml
from torchmigrate.files.reading import UnreadableError
from torchmigrate.findings import Edit, Finding
from torchmigrate.rewrite.apply import splice
from torchmigrate.rewrite.comments import comment_added, listed_again
from torchmigrate.source.document import Document
from torchmigrate.source.other import CPP, REQUIREMENTS, SHELL, TOML, YAML, OtherSource
from torchmigrate.source.text import Source, SourceError
from torchmigrate.texts.cpp import Code

_ABOUT_COMMENTS = "a comment cannot hide a problem with comments"
_SEEN = "only recorded types lead to this finding, so the comment would be unused without them"
_EXAMPLE = "the code is an example in documentation, where readers would see the comment"
_KIND = "a comment at the end of this line could become part of the line"
_TAKEN = "a comment would change the meaning of the line"
_COMMENT_MARKS = {CPP: "//", REQUIREMENTS: "#", SHELL: "#", TOML: "#", YAML: "#"}


class Refused(NamedTuple):
    """A finding that no comment can be written for, and why."""

    finding: Finding
    source: Source
    reason: str


class Written(Struct, frozen=True):
    """A file with comments."""

    source: Source
    refused: list[Refused]


def with_comments(
    source: Source, found: Iterable[tuple[Source, Finding]], reason: str, *, everywhere: bool
) -> Written:
    """A file with comments that hide findings of it, each given with the text that it is in.

    Where a comment of ours is there already, the rule is added to it.
    everywhere: at all places of a finding. Most rules say what they found once, and one comment hides that;
    where findings were joined, those at the other places are found once the first one is hidden.
    """
    wanted: defaultdict[int, dict[str, None]] = defaultdict(dict)
    refused: list[Refused] = []
    taken: list[tuple[Source, Finding]] = []
    for text, finding in found:
        why = never_suppressed(text, finding, source)
        if why is not None:
            refused.append(Refused(finding, text, why))
            continue
        taken.append((text, finding))
        for start, _ in ((finding.start, finding.end), *(finding.places if everywhere else ())):
            row = source.position(start)[0] if text is source else text.file_row(start)
            wanted[row][finding.code] = None
    places = _of_other(source) if isinstance(source, OtherSource) else _of_python(source)
    edits = _edits(source, wanted, places, reason)
    try:
        good = _fitting(source, _meaning(source), edits)
    except _UnknownError:
        good = []
    made = {source.position(edit.start)[0] for edit in good}
    lost = {source.position(edit.start)[0] for edit in edits} - made
    refused += [
        Refused(finding, text, _TAKEN)
        for text, finding in taken
        if _row_of_comment(source, (text, finding), places) in lost
    ]
    return Written(source.edited(splice(source.text, good), good) if good else source, refused)


def rows_without_use(source: Source, found: Iterable[tuple[Source, Finding]]) -> frozenset[int]:
    """The rows of a file with comments that hide nothing."""
    return frozenset(source.position(each.start)[0] for each in _without_use(source, found))


def without_use(source: Source, found: Iterable[tuple[Source, Finding]], kept: Collection[int]) -> Source:
    """A file without the comments that hide nothing: one may have hidden what others were written for.

    kept: rows where they stay.
    """
    gone = [each for each in _without_use(source, found) if source.position(each.start)[0] not in kept]
    edits = sorted({edit for each in gone if each.fix is not None for edit in each.fix.edits})
    return source.edited(splice(source.text, edits), edits) if edits else source


def _without_use(source: Source, found: Iterable[tuple[Source, Finding]]) -> list[Finding]:
    return [finding for text, finding in found if text is source and finding.code == UNUSED_SUPPRESSION]


def _fitting(source: Source, meaning: object, edits: list[Edit]) -> list[Edit]:
    """Those of some edits that change nothing but comments.

    Halves are tried before single ones: there are few that do not fit.
    """

    def fits(some: list[Edit]) -> bool:
        try:
            return _meaning(source.edited(splice(source.text, some), some)) == meaning
        except (SourceError, _UnknownError):
            return False

    def fitting(good: list[Edit], rest: list[Edit]) -> list[Edit]:
        if not rest or fits([*good, *rest]):
            return [*good, *rest]
        if len(rest) == 1:
            return good
        middle = len(rest) // 2
        return fitting(fitting(good, rest[:middle]), rest[middle:])

    return fitting([], edits)


def never_suppressed(text: Source, finding: Finding, source: Source) -> str | None:
    """Why no comment can hide a finding; None: one may, unless its line cannot take one."""
    if finding.code in (INVALID_SUPPRESSION, UNUSED_SUPPRESSION):
        return _ABOUT_COMMENTS
    if finding.seen:
        return _SEEN
    if isinstance(source, Document) or (text is not source and isinstance(source, OtherSource)):
        return _EXAMPLE
    if isinstance(source, OtherSource) and source.kind not in _COMMENT_MARKS:
        return _KIND
    return None


class _Places(Struct, frozen=True):
    """Where comments are, and may be.

    first, last: of every logical line, in order. closed: rows that cannot end with a comment.
    """

    comments: list[Comment]  # those that hide rules in a line
    mark: str
    first: list[int]
    last: list[int]
    closed: frozenset[int]

    def row_for(self, row: int) -> int:
        """The row of the comment for a finding in a row: the nearest that can take one."""
        index = bisect_right(self.first, row) - 1
        end = self.last[index] if index >= 0 else row
        return next((at for at in range(row, end) if at not in self.closed), max(row, end))

    def comment_for(self, row: int) -> Comment | None:
        """The comment of ours that counts for a row and names rules."""
        index = bisect_right(self.comments, row, key=attrgetter("first")) - 1
        return self.comments[index] if index >= 0 and row <= self.comments[index].last else None


def _row_of_comment(source: Source, found: tuple[Source, Finding], places: _Places) -> int:
    text, finding = found
    row = source.position(finding.start)[0] if text is source else text.file_row(finding.start)
    comment = places.comment_for(row)
    return places.row_for(row) if comment is None else source.position(comment.items_span[0])[0]


def _edits(source: Source, wanted: Mapping[int, Iterable[str]], places: _Places, reason: str) -> list[Edit]:
    by_comment: defaultdict[int, dict[str, None]] = defaultdict(dict)
    by_row: defaultdict[int, dict[str, None]] = defaultdict(dict)
    known = {id(comment): comment for comment in places.comments}
    for row, codes in sorted(wanted.items()):
        comment = places.comment_for(row)
        if comment is not None:
            by_comment[id(comment)].update(dict.fromkeys(codes))
        else:
            by_row[places.row_for(row)].update(dict.fromkeys(codes))
    edits = []
    for key, codes in by_comment.items():
        comment = known[key]
        there = [item.text for item in comment.items or ()]
        items = [*there, *(code for code in sorted(codes) if code not in there)]
        edits.append(listed_again(source, comment.items_span, items))
    for row, codes in by_row.items():
        text = f"{places.mark} torchmigrate: ignore[{', '.join(sorted(codes))}] {reason}".rstrip()
        edits.append(comment_added(source, row, text))
    return sorted(edits)


class _UnknownError(Exception):
    pass


def _meaning(source: Source) -> object:
    """What a file says, but for its comments."""
    if not isinstance(source, OtherSource):
        return ast.dump(source.parse())
    try:
        if source.kind == CPP:
            return [token.text for token in Code(source.text, source.path, lambda path: None).tokens]
        if source.kind == TOML:
            return repr(read_toml(source.text.encode()))
        if source.kind == YAML:
            import yaml

            # Without making objects: that there is a tag that only some program knows changes nothing.
            return [
                (type(event), *(getattr(event, name, None) for name in ("anchor", "tag", "value")))
                for event in yaml.parse(source.text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
            ]
        if source.kind == SHELL:
            import shlex

            if "<<" in source.text:
                raise _UnknownError
            return shlex.split(source.text, comments=True)
    except (FormatError, UnreadableError, ValueError, RecursionError):
        raise _UnknownError from None
    except Exception as error:
        if type(error).__module__.startswith("yaml"):
            raise _UnknownError from None
        raise
    return [line.partition(" #")[0].rstrip() for line in source.text.splitlines()]


def _of_other(source: OtherSource) -> _Places:
    suppressions = suppressions_of(source)
    comments = [] if suppressions is None else _of_lines(suppressions)
    first: list[int] = []
    last: list[int] = []
    closed: set[int] = set()
    begins = True
    for row in range(1, source.line_count + 1):
        if begins:
            first.append(row)
        begins = not source.line_text(row).endswith("\\")
        if begins:
            last.append(row)
        else:
            closed.add(row)
    if len(last) < len(first):
        last.append(source.line_count)
    return _Places(comments, _COMMENT_MARKS.get(source.kind, "#"), first, last, frozenset(closed))


def _of_lines(suppressions: Suppressions) -> list[Comment]:
    return [each for each in suppressions.comments if each.kind == "ignore" and each.items and not each.alone]


def _of_python(source: Source) -> _Places:
    """Where comments may be in a source that parses."""
    import tokenize

    plain = source.text.replace("\r\n", "\n").replace("\r", "\n")  # columns stay
    skipped = (tokenize.INDENT, tokenize.DEDENT, tokenize.NL, tokenize.COMMENT, tokenize.ENDMARKER)
    fstring_start = getattr(tokenize, "FSTRING_START", None)  # since Python 3.12
    fstring_end = getattr(tokenize, "FSTRING_END", None)
    opened: list[int] = []
    first: list[int] = []
    last: list[int] = []
    closed: set[int] = set()
    commented: set[int] = set()
    begun = False
    try:
        for token in tokenize.generate_tokens(io.StringIO(plain).readline):
            if token.type == tokenize.COMMENT:
                commented.add(token.start[0])
            if token.type == tokenize.STRING:
                closed.update(range(token.start[0], token.end[0]))
            elif token.type == fstring_start:
                opened.append(token.start[0])
            elif token.type == fstring_end:
                closed.update(range(opened.pop(), token.end[0]))
            if token.type == tokenize.NEWLINE:
                last.append(token.start[0])
                begun = False
            elif not begun and token.type not in skipped:
                first.append(token.start[0])
                begun = True
    except (tokenize.TokenError, SyntaxError):
        pass  # a form that only the tokenizer minds: what was read is used
    del last[len(first) :]
    last += first[len(last) :]
    for row, line in enumerate(plain.split("\n"), 1):
        if line.endswith("\\") and row not in commented:
            closed.add(row)
    return _Places(_of_lines(Suppressions.of(source)), "#", first, last, frozenset(closed))
