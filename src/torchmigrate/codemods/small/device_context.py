"""TM092: the default device as torch 2.0 to 2.2 kept it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext

_TODAY = "device_context"  # the attribute that has it since torch 2.3


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every use in a file that does not know the attribute of today."""
    if _TODAY not in file.source.text:
        yield from (file.fixes.finding(hit, None) for hit in hits)
