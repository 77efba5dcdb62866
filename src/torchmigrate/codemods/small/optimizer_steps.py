"""TM442: subclasses of Adam that set the number of steps in the state to an integer."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at
from torchmigrate.codemods.base.subclasses import Subclass, subclass_of
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext
from torchmigrate.source.trees import walk

_KEY = "step"


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every integer that becomes the number of steps of a parameter."""
    for hit in hits:
        item = subclass_of(hit.use)
        if item is None or not _steps_by_base(item):
            continue
        for node in walk(item.node):
            if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Constant):
                continue
            if type(node.value.value) is int and any(map(_is_step, node.targets)):
                span = file.source.span(node.value)
                yield finding_at(rule, file, span, symbol=hit.symbol, fix=None)


def _is_step(target: ast.expr) -> bool:
    """Whether an item has the key of the number of steps."""
    return (
        isinstance(target, ast.Subscript)
        and isinstance(target.slice, ast.Constant)
        and target.slice.value == _KEY
    )


def _steps_by_base(item: Subclass) -> bool:
    """Whether the steps are those of the base."""
    method = item.method(_KEY)
    return method is None or any(
        isinstance(node, ast.Attribute) and node.attr == _KEY and isinstance(node.value, ast.Call)
        for node in walk(method)
    )
