"""Texts checked and fixed by the rules of this repository, without files."""

from __future__ import annotations

import ast
from collections.abc import Collection
from pathlib import Path

from harness.catalogue import catalogue
from torchmigrate.config import Settings
from torchmigrate.engine import Engine
from torchmigrate.model import FileResult, Finding
from torchmigrate.source import Source

NAME = Path("example.py")


def _run(text: str, settings: Settings) -> FileResult:
    result = Engine(catalogue(), settings).check_source(Source.from_text(text, NAME), NAME)
    assert not result.problems
    return result


def checked_and_fixed(
    text: str, codes: Collection[str], known: Collection[str] = ()
) -> tuple[list[Finding], str]:
    """The findings of some rules, and the text with all fixes: it parses, and a second run leaves it as it is.

    Args:
        known: other rules that comments in the text may name.
    """
    settings = Settings(codes=frozenset(codes), known={code: code for code in (*codes, *known)})
    found = _run(text, settings).findings
    fixing = settings._replace(fix=True, unsafe_fixes=True)
    new = _run(text, fixing).new_text or text
    ast.parse(new)
    assert _run(new, fixing).new_text is None, "a second run changes nothing"
    return found, new
