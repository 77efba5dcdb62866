"""Strings in new code get the quotes that the file prefers."""

from __future__ import annotations

import ast
import functools
import io
import re
import tokenize
from typing import TYPE_CHECKING

from torchmigrate.findings import Edit
from torchmigrate.patterns import pattern
from torchmigrate.source.text import Source

if TYPE_CHECKING:
    from torchmigrate.rewrite.code import Code

# Each alternative starts with a plain character, so that a search skips all others quickly.
_TOKENS = pattern(
    r"""#[^\n]*"""
    r'''|"(?:""[\s\S]*?"""|(?:\\.|[^"\\\n])*(?P<double>"))'''
    r"""|'(?:''[\s\S]*?'''|(?:\\.|[^'\\\n])*(?P<single>'))"""
)
_PLAIN = pattern(r"""(["'])[^"'\\\n]*\1""")


@functools.lru_cache(maxsize=16)
def _counts(text: str) -> tuple[int, int]:
    """How many strings of a source have single quotes, and how many double ones."""
    single = double = 0
    for token in _TOKENS.finditer(text):
        single += token.lastgroup == "single"
        double += token.lastgroup == "double"
    return single, double


def requoted(new: str, old: str, text: str, near: str = "") -> str:
    """New code with its strings quoted as the strings next to it, or as the file quotes them; else unchanged.

    Args:
        new: code with strings in quotes of either kind.
        old: the code whose place it takes; a string that is in there stays as it is.
        text: of the whole file.
        near: the line that it is written into.
    """
    if '"' not in new and "'" not in new:
        return new
    single, double = _counts(near)
    if bool(single) == bool(double):
        single, double = _counts(text)
    if single == double:
        return new
    quote = "'" if single > double else '"'

    def written(found: re.Match[str]) -> str:
        string = found[0]
        if not _PLAIN.fullmatch(string) or string in old:
            return string
        return f"{quote}{string[1:-1]}{quote}"

    return _TOKENS.sub(written, new)


def requoted_within(new: str, offset: int, source: Source) -> str:
    """New code for a place in f-strings: its strings do not have the quotes that would end one of those.

    If none is left, or that is unknown (before Python 3.12), it is unchanged.
    """
    if '"' not in new and "'" not in new:
        return new
    taken = _quotes_around(offset, source)
    left = [quote for quote in "\"'" if quote not in taken]
    if not taken or not left:
        return new

    def written(found: re.Match[str]) -> str:
        string = found[0]
        return f"{left[0]}{string[1:-1]}{left[0]}" if _PLAIN.fullmatch(string) else string

    return _TOKENS.sub(written, new)


def _quotes_around(offset: int, source: Source) -> list[str]:
    """The quotes of the f-strings that a place is in; not of those with three, which one does not end."""
    begins, ends = getattr(tokenize, "FSTRING_START", None), getattr(tokenize, "FSTRING_END", None)
    around: list[str] = []
    for token in tokenize.generate_tokens(io.StringIO(source.text, newline="").readline):
        if source.line_start(token.start[0]) + token.start[1] > offset:
            break
        if token.type == begins:
            around.append(token.string.lstrip("bBfFrRtTuU"))
        elif token.type == ends:
            around.pop()
    return [quote for quote in around if len(quote) == 1]


def quoted_like(string: ast.expr, value: str, source: Source) -> Code:
    """A string without anything to escape, in the quotes of another literal."""
    from torchmigrate.rewrite.code import code  # for the few files with a codemod's fix

    quote = source.segment(string)[-1]
    return code("$string", string=f"{quote}{value}{quote}")


def text_replaced(string: ast.expr, new: str, source: Source) -> Edit | None:
    """Another text in the same quotes, without anything to escape; None if it is not written as it is."""
    if not is_plainly_quoted(string, source):
        return None
    start, end = source.span(string)
    return Edit(start + 1, end - 1, new)


def is_plainly_quoted(string: ast.expr, source: Source) -> bool:
    """Whether a string is written as it is, between one quote and another."""
    text = source.segment(string)
    value = string.value if isinstance(string, ast.Constant) else None
    return isinstance(value, str) and text == f"{text[0]}{value}{text[0]}"
