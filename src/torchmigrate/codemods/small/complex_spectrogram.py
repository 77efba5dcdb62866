"""TM839: spectrograms that became complex, in files that take them for pairs of real and imaginary parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.patterns import pattern
from torchmigrate.rewrite.context import FileContext

# What only takes or reads pairs.
_PAIRS = pattern(
    r"\b(?:magphase|complex_norm|ComplexNorm|(?:functional|F|AF)\.(?:angle|istft))\b"
    r"|torchaudio\.functional import[^\n]*\b(?:angle|istft)\b"
    r"|\[\s*\.\.\.\s*,\s*0\s*\](?s:.*)\[\s*\.\.\.\s*,\s*1\s*\]"
)


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every spectrogram, if the code is known to be older, or the file shows it."""
    older = file.versions.known_to(rule.library) is not None
    if hits and (older or _PAIRS.search(file.source.text)):
        yield from file.fixes.findings(hits)
