"""TM576: `init_method="file://..."` without an absolute path."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.patterns import pattern
from torchmigrate.rewrite.context import FileContext

_GROUP = "torch.distributed.init_process_group"  # which takes it second; the others by keyword
_SCHEME = "file:"
# What comes after the scheme and is read as it is meant: an absolute path, or a drive of Windows, which is
# part of the path there; what Windows makes of backslashes is not known. After the start of an f-string the
# path may follow.
_RIGHT = pattern(r"//(?:/|[A-Za-z]:|\Z)|/(?!/)|/?\Z|\\")


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every call with such an address, which is written in the call."""
    for hit in hits:
        given = _init_method(hit)
        text = _beginning(given) if given is not None else None
        if text is not None and text.startswith(_SCHEME) and not _RIGHT.match(text[len(_SCHEME) :]):
            yield file.fixes.finding(hit, None)


def _init_method(hit: RuleMatch) -> ast.expr | None:
    call = hit.use.call
    if call is None:
        return None
    named = next((item.value for item in call.keywords if item.arg == "init_method"), None)
    second = call.args[1] if len(call.args) > 1 and hit.symbol == _GROUP else None
    return named or second


def _beginning(node: ast.expr) -> str | None:
    """The text that a string begins with."""
    if isinstance(node, ast.JoinedStr) and node.values:
        return _beginning(node.values[0])
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _beginning(node.left)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
