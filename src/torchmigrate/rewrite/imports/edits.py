"""Editing import statements as text: adding and removing names and statements, byte-exact elsewhere."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from msgspec import Struct

from torchmigrate.findings import Edit
from torchmigrate.patterns import pattern
from torchmigrate.rewrite.lines import (
    BLANK_LINES,
    COMMENT_LINE,
    SourceText,
    add_after,
    add_line_before,
    end_of,
    is_marker,
    line_start,
    logical_line,
    runs,
    start_of,
)
from torchmigrate.semantics.submodules import is_standard

COMMENT = pattern(r"#[^\r\n]*")
_COMMA_AFTER_ALIAS = pattern(r"(?:\s|\\|#[^\r\n]*(?![^\r\n]))*,")
_AFTER_LONE_ALIAS = pattern(r"[ \t\f]*,?[ \t\f]*(#[^\r\n]*)?(?=[\r\n])")
_DOTTED = r"[^\s\\.]+(?:[\s\\]*\.[\s\\]*[^\s\\.]+)*"
_DOTTED_NAME = pattern(_DOTTED)
_FROM = pattern(rf"from[\s\\]+({_DOTTED})[\s\\]+import(?![^\s\\(*])[\s\\]*(\()?")
_LONG_LINE = 100  # a new statement that would be longer is written with one name per line


# ---- lines ----------------------------------------------------------------------------------------------


def from_import(source: SourceText, module: str, names: Sequence[str], indent: str | None) -> str:
    """The code of a from-import; long ones with one name per line where `indent` is not None."""
    code = f"from {module} import {', '.join(names)}"
    if indent is None or len(names) == 1 or len(indent) + len(code) <= _LONG_LINE:
        return code
    newline = source.newline + indent
    return f"from {module} import ({newline}    " + f",{newline}    ".join(names) + f",{newline})"


# ---- one statement --------------------------------------------------------------------------------------


class Cut(Struct, frozen=True):
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
        for first, last in runs(gone):
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
    while found := COMMENT_LINE.match(text, offset):
        offset = found.end()
    if blank := BLANK_LINES.match(text, offset):
        offset = blank.end()
    gap = "" if text.startswith(("import ", "from "), offset) else newline
    return Edit(offset, offset, f"{code}{newline}{gap}", mergeable=True)
