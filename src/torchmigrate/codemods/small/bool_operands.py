"""TM078: functions that take uint8 tensors, and no bool tensors."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import fix_by
from torchmigrate.findings import Finding
from torchmigrate.match.matching import given_by, signature_of
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.code import code
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.nodes import has_comment, replaced, replaced_around


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every call; its fix converts the tensor."""
    for hit in hits:
        tensor = given_by(signature_of(rule, hit.symbol), hit.use).expression("input")
        fix = None
        if tensor is not None and file.fixes.may_fix(hit) and not has_comment(file.source, tensor):
            node = hit.use.node
            edits = [replaced(file.source, tensor, code("$tensor.byte()", tensor=tensor))]
            if hit.use.method and isinstance(node, ast.Attribute):  # the tensor may stand in parentheses
                new = code("$tensor.byte().$name", tensor=tensor, name=node.attr)
                edits = [*replaced_around(file.source, node, new, tensor)]
            fix = fix_by(rule, file, "Convert to uint8", *edits)
        yield file.fixes.finding(hit, fix)
