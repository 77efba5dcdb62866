"""Texts checked and fixed by some of the rules, without files."""

from __future__ import annotations

import ast
from collections.abc import Collection

from harness.program import FIX_ALL, fixed, only, run
from torchmigrate.findings import Finding


def checked_and_fixed(text: str, codes: Collection[str]) -> tuple[list[Finding], str]:
    """The findings of some rules, and the text with all fixes: it parses, and a second run leaves it as it is."""
    found = run(text, *only(codes)).findings
    new = fixed(text, *only(codes), *FIX_ALL)
    ast.parse(new)
    return found, new
