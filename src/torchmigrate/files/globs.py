"""Patterns as in .gitignore, matched in a time that no pattern can blow up.

They mean what they mean to git (`wildmatch.c`). The patterns are untrusted, and `*a*a*a*b` must
not take exponential time. So here each star but the last of a part takes the first place where what follows
it fits, and never another one: if the rest fits anywhere, it fits after that place as well.
docs/develop/dependencies.md ("Dependencies") says why no library does this.
"""

from __future__ import annotations

import re
import string
import sys
from collections.abc import Sequence
from itertools import count, pairwise
from typing import NamedTuple

# Characters of all patterns in one file that need a regular expression: each is tried on every name.
MOST_WILDCARDS = 10_000
_LONGEST = 4096  # characters of a pattern; no path is longer

_CLASSES = {
    "alnum": string.ascii_letters + string.digits,
    "alpha": string.ascii_letters,
    "blank": " \t",
    "cntrl": "".join(map(chr, [*range(32), 127])),
    "digit": string.digits,
    "graph": string.digits + string.ascii_letters + string.punctuation,
    "lower": string.ascii_lowercase,
    "print": string.digits + string.ascii_letters + string.punctuation + " ",
    "punct": string.punctuation,
    "space": string.whitespace,
    "upper": string.ascii_uppercase,
    "xdigit": string.hexdigits,
}


class TooManyError(ValueError):
    """More patterns with wildcards than are matched in a reasonable time."""


class _NeverMatchesError(ValueError):
    pass


class _Glob(NamedTuple):
    number: int
    regex: str


class Patterns:
    """The lines of one file of patterns; the last one that matches decides.

    Most are a name or a path, or `*` and the end of a name: they are looked up. The others are one regular
    expression in which the last pattern comes first. Patterns without a slash depend on the last part of the
    path alone, and names repeat.

    bad: the lines that can never match anything, which are left out, as git does.
    Raises TooManyError.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        self.bad: list[str] = []
        self._keeps: list[bool] = []  # by number of the pattern: whether it is a `!pattern`
        # Name, path or end of a name (a directory's with a slash after it) -> number of its last pattern.
        self._names: dict[str, int] = {}
        self._ends: dict[str, int] = {}
        self._paths: dict[str, int] = {}
        self._seen: dict[str, int] = {}
        name_globs: dict[str, _Glob] = {}
        path_globs: dict[str, _Glob] = {}
        room = MOST_WILDCARDS
        unique = count()
        has_wildcards = re.compile(r"[*?[\\]").search
        for line in reversed(dict.fromkeys(reversed(lines))):  # equal ones: the last one counts
            text = _trimmed(line) if line.endswith(" ") else line
            if not text or text.startswith("#"):
                continue
            keeps = text.startswith("!")
            written = text[1:] if keeps else text
            text = written.removesuffix("/")
            is_path = "/" in text
            text = text.removeprefix("/")
            number = len(self._keeps)
            if not text or len(text) > _LONGEST:
                self.bad.append(line)
                continue
            plain = self._paths if is_path else self._names
            if not is_path and text[0] == "*":
                text = text.lstrip("*")
                plain = self._ends
            if not text or has_wildcards(text):
                text = written.removesuffix("/").removeprefix("/")
                globs = path_globs if is_path else name_globs
                try:
                    regex = globs[written].regex if written in globs else _regex(text, is_path, unique)
                except _NeverMatchesError:
                    self.bad.append(line)
                    continue
                if written not in globs:
                    room -= len(text)
                    if room < 0:
                        raise TooManyError
                globs[written] = _Glob(number, regex)
            else:
                plain[text + "/"] = number
                if not written.endswith("/"):
                    plain[text] = number
            self._keeps.append(keeps)
        self._lengths = sorted({len(end) for end in self._ends})
        self._name_globs = _together(name_globs)
        self._path_globs = _together(path_globs)

    def __bool__(self) -> bool:
        """Whether there is any pattern."""
        return bool(self._keeps)

    def match(self, prefix: str, name: str, is_directory: bool) -> bool | None:
        """True: it is matched; False: `!pattern` keeps it; None: no pattern says anything.

        prefix: the directory it is in, relative to the patterns' own, "" or with a trailing slash.
        """
        last = name + "/" if is_directory else name
        number = self._seen.get(last)
        if number is None:
            number = self._seen[last] = max(
                self._names.get(last, -1),
                *(self._ends.get(last[-length:], -1) for length in self._lengths),
                _last(self._name_globs, last),
            )
        if self._paths or self._path_globs is not None:
            path = prefix + last
            number = max(number, self._paths.get(path, -1), _last(self._path_globs, path))
        return None if number < 0 else not self._keeps[number]

    def covers(self, path: str) -> bool:
        """Whether a file is matched, or a directory that it is in. The path has slashes."""
        prefix = ""
        parts = path.split("/")
        for index, part in enumerate(parts):
            if self.match(prefix, part, index < len(parts) - 1):
                return True
            prefix += part + "/"
        return False


def _trimmed(line: str) -> str:
    """Without the spaces at its end, but one that is written as `\\ `."""
    text = line.rstrip(" ")
    escaped = (len(text) - len(text.rstrip("\\"))) % 2 == 1
    return text + " " if escaped and len(text) < len(line) else text


def _together(globs: dict[str, _Glob]) -> re.Pattern[str] | None:
    if not globs:
        return None
    ordered = sorted(((glob, written.endswith("/")) for written, glob in globs.items()), reverse=True)
    parts = (rf"(?P<p{number}>{regex}{'/' if only else '/?'}\Z)" for (number, regex), only in ordered)
    return re.compile("|".join(parts), re.DOTALL)


def _last(globs: re.Pattern[str] | None, text: str) -> int:
    """The number of the last pattern that matches; -1: none does."""
    found = None if globs is None else globs.match(text)
    # The outermost group is the one that is closed last.
    return -1 if found is None or found.lastgroup is None else int(found.lastgroup[1:])


# ---- from patterns to regular expressions ---------------------------------------------------------------


def _regex(text: str, is_path: bool, unique: count[int]) -> str:
    """What matches a name, or a path relative to the patterns' directory."""
    if not is_path:
        return _part(text, unique)
    runs: list[list[str]] = [[]]  # of parts, between each `**`
    for part in _parts(text):
        if len(part) > 1 and not part.strip("*"):
            runs.append([])
        else:
            runs[-1].append(_part(part, unique) + "/")
    first, *others = ("".join(run) for run in runs)
    if not others:
        return first[:-1]
    *middle, last = others
    between = "".join(_once(f"(?:[^/]+/)*?{run}", unique) for run in middle if run)
    return first + between + (f"(?:[^/]+/)*{last[:-1]}" if last else ".+")


