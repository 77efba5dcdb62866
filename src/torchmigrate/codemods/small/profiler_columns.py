"""TM244: `table(sort_by="cuda_time_total")` of what was profiled.

The names of these columns are enough to tell: the object often comes out of another function.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at, fix_by
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.nodes import replaced
from torchmigrate.rewrite.quotes import is_plainly_quoted, quoted_like

_COLUMNS = frozenset("cuda_time cuda_time_total self_cuda_time_total self_cuda_memory_usage".split())
_TABLE = "torch.autograd.profiler_util.EventList.table"


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every such name that is given to a method `table`."""
    for call in file.names.nodes(ast.Call):
        if not isinstance(call.func, ast.Attribute) or call.func.attr != "table":
            continue
        named = [item.value for item in call.keywords if item.arg == "sort_by"]
        column = next(iter(named or call.args), None)
        if isinstance(column, ast.Constant) and column.value in _COLUMNS:
            fix = None
            if is_plainly_quoted(column, file.source):
                new = str(column.value).replace("cuda", "device")
                edit = replaced(file.source, column, quoted_like(column, new, file.source))
                fix = fix_by(rule, file, f'Replace with "{new}"', edit)
            yield finding_at(rule, file, file.source.span(column), symbol=_TABLE, fix=fix)
