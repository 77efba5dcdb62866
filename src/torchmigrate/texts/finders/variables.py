"""Environment variables that are set: `export NAME=1`, `NAME=1 command`, `ENV NAME 1`, `NAME: 1`.

What reads one (`$NAME`) knows what it does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from torchmigrate.catalogue.model import Rule
from torchmigrate.findings import Finding, Fix
from torchmigrate.rewrite.spans import replaced
from torchmigrate.source.other import YAML
from torchmigrate.texts.commands import Word
from torchmigrate.texts.file import TextFile

_BEFORE = frozenset(["export", "ENV", "ARG", "-x", "--env", "-e", "setenv", "set", "name:", "declare"])


def find(rule: Rule, file: TextFile) -> Iterator[Finding | None]:
    """A finding for every place that sets a variable of the rule."""
    text = file.source.text
    names = [name for name in rule.symbols if name in text]
    if not names:
        return
    for name in names:
        new = rule.symbols[name].get("new")
        if new is not None and re.search(rf"\b{new}\b", text):
            continue  # both are set
        places = sorted(set(_places(name, file)))
        # If other places read it as well, only a person can rename it.
        alone = len(re.findall(rf"\b{re.escape(name)}\b", text)) == len(places)
        for start, end in places:
            fix: Fix | None = None
            if new is not None and alone:
                fix = file.fix(rule, f"Set `{new}`", [replaced(start, end, new)])
            yield file.finding(rule, name, (start, end), fix=fix)


def _places(name: str, file: TextFile) -> Iterator[tuple[int, int]]:
    text = file.source.text
    for command in file.commands:
        before: Word | None = None
        for word in command.words:
            if name in word.text:
                found = _pattern(name).search(text, word.start, word.end)
                if found is not None:
                    after = text[found.end() : found.end() + 1]
                    whole = word.text == name
                    named = whole and before is not None and before.text in _BEFORE
                    key = file.kind == YAML and word.text.lstrip("{") == f"{name}:"
                    if after == "=" or named or key:
                        yield found.span()
            before = word


@lru_cache(maxsize=256)
def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w$]){re.escape(name)}(?!\w)(?<!\$\{{{re.escape(name)})")
