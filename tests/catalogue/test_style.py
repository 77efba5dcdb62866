"""What a user reads in the rules: plain English, as the section on style in CONTRIBUTING.md says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

RULES = Path(__file__).parents[2] / "rules"
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
]
# The only words that a fragment begins with in upper case.
NAMES = {"None", "NVIDIA's", "PIL", "PyTorch", "PyTorch's", "TorchScript", "TorchServe", "MAGMA"}


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
