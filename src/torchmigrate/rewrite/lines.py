"""The lines of simple statements: where each begins and ends, what is added next to them or removed."""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from torchmigrate.findings import Edit
from torchmigrate.patterns import pattern

COMMENT_LINE = pattern(r"[ \t\f]*#[^\r\n]*(?:\r\n|\r|\n)")
BLANK_LINES = pattern(r"(?:[ \t\f]*(?:\r\n|\r|\n))+")
_FORM_FEED = pattern(r"[ \t\f]*\f")
_REST_OF_LINE = pattern(r"(?:[ \t\f;]|\\(?:\r\n|\r|\n))*(#[^\r\n]*)?(\r\n|\r|\n|\Z)")
_MARKER = pattern(
    r"noqa\b(?:\s*:\s*[A-Z]+[0-9]+(?:[,\s]+[A-Z]+[0-9]+)*)?"
    r"|(?:isort|usort|type|fmt|pyright|mypy|pragma|nosec)\b\s*:?\s*[\w\[\], :-]*",
)


class SourceText(Protocol):
    """The part of `Source` that editing needs."""

    text: str

    @property
    def newline(self) -> str: ...

    def offset(self, line: int, column: int) -> int: ...


def start_of(source: SourceText, node: ast.stmt | ast.alias) -> int:
    """Offset of the first character of a node (of its first decorator, where it has one)."""
    first = min((mark.lineno for mark in getattr(node, "decorator_list", ())), default=None)
    if first is not None and first < node.lineno:
        return line_start(source.text, source.offset(first, 0))
    return source.offset(node.lineno, node.col_offset)


def end_of(source: SourceText, node: ast.stmt | ast.alias) -> int:
    """Offset after the last character of a node."""
    line, column = node.end_lineno, node.end_col_offset
    assert line is not None and column is not None, "the parser gives every statement an end"
    return source.offset(line, column)


def line_start(text: str, offset: int) -> int:
    """Offset of the first character of the physical line that holds `offset`.

    That is after a form feed in its white space: indentation is counted from there.
    """
    start = max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1
    return behind_form_feed(text, start, offset)


def behind_form_feed(text: str, start: int, end: int) -> int:
    """Where the indentation of a line begins that begins at `start`; before `end`."""
    if text.find("\f", start, end) < 0:
        return start
    found = _FORM_FEED.match(text, start, end)
    return found.end() if found else start


def begins_line(source: SourceText, statement: ast.stmt) -> bool:
    """Whether a statement has nothing before it on its line."""
    start = start_of(source, statement)
    return not source.text[line_start(source.text, start) : start].strip()


def is_elif(source: SourceText, statement: ast.If) -> bool:
    """Whether an `if` is written as a further branch of another."""
    return source.text.startswith("elif", start_of(source, statement))


def is_marker(comment: str) -> bool:
    """Whether a comment only talks to linters: `# noqa: E402`, `# isort: skip`, `# type: ignore`."""
    parts = [part.strip() for part in comment.split("#")]
    return all(not part or _MARKER.fullmatch(part) for part in parts)


class LogicalLine(Struct, frozen=True):
    """The line (or lines) of a simple statement, with all statements that share it."""

    statements: tuple[ast.stmt, ...]
    start: int  # of the physical line that it begins on
    indent: str | None  # None: the suite stands on the line of its header
    end: int  # after the trailing comment, before the newline
    after: int  # after the newline; equal to `end` at the end of a text without one
    comment: str  # the trailing comment, or ""

    def holds(self, statement: ast.stmt) -> bool:
        return any(item is statement for item in self.statements)


def index_of(block: Sequence[ast.stmt], statement: ast.stmt) -> int:
    """The place of a statement in its block, which is in the order of the source."""
    place = _place(statement)
    index = bisect_left(block, place, key=_place)
    while block[index] is not statement:
        index += 1
    return index


