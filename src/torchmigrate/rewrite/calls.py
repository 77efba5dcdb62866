"""The arguments of one call, changed one by one; everything else in it stays as it is laid out.

LibCST says where they are; it is loaded when the edits are made.
"""

from __future__ import annotations

import ast
from collections.abc import Collection

from msgspec import Struct

from torchmigrate.findings import Edit
from torchmigrate.match.context import CannotFix
from torchmigrate.rewrite.code import Code, Quotes
from torchmigrate.rewrite.written import written
from torchmigrate.source.text import Source

Given = ast.expr | ast.keyword


class _Argument(Struct):
    """One of the new call: an old one, or a new one with a value."""

    old: Given | None
    keyword: str | None
    star: str = ""
    value: Code | None = None


class CallEditor:
    """Collects the changes to the arguments of a call.

    Args:
        source: the file.
        call: one of it.
    """

    def __init__(self, source: Source, call: ast.Call) -> None:
        self.source = source
        self.call = call
        self._callee: Code | None = None
        self._behind: list[tuple[Given, Code]] = []
        given: list[Given] = [*call.args, *call.keywords]
        given.sort(key=lambda item: (item.lineno, item.col_offset))
        self._given = given
        self._new = [_as_given(item) for item in given]

    def drop(self, argument: Given) -> None:
        """Take an argument away, with its comma, and with its lines where it has them to itself."""
        del self._new[self._index(argument)]

    def keep(self, arguments: Collection[Given]) -> None:
        """Drop all but some arguments."""
        self._new = [item for item in self._new if item.old in arguments]

    def set(self, argument: Given, value: Code, keyword: str | None = None) -> None:
        """Give an argument another value; a positional one by name, if there is a `keyword`."""
        found = self._new[self._index(argument)]
        found.value = value
        found.keyword = keyword or found.keyword

    def rename(self, argument: Given, keyword: str | None) -> None:
        """Give an argument by another keyword; None: by position."""
        self._new[self._index(argument)].keyword = keyword

    def add(self, value: Code, keyword: str | None = None) -> None:
        """Add an argument: by keyword at the end, but before `**options`; else after the positional ones."""
        at = len(self._new)
        for index, item in enumerate(self._new):
            if item.star == "**" or (keyword is None and item.keyword is not None):
                at = index
                break
        self._new.insert(at, _Argument(None, keyword, "", value))

    def insert(self, value: Code) -> None:
        """Put a positional argument in front of all others."""
        self._new.insert(0, _Argument(None, None, "", value))

    def add_behind(self, argument: Given, value: Code) -> None:
        """Put a positional argument after another that stays, on the same line."""
        self._behind.append((argument, value))

    def call_instead(self, callee: Code) -> None:
        """Call something else."""
        self._callee = callee

    def has_comment(self, argument: Given) -> bool:
        """Whether a comment may be in an argument, or in front of it."""
        index = self._given.index(argument)
        start = self._given[index - 1] if index else self.call.func
        return "#" in self.source.text[self.source.span(start)[1] : self.source.span(argument)[1]]

    def quoted(self, quotes: Quotes, /) -> tuple[str, int]:
        """The call as it will be, as a part of new code. Raises CannotFix as `made` does."""
        from torchmigrate.match.precedence import PRIMARY  # with LibCST

        start, end = self.source.span(self.call)
        parts: list[str] = []
        for edit in self.made(quotes):
            parts += (quotes.stretch(start, edit.start), edit.text)
            start = edit.end
        return "".join([*parts, quotes.stretch(start, end)]), PRIMARY

    def edits(self) -> tuple[Edit, ...] | None:
        """What has to change; None where that is not possible."""
        try:
            return self.made(Quotes(self.source))
        except CannotFix:
            return None

    def made(self, quotes: Quotes) -> tuple[Edit, ...]:
        """The edits, in order.

        Raises CannotFix if LibCST does not see the call as Python does, or a new value binds a name of what
        it quotes.
        """
        from torchmigrate.rewrite.call_layout import NewArgument, parse_call, relayout  # with LibCST

        layout = parse_call(self.source, self.call)
        places = {id(item): index for index, item in enumerate(self._given)}
        wanted = [
            NewArgument(
                places[id(item.old)] if item.old is not None else None,
                item.keyword,
                item.star,
                written(item.value, quotes) if item.value is not None and item.old is None else None,
            )
            for item in self._new
        ]
        edits, _ = relayout(layout, wanted, as_last=True)
        for item in self._new:
            if item.old is not None and item.value is not None:  # where it is, so that parentheses stay
                old = item.old.value if isinstance(item.old, ast.keyword) else item.old
                text = written(item.value, quotes, instead_of=self.source.segment(old))
                edits.append(Edit(*self.source.span(old), text))
        for argument, value in self._behind:
            end = layout.slots[places[id(argument)]].end
            edits.append(Edit(end, end, ", " + written(value, quotes)))
        if self._callee is not None:
            edits.append(Edit(layout.start, layout.function_end, written(self._callee, quotes)))
        return tuple(sorted(edits, key=lambda edit: (edit.start, edit.end)))

    def _index(self, argument: Given) -> int:
        return next(index for index, item in enumerate(self._new) if item.old is argument)


