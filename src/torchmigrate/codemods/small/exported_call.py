"""TM309: an exported program that is called; its module is."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import fix_by
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.code import code
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.nodes import replaced_around


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every call."""
    for hit in hits:
        fix = None
        node = hit.use.node
        if (
            hit.use.sure
            and not hit.use.in_fstring
            and isinstance(node, (ast.Name, ast.Attribute, ast.Subscript))
        ):
            edits = replaced_around(file.source, node, code("$program.module()", program=node), node)
            fix = fix_by(rule, file, "Call its `.module()`", *edits)
        yield file.fixes.finding(hit, fix)
