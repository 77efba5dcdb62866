"""TM998: `torch.library.Library` in tests."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext
from torchmigrate.source.trees import walk

_FRAMEWORKS = ("pytest", "unittest", "torch.testing._internal")


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """Every hit, if the file is a test."""
    if hits and _is_test(file):
        yield from (file.fixes.finding(hit, None) for hit in hits)


def _is_test(file: FileContext) -> bool:
    path = file.source.path
    if path.stem.startswith("test_") or path.stem.endswith("_test"):
        return True
    imported: list[str] = []
    for node in walk(file.names.tree):
        if isinstance(node, ast.Import):
            imported += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            imported.append(node.module)
    return any(f"{name}.".startswith(f"{framework}.") for name in imported for framework in _FRAMEWORKS)
