"""TM243: `torch.backends.quantized.engine = "fbgemm"`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at, fix_by
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.nodes import replaced
from torchmigrate.rewrite.quotes import quoted_like

_OLD, _NEW = "fbgemm", "x86"
_ENGINE = "torch.backends.quantized.engine"


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """Every assignment of the old name. An assignment is not a use of the attribute, but of the object that
    holds it."""
    holders = {id(hit.use.node): hit for hit in hits}
    for statement in file.names.nodes(ast.Assign):
        value = statement.value
        if not isinstance(value, ast.Constant) or value.value != _OLD:
            continue
        for target in statement.targets:
            if not isinstance(target, ast.Attribute) or target.attr != "engine":
                continue
            hit = holders.get(id(target)) or holders.get(id(target.value))
            if hit is None:
                continue
            fix = None
            if file.fixes.may_fix(hit) and len(statement.targets) == 1:
                edit = replaced(file.source, value, quoted_like(value, _NEW, file.source))
                fix = fix_by(rule, file, f'Set "{_NEW}"', edit)
            yield finding_at(rule, file, file.source.span(target), symbol=_ENGINE, fix=fix)
