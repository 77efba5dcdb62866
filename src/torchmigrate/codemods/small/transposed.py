"""TM054: `x.T`, `x.mT`, `x.H` and `x.mH` of tensors that, as the file tells, are no matrices.

Most `.T` are on matrices, about which there is nothing to say. The number of dimensions is read from the call
that makes the tensor, or from what was recorded; where it is not plain, nothing is found.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import fix_by
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.code import code
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.nodes import suffix_replaced
from torchmigrate.semantics.facts.file_facts import FileFacts
from torchmigrate.semantics.model import BindingKind, Scope

_OF_NUMBERS = "2.0"  # since when transposing a tensor without dimensions warns
_FACTORIES = frozenset("zeros ones empty rand randn".split())
_SHAPED = frozenset("view reshape permute".split())
_DEEPEST = 20  # calls and variables on the way
_OF_BATCHES = ("mT", "mH")
_CONJUGATES = ("H", "mH")
# Of all elements, if no dimension is given.
_REDUCTIONS = frozenset("sum mean prod max min std var norm argmax argmin all any median logsumexp".split())
_SAME = frozenset("contiguous clone detach float double half long int bool byte cuda cpu".split())


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every `.T` that does not transpose a matrix."""
    around = file.around
    for hit in hits:
        node = hit.use.node
        if not isinstance(node, ast.Attribute) or not (hit.use.sure or hit.use.seen):
            continue
        rank = _rank(node.value, hit.use.scope, around)
        if rank is None:
            rank = _seen_rank(node.value, file)
            hit.use.seen = rank is not None
        if rank is None or rank == 2 or (node.attr in _OF_BATCHES and rank > 2):
            continue
        if node.attr != "T" and rank > 0:  # raises; `mH` is of the last two dimensions, and a vector has none
            yield file.fixes.finding(hit, None)
            continue
        if rank == 0:  # which only warns, and since later
            hit = replace(hit, rule=hit.rule._replace(deprecated=_OF_NUMBERS, removed=None))
        fix = None
        end, last = file.source.span(node.value)[1], file.source.span(node)[1]
        numbers = [str(number) for number in reversed(range(rank))]
        new = code("$x.permute(*$order)", x=node.value, order=numbers) if rank > 2 else None
        title = f"Replace with `.permute({', '.join(numbers)})`" if new else f"Remove `.{node.attr}`"
        if node.attr in _CONJUGATES:
            new, title = code("$x.conj()", x=node.value), "Replace with `.conj()`"
        edit = suffix_replaced(file.source, node.value, end, last, (".", node.attr), new)
        if not hit.use.in_fstring and edit is not None:
            fix = fix_by(rule, file, title, edit)
        yield file.fixes.finding(hit, fix)


def _rank(node: ast.expr, scope: Scope, around: FileFacts, depth: int = 0) -> int | None:
    """The number of dimensions of a tensor, if it is plain to see."""
    if depth > _DEEPEST:
        return None  # or a variable that is computed from itself
    if isinstance(node, ast.Name):
        bindings = scope.bindings.get(node.id, [])
        if len(bindings) != 1 or bindings[0].kind is not BindingKind.ASSIGNMENT:
            return None
        statement = bindings[0].statement
        if not isinstance(statement, ast.Assign) or bindings[0].node not in statement.targets:
            return None
        return (
            _rank(statement.value, scope, around, depth + 1)
            if isinstance(statement.value, ast.Call)
            else None
        )
    if not isinstance(node, ast.Call):
        return None
    owner, _, last = (around.qualified(node.func) or "").rpartition(".")
    if owner == "torch" and last in _FACTORIES:
        return _sizes(node, 1)
    if owner == "torch" and last == "arange":
        return 1
    if owner == "torch" and last == "tensor" and node.args:
        return _nesting(node.args[0])
    if owner != "torch.Tensor" or not isinstance(node.func, ast.Attribute):
        return None
    if last in _SHAPED:
        return _sizes(node, 2)
    if last in _REDUCTIONS and not node.args and not node.keywords:
        return 0
    if last in _SAME and not node.args:
        return _rank(node.func.value, scope, around, depth + 1)
    return None


def _seen_rank(node: ast.expr, file: FileContext) -> int | None:
    """The number of dimensions that a tensor had in every run that was recorded."""
    found = {seen.dimensions for seen in file.names.seen.get(id(node), ())}
    return found.pop() if len(found) == 1 else None


def _nesting(node: ast.expr) -> int | None:
    """How deep the lists are in which a number stands."""
    if isinstance(node, ast.UnaryOp):
        node = node.operand
    if isinstance(node, ast.Constant):
        return 0 if isinstance(node.value, int | float | complex) else None
    if not isinstance(node, ast.List | ast.Tuple) or not node.elts:
        return None
    inner = _nesting(node.elts[0])
    return None if inner is None else inner + 1


def _sizes(node: ast.Call, least: int) -> int | None:
    """How many sizes are given; a single argument that is no literal may hold any number of them."""
    sizes = node.args
    if len(sizes) == 1 and isinstance(sizes[0], ast.Tuple | ast.List):
        sizes = sizes[0].elts
    elif len(sizes) == 1 and (least > 1 or not isinstance(sizes[0], ast.Constant)):
        return None
    if not sizes or any(isinstance(item, ast.Starred) for item in sizes):
        return None
    return len(sizes)
