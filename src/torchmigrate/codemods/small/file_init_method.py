"""TM576: `init_method="file://..."` without an absolute path."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext

_SCHEME = "file:"
# What comes behind the scheme and is read as it is meant: an absolute path, or a drive of Windows, which is
# part of the path there. Of the beginning of an f-string the path may follow.
_RIGHT = re.compile(r"//(?:/|[A-Za-z]:|\Z)|/(?!/)|/?\Z")


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every call with such an address, which is written in the call."""
    for hit in hits:
        given = _init_method(hit.use.call)
        text = _beginning(given) if given is not None else None
        if text is not None and text.startswith(_SCHEME) and not _RIGHT.match(text[len(_SCHEME) :]):
            yield file.fixes.finding(hit, None)


def _init_method(call: ast.Call | None) -> ast.expr | None:
    if call is None:
        return None
    named = next((item.value for item in call.keywords if item.arg == "init_method"), None)
    return named or (call.args[1] if len(call.args) > 1 else None)


def _beginning(node: ast.expr) -> str | None:
    """The text that a string begins with."""
    if isinstance(node, ast.JoinedStr) and node.values:
        return _beginning(node.values[0])
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _beginning(node.left)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
