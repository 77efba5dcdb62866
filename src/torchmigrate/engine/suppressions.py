"""Comments that hide findings, and the rules about these comments.

`# torchmigrate: ignore[TM131, other-name] reason` hides the listed rules on its logical line: all lines
of a statement without a body, the header of one with a body. `# torchmigrate: ignore-file[...]` hides
them in the whole file. `# noqa: TM131` and a bare `# noqa` work as in flake8, as do `# flake8: noqa` and
`# flake8: noqa: TM131` on a line of their own, for the whole file, and the same with `ruff` as in ruff; a
code of TorchFix in it stands for those of ours that find the same.
"""

from __future__ import annotations

import ast
import io
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping

from msgspec import Struct

from torchmigrate.catalogue.codes import INVALID_SUPPRESSION, UNUSED_SUPPRESSION
from torchmigrate.catalogue.pages import page_of
from torchmigrate.findings import Applicability, Edit, Finding, Fix, Severity
from torchmigrate.patterns import pattern
from torchmigrate.source.text import Source

_OURS = pattern(
    r"(?:#|//|/\*|<!--)\s*torchmigrate:\s*(?P<kind>[\w-]*)\s*(?:\[(?P<items>[^\]#]*)\])?(?:[^#]|#(?=\d))*"
)
# flake8's own form: what does not look like a list of codes makes a bare noqa.
_NOQA = pattern(r"(?i)#\s*noqa(?::\s?(?P<items>[A-Z]+[0-9]+(?:[,\s]+[A-Z]+[0-9]+)*)[^#]*)?(?![\w-])")
_NOQA_FILE = pattern(r"(?i)#\s*flake8[:=]\s*noqa(?::\s?(?P<items>[A-Z]+[0-9]+(?:[,\s]+[A-Z]+[0-9]+)*))?\s*\Z")
# ruff's form takes other text after a bare noqa, but no list that is not of codes.
_RUFF_FILE = pattern(
    r"#\s*ruff\s*:\s*(?i:noqa)(?:\s*:\s*(?P<items>[A-Z]+[0-9]+(?:[,\s]+[A-Z]+[0-9]+)*)(?!\w)|(?![\w-])(?!\s*:))"
)
_NOQA_LINE = pattern(r"(?i)noqa\s*:([^\n]*)")
_MARK = pattern(r"(?i)noqa|torchmigrate:")
_MARKS = (pattern("noqa"), pattern("torchmigrate:"))  # each alone is found twenty times as fast
_OF_FILES = ("flake8", "ruff", "ignore-file")  # words of what hides findings in a whole file
_CODE = pattern(r"(?i)[A-Z]+[0-9]+")
_ITEM = pattern(r"[^\s,]+")
_DIRECTIVES = ((_OURS, ""), (_NOQA, "noqa"), (_NOQA_FILE, "noqa-file"), (_RUFF_FILE, "noqa-file"))


class _Item:
    def __init__(self, text: str) -> None:
        self.text = text
        self.used = False


class Comment(Struct, frozen=True):
    """One directive. `noqa` compares codes by prefix and without case, as flake8 does."""

    kind: str  # "ignore" | "ignore-file" | "noqa" | "noqa-file" | whatever was written
    items: list[_Item] | None  # None: no list was written
    items_span: tuple[int, int]
    start: int
    end: int
    first: int  # rows of the logical line
    last: int
    alone: bool  # no code on its logical line

    @property
    def is_noqa(self) -> bool:
        return self.kind in ("noqa", "noqa-file")

    @property
    def is_for_file(self) -> bool:
        return self.kind in ("ignore-file", "noqa-file")

    def hides(self, code: str, name: str) -> bool:
        if self.is_noqa and self.items is None:
            return True
        hidden = False
        for item in self.items or ():
            if self.is_noqa:
                fits = code.upper().startswith(item.text.upper()) or _is_torchfix(item.text, code)
            else:
                fits = item.text in (code, name)
            if fits:
                item.used = hidden = True
        return hidden