def _place(statement: ast.stmt) -> tuple[int, int]:
    return statement.lineno, statement.col_offset


def _line(statement: ast.stmt) -> int:
    return statement.lineno


def logical_line(source: SourceText, block: Sequence[ast.stmt], statement: ast.stmt) -> LogicalLine:
    """The logical line of a simple statement of `block`."""
    text = source.text
    first = last = index_of(block, statement)
    # Of those on one line all at once: there may be thousands.
    while first and block[first].lineno == block[first - 1].end_lineno:
        first = bisect_left(block, block[first - 1].lineno, hi=first, key=_line)
    while last + 1 < len(block) and block[last + 1].lineno == block[last].end_lineno:
        last = bisect_right(block, block[last + 1].lineno, lo=last + 1, key=_line) - 1
    begin = start_of(source, block[first])
    start = line_start(text, begin)
    indent: str | None = text[start:begin]
    if text[start:begin].strip() or text[max(start - 3, 0) : start].rstrip("\r\n").endswith("\\"):
        indent = None
    rest = _REST_OF_LINE.match(text, end_of(source, block[last]))
    if rest is None:  # a compound statement ends here: whatever follows is not ours to read
        end = after = end_of(source, block[last])
        return LogicalLine(tuple(block[first : last + 1]), start, None, end, after, "")
    statements = tuple(block[first : last + 1])
    return LogicalLine(statements, start, indent, rest.start(2), rest.end(2), rest[1] or "")


def is_alone(source: SourceText, block: Sequence[ast.stmt], statement: ast.stmt) -> bool:
    """Whether a simple statement of `block` has its lines for itself."""
    line = logical_line(source, block, statement)
    return line.indent is not None and len(line.statements) == 1


def add_before(source: SourceText, statement: ast.stmt, code: str) -> Edit:
    """Add a statement on the line of another, in front of it."""
    start = start_of(source, statement)
    return Edit(start, start, f"{code}; ", mergeable=True)


def add_line_after(source: SourceText, line: LogicalLine, code: str) -> Edit:
    """Add a statement on a line of its own after a logical line that is not a suite on its header's line."""
    newline = source.text[line.end : line.after]
    if not newline:
        return Edit(line.end, line.end, f"{source.newline}{line.indent}{code}", mergeable=True)
    return Edit(line.after, line.after, f"{line.indent}{code}{newline}", mergeable=True)


def add_after(
    source: SourceText,
    block: Sequence[ast.stmt],
    statement: ast.stmt,
    code: str,
    user: ast.stmt | None = None,
) -> Edit:
    """Add a statement next to `statement` of the same block, so that it runs before `user`."""
    line = logical_line(source, block, statement)
    if line.indent is None or (user is not None and line.holds(user)):
        return add_before(source, statement, code)
    return add_line_after(source, line, code + _marker(line))


def add_line_before(
    source: SourceText, block: Sequence[ast.stmt], statement: ast.stmt, code: str, gap: str = ""
) -> Edit | None:
    """Add a statement on the line before `statement`, then `gap`; None if other code is on its line."""
    line = logical_line(source, block, statement)
    if line.indent is None or line.statements != (statement,):
        return None
    newline = source.text[line.end : line.after] or source.newline
    return Edit(line.start, line.start, f"{line.indent}{code}{_marker(line)}{newline}{gap}", mergeable=True)


def _marker(line: LogicalLine) -> str:
    """The comment of a new import next to one that stands below other code."""
    return "  # noqa: E402" if "E402" in line.comment and is_marker(line.comment) else ""


def runs(indices: Sequence[int]) -> list[tuple[int, int]]:
    """First and last of each run of neighbouring numbers, from sorted numbers."""
    runs: list[tuple[int, int]] = []
    for index in indices:
        if runs and runs[-1][1] == index - 1:
            runs[-1] = (runs[-1][0], index)
        else:
            runs.append((index, index))
    return runs


