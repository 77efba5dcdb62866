"""What people read is plain English: the rules, messages, docstrings, comments and documentation.

`python tests/catalogue/test_style.py` counts the hits of each directory; with the name of one, it prints them.
docs/develop/style.md explains the list.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

ROOT = Path(__file__).parents[2]
RULES = ROOT / "rules"
SOURCE = ROOT / "src" / "torchmigrate"
FRAGMENTS = {"summary", "advice", "reason"}
TEXTS = FRAGMENTS | {"why", "title"}

RIDDLES = [
    r"\b(and|or) (its|their) like\b",
    r"\bthe same thing\b",
    r"\bwhat (is|was) (there|meant|said)\b",
    r"\bof which\b",
    r"\bthat of\b(?! a )",
    r"(?<![Tt]here )\b(is|are) no (?!longer\b|more\b)",
    r"\bgo(es)? on to\b",
    r"\b(is|are|was|were) (said|told|asked)\b",
    r"\bhas to be\b",
    r"\bbeside\b",
    r"\bwent (in|with)\b",
    r"\b(is|are) gone\b",
    r"\bany more\b(?!,)",
    r"\bby itself\b",
    r"\bfor ever\b",
    r"^(Reported|Found)\b|[.] (Reported|Found) (is|are)\b",
    r"\btakes? (its|their) place\b",
    r"\bwithout a (word|trace)\b",
    r"\b(favour|behaviour|colour)\b",
    r"\bdrop (it|the (argument|call))\b",
    r"\bmind (that|the)\b",
    r"\bis to be\b",
    r"\bbecomes? of\b",
    r"\b([Ww]hoever|[Nn]obody|[Aa]nybody)\b",
    r"\bsees? to it\b",
    r"\bthan ever\b",
    r"\ba stranger\b",
    r"\bbehind\b",
    r"\bwho knows\b",
    r"\bagain and again\b",
    r"\bno such thing\b",
    r"\basked (for|about|again|of)\b",
    r"\b(have|has|had) gone\b",
    r"\b[Ww]hat stands\b",
]
# The only words that a fragment begins with in upper case.
NAMES = {"None", "NVIDIA's", "PIL", "PyTorch", "PyTorch's", "TorchScript", "TorchServe", "MAGMA"}

# Phrases that contain a hit and are right: file and phrase. Each has its reason.
EXCEPTIONS: dict[str, dict[str, str]] = {
    "docs/develop/style.md": {"What stands for this program": "an example of what not to write"},
    "src/torchmigrate/report/explanation.py": {"Found, but not fixed": "a heading"},
    "src/torchmigrate/report/summary.py": {"Found X": "the summary of a run, as in ruff"},
}


class Hit(NamedTuple):
    file: str
    line: int
    phrase: str
    text: str


def _hits(file: Path, line: int, text: str) -> Iterator[Hit]:
    name = file.relative_to(ROOT).as_posix()
    prose = re.sub(r"`[^`]*`", "X", " ".join(text.split()))
    for phrase in EXCEPTIONS.get(name, ()):
        prose = prose.replace(phrase, "X")
    for each in RIDDLES:
        for found in re.finditer(each, prose):
            yield Hit(name, line, found[0], prose[max(0, found.start() - 60) : found.end() + 60])


def _prose_of_python(file: Path) -> Iterator[tuple[int, str]]:
    """Line and text of each string (docstrings and messages) and of each block of comments."""
    text = file.read_text(encoding="utf-8")
    tree = ast.parse(text)
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            values = [part.value if isinstance(part, ast.Constant) else "X" for part in node.values]
            yield node.lineno, "".join(map(str, values))
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in parts
            and re.search(r"\s", node.value)  # one word is a name
        ):
            yield node.lineno, node.value
    block: list[str] = []
    last = start = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            if token.start[0] != last + 1:
                if block:
                    yield start, " ".join(block)
                block, start = [], token.start[0]
            block.append(token.string.lstrip("#"))
            last = token.start[0]
    if block:
        yield start, " ".join(block)


def _prose_of_page(file: Path) -> Iterator[tuple[int, str]]:
    """Line and text of each paragraph of a page, without its code."""
    line = 1
    text = re.sub(
        r"^ *(`{3,}).*?^ *\1`*$",
        lambda fence: "\n" * fence[0].count("\n"),
        file.read_text(encoding="utf-8"),
        flags=re.DOTALL | re.MULTILINE,
    )
    for part in re.split(r"(\n\s*\n)", text):
        if part.strip():
            yield line, part
        line += part.count("\n")


def _pages() -> list[Path]:
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def _room(file: Path) -> str:
    return file.relative_to(SOURCE).parts[0]


def _hits_of_source(room: str) -> Iterator[Hit]:
    place = SOURCE / room
    for file in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
        for line, text in _prose_of_python(file):
            yield from _hits(file, line, text)


def _hits_of_page(file: Path) -> Iterator[Hit]:
    for line, text in _prose_of_page(file):
        yield from _hits(file, line, text)


ROOMS = sorted({_room(file) for file in SOURCE.rglob("*.py")})


def _lines(hits: list[Hit]) -> str:
    return "\n".join(f"{hit.file}:{hit.line}: {hit.phrase!r} in {hit.text!r}" for hit in hits)


@pytest.mark.parametrize("room", ROOMS)
def test_the_source_is_plain(room: str) -> None:
    hits = list(_hits_of_source(room))
    assert not hits, _lines(hits)


@pytest.mark.parametrize("file", _pages(), ids=lambda file: file.relative_to(ROOT).as_posix())
def test_pages_are_plain(file: Path) -> None:
    hits = list(_hits_of_page(file))
    assert not hits, _lines(hits)


def test_exceptions_are_needed() -> None:
    for name, phrases in EXCEPTIONS.items():
        prose = _prose_of_page if name.endswith(".md") else _prose_of_python
        texts = [" ".join(text.split()) for _, text in prose(ROOT / name)]
        for phrase, reason in phrases.items():
            assert any(phrase in text for text in texts) and reason, (name, phrase)


def _texts(node: Any, key: str | None = None, at: str = "?") -> Iterator[tuple[str, str, str]]:
    """Rule, key and text of all that is shown to a user."""
    if isinstance(node, dict):
        at = node.get("code", at)
        for inner, value in node.items():
            if inner not in ("examples", "shown"):
                yield from _texts(value, inner, at)
    elif isinstance(node, list):
        for value in node:
            yield from _texts(value, None, at)
    elif isinstance(node, str) and key in TEXTS:
        yield at, key, " ".join(node.split())


FILES = sorted(RULES.rglob("*.yaml"))


@pytest.mark.parametrize("file", FILES, ids=[f"{file.parent.name}-{file.stem}" for file in FILES])
def test_texts_are_plain(file: Path) -> None:
    wrong = []
    for code, key, text in _texts(yaml.load(file.read_text(encoding="utf-8"), yaml.CSafeLoader)):
        prose = re.sub(r"`[^`]*`|\"[^\"]*\"", "X", text)
        wrong += [
            f"{code} {key}: {found[0]!r} in {text!r}"
            for each in RIDDLES
            for found in re.finditer(each, prose)
        ]
        first = text.split()[0]
        if key in FRAGMENTS and (text.endswith(".") or (first[0].isupper() and first not in NAMES)):
            wrong.append(f"{code} {key}: lower case at the start, and no full stop: {text!r}")
        if key == "title" and not first[0].isupper():
            wrong.append(f"{code} {key}: a capital at the start: {text!r}")
        if key == "why" and not text.endswith((".", ".)")):
            wrong.append(f"{code} {key}: whole sentences: {text!r}")
    assert not wrong, "\n".join(wrong)


def main(rooms: list[str]) -> None:
    """Print the hits of the rooms or pages that are named, or else how many each has."""
    count: Counter[str] = Counter()
    pages = {file.relative_to(ROOT).as_posix(): file for file in _pages()}
    for name in rooms or [*ROOMS, *pages]:
        hits = list(_hits_of_page(pages[name]) if name in pages else _hits_of_source(name))
        count[name] = len(hits)
        if rooms:
            print(_lines(hits))
    for name, number in count.most_common():
        if number:
            print(f"{number:5} {name}")
    print(f"{count.total():5} in all")


if __name__ == "__main__":
    main(sys.argv[1:])
