"""TM122: `torch.save` of a tensor on which the same block of code has set a local function."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext
from torchmigrate.semantics.facts.dtypes import TENSOR


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every such call."""
    for hit in hits:
        saved = hit.use.call.args[0] if hit.use.call is not None and hit.use.call.args else None
        if not isinstance(saved, ast.Name) or TENSOR not in file.facts.of(saved):
            continue
        before = hit.use.block[: hit.use.block.index(hit.use.statement)]
        if any(_sets_function(statement, saved.id) for statement in before):
            yield file.fixes.finding(hit, None)


def _sets_function(statement: ast.stmt, name: str) -> bool:
    """Whether a statement is `NAME.attribute = lambda ...`."""
    return (
        isinstance(statement, ast.Assign)
        and isinstance(statement.value, ast.Lambda)
        and any(
            isinstance(target, ast.Attribute)
            and isinstance(target.value, ast.Name)
            and target.value.id == name
            for target in statement.targets
        )
    )