def _parts(text: str) -> list[str]:
    """What is between slashes; one in brackets is none."""
    ends = [-1]
    index = 0
    while index < len(text):
        character = text[index]
        index += 1
        if character == "/":
            ends.append(index - 1)
        elif character == "\\":
            index += 1
        elif character == "[":
            _, index = _bracket(text, index)
    return [text[before + 1 : end] for before, end in pairwise([*ends, len(text)])]


def _part(text: str, unique: count[int]) -> str:
    """What matches one part of a path, which is never empty."""
    if not text:
        raise _NeverMatchesError
    if not text.strip("*"):
        return "[^/]+"
    pieces = [""]  # between stars
    index = 0
    while index < len(text):
        character = text[index]
        index += 1
        if character == "*":
            if pieces[-1] or len(pieces) == 1:
                pieces.append("")
        elif character == "?":
            pieces[-1] += "[^/]"
        elif character == "[":
            regex, index = _bracket(text, index)
            pieces[-1] += regex
        elif character == "\\":
            if index == len(text):
                raise _NeverMatchesError
            pieces[-1] += re.escape(text[index])
            index += 1
        else:
            pieces[-1] += re.escape(character)
    first, *others = pieces
    if not others:
        return first
    *middle, last = others
    return first + "".join(_once(f"[^/]*?{piece}", unique) for piece in middle) + f"[^/]*{last}"


def _once(regex: str, unique: count[int]) -> str:
    """What matches as `regex` first does, and is never tried again."""
    if sys.version_info >= (3, 11):
        return f"(?>{regex})"
    name = f"g{next(unique)}"
    return f"(?=(?P<{name}>{regex}))(?P={name})"


def _bracket(text: str, index: int) -> tuple[str, int]:
    """What `[...]` matches, whose inside begins at `index`, and where it ends; as `wildmatch.c` reads it."""
    negated = text[index : index + 1] in ("!", "^")
    index += negated
    items = ""
    before = ""  # the last single character, with which a range may begin
    start = index
    while index < len(text) and (text[index] != "]" or index == start):
        character = text[index]
        if character == "-" and before and text[index + 1 : index + 2] not in ("", "]"):
            index += 1
            end, index = _character(text, index)
            if before <= end:
                items += f"{re.escape(before)}-{re.escape(end)}"
            before = ""
        elif (
            text.startswith("[:", index)
            and (close := text.find("]", index + 2)) >= 0
            and (text[close - 1] == ":" and close > index + 2)
        ):
            name = text[index + 2 : close - 1]
            if name not in _CLASSES:
                raise _NeverMatchesError
            items += re.escape(_CLASSES[name])
            before, index = "", close + 1
        else:
            before, index = _character(text, index)
            items += re.escape(before)
    if index >= len(text):
        raise _NeverMatchesError  # it is not closed
    return (f"[^/{items}]" if negated else f"(?!/)[{items}]"), index + 1


def _character(text: str, index: int) -> tuple[str, int]:
    """The character at a place, which a backslash may quote, and what follows."""
    index += text[index] == "\\"
    if index >= len(text):
        raise _NeverMatchesError
    return text[index], index + 1
