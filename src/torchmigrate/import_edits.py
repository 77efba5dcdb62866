"""Editing import statements as text: adding and removing names and statements, byte-exact elsewhere."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from torchmigrate.model import Edit
from torchmigrate.submodules import is_standard

COMMENT = re.compile(r"#[^\r\n]*")
_COMMENT_LINE = re.compile(r"[ \t\f]*#[^\r\n]*(?:\r\n|\r|\n)")
_BLANK_LINES = re.compile(r"(?:[ \t\f]*(?:\r\n|\r|\n))+")
_REST_OF_LINE = re.compile(r"(?:[ \t\f;]|\\(?:\r\n|\r|\n))*(#[^\r\n]*)?(\r\n|\r|\n|\Z)")
_COMMA_AFTER_ALIAS = re.compile(r"(?:\s|\\|#[^\r\n]*(?![^\r\n]))*,")
_AFTER_LONE_ALIAS = re.compile(r"[ \t\f]*,?[ \t\f]*(#[^\r\n]*)?(?=[\r\n])")
_DOTTED = r"[^\s\\.]+(?:[\s\\]*\.[\s\\]*[^\s\\.]+)*"
_DOTTED_NAME = re.compile(_DOTTED)
_FROM = re.compile(rf"from[\s\\]+({_DOTTED})[\s\\]+import(?![^\s\\(*])[\s\\]*(\()?")
_MARKER = re.compile(
    r"noqa\b(?:\s*:\s*[A-Z]+[0-9]+(?:[,\s]+[A-Z]+[0-9]+)*)?"
    r"|(?:isort|usort|type|fmt|pyright|mypy|pragma|nosec)\b\s*:?\s*[\w\[\], :-]*",
)
_LONG_LINE = 100  # a new statement that would be longer is written with one name per line


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
    """Offset of the first character of the physical line that holds `offset`."""
    return max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1


def is_marker(comment: str) -> bool:
    """Whether a comment only talks to linters: `# noqa: E402`, `# isort: skip`, `# type: ignore`."""
    parts = [part.strip() for part in comment.split("#")]
    return all(not part or _MARKER.fullmatch(part) for part in parts)


# ---- lines ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LogicalLine:
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
    """The comment of a new import beside one that stands below other code."""
    return "  # noqa: E402" if "E402" in line.comment and is_marker(line.comment) else ""


def from_import(source: SourceText, module: str, names: Sequence[str], indent: str | None) -> str:
    """The code of a from-import; long ones with one name per line where `indent` is not None."""
    code = f"from {module} import {', '.join(names)}"
    if indent is None or len(names) == 1 or len(indent) + len(code) <= _LONG_LINE:
        return code
    newline = source.newline + indent
    return f"from {module} import ({newline}    " + f",{newline}    ".join(names) + f",{newline})"


# ---- one statement --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cut:
    """Edits that remove aliases, and the comments that go with them."""

    edits: tuple[Edit, ...]
    comments: tuple[tuple[int, str], ...]  # of aliases with a line of their own: index and comment
    lost: tuple[str, ...]  # comments that belong to no alias

    def text_lost(self) -> bool:
        """Whether a comment goes that a person would miss."""
        return any(not is_marker(item) for item in (*self.lost, *(text for _, text in self.comments)))


class ImportStatement:
    """The layout of one import statement."""

    def __init__(self, source: SourceText, node: ast.Import | ast.ImportFrom) -> None:
        self.source = source
        self.node = node
        self.start, self.end = start_of(source, node), end_of(source, node)
        self.spans = [(start_of(source, alias), end_of(source, alias)) for alias in node.names]
        self.parenthesised = False
        self.module_span = (self.start, self.start)
        if isinstance(node, ast.ImportFrom):
            found = _FROM.match(source.text, self.start)
            if found is not None:
                self.module_span = found.span(1)
                self.parenthesised = found[2] is not None

    @property
    def comments(self) -> list[str]:
        """Comments inside the statement (import statements hold no strings)."""
        return COMMENT.findall(self.source.text[self.start : self.end])

    def rename(self, index: int, name: str, local: str) -> tuple[Edit, ...]:
        """Import `name` as `local` in the place of an alias; nothing where that is what it does."""
        alias = self.node.names[index]
        start, end = self.spans[index]
        if alias.name == name and (alias.asname or alias.name) == local:
            return ()
        if alias.asname == local and name != local:
            old = _DOTTED_NAME.match(self.source.text, start)  # whatever stands around `as` is kept
            assert old is not None, "an alias starts with its name"
            return (Edit(start, old.end(), name, mergeable=True),)
        return (Edit(start, end, spell_alias(name, local), mergeable=True),)

    def change_module(self, module: str) -> Edit:
        """Import from another module."""
        return Edit(*self.module_span, module, mergeable=True)

    def extend(self, alias: str) -> tuple[Edit, ...]:
        """Import one more name, at the end; several extensions of one statement go in any order."""
        text = self.source.text
        last = len(self.spans) - 1
        end = self.spans[last][1]
        lone = self._lone(last)
        if lone is None:
            return (Edit(end, end, f", {alias}", mergeable=True),)
        start = self.spans[last][0]
        begin = line_start(text, start)
        line = f"{text[lone[0] : begin]}{text[begin:start]}{alias}"
        if _COMMA_AFTER_ALIAS.match(text, end, self.end):
            return (Edit(lone[1], lone[1], f"{line},", mergeable=True),)
        if lone[1] == end:  # one edit, since those at one place have no order
            return (Edit(end, end, f",{line}", mergeable=True),)
        comma = Edit(end, end, ",", mergeable=True)
        return comma, Edit(lone[1], lone[1], f"{line},", mergeable=True)

    def cut(self, indices: Iterable[int]) -> Cut:
        """Remove some of the names; at least one must stay."""
        gone = sorted(set(indices))
        assert len(gone) < len(self.spans), "a statement without names is removed whole"
        edits: list[Edit] = []
        comments: list[tuple[int, str]] = []
        lost: list[str] = []
        for first, last in _runs(gone):
            lines = [self._lone(index) for index in range(first, last + 1)]
            if all(line is not None for line in lines):
                for index, line in zip(range(first, last + 1), lines, strict=True):
                    assert line is not None
                    if line[2]:
                        comments.append((index, line[2]))
                    edits.append(self._cut_line(index, line, alone=first == index == last))
                continue
            if last + 1 < len(self.spans):
                start, end = self.spans[first][0], self.spans[last + 1][0]
            else:
                start, end = self.spans[first - 1][1], self.spans[last][1]
            lost.extend(COMMENT.findall(self.source.text[start:end]))
            edits.append(Edit(start, end, "", mergeable=True))
        return Cut(tuple(edits), tuple(comments), tuple(lost))

    def _cut_line(self, index: int, line: tuple[int, int, str], alone: bool) -> Edit:
        if alone and index and index == len(self.spans) - 1:
            # Reaches back to the name before, so that it collides with the removal of that one: two fixes
            # that each remove one of the last two names must not leave an import of nothing.
            start = self.spans[index - 1][1]
            return Edit(start, line[1], self.source.text[start : line[0]], mergeable=True)
        return Edit(line[0], line[1], "", mergeable=True)

    def _lone(self, index: int) -> tuple[int, int, str] | None:
        """Start (before its newline), end and comment of the lines of an alias that has them for itself."""
        text = self.source.text
        start, end = self.spans[index]
        begin = line_start(text, start)
        if not self.parenthesised or begin <= self.start or text[begin:start].strip():
            return None
        rest = _AFTER_LONE_ALIAS.match(text, end)
        comma = _COMMA_AFTER_ALIAS.match(text, end, self.end)
        if rest is None or (comma is not None and comma.end() > rest.end()):  # a comma on a line of its own
            return None
        before = begin - (2 if text[begin - 2 : begin] == "\r\n" else 1)
        return before, rest.end(), rest[1] or ""


def spell_alias(name: str, local: str) -> str:
    """`name`, or `name as local`."""
    return name if name == local else f"{name} as {local}"


def _runs(indices: Sequence[int]) -> list[tuple[int, int]]:
    """First and last of each run of neighbouring numbers, from sorted numbers."""
    runs: list[tuple[int, int]] = []
    for index in indices:
        if runs and runs[-1][1] == index - 1:
            runs[-1] = (runs[-1][0], index)
        else:
            runs.append((index, index))
    return runs


# ---- removing statements --------------------------------------------------------------------------------


def comments_of(
    source: SourceText, block: Sequence[ast.stmt], statement: ast.Import | ast.ImportFrom
) -> list[str]:
    """The comments that go when an import statement is removed."""
    found = ImportStatement(source, statement).comments
    line = logical_line(source, block, statement)
    if line.comment and len(line.statements) == 1:
        found.append(line.comment)
    return found


def remove_statements(
    source: SourceText, block: Sequence[ast.stmt], gone: Sequence[ast.stmt], *, module: bool
) -> tuple[Edit, ...]:
    """Remove simple statements of one block; one of them becomes `pass` where a suite would be empty.

    Blank lines behind those at the beginning of a suite go with them.

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
            after = line.after
            if (
                statement.lineno < first_left
                and (blank := _BLANK_LINES.match(source.text, after)) is not None
            ):
                after = blank.end()
            edits.append(Edit(line.start, after, "", mergeable=True))
            continue
        for first, last in _runs(dead):
            if last + 1 < len(line.statements):
                start = start_of(source, line.statements[first])
                end = start_of(source, line.statements[last + 1])
            else:
                start = end_of(source, line.statements[first - 1])
                end = end_of(source, line.statements[last])
            edits.append(Edit(start, end, "", mergeable=True))
    return tuple(sorted(edits))


