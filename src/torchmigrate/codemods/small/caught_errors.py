"""TM073: handlers of the error that a call raised before."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at, fix_by
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.code import code
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.nodes import replaced

_OLD = "RuntimeError"
_NEW = "(RuntimeError, ValueError, IndexError, TypeError)"


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every `except RuntimeError` behind a `try` of one statement, which holds such a call.

    What else stands in a longer `try` is as likely what the handler is for; so is memory, if it names that.
    """
    attempts = [
        node
        for node in (file.names.nodes(ast.Try) if hits else ())
        if len(node.body) == 1 and len(node.handlers) == 1 and _is_old(node.handlers[0])
    ]
    seen: set[int] = set()
    for hit in filter(_joins_a_list, hits):
        for attempt in attempts:
            start, end = file.source.span(attempt.body[0])
            kind = attempt.handlers[0].type
            if start <= hit.use.start < end and kind is not None and id(attempt) not in seen:
                seen.add(id(attempt))
                fix = None
                if file.fixes.may_fix(hit):
                    edit = replaced(file.source, kind, code(_NEW))
                    fix = fix_by(rule, file, "Catch the new errors too", edit)
                yield finding_at(rule, file, file.source.span(kind), symbol=hit.symbol, fix=fix)


def _joins_a_list(hit: RuleMatch) -> bool:
    """Whether what is joined has a name. What is computed in the call may as well run out of memory there."""
    call = hit.use.call
    return call is not None and bool(call.args) and isinstance(call.args[0], ast.Name | ast.Attribute)


def _is_old(handler: ast.ExceptHandler) -> bool:
    return (
        isinstance(handler.type, ast.Name)
        and handler.type.id == _OLD
        and not any(
            isinstance(node, ast.Constant) and isinstance(node.value, str) and "memory" in node.value
            for node in ast.walk(handler)
        )
    )
