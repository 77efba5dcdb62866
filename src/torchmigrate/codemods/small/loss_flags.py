"""TM400: `size_average` and `reduce` of losses; None for both of them does not count as a use."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.findings import Finding
from torchmigrate.match.matching import given_by, signature_of
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """The findings, without `F.kl_div(x, y, None, None, "sum")`, where None only holds a place."""
    yield from file.fixes.findings([hit for hit in hits if not _is_default(hit)])


def _is_default(hit: RuleMatch) -> bool:
    """Whether every flag that is given is None."""
    given = given_by(signature_of(hit.rule, hit.symbol), hit.use, hit.place.keywords)
    values = [given.expression(name) for name in hit.rule.parameters if given.state(name) == "given"]
    return all(isinstance(value, ast.Constant) and value.value is None for value in values)
