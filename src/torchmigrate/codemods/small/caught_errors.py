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
from torchmigrate.source.trees import walk

_OLD = "RuntimeError"
_NEW = "(RuntimeError, ValueError, IndexError, TypeError)"


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every `except RuntimeError` after a `try` of one statement, which holds such a call.

    What else stands in a longer `try` is as likely what the handler is for; so is memory, if it names that.
    """
    seen: set[ast.Try] = set()
    for hit in filter(_joins_a_list, hits):
        for attempt in _attempts(hit.use.node, file):
            kind = attempt.handlers[0].type
            if kind is not None and attempt not in seen:
                seen.add(attempt)
                fix = None
                if file.fixes.may_fix(hit):
                    edit = replaced(file.source, kind, code(_NEW))
                    fix = fix_by(rule, file, "Catch the new errors as well", edit)
                yield finding_at(rule, file, file.source.span(kind), symbol=hit.symbol, fix=fix)


def _attempts(node: ast.AST, file: FileContext) -> Iterator[ast.Try]:
    """The `try` statements whose body is the one statement that contains a node, the innermost first."""
    outer = file.names.parents.get(node)
    while outer is not None:
        alone = isinstance(outer, ast.Try) and outer.body == [node] and len(outer.handlers) == 1
        if alone and isinstance(outer, ast.Try) and _is_old(outer.handlers[0]):
            yield outer
        node, outer = outer, file.names.parents.get(outer)


def _joins_a_list(hit: RuleMatch) -> bool:
    """Whether what is joined has a name. What is computed in the call may as well run out of memory there."""
    call = hit.use.call
    return call is not None and bool(call.args) and isinstance(call.args[0], (ast.Name, ast.Attribute))


def _is_old(handler: ast.ExceptHandler) -> bool:
    return (
        isinstance(handler.type, ast.Name)
        and handler.type.id == _OLD
        and not any(
            isinstance(node, ast.Constant) and isinstance(node.value, str) and "memory" in node.value
            for node in walk(handler)
        )
    )
