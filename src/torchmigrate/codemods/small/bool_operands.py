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
from torchmigrate.rewrite.nodes import has_comment, renamed, replaced


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every call; its fix converts the tensor."""
    for hit in hits:
        tensor = given_by(signature_of(rule, hit.symbol), hit.use).expression("input")
        fix = None
        if tensor is not None and file.fixes.may_fix(hit) and not has_comment(file.source, tensor):
            node, new = hit.use.node, code("$tensor.byte()", tensor=tensor)
            edit = replaced(file.source, tensor, new)
            if hit.use.method and isinstance(node, ast.Attribute):  # the tensor may stand in parentheses
                edit = renamed(file.source, node, node.attr, f"byte().{node.attr}") or edit
            fix = fix_by(rule, file, "Convert to uint8", edit)
        yield file.fixes.finding(hit, fix)
