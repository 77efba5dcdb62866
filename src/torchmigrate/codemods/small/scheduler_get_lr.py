"""TM452: `scheduler.get_lr()` by hand, unless the code shows that it asks as `step` does.

It tells the scheduler so, says at which epoch it is, or stores the rates where `step` does:
`scheduler._last_lr = scheduler.get_lr()`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext
from torchmigrate.source.trees import walk

_MARK = "_get_lr_called_within_step"
_EPOCH = "last_epoch"  # code that sets it needs the rate of that epoch, which `step` has not set
_CONTEXT = "_enable_get_lr_call"


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """The findings, without those where the code sets what `get_lr` asks for itself."""
    yield from file.fixes.findings(
        [hit for hit in hits if not (_is_within_step(hit, file) or _is_stored(hit.use.statement))]
    )


def _is_stored(statement: ast.stmt) -> bool:
    """Whether a statement sets the rates of a scheduler."""
    return isinstance(statement, ast.Assign) and any(
        isinstance(target, ast.Attribute) and target.attr == "_last_lr" for target in statement.targets
    )


def _is_within_step(hit: RuleMatch, file: FileContext) -> bool:
    """Whether the last thing that the function set before the call is the mark, to true; or its context."""
    text = file.source.text
    told = any(word in text for word in (_MARK, _EPOCH, _CONTEXT))
    if not told or not isinstance(hit.use.node, ast.Attribute):
        return False
    scheduler = ast.dump(hit.use.node.value)
    marks: list[tuple[int, bool]] = []
    for node in walk(hit.use.scope.node):
        if isinstance(node, ast.Assign):
            at = file.source.span(node)[0]
            marks += [
                (at, target.attr == _EPOCH or _is_true(node.value))
                for target in node.targets
                if isinstance(target, ast.Attribute) and _marks(target, scheduler)
            ]
        elif isinstance(node, ast.With):
            start, end = file.source.span(node)
            if start <= hit.use.start < end and any(_enables(item, scheduler) for item in node.items):
                return True
    before = [mark for mark in marks if mark[0] < hit.use.start]
    return bool(before) and max(before)[1]


def _marks(target: ast.Attribute, scheduler: str) -> bool:
    return target.attr in (_MARK, _EPOCH) and ast.dump(target.value) == scheduler


def _enables(item: ast.withitem, scheduler: str) -> bool:
    call = item.context_expr
    if not isinstance(call, ast.Call) or len(call.args) != 1 or ast.dump(call.args[0]) != scheduler:
        return False
    function = call.func
    return (function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")) == _CONTEXT


def _is_true(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and bool(value.value)
