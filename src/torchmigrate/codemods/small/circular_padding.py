"""TM447: convolutions whose circular padding was written for torch before 1.5. TM406: all others."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.findings import Finding
from torchmigrate.match.matching import given_by, signature_of
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every convolution whose output keeps its size with the old padding, or may not."""
    old = rule.name == "circular-padding-of-kernel"
    for hit in hits:
        given = given_by(signature_of(rule, hit.symbol), hit.use)
        sizes = [_number(given.expression(name), file) for name in ("kernel_size", "padding", "dilation")]
        kernel, padding, dilation = sizes
        plain = given.state("dilation") == "absent" or dilation == 1
        if (plain and kernel is not None and padding == kernel - 1) is old:
            yield from file.fixes.findings([hit])


def _number(node: ast.expr | None, file: FileContext) -> int | None:
    value = file.around.value(node) if node is not None else None
    return value if type(value) is int else None
