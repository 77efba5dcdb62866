"""TM947: `allow_tf32` of the CUDA back-ends, where it is set and where it is read."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at, fix_by
from torchmigrate.findings import Finding, Fix
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.code import code
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.nodes import renamed, replaced, target_added

_OLD = "allow_tf32"
_MATMUL = "torch.backends.cuda.matmul"


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """Every place that names the switch. An assignment is not a use of its name, but of the module that holds
    it."""
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
    precision = '"tf32"' if statement.value.value else '"ieee"'
    one = hit.name.startswith(_MATMUL)
    name = renamed(file.source, node, _OLD, "fp32_precision" if one else "rnn.fp32_precision")
    if name is None:
        return None
    edits = [name, replaced(file.source, statement.value, code("$precision", precision=precision))]
    if not one:
        other = code("$holder.conv.fp32_precision", holder=node.value)
        edits.insert(0, target_added(file.source, statement, other))
    return fix_by(rule, file, "Set `fp32_precision`", *edits)
