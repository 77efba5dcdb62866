"""What tells from the text alone that a file may hold something for a rule, whatever names it uses."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable

_PLAIN = re.compile(r"[\w/|-]+")


@functools.cache
def passes(pattern: str) -> Callable[[str], bool]:
    """What says of a text whether the pattern of a `prefilter` is in it.

    A pattern of alternatives tries every place of a text in turn, and takes twenty times as long as looking
    for one word after the other; so plain words are looked for as such.
    """
    if _PLAIN.fullmatch(pattern) is not None:
        words = tuple(pattern.split("|"))
        return lambda text: has_any(text, words)
    search = re.compile(pattern).search
    return lambda text: search(text) is not None


def has_any(text: str, words: Iterable[str]) -> bool:
    """Whether one of some words is in a text, also within another word."""
    return any(word in text for word in words)


def has_word(text: str, word: str, *, whole: bool = True) -> bool:
    """Whether a word is in a text; not `whole`: also where a longer one begins with it."""
    end = r"\b" if whole else ""
    # Begins with letters, and so is found quickly.
    return re.search(rf"{re.escape(word)}(?<!\w{re.escape(word)}){end}", text) is not None
