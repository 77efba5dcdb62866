"""A new call in the place of an expression, on several lines where it is long."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from torchmigrate.findings import Edit
from torchmigrate.patterns import pattern
from torchmigrate.rewrite.code import Argument, Code, Quotes, code
from torchmigrate.rewrite.lines import line_start
from torchmigrate.rewrite.written import written
from torchmigrate.source.text import Source

_WIDTH = 88
_STEP = "    "
_REST_OF_LINE = pattern(r"[^\r\n]*")
# The text before the parenthesis of a call or a definition.
_CALLED = pattern(r"(?:[)\]]|(?<!\w)(?!(?:return|in|and|or|not|if|else|yield|await|is|lambda)\b)\w+)\s*$")


def call_instead(
    source: Source,
    node: ast.expr,
    function: str,
    arguments: Sequence[Argument],
    around: Callable[[Code], Code],
    *,
    together: int = 0,
) -> Edit:
    """A call in the place of an expression.

    Args:
        function: how it is spelled.
        around: what is made of the call.
        together: how many of the first arguments are kept on one line.
    """
    text, quotes = source.text, Quotes(source)
    start, end = source.span(node)
    if _parenthesized(text, start, end):
        start, end = start - 1, end + 1
    begin = line_start(text, start)
    rest = _REST_OF_LINE.match(text, end)
    assert rest is not None, "it matches nothing as well"

    def called(rows: str) -> str:
        return written(around(code("$call", call=f"{function}({rows})")), quotes)

    items = [_written(item, quotes) for item in arguments]
    row = ", ".join(items)
    new = called(row)
    if start - begin + len(new) + len(rest[0]) > _WIDTH and "\n" not in new:
        line = text[begin:start]
        indent = line[: len(line) - len(line.lstrip())]
        inner, outer = f"{source.newline}{indent}{_STEP}", f"{source.newline}{indent}"
        width = _WIDTH - len(indent) - len(_STEP)
        first = ", ".join(items[:together])
        if len(row) <= width:
            new = called(f"{inner}{row}{outer}")
        else:
            rows = [first, *items[together:]] if first and len(first) <= width else items
            new = called(f"{inner}{f',{inner}'.join(rows)},{outer}")
    return Edit(start, end, new)


def _written(argument: Argument, quotes: Quotes) -> str:
    name = f"{argument.keyword}=" if argument.keyword is not None else argument.star
    return name + written(code("f($x)", x=argument.value), quotes)[2:-1]


def _parenthesized(text: str, start: int, end: int) -> bool:
    """Whether an expression has parentheses of its own around it, with nothing else inside."""
    return (
        text[start - 1 : start] == "("
        and text[end : end + 1] == ")"
        and not _CALLED.search(text[: start - 1].rpartition("\n")[2])
    )
