"""`x.cuda(async=True)`: a syntax error since Python 3.7, read all the same.

`async` became a keyword, so that Python refuses the whole file. With the word masked by a name of the same
length it parses, every position stays what it was, and all other rules can do their work.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator

from torchmigrate.patterns import pattern

MASK = "asyn_"

_MENTIONED = pattern(r"\basync\s*=(?!=)")
_METHODS = frozenset(["cuda", "to", "type", "copy_", "cpu"])


def async_arguments(text: str) -> tuple[int, ...]:
    """Offsets of `async` where it is a keyword argument of a tensor method, in order."""
    if _MENTIONED.search(text) is None:
        return ()
    return tuple(_find(text))


def mask(text: str, offsets: tuple[int, ...]) -> str:
    """The text with these words replaced by a name as long."""
    parts: list[str] = []
    end = 0
    for offset in offsets:
        parts += (text[end:offset], MASK)
        end = offset + len(MASK)
    return "".join((*parts, text[end:]))


def _find(text: str) -> Iterator[int]:
    import tokenize

    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    starts = [0]
    for line in re.finditer(r"\r\n|\r|\n", text):
        starts.append(line.end())
    calls: list[bool] = []  # for every open bracket: is it the call of a tensor method?
    before: list[str] = ["", ""]
    waiting: int | None = None
    try:
        for token in tokenize.generate_tokens(io.StringIO(plain).readline):
            word = token.string
            if token.type in (tokenize.NL, tokenize.COMMENT, tokenize.NEWLINE):
                continue
            if waiting is not None and word == "=":
                yield waiting
            waiting = None
            if word in ("(", "[", "{"):
                calls.append(word == "(" and before[-1] in _METHODS and before[-2] == ".")
            elif word in (")", "]", "}") and calls:
                calls.pop()
            elif word == "async" and calls and calls[-1] and before[-1] in ("(", ","):
                waiting = starts[token.start[0] - 1] + token.start[1]
            before = [before[-1], word]
    except (tokenize.TokenError, IndentationError, SyntaxError):
        return  # broken in another way as well: Python's own message says how