class Suppressions:
    """The suppressions of one file. Its comments are only looked for when somebody needs them."""

    def __init__(self, source: Source, comments: list[Comment] | None) -> None:
        self.source = source
        self._comments = comments
        # By the first row of a logical line (0: the whole file) what hides findings there, and what it hides.
        self._hiding: dict[int, list[Comment]] = {}
        self._rows: list[int] = []
        self._is_read = False
        self._marked: list[int] | None = None  # rows of what looks like a directive; [0]: one for the file
        self._hidden: dict[tuple[int, str, str], bool] = {}

    @classmethod
    def of(cls, source: Source) -> Suppressions:
        """The suppressions of a source that parses as Python."""
        text = source.text
        # Any mixture of cases is a noqa; folding a whole file to find it costs less than one regex over it.
        return cls(source, None if "torchmigrate:" in text or "noqa" in text.lower() else [])

    def hides(self, code: str, name: str, row: int) -> bool:
        """Whether a finding of this rule that begins in this row is suppressed; marks what does it."""
        around = self.source.is_hidden(code, name, row)
        if not self._may_hide(row) or not self._read():
            return around
        index = bisect_right(self._rows, row) - 1
        of_line = self._is_hidden(code, name, self._rows[index], row) if index >= 0 else False
        return self._is_hidden(code, name, 0, row) or of_line or around

    def _may_hide(self, row: int) -> bool:
        """Whether what looks like a directive stands where it could hide findings of a row.

        Most files with a noqa are so spared the tokenizer: it stands in a statement without findings.
        """
        if self._comments is not None:
            return True
        if self._marked is None:
            folded = self.source.text.lower()
            if any(word in folded for word in _OF_FILES):
                self._marked = [0]
            else:
                self._marked = [self.source.position(place)[0] for place in _marks(self.source.text, folded)]
        first, last = rows_around(row, self.source.parse().body, self.source)
        return self._marked == [0] or bisect_left(self._marked, first) < bisect_right(self._marked, last)

    def _is_hidden(self, code: str, name: str, first: int, row: int) -> bool:
        """Whether a comment of the logical line that begins in a row hides a rule in one of its rows."""
        comments = self._hiding.get(first)
        if not comments or (first and row > comments[0].last):
            return False
        key = (first, code, name)
        if key not in self._hidden:  # each marks what hides the rule, so all are called
            self._hidden[key] = True in [comment.hides(code, name) for comment in comments]
        return self._hidden[key]

    def filter(
        self, found: list[Finding], enabled: Collection[str], known: Mapping[str, str]
    ) -> list[Finding]:
        """The findings that are not hidden, and those about the suppressions themselves.

        enabled: codes of the rules that were looked for in this file; known: the code of every rule that
        exists, by code and by name.
        """
        left = [
            finding
            for finding in found
            if not self.hides(finding.code, finding.name, self.source.position(finding.start)[0])
        ]
        return [*left, *self.findings(enabled, known)]

    def findings(self, enabled: Collection[str], known: Mapping[str, str]) -> list[Finding]:
        """What is wrong with the suppressions. To be called after every `hides`; arguments as in `filter`."""
        if self._comments is None and not self.concern(known):
            return []
        found: list[Finding] = []
        for comment in self._read():
            if not comment.is_noqa:
                message = _fault(comment, known)
                if message is not None:
                    if INVALID_SUPPRESSION in enabled:
                        found.append(_finding(INVALID_SUPPRESSION, Severity.WARNING, comment, message))
                    continue
            if UNUSED_SUPPRESSION in enabled:
                found.extend(self._unused(comment, enabled, known))
        return found

    def _unused(
        self, comment: Comment, enabled: Collection[str], known: Mapping[str, str]
    ) -> Iterator[Finding]:
        items = comment.items or []
        unused = [item for item in items if not item.used and known.get(_key(comment, item)) in enabled]
        if not unused:
            return
        gone = set(unused)
        kept = [item for item in items if item not in gone]
        listed = ", ".join(f"`{item.text}`" for item in unused)
        where = "in this file" if comment.is_for_file else "on this line"
        fix = Fix(
            "Remove the unused suppression",
            Applicability.SAFE,
            (self._removal(comment, kept),),
            code=UNUSED_SUPPRESSION,
        )
        yield _finding(
            UNUSED_SUPPRESSION, Severity.INFO, comment, f"nothing to suppress for {listed} {where}", fix
        )

    def _removal(self, comment: Comment, kept: list[_Item]) -> Edit:
        from torchmigrate.rewrite.comments import comment_removed, listed_again  # seldom needed

        if kept:
            return listed_again(self.source, comment.items_span, [item.text for item in kept])
        return comment_removed(self.source, comment.start, comment.end)

    def concern(self, known: Collection[str]) -> bool:
        """Whether a comment may name a rule of ours; if not, and nothing was found, there is nothing to do.

        Most files with a noqa are so spared the tokenizer.
        """
        if self._comments == []:
            return False
        if "torchmigrate:" in self.source.text:
            return True
        return any(
            code.upper() in known
            for match in _NOQA_LINE.finditer(self.source.text)
            for code in _CODE.findall(match.group(1))
        )

    @property
    def comments(self) -> list[Comment]:
        """All directives, in order."""
        return self._read()

    def _read(self) -> list[Comment]:
        if self._comments is None or not self._is_read:
            self._is_read = True
            self._comments = list(_comments(self.source)) if self._comments is None else self._comments
            for comment in self._comments:
                if comment.is_noqa or comment.kind in ("ignore", "ignore-file"):
                    row = 0 if comment.is_for_file else comment.first
                    self._hiding.setdefault(row, []).append(comment)
            self._rows = sorted(row for row in self._hiding if row)
        return self._comments


