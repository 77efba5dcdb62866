"""TM053: `loss.data[0]` of a tensor without dimensions, which raises; `loss.item()` was intended.

Images, rows and the data of other objects are indexed like this as well. So the tensor must be known to hold
one number: by how it is made, or since `backward()` is called on it or on a sum that it is part of, which
only such tensors allow. What only looks like that, a loss by its name or by the name of the function that
returns it, or had no dimensions in every recorded run, gets an unsafe fix.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at, fix_by
from torchmigrate.codemods.scalar_item.loss_names import Likely
from torchmigrate.codemods.scalar_item.one_number import Differentiated
from torchmigrate.findings import Applicability, Finding, because
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.code import code
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.nodes import span_in_fstring, suffix_replaced
from torchmigrate.semantics.model import Operation

TITLE = "Replace with `.item()`"
REASON = "only its name suggests that it holds a single number; otherwise `item()` raises an error"
SEEN = "only recorded types show that it holds a single number"
FACTOR = "it holds a single number, but may have a dimension, and then `x.data[0]` is a tensor"
_TOKENS = (".", "data", "[", "0", "]")


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every `x.data[0]` where x holds one number."""
    likely = Likely(file)
    differentiated = Differentiated(file.flow)
    places = [
        (item, item.node.value.value)
        for item in file.names.operations
        if isinstance(item.node, ast.Subscript)
        and isinstance(item.node.value, ast.Attribute)
        and _reads_first(item.node)
        and not file.runs_elsewhere(item.node)
    ]
    numbers: set[tuple[int, str]] = set()  # tensors, by scope and source
    reasons: dict[int, str | None] = {}  # why the fix is unsafe; None: it is not
    for item, tensor in places:
        assert isinstance(item.node, ast.Subscript), "the operations are subscripts"
        one = differentiated.is_one(tensor)
        if one or file.facts.rank(tensor) == 0:
            reasons[id(item.node)] = None
        elif one is not None:
            reasons[id(item.node)] = FACTOR
        elif seen := file.facts.depths(tensor):
            if seen != {0}:
                continue
            reasons[id(item.node)] = SEEN
        elif not likely.holds_one_number(item.node, tensor):
            continue
        numbers.add((id(item.scope), ast.dump(tensor)))
    for item, tensor in places:
        if (id(item.scope), ast.dump(tensor)) in numbers:  # what is one number here is one there
            yield _finding(rule, file, item, tensor, reasons.get(id(item.node), REASON))


def _finding(rule: Rule, file: FileContext, item: Operation, tensor: ast.expr, reason: str | None) -> Finding:
    assert isinstance(item.node, ast.Subscript), "the operations are subscripts"
    source = file.source
    if item.fstring is None:
        span, end = source.span(item.node), source.span(tensor)[1]
    else:
        span = span_in_fstring(source, item.fstring, item.node) or source.span(item.fstring)
        end = span[0] + len(ast.unparse(tensor))
    fix = None
    edit = suffix_replaced(source, tensor, end, span[1], _TOKENS, code("$x.item()", x=tensor))
    if edit is not None:
        fix = fix_by(rule, file, TITLE, edit)
        if reason is not None:
            fix = file.fixes.fix(rule, TITLE, Applicability.UNSAFE, because(reason), (edit,))
    return finding_at(rule, file, span, symbol="torch.Tensor.data", fix=fix, seen=reason is SEEN)


def _reads_first(node: ast.Subscript) -> bool:
    """Whether this is `x.data[0]`, not assigned to."""
    return (
        isinstance(node.ctx, ast.Load)
        and isinstance(node.value, ast.Attribute)
        and node.value.attr == "data"
        and isinstance(node.slice, ast.Constant)
        and type(node.slice.value) is int
        and node.slice.value == 0
    )
