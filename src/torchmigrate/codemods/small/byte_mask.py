"""TM964: masks that are made by `.byte()` or as a `ByteTensor`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import fix_by
from torchmigrate.codemods.base.functions import is_scripted
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.nodes import renamed

_WORD = "mask"
_OLD, _NEW = "byte", "bool"


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every tensor that the file calls a mask."""
    for hit in hits:
        statement, call = hit.use.statement, hit.use.call
        if call is None or not any(_WORD in name.lower() for name in _names(statement, call, hit)):
            continue
        fix = None
        edit = renamed(file.source, call.func, _OLD, _NEW)
        known = hit.use.sure and not hit.use.in_fstring and not is_scripted(call, file)
        if known and not call.args and edit is not None:
            fix = fix_by(rule, file, "Replace with `.bool()`", edit)
        yield file.fixes.finding(hit, fix)


def _names(statement: ast.stmt, call: ast.Call, hit: RuleMatch) -> Iterator[str]:
    """What the value of a statement is called, if the call makes it; methods may follow."""
    value = statement.value if isinstance(statement, (ast.Assign, ast.Return)) else None
    while isinstance(value, ast.Call) and value is not call and isinstance(value.func, ast.Attribute):
        value = value.func.value
    if value is not call:
        return
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            yield from (getattr(target, "id", ""), getattr(target, "attr", ""))
    else:
        yield getattr(hit.use.scope.node, "name", "")