def remove_statements(
    source: SourceText, block: Sequence[ast.stmt], gone: Sequence[ast.stmt], *, module: bool
) -> tuple[Edit, ...]:
    """Remove simple statements of one block; one of them becomes `pass` where a suite would be empty.

    Blank lines after those at the beginning of a suite, or of the file, go with them; of those before and
    after others the longer gap stays.

    Args:
        module: whether `block` is the body of the module, which may be empty.
    """
    ids = {id(item) for item in gone}
    edits: list[Edit] = []
    if not module and len(ids) == len(block):
        keep = block[0]
        ids.discard(id(keep))
        edits.append(Edit(start_of(source, keep), end_of(source, keep), "pass", mergeable=True))
    leading = 0
    while not module and leading < len(block) and id(block[leading]) in ids:
        leading += 1
    first_left = block[leading].lineno if 0 < leading < len(block) else 0
    seen: set[int] = set()
    for statement in block:
        if id(statement) not in ids or id(statement) in seen:
            continue
        line = logical_line(source, block, statement)
        seen.update(id(item) for item in line.statements)
        dead = [number for number, item in enumerate(line.statements) if id(item) in ids]
        if len(dead) == len(line.statements) and line.indent is not None:
            start, after = line.start, line.after
            if statement.lineno < first_left and (blank := BLANK_LINES.match(source.text, after)) is not None:
                after = blank.end()
            elif not edits or edits[-1].end <= start:
                start, after = without_gap(source.text, edits[-1].end if edits else 0, start, after)
            edits.append(Edit(start, after, "", mergeable=True))
            continue
        for first, last in runs(dead):
            if last + 1 < len(line.statements):
                start = start_of(source, line.statements[first])
                end = start_of(source, line.statements[last + 1])
            else:
                start = end_of(source, line.statements[first - 1])
                end = end_of(source, line.statements[last])
            edits.append(Edit(start, end, "", mergeable=True))
    return tuple(sorted(edits))


def without_gap(text: str, least: int, start: int, after: int) -> tuple[int, int]:
    """From where to where lines go with the shorter one of the gaps around them.

    After the header of a block, and at the beginning and the end of a file, no gap stays.

    Args:
        least: where the gap before them may begin.
        start: of the lines that go.
        after: where the lines begin that stay.
    """
    code = start  # the end of the code before the gap
    while code > least and text[code - 1].isspace():
        code -= 1
    behind = BLANK_LINES.match(text, after)
    if not code or text[code - 1] == ":":
        return start, behind.end() if behind is not None else after
    line = _REST_OF_LINE.match(text, code) if not text[code - 1].isspace() else None
    before = code if line is None else min(line.end(), start)
    if behind is None:
        return before if after == len(text) else start, after
    if _height(text, before, start) <= _height(text, after, behind.end()):
        return before, after
    return start, behind.end()


def _height(text: str, start: int, end: int) -> int:
    """How many lines end between two offsets."""
    return max(text.count("\n", start, end), text.count("\r", start, end))


def move_to_end(
    source: SourceText, block: Sequence[ast.stmt], statement: ast.stmt, changes: Sequence[Edit] = ()
) -> tuple[Edit, Edit] | None:
    """Move the line of a simple statement after all others of its block.

    None where it is there, or lines are shared with other statements, or do not end as usual.

    Args:
        changes: what else changes in the statement.
    """
    text = source.text
    line, end = logical_line(source, block, statement), logical_line(source, block, block[-1])
    if line.indent is None or len(line.statements) != 1 or line.after >= end.after:
        return None
    if any(text[offset - 1 : offset] != "\n" for offset in (line.start, line.after, end.after)):
        return None
    parts, here = [], line.start
    for edit in changes:
        parts += [text[here : edit.start], edit.text]
        here = edit.end
    moved = "".join([*parts, text[here : line.after]])
    return Edit(line.start, line.after, ""), Edit(end.after, end.after, moved)
