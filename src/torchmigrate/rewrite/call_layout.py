"""The arguments of a call as they are laid out, and edits that change them and nothing else.

LibCST says where the commas, comments and parentheses are; every edit is about one of them or about one
argument, so that the rest of the call, and other fixes inside of its arguments, stay as they are.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import lru_cache

import libcst as cst
from msgspec import Struct
from msgspec.structs import replace

from torchmigrate.findings import Edit
from torchmigrate.match.context import CannotFix, Positions
from torchmigrate.patterns import pattern
from torchmigrate.rewrite.cursor import Cursor
from torchmigrate.rewrite.lines import line_start

_LINE_END = pattern(r"[ \t\f]*(#[^\r\n]*)?(\r\n|\n|\r)")
_COMMENT_AFTER = pattern(r"[ \t\f]*,?[ \t\f]*#")
_NEWLINE = pattern(r"\r\n|\n|\r")


class Slot(Struct, frozen=True):
    """Where one argument is written.

    start, end: all of it, such as `k=v`, without the comma. value: start of its value, with parentheses.
    comma: offset of the comma, None without. after: end of the white space and comments after the comma.
    """

    start: int
    value: int
    end: int
    comma: int | None
    after: int
    star: str
    keyword: str | None
    node: cst.BaseExpression


class CallLayout(Struct, frozen=True):
    """Where everything in a call is. open: after its parenthesis; close: before the other one."""

    text: str
    start: int
    function_end: int
    open: int
    close: int
    slots: tuple[Slot, ...]
    receiver: cst.BaseExpression | None  # of a method call
    receiver_end: int  # offset of its end, parentheses included

    def line_start(self, offset: int) -> int:
        """Offset of the first character of the line."""
        return line_start(self.text, offset)

    def begins_line(self, offset: int) -> bool:
        """Whether only white space is before an offset on its line, and the line begins in the call."""
        line = self.line_start(offset)
        return line >= self.open and not self.text[line:offset].strip()

    def between(self, index: int) -> str:
        """White space, comments and comma before a slot; before the closing parenthesis for the last."""
        start = self.slots[index - 1].end if index else self.open
        return self.text[start : self.slots[index].start if index < len(self.slots) else self.close]

    @property
    def one_per_line(self) -> bool:
        """Whether each argument begins a line (the first may stand after the parenthesis)."""
        slots = self.slots[1:] or self.slots
        return bool(slots) and all(self.begins_line(slot.start) for slot in slots)

    @property
    def last_alone(self) -> bool:
        """Whether the last argument begins a line."""
        return bool(self.slots) and self.begins_line(self.slots[-1].start)

    @property
    def line_break(self) -> str:
        """A newline and the indentation of the arguments, for a call with one argument per line."""
        start = self.slots[-1].start
        newline = _NEWLINE.search(self.text, self.open, start)
        return (newline[0] if newline else "\n") + self.text[self.line_start(start) : start]


def parse_expression(code: str) -> cst.BaseExpression:
    """A piece of source as LibCST sees it, newlines allowed. Raises CannotFix if it cannot be read."""
    try:
        node = cst.parse_expression(f"({code})")
    except (cst.ParserSyntaxError, RecursionError) as error:
        raise CannotFix("LibCST cannot read it") from error
    return node.with_changes(lpar=node.lpar[1:], rpar=node.rpar[:-1])


@lru_cache(maxsize=256)  # files of one project make the same calls, and each round of fixes looks again
def _parse_segment(code: str) -> cst.BaseExpression:
    return parse_expression(code)


def parse_call(source: Positions, call: ast.Call) -> CallLayout:
    """Find the parts of a call. Raises CannotFix if LibCST does not see it as Python does."""
    line, column = call.end_lineno, call.end_col_offset
    assert line is not None and column is not None, "the parser gives every call an end"
    start = source.offset(call.lineno, call.col_offset)
    end = source.offset(line, column)
    text = source.text
    segment = text[start:end]
    node = _parse_segment(segment)
    if not isinstance(node, cst.Call) or node.lpar or len(node.args) != len(call.args) + len(call.keywords):
        raise CannotFix("LibCST sees another call")
    cursor = Cursor(text, start, end)
    skip = cursor.skip
    try:
        receiver, receiver_end = None, start
        if isinstance(node.func, cst.Attribute) and not node.func.lpar:
            receiver = node.func.value
            receiver_end = skip(receiver)
            skip(node.func.dot, node.func.attr)
        else:
            skip(node.func)
        function_end = cursor.position
        opened = skip(node.whitespace_after_func, "(")
        skip(node.whitespace_before_args)
        found: list[Slot] = []
        for arg in node.args:
            first = cursor.position
            skip(arg.star, arg.whitespace_after_star)
            if arg.keyword is not None and isinstance(arg.equal, cst.AssignEqual):
                skip(arg.keyword, arg.equal)
            value = cursor.position
            last = skip(arg.value)
            comma = None
            if isinstance(arg.comma, cst.Comma):
                comma = skip(arg.comma.whitespace_before)
                skip(",", arg.comma.whitespace_after)
            skip(arg.whitespace_after_arg)
            keyword = arg.keyword.value if arg.keyword is not None else None
            found.append(Slot(first, value, last, comma, cursor.position, arg.star, keyword, arg.value))
        closed = cursor.position
        if skip(")") != end:
            raise CannotFix("LibCST sees another call")
    except RecursionError as error:
        raise CannotFix("nested too deeply") from error
    return CallLayout(text, start, function_end, opened, closed, tuple(found), receiver, receiver_end)


class NewArgument(Struct, frozen=True):
    """An argument of the new call.

    origin: the slot whose argument it is, in its new form; None: it is new. text: its new value; None: the
    value stays as it is in the slot.
    """

    origin: int | None = None
    keyword: str | None = None
    star: str = ""
    text: str | None = None

    @property
    def prefix(self) -> str:
        return f"{self.keyword}=" if self.keyword is not None else self.star


def relayout(
    layout: CallLayout, wanted: Sequence[NewArgument], *, bracketed: bool = False, as_last: bool = False
) -> tuple[list[Edit], bool]:
    """Edits that give a call the wanted arguments, and whether a comment then stands at another argument.

    An argument that stays in order stays in its place. As many arguments as before, in another order, take
    each other's places, so that commas, newlines and comments are not touched. Otherwise a new argument
    takes the place of one that vanishes there, or gets a place of its own in the style of the call.
    `bracketed`: they will stand in a list, where a generator needs parentheses. `as_last`: one more gets a
    line of its own where the last one has one, even if others share theirs.
    """
    new = _keywords_in_order(layout, _without_repetition(layout, wanted))
    places, inserted = _align(len(layout.slots), new)
    alone = len(new) == 1 and new[0].keyword is None and not bracketed
    edits: list[Edit] = []
    misplaced = False
    survivors = {item.origin for item in new}
    codes: dict[int, list[str]] = {}
    for index, items in inserted.items():
        codes[index] = [item.prefix + _value(layout, item, alone) for item in items]
    appended = codes.pop(len(layout.slots), None)
    for index, some in codes.items():  # first: where two edits are at one place, their order counts
        edits += _insert(layout, index, some)
    for index, item in enumerate(places):
        if item is not None:
            edits += _fill(layout, index, item, alone)
            misplaced |= item.origin != index and index in survivors and _has_comment(layout, index)
    if appended:
        edits += _append(layout, appended, layout.one_per_line or (as_last and layout.last_alone))
    edits += _drop(layout, [item is None for item in places])
    return edits, misplaced


def _without_repetition(layout: CallLayout, wanted: Sequence[NewArgument]) -> list[NewArgument]:
    """The arguments with each origin once: a repeated one is a copy."""
    seen: set[int] = set()
    found: list[NewArgument] = []
    for item in wanted:
        if item.origin in seen:
            item = replace(item, origin=None, text=_value(layout, item, alone=False))
        elif item.origin is not None:
            seen.add(item.origin)
        found.append(item)
    return found


def _keywords_in_order(layout: CallLayout, wanted: list[NewArgument]) -> list[NewArgument]:
    """The arguments with those that are keywords on both sides in the order of the source.

    The others stay where the template has them: new ones after the argument that they follow there.
    """
    movable = [
        number
        for number, item in enumerate(wanted)
        if item.keyword is not None
        and item.origin is not None
        and layout.slots[item.origin].keyword is not None
    ]
    ordered = sorted((wanted[number] for number in movable), key=lambda item: item.origin or 0)
    found = list(wanted)
    for number, item in zip(movable, ordered, strict=True):
        found[number] = item
    return found


def _align(
    count: int, new: list[NewArgument]
) -> tuple[list[NewArgument | None], dict[int, list[NewArgument]]]:
    """The content of each slot (None: it becomes empty), and what is inserted before which slot."""
    origins = [item.origin for item in new]
    if None not in origins and len(new) == count:
        return list(new), {}
    fixed = increasing(origins)
    places: list[NewArgument | None] = [None] * count
    inserted: dict[int, list[NewArgument]] = {}
    slot = 0
    pending: list[NewArgument] = []
    for number, item in enumerate([*new, None]):
        if item is not None and number not in fixed:
            pending.append(item)
            continue
        end = count if item is None or item.origin is None else item.origin
        for index in range(slot, end):
            if pending:
                places[index] = pending.pop(0)
        if pending:
            inserted[end] = pending
            pending = []
        if item is not None:
            places[end] = item
        slot = end + 1
    return places, inserted


def increasing(values: Sequence[int | None]) -> set[int]:
    """Indices of a longest increasing subsequence; None is left out."""
    best: list[list[int]] = []  # the best sequence that ends at each index
    longest: list[int] = []
    for index, value in enumerate(values):
        before: list[int] = []
        if value is not None:
            for number in range(index):
                last = values[number]
                if last is not None and last < value and len(best[number]) > len(before):
                    before = best[number]
            best.append([*before, index])
        else:
            best.append([])
        if len(best[-1]) > len(longest):
            longest = best[-1]
    return set(longest)


def _value(layout: CallLayout, item: NewArgument, alone: bool) -> str:
    """The text of an argument's value where it is not in its own slot."""
    if item.text is not None:
        return item.text
    assert item.origin is not None, "an argument is new or comes from somewhere"
    slot = layout.slots[item.origin]
    code = layout.text[slot.value : slot.end]
    return f"({code})" if _needs_parentheses(slot, item, alone) else code


