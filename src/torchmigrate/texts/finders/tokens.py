"""Tokens in a row in C++ and CUDA. What a file, or a header of its project, defines itself is left alone."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from torchmigrate.catalogue.model import Rule
from torchmigrate.findings import Edit, Finding, Fix
from torchmigrate.patterns import pattern
from torchmigrate.rewrite.spans import replaced
from torchmigrate.texts.cpp import Match, Pattern, parts_of
from torchmigrate.texts.file import TextFile

_COMMENT = pattern(r"//|/\*")


class _Wanted(NamedTuple):
    symbol: str
    pattern: Pattern


def find(rule: Rule, file: TextFile) -> Iterator[Finding | None]:
    """A finding for every place that a pattern of the rule fits; headers are patterns as `<THC/THC.h>`."""
    text = file.source.text
    by_first: defaultdict[str, list[_Wanted]] = defaultdict(list)
    headers: list[str] = []
    prefixes: list[tuple[str, _Wanted]] = []
    for symbol in rule.symbols:
        if symbol.startswith("<"):
            if symbol.strip("<*>") in text:
                headers.append(symbol)
            continue
        pattern = Pattern(symbol)
        first = pattern.parts[0]
        words = [part for part in pattern.parts if part[0].isalpha() and part[-1] != "*"]
        if not all(word in text for word in words):
            continue
        if first.endswith("*"):
            prefixes.append((first[:-1], _Wanted(symbol, pattern)))
        else:
            by_first[first].append(_Wanted(symbol, pattern))
    prefixes = [item for item in prefixes if item[0] in text]
    if headers:
        yield from _headers(rule, headers, file)
    if not (by_first or prefixes) or not file.code.is_torch:
        return
    tokens = file.code.tokens
    for index, token in enumerate(tokens):
        wanted: Sequence[_Wanted] = by_first.get(token.text, ())
        if prefixes and token.text[0].isalpha():
            more = [item for prefix, item in prefixes if token.text.startswith(prefix)]
            wanted = [*wanted, *more]
        if not wanted or token.guarded:
            continue
        for symbol, pattern in wanted:
            match = pattern.found_in(tokens, index)
            if match is not None and token.text not in file.code.defined:
                yield _finding(rule, symbol, pattern, match, file)


def _headers(rule: Rule, headers: Sequence[str], file: TextFile) -> Iterator[Finding | None]:
    for item in file.code.includes:
        for symbol in headers:
            name = symbol.strip("<>")
            fits = item.name.startswith(name[:-1]) if name.endswith("*") else item.name == name
            if not fits or item.guarded:
                continue
            new = rule.symbols[symbol].get("new")
            fix = None
            if new is not None:
                written = new.strip("<>")
                if f"{written}>" in file.source.text or f'{written}"' in file.source.text:
                    new = None  # it is included as well
                else:
                    fix = file.fix(rule, f"Include `{new}`", [replaced(item.start, item.end, written)])
            yield file.finding(
                rule, symbol, (item.start, item.end), fix=fix, values={"name": f"<{item.name}>"}
            )
            break


def _finding(rule: Rule, symbol: str, pattern: Pattern, match: Match, file: TextFile) -> Finding | None:
    new = rule.symbols[symbol].get("new")
    start, end = match.spans[0][0], match.spans[-1][1]
    if file.source.text[start] == "." and len(match.spans) > 1:
        start = match.spans[1][0]
    if pattern.parts[-1] in (",", "("):
        end = match.spans[-2][1] if len(match.spans) > 1 else end
    fix: Fix | None = None
    if new is not None:
        edit = _edit(pattern, match, new, file.source.text)
        if edit is not None:
            fix = file.fix(rule, f"Replace with `{_shown(new)}`", [edit])
    values = {"name": symbol} if new is None else {"name": symbol, "new": new}
    head = pattern.parts[0]
    if head.endswith("*"):  # as it is there
        written = file.source.text[slice(*match.spans[0])]
        values = {key: text.replace(head, written) for key, text in values.items()}
    values = {key: _shown(text) for key, text in values.items()}
    return file.finding(rule, symbol, (start, end), fix=fix, values=values)


def _shown(pattern: str) -> str:
    """A pattern as a person reads it."""
    text = re.sub(r"\$(\w+)", r"\1", pattern).strip()
    return f"{text} ...)" if text.endswith(",") else text.removesuffix("(")


def _edit(pattern: Pattern, match: Match, new: str, text: str) -> Edit | None:
    """What differs between the pattern and its replacement, as one edit; None if a comment is in between."""
    old = pattern.parts
    made = [*parts_of(new)]
    written = [part[0] for part in made]
    left = 0
    while left < min(len(old), len(written)) and old[left] == written[left]:
        left += 1
    right = 0
    while right < min(len(old), len(written)) - left and old[-1 - right] == written[-1 - right]:
        right += 1
    if left == len(old) - right:
        return None
    start, end = match.spans[left][0], match.spans[len(old) - right - 1][1]
    if _COMMENT.search(text, start, end):
        return None
    middle = made[left : len(made) - right]
    code = new[middle[0].start() : middle[-1].end() if right else len(new)] if middle else ""
    for part, (first, last) in zip(old, match.spans, strict=True):
        if part.startswith("$"):
            code = code.replace(part, text[first:last])
    return replaced(start, end, code)
