"""C++ and CUDA as tokens: without comments, with the preprocessor conditions around each of them.

Nothing is expanded or included. Code under a condition about a release of torch, or under `#if 0`, is
guarded: the code handles both sides. It takes time linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import takewhile
from pathlib import Path

from msgspec import Struct

from torchmigrate.patterns import pattern

_TOKEN = pattern(
    r"""
    (?P<blank>(?:\s|\\\r?\n)+|//[^\n]*|/\*[\s\S]*?(?:\*/|\Z))
  | (?P<raw>(?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\([\s\S]*?(?:\)(?P=mark)"|\Z))
  | (?P<text>(?:u8|[uUL])?"(?:\\[\s\S]|[^"\\\n])*"?|(?:u8|[uUL])?'(?:\\.|[^'\\\n])*'?)
  | (?P<number>\.?\d(?:[eEpP][+-]|'(?=\w)|[\w.])*)
  | (?P<name>[A-Za-z_$]\w*)
  | (?P<sign>::|->|.)
    """,
    re.VERBOSE,
)
_DIRECTIVE = pattern(r"[ \t]*\#[ \t]*([a-z_]*)")
_REST = pattern(r"(?:\\\r?\n|[^\n])*")
_COMMENTS = pattern(r"//.*|/\*.*?\*/")
_INCLUDE = pattern(r"\s*([<\"])([^>\"\n]+)[>\"]")
_DEFINE = pattern(r"[ \t]+(\w+)")
_DEFINED = pattern(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)
_QUOTED_INCLUDE = pattern(r"^[ \t]*#[ \t]*include[ \t]*\"([^\"\n]+)\"", re.MULTILINE)
# Conditions about releases: TORCH_VERSION_MAJOR, VERSION_GE_1_5, OLD_TORCH, PYTORCH_1_4, __has_include.
_RELEASES = pattern(
    r"TORCH\w*_?VER|VERSION_?(?:GE|GT|LE|LT)|(?:OLD|NEW|LEGACY)_?(?:PY)?TORCH|TORCH_?(?:GE|GT|LE|LT|\d|V\d)"
    r"|(?:PYTORCH|TORCH)_(?:OLD|NEW|LEGACY)|TORCH_1|ATEN_?VER"
    r"|__has_include|\bAT_CHECK\b|\bTORCH_CHECK\b"
)
_MOST_INCLUDES = 40
_LONGEST = 80  # tokens that one variable of a pattern stands for
_PART = pattern(r"\$\w+|[A-Za-z_]\w*\*?|::|->|\S")
_OPEN, _CLOSE = frozenset("([{"), frozenset(")]}")
_TORCH = pattern(r"\b(?:at|torch|c10)::|\bA?TH?C?_\w|\bTH[CU]?\w*")
_TORCH_HEADERS = ("torch/", "ATen/", "TH/", "THC/", "THCUNN/", "THNN/")
END = "\n"  # stands where a directive begins or ends: no pattern goes over it


class Token(Struct, frozen=True):
    """A token, no blank and no comment. guarded: under a condition about a release, or never compiled."""

    text: str
    start: int
    end: int
    guarded: bool


class Include(Struct, frozen=True):
    """A header that is included, and where its name stands."""

    name: str
    start: int
    end: int
    guarded: bool


class Code:
    """The tokens of a text.

    read_other: gives the text of another file, None if there is none.
    """

    def __init__(self, text: str, path: Path, read_other: Callable[[Path], str | None]) -> None:
        self.text = text
        self.path = path
        self._read_other = read_other
        self.tokens: list[Token] = []
        self.includes: list[Include] = []
        self._read()

    @property
    def is_torch(self) -> bool:
        """Whether it takes anything from the headers of PyTorch, also by another header of its project."""
        return any(item.name.startswith(_TORCH_HEADERS) for item in self.includes) or bool(
            re.search(r"\b(?:at|torch)::\w", self.text)
        )

    def _read(self) -> None:
        text, tokens = self.text, self.tokens
        frames: list[bool] = []  # of each condition around, whether it is a guard
        guards = 0  # how many of them are
        position, size, fresh = 0, len(text), True  # fresh: at the beginning of a line
        guarded, define_ends = False, -1
        while position < size:
            if fresh and (directive := _DIRECTIVE.match(text, position)) is not None:
                word = directive[1]
                rest = _REST.match(text, directive.end())
                assert rest is not None
                tokens.append(Token(END, position, position, guarded))
                if word in ("if", "ifdef", "ifndef"):
                    frames.append(_is_guard(rest[0]))
                    guards += frames[-1]
                elif word == "elif" and frames:
                    guards -= frames[-1]
                    frames[-1] = frames[-1] or _is_guard(rest[0])
                    guards += frames[-1]
                elif word == "endif" and frames:
                    guards -= frames.pop()
                elif word == "include" and (found := _INCLUDE.match(rest[0])) is not None:
                    start = rest.start() + found.start(2)
                    self.includes.append(Include(found[2], start, start + len(found[2]), guards > 0))
                if word == "define" and (named := _DEFINE.match(text, directive.end())) is not None:
                    position, define_ends = named.end(), rest.end()
                else:
                    position = rest.end()
                guarded, fresh = guards > 0, False
                continue
            found_token = _TOKEN.match(text, position)
            if found_token is None:
                position += 1
                continue
            start, position = position, found_token.end()
            if 0 <= define_ends <= start:
                tokens.append(Token(END, start, start, guarded))
                define_ends = -1
            if found_token.lastgroup == "blank":
                newline = text.rfind("\n", start, position)
                if newline >= 0 and text[start] != "/":
                    position = newline + 1  # what follows may be a directive
                fresh = newline >= 0 and text[start] != "/"
            else:
                fresh = False
                tokens.append(Token(found_token[0], start, position, guarded))

    @cached_property
    def defined(self) -> frozenset[str]:
        """The macros that it defines, or a header of its own project that it includes."""
        found: set[str] = set()
        seen: set[Path] = set()
        todo = [(self.path, self.text)]
        while todo and len(seen) < _MOST_INCLUDES:
            path, text = todo.pop()
            found.update(_DEFINED.findall(text))
            for name in _QUOTED_INCLUDE.findall(text):
                for directory in (path.parent, path.parent.parent, path.parent.parent / "include"):
                    place = directory / name
                    if place in seen:
                        break
                    held = self._read_other(place)
                    if held is not None:
                        seen.add(place)
                        todo.append((place, held))
                        break
        return frozenset(found)


def _is_guard(condition: str) -> bool:
    plain = _COMMENTS.sub("", condition).strip()
    return plain in ("0", "false") or _RELEASES.search(plain) is not None


class Match(Struct, frozen=True):
    """Where a pattern is found: what each of its parts stands for."""

    spans: tuple[tuple[int, int], ...]


class Pattern:
    """Tokens in a row: `AT_CHECK`, `.type().is_cuda()`, `.data<$T>()`, `AT_DISPATCH_*($x.type(), `.

    `$x` stands for any tokens without a comma that is not in brackets, `NAME*` for what begins so.
    """

    def __init__(self, text: str) -> None:
        self.parts = _PART.findall(text)

    def found_in(self, tokens: list[Token], index: int) -> Match | None:
        """What it stands for, beginning with a token."""
        spans: list[tuple[int, int]] = []
        size = len(tokens)
        for number, part in enumerate(self.parts):
            if part.startswith("$"):
                after = self.parts[number + 1] if number + 1 < len(self.parts) else None
                tail = [
                    *takewhile(lambda each: not each.startswith("$"), self.parts[number + 1 : number + 4])
                ]
                stop = _run(tokens, index, after, tail)
                if stop is None:
                    return None
                spans.append((tokens[index].start, tokens[stop - 1].end))
                index = stop
                continue
            if index >= size or not _fits(tokens[index].text, part):
                return None
            spans.append((tokens[index].start, tokens[index].end))
            index += 1
        return Match(tuple(spans))


def _fits(text: str, part: str) -> bool:
    return text.startswith(part[:-1]) if part[-1] == "*" and len(part) > 1 else text == part


def _run(tokens: list[Token], index: int, after: str | None, tail: list[str]) -> int | None:
    """Where the tokens end that a variable stands for: before the next parts of the pattern."""
    depth = 0
    for stop in range(index, min(len(tokens), index + _LONGEST)):
        text = tokens[stop].text
        if depth == 0 and stop > index and after is not None and _fits(text, after):
            following = tokens[stop : stop + len(tail)]
            if len(following) == len(tail) and all(map(_fits, (item.text for item in following), tail)):
                return stop
        if text in _OPEN:
            depth += 1
        elif text in _CLOSE:
            depth -= 1
            if depth < 0:
                return None
        elif text in (END, ";") or (text == "," and depth == 0):
            return None
    return None


def parts_of(text: str) -> Iterator[re.Match[str]]:
    """The parts of a pattern, or of what replaces it, with their places."""
    return _PART.finditer(text)
