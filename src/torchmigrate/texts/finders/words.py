"""Words in a row in a command, such as `-m torch.utils.bottleneck`; the last may end with `*`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.findings import Finding
from torchmigrate.rewrite.spans import replaced
from torchmigrate.texts.commands import Word
from torchmigrate.texts.file import TextFile


def find(rule: Rule, file: TextFile) -> Iterator[Finding | None]:
    """A finding for every command that has the words of a symbol of the rule."""
    text = file.source.text
    patterns = [
        (symbol, symbol.split(), values.get("new"))
        for symbol, values in rule.symbols.items()
        if symbol.split()[0].rstrip("*") in text
    ]
    for command in file.commands if patterns else ():
        for symbol, pattern, new in patterns:
            for found in matches(command.words, pattern):
                words = command.words[found : found + len(pattern)]
                span = words[0].start, words[-1].end
                fix = None
                if new is not None and not command.listed:
                    # Words that stay, at either end, are left alone.
                    old, written = list(words), new.split()
                    while written and old and old[-1].text == written[-1]:
                        old.pop(), written.pop()
                    while written and old and old[0].text == written[0]:
                        old.pop(0), written.pop(0)
                    if old and all(text[word.start : word.end] == word.text for word in old):
                        edit = replaced(old[0].start, old[-1].end, " ".join(written))
                        fix = file.fix(rule, f"Replace with `{new}`", [edit])
                values = {"name": " ".join(word.text for word in words)}
                yield file.finding(rule, symbol, span, fix=fix, values=values)


def matches(words: Sequence[Word], pattern: Sequence[str]) -> Iterator[int]:
    """Where the words of a pattern begin."""
    size = len(pattern)
    first, *rest = pattern
    for index in range(len(words) - size + 1):
        if _fits(words[index], first) and all(
            _fits(words[index + 1 + more], part) for more, part in enumerate(rest)
        ):
            yield index


def _fits(word: Word, part: str) -> bool:
    return word.text.startswith(part[:-1]) if part.endswith("*") else word.text == part