# ---- the top of a module --------------------------------------------------------------------------------


def roots_of(statement: ast.Import | ast.ImportFrom) -> list[str]:
    """The top-level packages that an import statement names; none where it is relative."""
    if isinstance(statement, ast.ImportFrom):
        return [] if statement.level else [(statement.module or "").partition(".")[0]]
    return [alias.name.partition(".")[0] for alias in statement.names]


def add_among_standard(
    source: SourceText,
    body: Sequence[ast.stmt],
    code: str,
    imports: Sequence[ast.Import | ast.ImportFrom],
    user: ast.stmt,
) -> Edit | None:
    """Add an import of the standard library to those that a module has, or as a group before the others.

    Args:
        imports: the module's imports before `user`, the statement that needs the new one; at least one.
    """
    standard = [
        item for item in imports if roots_of(item) and all(is_standard(name) for name in roots_of(item))
    ]
    # The plain ones in order, then those with `from`.
    before = [item for item in standard if _sort_key(source.text[start_of(source, item) :]) < _sort_key(code)]
    if before:
        return add_after(source, body, before[-1], code, user)
    return add_line_before(source, body, (standard or imports)[0], code, "" if standard else source.newline)


def _sort_key(code: str) -> tuple[bool, list[str]]:
    return code.startswith("from"), code.split(maxsplit=2)[1:2]


def is_header(body: Sequence[ast.stmt], statement: ast.stmt) -> bool:
    """Whether a statement is the module docstring or a `from __future__` import."""
    if isinstance(statement, ast.ImportFrom):
        return statement.module == "__future__" and not statement.level
    return (
        statement is body[0]
        and isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def add_at_top(source: SourceText, body: Sequence[ast.stmt], code: str) -> Edit | None:
    """Add a first import to a module: after docstring, `__future__` imports or header comments.

    None where these share their line with other code.
    """
    text = source.text
    last = None
    for statement in body:
        if not is_header(body, statement):
            break
        last = statement
    if last is not None:
        header = logical_line(source, body, last)
        if header.statements[-1] is not last:
            return None
        newline = text[header.end : header.after] or source.newline
        return Edit(header.after, header.after, f"{newline}{code}{newline}", mergeable=True)
    newline = source.newline
    offset = 0
    while found := _COMMENT_LINE.match(text, offset):
        offset = found.end()
    if blank := _BLANK_LINES.match(text, offset):
        offset = blank.end()
    gap = "" if text.startswith(("import ", "from "), offset) else newline
    return Edit(offset, offset, f"{code}{newline}{gap}", mergeable=True)
