"""TM124: classes that are decorated by what is for functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every decorator of a class."""
    yield from file.fixes.findings([hit for hit in hits if isinstance(hit.use.decorates, ast.ClassDef)])