def _needs_parentheses(slot: Slot, item: NewArgument, alone: bool) -> bool:
    if slot.node.lpar:
        return False
    if isinstance(slot.node, cst.GeneratorExp):
        return not alone
    return isinstance(slot.node, cst.NamedExpr) and item.keyword is not None


def _fill(layout: CallLayout, index: int, item: NewArgument, alone: bool) -> list[Edit]:
    """Let an argument stand in a slot."""
    slot = layout.slots[index]
    if item.origin != index:
        return [Edit(slot.start, slot.end, item.prefix + _value(layout, item, alone))]
    edits: list[Edit] = []
    if slot.keyword is not None and item.keyword is not None:
        if slot.keyword != item.keyword:
            edits.append(Edit(slot.start, slot.start + len(slot.keyword), item.keyword))
    elif slot.keyword != item.keyword or slot.star != item.star:
        edits.append(Edit(slot.start, slot.value, item.prefix))
    if item.text is not None:
        edits.append(Edit(slot.value, slot.end, item.text))
    elif _needs_parentheses(slot, item, alone):
        edits += [Edit(slot.value, slot.value, "("), Edit(slot.end, slot.end, ")")]
    return edits


def _has_comment(layout: CallLayout, index: int) -> bool:
    """Whether a comment stands after an argument or on the lines above it."""
    above = _NEWLINE.split(layout.between(index), maxsplit=1)[1:]
    return "#" in "".join(above) or _COMMENT_AFTER.match(layout.text, layout.slots[index].end) is not None