def _marks(text: str, folded: str) -> list[int]:
    """Where there is what looks like a directive for a line. folded: the text in lower case."""
    if text.isascii():
        found = [match.start() for mark in _MARKS for match in mark.finditer(folded)]
    else:  # some letters are longer when they are folded, which moves what is after them
        found = [match.start() for match in _MARK.finditer(text)]
    return sorted(found)


def rows_around(row: int, body: list[ast.stmt], source: Source | None = None) -> tuple[int, int]:
    """First and last row of a statement that holds the logical line of a row, the smallest in most cases.

    source: what `body` is of; then of a row before the body of a statement, without that body.
    """
    around = (1, sys.maxsize)
    while body:
        index = bisect_right(body, row, key=_first_row) - 1
        if index < 0 and source is not None and row < _first_row(body[0]) and _is_block(body[0], source):
            return around[0], _first_row(body[0]) - 1
        if index < 0 or _last_row(body[index]) < row:
            return around  # in a header, or between statements
        rows = (_first_row(body[index]), _last_row(body[index]))
        if (index and _last_row(body[index - 1]) >= rows[0]) or (
            index + 1 < len(body) and _first_row(body[index + 1]) <= rows[1]
        ):
            return around  # joined by semicolons
        around, body = rows, getattr(body[index], "body", [])
    return around


def _is_block(first: ast.stmt, source: Source) -> bool:
    """Whether the first statement of a body is not on the line of the header."""
    return bool(getattr(first, "decorator_list", None)) or _begins_line(
        source.text, source.offset(first.lineno, first.col_offset)
    )


def _first_row(statement: ast.stmt) -> int:
    marks = getattr(statement, "decorator_list", None)
    return marks[0].lineno if marks else statement.lineno


def _last_row(statement: ast.stmt) -> int:
    return statement.end_lineno or statement.lineno


def _is_torchfix(text: str, code: str) -> bool:
    """Whether a code of TorchFix, or the beginning of one, stands for a code of ours."""
    if not text.upper().startswith("TOR"):
        return False
    from torchmigrate.config.torchfix_codes import ours

    return code in ours(text.upper())


def _key(comment: Comment, item: _Item) -> str:
    return item.text.upper() if comment.is_noqa else item.text


