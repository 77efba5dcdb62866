"""Edits of whole statements: put under a `with`, taken out of an `if`, added, replaced and removed.

Everything is recorded first and becomes edits at the end, so that a line can be moved by one step and changed
by another. Comments of what goes stay, on lines of their own.
"""

from __future__ import annotations

import ast
import io
import itertools
import re
import tokenize
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from msgspec import Struct

from torchmigrate.findings import Edit, Reason, because
from torchmigrate.match.context import CannotFix
from torchmigrate.patterns import pattern
from torchmigrate.rewrite.apply import splice
from torchmigrate.rewrite.code import Code
from torchmigrate.rewrite.expressions import ExpressionEdits
from torchmigrate.rewrite.lines import (
    behind_form_feed,
    end_of,
    is_marker,
    line_start,
    start_of,
    without_gap,
)
from torchmigrate.source.ranges import Ranges
from torchmigrate.source.text import Source
from torchmigrate.source.trees import walk

_SPACE_TO_END = pattern(r"\s*\Z")
_ALONE = pattern(r"[ \t]*(?:#[^\r\n]*)?(?:\r\n|\r|\n|\Z)")
_ALONE_OR_ENDED = pattern(r"[ \t]*(?:;[ \t]*)?(?:#[^\r\n]*)?(?:\r\n|\r|\n|\Z)")
_EMPTY_LINES = pattern(r"(?:[ \t\f]*(?:\r\n|\r|\n))*")
_LINE_BREAK = pattern(r"\r\n|\r|\n")
_NEXT_LINE = pattern(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_COMMENT_BEHIND = pattern(r"[ \t\f]*(#[^\r\n]*)")
_INDENT = pattern(r"[ \t]*")
_Function = ast.FunctionDef | ast.AsyncFunctionDef


class Crowded(Exception):
    """A statement shares its line with others, so that its lines cannot be moved."""

    def __init__(self, reason: str, *, line: int | None = None) -> None:
        super().__init__(reason)
        self.line = line

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """The same as data of a finding."""
        return because(str(self), line=self.line)


class NewFunction(Struct, frozen=True):
    """A function that is written where a statement was. parameters: with their stars."""

    name: str
    parameters: tuple[str, ...]
    body: tuple[Code, ...]


NewStatement = Code | NewFunction


class _Insertion(Struct):
    """A new line: at which offset, its code, and the line whose indentation it has, less `minus`.

    frame: the text around the code.
    """

    offset: int
    code: Code | str
    like: int
    minus: str
    number: int
    frame: str = "{}"


class _Merged(Struct, frozen=True):
    """Lines that go to another place, by their start and end, with some in front."""

    start: int
    end: int
    target: int
    head: str


class Rewriting:
    """Collects the changes of one file.

    Args:
        source: the file.
        lines: what is known of it; the same for all that change it.
    """

    def __init__(self, source: Source, lines: Lines) -> None:
        self.source = source
        self.text = source.text
        self._lines_of_file = lines
        self._expressions = ExpressionEdits(source)
        self._cut: list[tuple[int, int]] = []
        self._removed: list[tuple[int, int]] = []
        self._insertions: list[_Insertion] = []
        self._unwrapped: dict[int, ast.stmt] = {}
        self._merged: list[_Merged] = []
        self._done: set[int] = set()
        # Changes of indentation by the start of the line: how much of it stays in front, how many characters
        # go after that, and what comes in their place. A block may be indented by tabs, and what is in it by
        # spaces, so that it matters where.
        self._moved: dict[int, list[tuple[int, int, str]]] = {}

    # ---- asking ---------------------------------------------------------------------------------------

    def _in_one_line(self, statement: ast.stmt) -> str | None:
        """The source of a statement with the replacements so far, on one line; None: it cannot be there."""
        start, end = start_of(self.source, statement), end_of(self.source, statement)
        parts, here = [], start
        for (begin, stop), new in sorted(self._rendered(start, end).items()):
            if here <= begin and stop <= end:
                parts += [self.text[here:begin], new]
                here = stop
        lines = "".join([*parts, self.text[here:end]]).splitlines()
        if len(lines) > 1 and any(mark in line for line in lines for mark in ("#", '"""', "'''", "\\")):
            return None
        joined = " ".join(line.strip() for line in lines)
        return re.sub(r"(?<=[(\[]) | (?=[)\]])", "", joined) if len(lines) > 1 else joined

    def first_line(self, statement: ast.stmt, *, ended: bool = False) -> int:
        """The offset of the line of a statement.

        Args:
            ended: whether a semicolon may stand after it.

        Raises:
            Crowded: other code is on its lines.
        """
        start = start_of(self.source, statement)
        begin = line_start(self.text, start)
        alone = _ALONE_OR_ENDED if ended else _ALONE
        if self.text[begin:start].strip() or not alone.match(self.text, end_of(self.source, statement)):
            raise Crowded(f"line {statement.lineno} has more than one statement", line=statement.lineno)
        return begin

    def indent(self, statement: ast.stmt) -> str:
        """The white space before a statement."""
        found = _INDENT.match(self.text, self.first_line(statement))
        return found[0] if found else ""

    def after(self, statement: ast.stmt) -> int:
        """The offset of the line after a statement."""
        found = _NEXT_LINE.match(self.text, end_of(self.source, statement))
        return found.end() if found else len(self.text)

    @property
    def wraps(self) -> bool:
        """Whether something is put in a block."""
        return any(more for moves in self._moved.values() for _, _, more in moves)

    # ---- recording ------------------------------------------------------------------------------------

    def record(self, edits: Iterable[Edit] | None) -> None:
        """Changes inside of a statement that an editor of its own has made.

        Raises:
            Crowded: it could not, which is what None says.
        """
        if edits is None:
            raise Crowded("the code cannot be parsed")
        self._expressions.record(edits)

    def replace_node(self, node: ast.expr | ast.stmt, code: Code) -> None:
        """Other code for an expression, which may quote it and others: they are quoted as they will be."""
        self._expressions.put(node, code)

    def add_parameter(self, function: _Function, name: str) -> bool:
        """One more parameter for a function, by keyword alone where others have defaults.

        False for a function that has none so far.

        Raises:
            Crowded: the function is not understood.
        """
        from torchmigrate.rewrite.parameters import parameter_added  # with LibCST

        arguments = function.args
        if not (arguments.posonlyargs or arguments.args or arguments.vararg or arguments.kwonlyargs):
            return False
        self.record(parameter_added(self.source, function, name))
        return True

    def drop_header(self, statement: ast.With | ast.AsyncWith) -> None:
        """Remove the header of a `with`, and keep the statement after it on its line."""
        self.first_line(statement)
        self._expressions.put_text(
            start_of(self.source, statement), start_of(self.source, statement.body[0]), ""
        )

    def rename(self, node: ast.Name | ast.arg, name: str) -> None:
        """Another name for a variable, or for a parameter, at one place."""
        start, _ = self.source.span(node)
        old = node.id if isinstance(node, ast.Name) else node.arg
        self._expressions.put_text(start, start + len(old), name)

    def add_before(self, statement: ast.stmt, code: Code) -> None:
        """A statement on a line of its own before another."""
        line = self.first_line(statement)
        self._insert(line, code, line)

    def copy_before(self, statement: ast.stmt, place: ast.stmt) -> None:
        """A statement, with the replacements so far, also on a line of its own before another.

        Raises:
            Crowded: it cannot stand on one line.
        """
        copy = self._in_one_line(statement)
        if copy is None:
            raise Crowded(f"line {statement.lineno} cannot be written on one line", line=statement.lineno)
        line = self.first_line(place)
        self._insert(line, copy, line)

    def decorate(self, function: _Function, decorator: Code) -> None:
        """A decorator above those that a function has."""
        line = self.first_line(function)
        self._insert(line, decorator, line, frame="@{}")

    def add_behind(self, statement: ast.stmt, code: Code) -> None:
        """A statement on a line of its own after another."""
        self._insert(self.after(statement), code, self.first_line(statement))

    def add_function(self, statement: ast.stmt, new: NewFunction) -> None:
        """A function after a statement of the same block, with an empty line between them."""
        at, like = self.after(statement), self.first_line(statement)
        self._insert(at, "", like, minus=self.indent(statement))
        self._insert(at, f"def {new.name}({', '.join(new.parameters)}):", like)
        for line in new.body:
            self._insert(at, line, like, frame=f"{self._lines_of_file.step}{{}}")

    def add_lines(self, statement: ast.stmt, text: str) -> None:
        """Lines of new code after a statement, with its indentation in front."""
        at, like = self.after(statement), self.first_line(statement)
        for line in text.removesuffix("\n").split("\n"):
            self._insert(at, line, like, minus="" if line else self.indent(statement))

    @property
    def step(self) -> str:
        """One step of the indentation of the file."""
        return self._lines_of_file.step

    def wrap(self, statements: Sequence[ast.stmt], manager: Code) -> None:
        """Put neighbours in a block under a `with`."""
        first = self.first_line(statements[0])
        for statement in statements:
            self.first_line(statement)
        self._insert(first, manager, first, self._lines_of_file.step, "with {}:")
        front = len(self.indent(statements[0]))
        for line in self._lines(first, self.after(statements[-1])):
            self._move(line, front, 0, self._lines_of_file.step)

    def unwrap(self, statement: ast.stmt, body: Sequence[ast.stmt]) -> None:
        """Leave one block of a compound statement in its place; the header and other blocks go."""
        if self._unwrapped.setdefault(id(statement), body[0]) is not body[0]:
            raise Crowded(f"line {statement.lineno}: both branches would remain", line=statement.lineno)
        if id(statement) in self._done:
            return
        self._done.add(id(statement))
        outer, begin = self.indent(statement), self.first_line(statement)
        inner, first = self.indent(body[0]), self.first_line(body[0])
        end, last = self.after(statement), self.after(body[-1])
        for item in body:
            self.first_line(item)
        self._drop(begin, self._comment_start(begin, first))
        if last < end:
            self._drop(last, end)
        less = len(inner) - len(outer)
        for line in self._lines(first, last):
            self._move(line, len(outer), less, "")
        for line in self._comment_lines(begin, first):
            self._moved.pop(line, None)
            self._move(line, len(outer), less, "")

    def replace_statement(self, statement: ast.stmt, new: Sequence[NewStatement]) -> None:
        """Several statements in the place of a simple one, which is alone on its lines and has a block's.

        The comment after it stays after the last of them, or after the first if the last is a function.
        A function has blank lines around it: two on each side in a module, one elsewhere.
        """
        start, end = self.source.span(statement)
        indent = self._indent_of(line_start(self.text, start))
        gap = 1 if indent else 2
        lines = list(self._written(new, gap))
        comment = _COMMENT_BEHIND.match(self.text, end)
        if isinstance(new[-1], NewFunction):
            if comment is not None:
                lines[0] += f"  {comment[1]}"
                end = comment.end()
            behind = self.after(statement)
            if not _SPACE_TO_END.match(self.text, behind):
                empty = _EMPTY_LINES.match(self.text, behind)
                there = len(_LINE_BREAK.findall(empty[0])) if empty is not None else 0
                lines += [""] * (gap - there)
        code = self.source.newline.join(f"{indent}{line}" if line else line for line in lines)
        self._expressions.put_text(start, end, code[len(indent) :], whole=True)

    def _written(self, new: Sequence[NewStatement], gap: int) -> Iterator[str]:
        """Statements as lines; the first line is not a function's. gap: blank lines around a function."""
        for number, item in enumerate(new):
            if isinstance(item, Code):
                yield self._text_of(item)
                continue
            yield from [""] * gap
            yield f"def {item.name}({', '.join(item.parameters)}):"
            for line in item.body:
                yield f"{self._lines_of_file.step}{self._text_of(line)}"
            if number + 1 < len(new) and isinstance(new[number + 1], Code):
                yield from [""] * gap

    def has_note(self, statement: ast.stmt) -> bool:
        """Whether a comment stands directly above a statement."""
        begin = self.first_line(statement)
        return self._comment_start(-1, begin) < begin

    def remove(
        self, statement: ast.stmt, *, remarks: bool = True, notes: bool = True, above: bool = False
    ) -> None:
        """Take a statement away with its lines.

        Args:
            remarks: whether comments on its lines of code stay.
            notes: whether comments on lines of their own stay.
            above: whether comment lines directly above it go too.
        """
        begin, end = self.first_line(statement, ended=True), self.after(statement)
        if above:
            begin = self._comment_start(-1, begin)
        self._drop(begin, end, remarks=remarks, notes=notes)
        self._removed.append((begin, end))

    def make_pass(self, statement: ast.stmt) -> None:
        """`pass` in the place of a statement that leaves its block empty, if nothing was added there."""
        if any(item.offset == self.first_line(statement) for item in self._insertions):
            self.remove(statement)
            return
        self._expressions.put_text(start_of(self.source, statement), end_of(self.source, statement), "pass")

    def merge(self, function: _Function, into: _Function) -> None:
        """Put the body of a function before the body of another, after its docstring, and remove the rest.

        Comments come along; of its statements, those that are removed do not.

        Raises:
            Crowded: one of them has its body on the line of the header, or has another indentation.
        """
        lines = [self._own_line(function.body[0]), self._own_line(into.body[0])]
        if self._indent_of(lines[0]) != self._indent_of(lines[1]):
            raise Crowded(f"`{function.name}` and `{into.name}` have different indentation")
        begin = self.first_line(function)
        start = self._body_start(begin, lines[0])
        end = self._body_end(function.body[-1], len(self._indent_of(lines[0])))
        self._cut.append((begin, start))
        self._removed.append((begin, end))
        at = self._comment_start(self.first_line(into), lines[1])
        if ast.get_docstring(into, clean=False) is not None:
            at = self.after(into.body[0])
        indent, newline = self._indent_of(lines[0]), self.source.newline
        head = [f"{indent}{text}{newline}" for _, text in self._comments(begin, start) if not is_marker(text)]
        self._merged.append(_Merged(start, end, at, "".join(head)))

    # ---- the edits ------------------------------------------------------------------------------------

    def edits(self) -> list[Edit]:
        """All of it as edits that do not overlap.

        Raises:
            Crowded: two changes are in each other's way.
        """
        found: dict[tuple[int, int], str] = {}
        self._close_gaps()
        cut = _merged(self._cut)
        gone = Ranges(cut)
        for (start, end), new in self._rendered().items():
            if not gone.hold(start, end):
                found[start, end] = new
        solid = Ranges(item for item in found if item[0] < item[1])
        emptied = {start for (start, end), new in found.items() if not new and self._is_line_start(end)}
        for line in sorted(self._moved):
            if line in gone or line in emptied or solid.cut_at(line):
                continue
            have = self._indent_of(line)
            start, end, more = self._indentation(line, have)
            if start < end or more:
                key = line + start, line + end
                found[key] = more + found.get(key, "")
        for begin, stop in cut:
            found[begin, stop] = ""
        at: dict[int, str] = {}
        for item in sorted(self._insertions, key=lambda item: (item.offset, item.number)):
            at[item.offset] = at.get(item.offset, "") + self._new_line(item)
        solid = Ranges(found)
        first: dict[int, tuple[int, int]] = {}
        for span in sorted(found):
            first.setdefault(span[0], span)
        for offset, code in at.items():
            if solid.cut_at(offset):
                raise Crowded("two changes overlap")
            span = first.get(offset, (offset, offset))
            found[span] = code + found.get(span, "")
        edits = sorted(Edit(start, end, code) for (start, end), code in found.items())
        _check_apart(edits)
        for merged in self._merged:
            edits = self._with_merged(edits, merged)
            _check_apart(edits)
        return _joined(edits)

    def _rendered(self, first: int = 0, last: int | None = None) -> dict[tuple[int, int], str]:
        """The replacements as text, without those that others quote, or have taken the place of.

        first, last: between which they are; None: the end of the file.
        """
        try:
            edits = self._expressions.edits(first, len(self.text) if last is None else last)
            return {(start, end): text for start, end, text, _ in edits}
        except CannotFix as error:
            raise Crowded(str(error)) from error

    def _text_of(self, new: Code | str) -> str:
        """New code as text, with what it quotes as it will be."""
        try:
            return new if isinstance(new, str) else self._expressions.text_of(new)
        except CannotFix as error:
            raise Crowded(str(error)) from error

    def _with_merged(self, edits: Sequence[Edit], merged: _Merged) -> list[Edit]:
        """The edits with some lines, and what is changed in them, in another place."""
        start, end, target = merged.start, merged.end, merged.target
        inside: list[Edit] = []
        rest: list[Edit] = []
        for edit in edits:
            (inside if start <= edit.start < end and edit.end <= end else rest).append(edit)
        shifted = [Edit(edit.start - start, edit.end - start, edit.text) for edit in inside]
        moved = splice(self.text[start:end], shifted).strip("\r\n")
        moved = merged.head + (f"{moved}{self.source.newline}" if moved.strip() else "")
        if moved:
            at = next((edit for edit in rest if edit.start == target), None)
            rest = [edit for edit in rest if edit is not at]
            rest.append(Edit(target, target, moved) if at is None else at._replace(text=moved + at.text))
        return sorted([*rest, Edit(start, end, "")])

    def _close_gaps(self) -> None:
        """Take away the shorter one of the gaps around what is removed."""
        inserted = {item.offset for item in self._insertions}
        runs: list[tuple[int, int]] = []
        for begin, end in sorted(self._removed):
            if runs and runs[-1][1] == begin and begin not in inserted:
                runs[-1] = (runs[-1][0], end)
            else:
                runs.append((begin, end))
        least = 0
        for begin, end in runs:
            if begin not in inserted:
                start, behind = without_gap(self.text, least, begin, end)
                self._cut += [gap for gap in ((start, begin), (end, behind)) if gap[0] < gap[1]]
                least = end

    def _is_line_start(self, offset: int) -> bool:
        return self.text[offset - 1 : offset] in ("\n", "\r", "\f")

    def _new_line(self, item: _Insertion) -> str:
        indent = self._indent_of(item.like)
        start, end, more = self._indentation(item.like, indent)
        indent = indent[:start] + more + indent[end:]
        indent = indent[: len(indent) - len(item.minus)] if item.minus else indent
        newline = self.source.newline
        new = item.frame.format(self._text_of(item.code))
        if item.offset == len(self.text) and not self.text.endswith(("\n", "\r")):
            return f"{newline}{indent}{new}"
        return f"{indent}{new}{newline}"

    def _move(self, line: int, front: int, less: int, more: str) -> None:
        self._moved.setdefault(line, []).append((front, less, more))

    def _indent_of(self, line: int) -> str:
        found = _INDENT.match(self.text, line)
        return found[0] if found else ""

    def _indentation(self, line: int, have: str) -> tuple[int, int, str]:
        """The part of a line's indentation that goes, by start and end, and what comes in its place."""
        new = have
        # From the innermost block outwards, so that what is in front has not moved yet.
        for front, less, more in sorted(self._moved.get(line, ()), reverse=True):
            new = new[:front] + more + new[front + less :]
        start = 0
        while start < min(len(have), len(new)) and have[start] == new[start] and len(set(have + new)) > 1:
            start += 1
        rest = 0
        while rest < min(len(have), len(new)) - start and have[-1 - rest] == new[-1 - rest]:
            rest += 1
        return start, len(have) - rest, new[start : len(new) - rest]

    def _insert(self, offset: int, code: Code | str, like: int, minus: str = "", frame: str = "{}") -> None:
        self._insertions.append(_Insertion(offset, code, like, minus, len(self._insertions), frame))

    # ---- lines ----------------------------------------------------------------------------------------

    def _lines(self, start: int, end: int) -> list[int]:
        """The lines from `start` on that have code, or a comment, but do not begin inside of a string."""
        found = []
        while start < end:
            line = _NEXT_LINE.match(self.text, start)
            assert line is not None, "matches anything"
            if line[0].strip() and start not in self._lines_of_file.in_strings:
                found.append(behind_form_feed(self.text, start, line.end()))
            if line.end() == start:
                break
            start = line.end()
        return found

    def _own_line(self, first: ast.stmt) -> int:
        """The offset of the line that the body of a function begins on."""
        start = start_of(self.source, first)
        line = line_start(self.text, start)
        if self.text[line:start].strip():
            raise Crowded("a method is written on one line")
        return line

    def _body_start(self, begin: int, first: int) -> int:
        """Where the comments and blank lines above `first` begin, after the header at `begin`."""
        while True:
            above = line_start(self.text, first - 1 - (self.text[first - 2 : first] == "\r\n"))
            if above <= begin or self.text[above:first].strip()[:1] not in ("", "#"):
                return first
            first = above

    def _body_end(self, last: ast.stmt, indent: int) -> int:
        """After the last line of a block, and the comments below that have its indentation, or more."""
        end = here = self.after(last)
        while (line := _NEXT_LINE.match(self.text, here)) is not None and line[0]:
            code, here = line[0].strip(), line.end()
            if code.startswith("#") and len(self._indent_of(line.start())) >= indent:
                end = here
            elif code:
                break
        return end

    def _comment_start(self, begin: int, first: int) -> int:
        """Where the comment lines directly above `first` begin, after the header at `begin`."""
        lines = self._comment_lines(begin, first)
        return lines[0] if lines else first

    def _comment_lines(self, begin: int, first: int) -> list[int]:
        found: list[int] = []
        while first > begin:
            above = line_start(self.text, first - 1 - (self.text[first - 2 : first] == "\r\n"))
            if above <= begin or not self.text[above:first].strip().startswith("#"):
                break
            found.insert(0, above)
            first = above
        return found

    def _comments(self, start: int, end: int) -> list[tuple[int, str]]:
        """The comments of a part of the text, with their offsets."""
        comments = self._lines_of_file.comments
        return comments[bisect_left(comments, (start, "")) : bisect_left(comments, (end, ""))]

    def _drop(self, start: int, end: int, *, remarks: bool = True, notes: bool = True) -> None:
        """Take lines away; remarks on them, and notes on lines of their own, stay."""
        self._cut.append((start, end))
        for offset, text in self._comments(start, end):
            alone = not self.text[line_start(self.text, offset) : offset].strip()
            if not is_marker(text) and (notes if alone else remarks):
                self._insert(start, text, start)


class Lines:
    """What only the tokens of a file tell, and how it is indented; computed when it is first needed."""

    def __init__(self, source: Source, tree: ast.Module) -> None:
        self.source = source
        self.tree = tree

    @cached_property
    def step(self) -> str:
        """One step of the indentation."""
        for node in walk(self.tree):
            if not isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.If, ast.For, ast.With)):
                continue
            body = node.body
            if body[0].lineno > node.lineno:
                outer, inner = (
                    self.source.line_text(line)[:column].rpartition("\f")[2]
                    for line, column in ((node.lineno, node.col_offset), (body[0].lineno, body[0].col_offset))
                )
                return inner[len(outer) :] or " " * 4
        return " " * 4

    @cached_property
    def comments(self) -> list[tuple[int, str]]:
        """Every comment with its offset, in order."""
        return [
            (self.source.offset(token.start[0], 0) + token.start[1], token.string)
            for token in self._every
            if token.type == tokenize.COMMENT
        ]

    @cached_property
    def in_strings(self) -> frozenset[int]:
        """The starts of lines that begin inside of a string."""
        found: set[int] = set()
        parts = {tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
        for token in self._every:
            if token.type in parts:
                found.update(
                    self.source.offset(line, 0) for line in range(token.start[0] + 1, token.end[0] + 1)
                )
        return frozenset(found)

    @cached_property
    def _every(self) -> list[tokenize.TokenInfo]:
        try:
            return list(tokenize.generate_tokens(io.StringIO(self.source.text, newline="").readline))
        except (tokenize.TokenError, IndentationError, SyntaxError) as error:
            raise Crowded("the file cannot be parsed") from error


def _check_apart(edits: Sequence[Edit]) -> None:
    for one, other in itertools.pairwise(edits):
        if other.start < one.end or (one.start == one.end == other.start == other.end):
            raise Crowded("two changes overlap")


def _joined(edits: Sequence[Edit]) -> list[Edit]:
    """The edits, those that only take away as one with the neighbour that does, or that only adds."""
    found: list[Edit] = []
    for edit in edits:
        last = found[-1] if found and not edit.text and found[-1].end == edit.start else None
        if last is not None and (not last.text or last.start == last.end):
            edit = found.pop()._replace(end=edit.end)
        found.append(edit)
    return found


def removed(rewriting: Rewriting, statements: Iterable[ast.stmt]) -> list[Edit]:
    """Statements taken away with their lines; comments after them stay, on lines of their own.

    Args:
        rewriting: a new editor of the file.

    Raises:
        Crowded: other code is on their lines.
    """
    for statement in statements:
        rewriting.remove(statement)
    return rewriting.edits()


def _merged(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Without overlap, neighbours apart."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(set(spans)):
        if found and start < found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found
