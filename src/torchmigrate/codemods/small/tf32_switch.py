"""TM947: `allow_tf32` of the CUDA back-ends, where it is set and where it is read."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at, fix_by
from torchmigrate.findings import Edit, Finding, Fix
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext

_OLD = "allow_tf32"
_MATMUL = "torch.backends.cuda.matmul"


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """Every place that names the switch. Storing is no use of its name, but of the module that holds it."""
    holders = {id(hit.use.node): hit for hit in hits}
    for node in file.names.nodes(ast.Attribute):
        if node.attr == _OLD:
            hit = holders.get(id(node.value)) or holders.get(id(node))
            if hit is None:
                continue
            module = hit.name.removesuffix(f".{_OLD}")
            span = file.source.span(node)
            fix = _fix(rule, node, hit, file)
            yield finding_at(rule, file, span, symbol=f"{module}.{_OLD}", fix=fix)


def _fix(rule: Rule, node: ast.Attribute, hit: RuleMatch, file: FileContext) -> Fix | None:
    """`fp32_precision = "tf32"` for `allow_tf32 = True`, in a statement that sets nothing else."""
    statement = hit.use.statement
    if not (
        file.fixes.may_fix(hit)
        and isinstance(statement, ast.Assign)
        and statement.targets == [node]
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, bool)
    ):
        return None
    precision = "tf32" if statement.value.value else "ieee"
    source = file.source
    first, name_end = source.span(node)
    start, end = source.span(statement.value)
    between = source.text[name_end:start]
    holder = source.text[first : name_end - len(_OLD)]
    if between.strip() != "=" or source.text[name_end - len(_OLD) : name_end] != _OLD:
        return None
    if hit.name.startswith(_MATMUL):
        targets = [f"{holder}fp32_precision"]
    else:
        targets = [f"{holder}conv.fp32_precision", f"{holder}rnn.fp32_precision"]
    edit = Edit(first, end, " = ".join(targets) + f'{between}"{precision}"')
    return fix_by(rule, file, "Set `fp32_precision`", edit)