def _finding(
    code: str, severity: Severity, comment: Comment, message: str, fix: Fix | None = None
) -> Finding:
    from torchmigrate.catalogue.builtin import COMMENTS  # seldom needed

    rule = next(rule for rule in COMMENTS if rule.code == code)
    help_text = None if fix else rule.advice
    return Finding(
        *(code, rule.name, message, severity, comment.start, comment.end),
        help=help_text,
        fix=fix,
        url=page_of(code),
    )


def _fault(comment: Comment, known: Collection[str]) -> str | None:
    """Why a comment of ours is refused."""
    if comment.kind not in ("ignore", "ignore-file"):
        return f"`{comment.kind or 'torchmigrate:'}` is not a valid suppression and suppresses nothing"
    if not comment.items:
        return f"`{comment.kind}` without a code suppresses nothing; add the code of the rule"
    unknown = [item.text for item in comment.items if item.text not in known]
    if unknown:
        from torchmigrate.catalogue.groups import PURPOSES
        from torchmigrate.config.selection import did_you_mean

        if unknown[0] in PURPOSES:
            return f"`{unknown[0]}` is a group, but a suppression needs whole codes"
        codes = [code for code in known if code.startswith(unknown[0]) and code[len(unknown[0]) :].isdigit()]
        if codes:
            which = f"`{codes[0]}`" if len(codes) == 1 else f"each of the {len(codes)}"
            return (
                f"`{unknown[0]}` is a prefix, but a suppression needs whole codes; write {which} that it "
                "should hide"
            )
        return f"unknown rule `{unknown[0]}` in a suppression{did_you_mean(unknown[0], known)}"
    if comment.kind == "ignore" and comment.alone:
        return (
            "a suppression on a line of its own has no effect; put it at the end of the line with the finding"
        )
    return None


def _comments(source: Source) -> Iterator[Comment]:
    """Every directive in the comments of a source that parses as Python."""
    import tokenize

    plain = source.text.replace("\r\n", "\n").replace("\r", "\n")  # tokenize knows only these; columns stay
    waiting: list[tuple[int, str]] = []  # comments of the logical line being read
    first, code_seen = 1, False
    skipped = (tokenize.INDENT, tokenize.DEDENT, tokenize.NL, tokenize.ENCODING, tokenize.ENDMARKER)
    try:
        for token in tokenize.generate_tokens(io.StringIO(plain).readline):
            if token.type == tokenize.COMMENT:
                if not code_seen and not waiting:
                    first = token.start[0]
                waiting.append((source.line_start(token.start[0]) + token.start[1], token.string))
            elif token.type == tokenize.NEWLINE or (token.type == tokenize.NL and not code_seen):
                for start, comment in waiting:
                    for directive in directives(start, comment, first, token.start[0], not code_seen):
                        if directive.kind != "noqa-file" or _begins_line(source.text, start):
                            yield directive
                waiting, code_seen = [], False
            elif token.type not in skipped and not code_seen:
                first, code_seen = token.start[0], True
    except (tokenize.TokenError, SyntaxError):
        return  # not Python, or a form that only the tokenizer minds


def _begins_line(text: str, offset: int) -> bool:
    """Whether there is nothing but white space before a place in its line."""
    before = text[:offset].rstrip(" \t\f")
    return not before or before[-1] in "\r\n"


def directives(offset: int, comment: str, first: int, last: int, alone: bool) -> Iterator[Comment]:
    """What a comment says. offset: where it begins; first, last: rows of its logical line; alone: in that."""
    for mark, kind in _DIRECTIVES:
        for match in mark.finditer(comment):
            written = match.group("items")
            span = (match.start("items"), match.end("items"))
            yield Comment(
                kind=kind or match.group("kind"),
                items=None if written is None else [_Item(part) for part in _ITEM.findall(written)],
                items_span=(offset + span[0], offset + span[1]),
                start=offset + match.start(),
                end=offset + len(comment[: match.end()].rstrip()),
                first=first,
                last=last,
                alone=alone,
            )
