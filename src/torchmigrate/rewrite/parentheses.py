"""Where the parentheses are that `ast` does not tell of: around expressions, and after what is called."""

from __future__ import annotations

from torchmigrate.patterns import pattern

# White space, comments, backslashes before newlines: what may stand between two tokens inside of parentheses.
GAP = r"(?:\s|\\|#[^\r\n]*(?![^\r\n]))*"
_GAP = pattern(GAP)
_CLOSERS = pattern(rf"(?:{GAP}\))*")


def behind_closers(offset: int, stop: int, text: str) -> int:
    """After all parentheses that close between an offset and `stop`, before anything else comes."""
    found = _CLOSERS.match(text, offset, stop)
    return found.end() if found else offset


def with_parentheses(start: int, end: int, since: int, text: str) -> tuple[int, int]:
    """A stretch with all the parentheses around it.

    Args:
        start, end: of an expression.
        since: an offset before all of them, after which no strings are.
        text: of the file.
    """
    opened: list[int] = []
    offset = _after_gap(text, since)
    while offset < start:
        opened = [*opened, offset] if text[offset] == "(" else []
        offset = _after_gap(text, offset + 1)
    while opened:
        closing = _after_gap(text, end)
        if text[closing : closing + 1] != ")":
            break
        start, end = opened.pop(), closing + 1
    return start, end


def _after_gap(text: str, offset: int) -> int:
    found = _GAP.match(text, offset)
    return found.end() if found else offset
