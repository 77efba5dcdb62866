"""Whether f-strings are written so that Python 3.11 and older can read them, too."""

from __future__ import annotations

import io
import sys
import tokenize

from torchmigrate.patterns import pattern

_START = pattern(r"\b(?:[rR]?[fF]|[fF][rR])['\"]")


def fit_old_python(text: str) -> bool:
    """Whether no f-string of a text (which parses here) needs Python 3.12.

    Before, a replacement field could hold no backslash, no comment and none of the quotes around it, and no
    newline where those are single (PEP 701). An older Python that runs this has reported that when it parsed.
    """
    if sys.version_info < (3, 12) or not _START.search(text):
        return True
    around: list[str] = []  # the quotes of the f-strings that a token is in
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.FSTRING_END:
                around.pop()
                continue
            is_literal = token.type == tokenize.FSTRING_MIDDLE
            if not _fits(token.string, token.type, around[:-1] if is_literal else around):
                return False
            if token.type == tokenize.FSTRING_START:
                around.append(token.string.lstrip("rRfF"))
    except (tokenize.TokenError, SyntaxError):
        return True  # an old form that only the parser of this Python takes
    return True


def _fits(code: str, kind: int, around: list[str]) -> bool:
    """Whether a token may stand in replacement fields of f-strings with these quotes."""
    if not around:
        return True
    if "\\" in code or kind == tokenize.COMMENT or any(quotes in code for quotes in around):
        return False
    return "\n" not in code or all(len(quotes) == 3 for quotes in around)
