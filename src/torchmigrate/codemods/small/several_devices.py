"""TM579: a `DistributedDataParallel` that is given several devices."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext
from torchmigrate.semantics.flow.values import ValueFlow

_NAME, _PLACE = "device_ids", 1


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """The calls whose `device_ids` is a list with more than one element that the file writes out."""
    yield from file.fixes.findings([hit for hit in hits if _several(hit, file.flow)])


def _several(hit: RuleMatch, flow: ValueFlow) -> bool:
    call = hit.use.call
    if call is None:
        return False
    before = call.args[: _PLACE + 1]
    given = next((item.value for item in call.keywords if item.arg == _NAME), None)
    if given is None and len(before) > _PLACE and not any(isinstance(item, ast.Starred) for item in before):
        given = before[_PLACE]
    made = flow.only_origin(given) if given is not None else None
    return (
        isinstance(made, (ast.List, ast.Tuple))
        and len(made.elts) > 1
        and not any(isinstance(item, ast.Starred) for item in made.elts)
    )