def _insert(layout: CallLayout, index: int, codes: list[str]) -> list[Edit]:
    """New arguments before a slot."""
    separator = "," + layout.line_break if layout.one_per_line else ", "
    start = layout.slots[index].start
    return [Edit(start, start, "".join(code + separator for code in codes))]


def _append(layout: CallLayout, codes: list[str], on_lines: bool) -> list[Edit]:
    """New arguments after the last slot."""
    if not layout.slots:
        return [Edit(layout.open, layout.open, ", ".join(codes))]
    last = layout.slots[-1]
    if not on_lines:
        if last.comma is not None:
            return [Edit(last.comma + 1, last.comma + 1, "".join(f" {code}," for code in codes))]
        return [Edit(last.end, last.end, "".join(f", {code}" for code in codes))]
    end = last.end if last.comma is None else last.comma + 1
    rest = _LINE_END.match(layout.text, end, layout.close)
    at = rest.end(1) if rest and rest[1] else end
    lines = [layout.line_break + code for code in codes]
    if last.comma is not None:
        return [Edit(at, at, "".join(f"{line}," for line in lines))]
    if at == end:
        return [Edit(end, end, "," + ",".join(lines))]
    return [Edit(end, end, ","), Edit(at, at, ",".join(lines))]


def _drop(layout: CallLayout, dropped: list[bool]) -> list[Edit]:
    """Edits that remove arguments, neighbours at once."""
    if dropped and all(dropped):
        return [Edit(layout.open, layout.close, "")]
    edits: list[Edit] = []
    index = 0
    while index < len(dropped):
        if not dropped[index]:
            index += 1
            continue
        first = index
        while index < len(dropped) and dropped[index]:
            index += 1
        edits.append(_drop_run(layout, first, index - 1))
    return edits


def _drop_run(layout: CallLayout, first: int, last: int) -> Edit:
    """Remove the arguments from `first` to `last`, with their commas, and lines that would be empty."""
    text, slots = layout.text, layout.slots
    start, end = slots[first].start, slots[last].end
    comma = slots[last].comma
    comma_end = end if comma is None else comma + 1
    before = slots[first - 1] if first else None
    follows = last + 1 < len(slots)
    line = layout.line_start(start)
    rest = _LINE_END.match(text, comma_end, layout.close)
    if rest and layout.begins_line(start):  # alone on its lines
        if before is None or comma is not None or "#" in text[before.end : start]:
            return Edit(line, rest.end(), "")
        return Edit(before.end, rest.end(1) if rest[1] else end, "")
    if before is None or before.comma is None:
        return Edit(start, slots[last + 1].start, "")
    if follows:
        if rest:  # the last of a line
            return Edit(before.comma + 1, comma_end, "")
        return Edit(start, slots[last + 1].start, "")
    if "#" in text[before.comma : start]:
        return Edit(start, comma_end, "")
    if "#" in text[before.end : start]:
        return Edit(before.comma, end, "")
    if comma is not None:
        return Edit(before.comma + 1, comma_end, "")
    return Edit(before.end, end, "")
