"""The commands in a text: shell scripts, recipes, Dockerfiles, CI files, and blocks of commands in Markdown.

Nothing is executed and no variable is expanded. A command is a list of words, each with its place. What is
written in quotes and holds several words (`bash -c "..."`) is a command of its own as well. All of it takes
time linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from msgspec import Struct

from torchmigrate.patterns import pattern
from torchmigrate.source.other import DOCKER, MARKDOWN, YAML

_DEPTH = 3  # of commands in quotes in commands in quotes
_WORD = pattern(
    r"""(?:
        \\[^\r\n] | '[^']*' | "(?:\\.|[^"\\])*"
      | \$\{(?:[^{}\n]|\{[^{}\n]{0,99}\}){0,200}\} | \$\([\w\ ./-]{0,200}\)
      | [^\s"'\\|&;()`]
    )+""",
    re.VERBOSE | re.DOTALL,
)
_BLANK = pattern(r"(?:[ \t\f\v]|\\\r?\n)+")
_COMMENT = pattern(r"\#[^\r\n]*")
_COMMENT_LINES = pattern(r"(?:[ \t]*\#[^\r\n]*\r?\n)+")  # within a command of a Dockerfile
_ITEM = r"""(?:"(?:\\.|[^"\\\n])*"|'[^'\n]*')"""
_LIST = pattern(rf"\[\s*{_ITEM}(?:\s*,\s*{_ITEM})+\s*,?\s*\]")
_STRING = pattern(_ITEM)
_QUOTED = pattern(r"""'[^']*'|"(?:\\.|[^"\\])*\"""", re.DOTALL)
_BLOCK_ITEM = pattern(r"^(?P<indent>[ ]*)-[ ]+(?P<value>[^\r\n]*?)[ \t]*\r?$", re.MULTILINE)
_GOES_ON = pattern(r"\r?\n[ \t]+(?=--?[A-Za-z])")  # a line of options in YAML
# The beginning of a block, or a line with nothing but code: "```python train.py```".
_FENCE = pattern(
    r"^[ \t>]*(?:(?:[-*+]|\d+[.)]) +)?"
    r"(?:(?P<fence>`{3,}|~{3,})[ \t]*(?P<info>[^\r\n`]*)"
    r"|(?P<ticks>`+)(?P<code>[^\r\n`]+)(?P=ticks)[ \t]*)(?=\r?$)",
    re.MULTILINE,
)
_SHELLS = frozenset(
    ["", "sh", "bash", "shell", "zsh", "console", "shell-session", "shellsession", "terminal", "cmd", "bat"]
)
_MOST_BEFORE = 8  # words before what a command does: variables, `sudo`
_ASSIGNMENT = pattern(r"[A-Za-z_]\w*=")
_SAYS = frozenset(["echo", "printf", "print", "logger"])
_BEFORE = frozenset(["$", "%", ">", "-", "RUN", "run:", "then", "do", "else", "sudo", "exec", "time", "if"])


class Word(Struct, frozen=True):
    """A word of a command.

    text: without its quotes. start, end: its span in the source, with them.
    """

    text: str
    start: int
    end: int


class Command(Struct, frozen=True):
    """The words of a command. listed: they are the items of a list (`CMD ["python", "-m", ...]`)."""

    words: tuple[Word, ...]
    listed: bool = False

    @property
    def says(self) -> bool:
        """Whether it only prints its words."""
        for word in self.words:
            text = word.text.lstrip("@-+")
            if text in _BEFORE or word.text in _BEFORE or _ASSIGNMENT.match(word.text):
                continue
            return text in _SAYS
        return False


def commands_of(text: str, kind: str) -> Iterator[Command]:
    """All commands of a text; those that are only printed are left out."""
    for command in _commands(text, kind):
        if not command.says:
            yield command


