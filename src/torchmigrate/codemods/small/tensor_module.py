"""TM042: the module `torch.tensor`, and imports of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext

_MODULE = "torch.tensor"


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every use of the class, and for every `import torch.tensor`."""
    yield from file.fixes.findings(hits)
    for alias in file.names.nodes(ast.alias):
        statement = file.names.parents.get(alias)
        if alias.name != _MODULE or not isinstance(statement, ast.Import):
            continue
        if not any(isinstance(outer, (ast.Try, ast.If)) for outer in file.flow.index.around(statement)):
            one = replace(rule, summary=f"the module `{_MODULE}` was removed, so that its import fails")
            yield finding_at(one, file, file.source.span(alias), symbol=_MODULE, fix=None)
