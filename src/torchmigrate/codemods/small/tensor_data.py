"""TM916: `x.data`, but where it is only read at once."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext

_READS = frozenset(
    "cpu cuda clone detach device dim dtype float is_cuda item long ndim ndimension nelement numel numpy "
    "requires_grad shape size tolist type".split()
)


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every use that keeps or changes what it is given."""
    for hit in hits:
        parent = hit.place.parents(hit.use.node)
        if isinstance(parent, ast.Attribute) and parent.attr in _READS:
            continue
        if isinstance(parent, ast.Subscript) and isinstance(parent.ctx, ast.Load):
            continue
        yield file.fixes.finding(hit, None)