def _commands(text: str, kind: str) -> Iterator[Command]:
    if kind == MARKDOWN:
        for start, end, _ in fences(text, _SHELLS):
            yield from _lexed(text, start, end, kind, 0)
        return
    if kind in (DOCKER, YAML):
        position = 0
        for found in _LIST.finditer(text):
            yield from _lexed(text, position, found.start(), kind, 0)
            words = (Word(_plain(item[0]), *item.span()) for item in _STRING.finditer(text, *found.span()))
            yield Command(tuple(words), True)
            position = found.end()
        yield from _lexed(text, position, len(text), kind, 0)
        if kind == YAML:
            yield from _block_lists(text)
        return
    yield from _lexed(text, 0, len(text), kind, 0)


def fences(text: str, languages: frozenset[str]) -> Iterator[tuple[int, int, str]]:
    """The blocks of code in Markdown in one of these languages: where each begins and ends, and which."""
    position = 0
    while (opening := _FENCE.search(text, position)) is not None:
        fence = opening["fence"]
        if fence is None:
            position = opening.end()
            if "" in languages:
                yield *opening.span("code"), ""
            continue
        start = opening.end()
        closing = _closing(fence[0], len(fence)).search(text, start)
        end = len(text) if closing is None else closing.start()
        position = len(text) if closing is None else closing.end()
        language = opening["info"].strip().strip("{}.").split(" ")[0].lower()
        if language in languages:
            yield start, end, language


@lru_cache(maxsize=64)
def _closing(character: str, size: int) -> re.Pattern[str]:
    return re.compile(rf"^[ \t>]*{re.escape(character)}{{{size},}}[ \t]*\r?$", re.MULTILINE)


def _block_lists(text: str) -> Iterator[Command]:
    """Lists of YAML with one item a line, as of arguments."""
    words: list[Word] = []
    indent, end = "", -1
    for found in _BLOCK_ITEM.finditer(text):
        follows = not text[end : found.start()].strip() if 0 <= end < found.start() else False
        if not (follows and found["indent"] == indent):
            if len(words) > 1:
                yield Command(tuple(words), True)
            words = []
        indent, end = found["indent"], found.end()
        words.append(Word(_plain(found["value"]), *found.span("value")))
    if len(words) > 1:
        yield Command(tuple(words), True)


def _lexed(text: str, start: int, end: int, kind: str, depth: int) -> Iterator[Command]:
    """The commands between two places, and those in what is quoted there."""
    words: list[Word] = []
    position = start
    while position < end:
        blank = _BLANK.match(text, position, end)
        if blank is not None:
            position = blank.end()
            if kind == DOCKER and "\n" in blank[0]:
                lines = _COMMENT_LINES.match(text, position, end)
                position = position if lines is None else lines.end()
            continue
        character = text[position]
        if character == "#":
            comment = _COMMENT.match(text, position, end)
            assert comment is not None
            position = comment.end()
            continue
        word = _WORD.match(text, position, end)
        if word is not None:
            words.append(Word(_plain(word[0]), *word.span()))
            if depth < _DEPTH and not Command(tuple(words[:_MOST_BEFORE])).says:
                yield from _inside(text, word, kind, depth)
            position = word.end()
            continue
        if kind == YAML and character in "\r\n" and words:
            goes_on = _GOES_ON.match(text, position, end)
            if goes_on is not None:
                position = goes_on.end()
                continue
        if words and character not in "\"'\\":  # a stray quote separates nothing
            yield Command(tuple(words))
            words = []
        position += 1
    if words:
        yield Command(tuple(words))


def _inside(text: str, word: re.Match[str], kind: str, depth: int) -> Iterator[Command]:
    if "'" not in word[0] and '"' not in word[0]:
        return
    for quoted in _QUOTED.finditer(text, *word.span()):
        if any(character.isspace() for character in quoted[0]):
            yield from _lexed(text, quoted.start() + 1, quoted.end() - 1, kind, depth + 1)


def _plain(raw: str) -> str:
    """A word without quotes and backslashes; in lists, without brackets and commas."""
    if "'" not in raw and '"' not in raw and "\\" not in raw:
        return raw
    return re.sub(r"""\\(.)|['"]""", lambda found: found[1] or "", raw, flags=re.DOTALL)
