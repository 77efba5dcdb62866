"""What tells from the text alone that a file may hold something for a rule, whatever names it uses."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable

from torchmigrate.patterns import pattern

_PLAIN = pattern(r"[\w/|-]+")
_LITERAL = pattern(r"[\w /:-]|\\[^\w\s]|\[[^\w\s\\^\]]\]")  # stands for itself: `a`, `\(`, `[.]`
_TOKEN = pattern(r"\\.|\[\]?(?:\\.|[^\]\\])*\]|\{[\d,]*\}|.", re.DOTALL)
_OPTIONAL = ("?", "*", "{")
_SHORTEST = 4


@functools.cache
def passes(prefilter: str) -> Callable[[str], bool]:
    """A function that tests whether a `prefilter` is in a text.

    A pattern of alternatives tries every place of a text in turn, and takes twenty times as long as looking
    for one word after the other; so plain words are looked for as such, and each alternative on its own only
    if the text has all words that it needs.
    """
    if _PLAIN.fullmatch(prefilter) is not None:
        words = tuple(prefilter.split("|"))
        if len(words) == 1:
            (word,) = words
            return lambda text: word in text
        return lambda text: has_any(text, words)
    parts = [(_needed(part), pattern(part)) for part in _alternatives(prefilter)]

    def is_in(text: str) -> bool:
        for needed, whole in parts:
            for word in needed:
                if word not in text:
                    break
            else:
                if whole.search(text) is not None:
                    return True
        return False

    return is_in


def _needed(part: str) -> tuple[str, ...]:
    """Plain texts that are in whatever a pattern without alternatives matches, the longest first."""
    runs, depth = [""], 0
    for token in _TOKEN.findall(part):
        if not depth and _LITERAL.fullmatch(token) is not None:
            runs[-1] += token[-1] if token[0] == "\\" else token.strip("[]")
            continue
        if token.startswith(_OPTIONAL) and not depth:
            runs[-1] = runs[-1][:-1]  # the last letter need not be there
        depth += (token == "(") - (token == ")")
        runs.append("")
    return tuple(sorted((run for run in runs if len(run) >= _SHORTEST), key=len, reverse=True))


def _alternatives(prefilter: str) -> list[str]:
    """The parts between the `|` that are in no group."""
    parts, depth = [""], 0
    for token in _TOKEN.findall(prefilter):
        depth += (token == "(") - (token == ")")
        if token == "|" and not depth:
            parts.append("")
        else:
            parts[-1] += token
    return parts


def has_any(text: str, words: Iterable[str]) -> bool:
    """Whether one of some words is in a text, also within another word."""
    for word in words:  # noqa: SIM110 - as an expression it takes twice as long
        if word in text:
            return True
    return False


def has_word(text: str, word: str, *, whole: bool = True) -> bool:
    """Whether a word is in a text; not `whole`: also where a longer one begins with it."""
    end = r"\b" if whole else ""
    # Begins with letters, and so is found quickly.
    return re.search(rf"{re.escape(word)}(?<!\w{re.escape(word)}){end}", text) is not None
