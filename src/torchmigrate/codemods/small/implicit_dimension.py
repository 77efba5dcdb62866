"""TM416: softmax without `dim`, where the code shows that the input may have one or three dimensions.

There the first dimension was normalized. Where the number of dimensions is not certain, neither `dim=0` nor
`dim=1` may be right, and there is no fix. What is taken of a tensor by a number, `softmax(logits[0])`, has
one dimension less: how many are left is unknown.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TypeGuard

from torchmigrate.catalogue.model import Rule
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext
from torchmigrate.semantics.facts.dimensions import shaped_like, sizes_given
from torchmigrate.semantics.flow.calls import constant_key
from torchmigrate.semantics.flow.domain import NOTHING, Domain, Values
from torchmigrate.source.trees import walk

_FIRST = (0, 1, 3)  # numbers of dimensions with which dimension 0 is normalized
_METHODS = frozenset(["dim", "ndimension"])
_SIZES = frozenset(["shape", "size"])


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """The findings, without a fix where dimension 0 may have been meant."""
    unclear = [hit for hit in hits if _takes_first(hit, file) or _takes_item(hit, file)]
    yield from file.fixes.findings([hit for hit in hits if hit not in unclear])
    for hit in unclear:
        yield file.fixes.finding(hit, None)


class _Items(Domain[bool]):
    """What is one item of a tensor: `logits[0]`, `logits[0, -1]`, `logits[0].cpu() / 2`"""

    def start(self, node: ast.AST) -> bool | None:
        if not isinstance(node, ast.Subscript):
            return None
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return True if any(isinstance(constant_key(part), int) for part in parts) else None

    def through(self, node: ast.AST) -> Values[bool]:
        like = shaped_like(node)
        return self.of(like) if like is not None else NOTHING


def _takes_item(hit: RuleMatch, file: FileContext) -> bool:
    """Whether the input, also of a layer that a variable or an attribute has, is one item of a tensor."""
    call = hit.use.call
    if call is None:
        return False
    if hit.symbol.startswith("torch.nn.functional."):
        return any(True in _Items(file.flow).of(given) for given in call.args[:1])
    return call in file.once(_Items, lambda: _called_with_items(file))


def _called_with_items(file: FileContext) -> set[ast.AST | None]:
    """What makes the layers that the file calls with one item of a tensor."""
    items = _Items(file.flow)
    return {
        step.node
        for call in file.names.nodes(ast.Call)
        if any(True in items.of(given) for given in call.args[:1])
        for step in file.flow.origins(call.func)
    }


def _takes_first(hit: RuleMatch, file: FileContext) -> bool:
    """Whether the input of a function has one or three dimensions, as its making or a test around it says."""
    call = hit.use.call
    if call is None or not hit.symbol.startswith("torch.nn.functional."):
        return False
    given = call.args[0] if call.args else None
    given = given or next((item.value for item in call.keywords if item.arg == "input"), None)
    if given is None:
        return False
    if _is_shaped(given):
        return sizes_given(given) in _FIRST
    if file.facts.rank(given) is not None:
        return False
    seen = file.facts.depths(given)
    if seen:
        return len(seen) > 1 and not seen.isdisjoint(_FIRST)
    names = {node.id for node in walk(given) if isinstance(node, ast.Name)}
    node: ast.AST = call
    while (outer := file.names.parents.get(node)) is not None:
        if isinstance(outer, (ast.If, ast.IfExp)) and node is not outer.test and not _is_else(outer, node):
            asked = _asked(outer.test)
            if asked is not None and asked[0] in names and asked[1] in _FIRST:
                return True
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            return False
        node = outer
    return False


def _is_shaped(node: ast.expr) -> TypeGuard[ast.Call]:
    """Whether it is `x.view(...)`; what softmax takes is a tensor."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("view", "reshape")
        and not node.keywords
    )


def _is_else(outer: ast.If | ast.IfExp, node: ast.AST) -> bool:
    return node in outer.orelse if isinstance(outer, ast.If) else node is outer.orelse


def _asked(test: ast.expr) -> tuple[str, object] | None:
    """The name and the number in `x.dim() == 3`, `x.ndim == 3` or `len(x.shape) == 3`."""
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq)):
        return None
    node, number = test.left, test.comparators[0]
    if not isinstance(number, ast.Constant):
        return None
    wanted: frozenset[str] = _METHODS
    if isinstance(node, ast.Attribute) and node.attr == "ndim":
        wanted = frozenset(["ndim"])
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len":
        node, wanted = node.args[0] if node.args else node, _SIZES
    if isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Attribute) and node.attr in wanted and isinstance(node.value, ast.Name):
        return node.value.id, number.value
    return None