def _as_given(argument: Given) -> _Argument:
    if isinstance(argument, ast.keyword):
        return _Argument(argument, argument.arg, "" if argument.arg is not None else "**")
    return _Argument(argument, None, "*" if isinstance(argument, ast.Starred) else "")


def arguments_removed(source: Source, call: ast.Call) -> list[Edit] | None:
    """A call without its parentheses and what is in them; None where LibCST sees it in another way."""
    from torchmigrate.match.context import CannotFix
    from torchmigrate.rewrite.call_layout import parse_call  # with LibCST

    try:
        layout = parse_call(source, call)
    except CannotFix:
        return None
    return [Edit(layout.function_end, layout.close + 1, "")]


def packed_call(source: Source, call: ast.Call, function: Code, leading: int) -> list[Edit] | None:
    """`f(a, x, k=v)` as `function(f, a, (x,), {"k": v})`, every argument where it was.

    Args:
        leading: how many of the first arguments stay out of the tuple; several get one of their own. They
            are given by position, and what is given by keyword stands after all others.

    None where LibCST does not see the call as Python does.
    """
    from torchmigrate.match.context import CannotFix
    from torchmigrate.rewrite.call_layout import parse_call  # with LibCST

    try:
        layout = parse_call(source, call)
    except CannotFix:
        return None
    head, rest = layout.slots[:leading], layout.slots[leading:]
    inputs = [slot for slot in rest if slot.keyword is None and slot.star != "**"]
    named = rest[len(inputs) :]

    def added(at: int, text: str) -> Edit:
        return Edit(at, at, text)

    comma = "," if source.text[layout.open] in "\r\n" else ", "
    edits = [
        added(layout.start, f"{written(function, Quotes(source))}("),
        Edit(layout.function_end, layout.open, ", (" if leading > 1 else comma),
    ]
    behind = ")" if leading > 1 else ""
    if inputs:
        edits += [added(head[-1].end, behind)] if behind else []
        edits.append(added(inputs[0].start, "("))
        edits.append(added(inputs[-1].end, ",)" if len(inputs) == 1 else ")"))
    else:
        edits.append(added(head[-1].end, f"{behind}, ()"))
    if len(named) == 1 and named[0].keyword is None:
        edits.append(Edit(named[0].start, named[0].value, ""))
    elif named:
        edits.append(added(named[0].start, "{"))
        edits += [Edit(slot.start, slot.value, f'"{slot.keyword}": ') for slot in named if slot.keyword]
        edits.append(added(named[-1].end, "}"))
    return edits
