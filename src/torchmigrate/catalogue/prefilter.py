"""What tells from the text alone that a file may hold something for a rule, whatever names it uses."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable

_PLAIN = re.compile(r"[\w/|-]+")
_HEAD = re.compile(r"[\w /:-]*")
_TOKEN = re.compile(r"\\.|\[\]?(?:\\.|[^\]\\])*\]|.", re.DOTALL)
_SHORTEST = 4


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
    heads = _heads(pattern)
    if not heads:
        return lambda text: search(text) is not None
    return lambda text: has_any(text, heads) and search(text) is not None


def _heads(pattern: str) -> tuple[str, ...]:
    """The plain text with which each alternative of a pattern begins; none if one has too little."""
    heads = []
    for part in _alternatives(pattern):
        found = _HEAD.match(part)
        head = found[0] if found is not None else ""
        if part[len(head) : len(head) + 1] in ("?", "*", "{"):
            head = head[:-1]  # the last letter need not be there
        heads.append(head)
    return () if min(map(len, heads)) < _SHORTEST else tuple(heads)


def _alternatives(pattern: str) -> list[str]:
    """The parts of a pattern between the `|` that are in no group."""
    parts, depth = [""], 0
    for token in _TOKEN.findall(pattern):
        depth += (token == "(") - (token == ")")
        if token == "|" and not depth:
            parts.append("")
        else:
            parts[-1] += token
    return parts


def has_any(text: str, words: Iterable[str]) -> bool:
    """Whether one of some words is in a text, also within another word."""
    return any(word in text for word in words)


def has_word(text: str, word: str, *, whole: bool = True) -> bool:
    """Whether a word is in a text; not `whole`: also where a longer one begins with it."""
    end = r"\b" if whole else ""
    # Begins with letters, and so is found quickly.
    return re.search(rf"{re.escape(word)}(?<!\w{re.escape(word)}){end}", text) is not None
