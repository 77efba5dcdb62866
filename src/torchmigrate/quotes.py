"""Strings in new code get the quotes that the file prefers."""

from __future__ import annotations

import functools
import re

# Each alternative starts with a plain character, so that a search skips all others quickly.
_TOKENS = re.compile(
    r"""#[^\n]*"""
    r'''|"(?:""[\s\S]*?"""|(?:\\.|[^"\\\n])*(?P<double>"))'''
    r"""|'(?:''[\s\S]*?'''|(?:\\.|[^'\\\n])*(?P<single>'))"""
)
_PLAIN = re.compile(r'"[^"\'\\\n]*"')


@functools.lru_cache(maxsize=4)
def preferred_quote(text: str) -> str:
    """The quote that most strings of a source have; the double one if there is no such thing."""
    single = double = 0
    for token in _TOKENS.finditer(text):
        single += token.lastgroup == "single"
        double += token.lastgroup == "double"
    return "'" if single > double else '"'


def requoted(new: str, old: str, text: str) -> str:
    """New code with its strings as the file writes them.

    Args:
        new: code in which the strings that are new have double quotes.
        old: the code whose place it takes; a string that is in there stays as it is.
        text: of the whole file.
    """
    if '"' not in new or preferred_quote(text) == '"':
        return new
    return _PLAIN.sub(lambda found: found[0] if found[0] in old else f"'{found[0][1:-1]}'", new)
