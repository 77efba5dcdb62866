"""TM352: results written into a tensor that needs a gradient."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext
from torchmigrate.source.trees import is_below

_PARAMETERS = ("torch.nn.Parameter", "torch.nn.parameter.Parameter")


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """The calls whose `out` is a name that its scope binds once, to a tensor that needs a gradient."""
    stores: dict[str, list[ast.Assign]] = {}
    for node in file.names.nodes(ast.Assign) if hits else ():
        for name in {target.id for target in node.targets if isinstance(target, ast.Name)}:
            stores.setdefault(name, []).append(node)
    yield from file.fixes.findings([hit for hit in hits if _needs_gradient(hit, stores, file)])


def _needs_gradient(hit: RuleMatch, every: dict[str, list[ast.Assign]], file: FileContext) -> bool:
    out = (
        next((keyword.value for keyword in hit.use.call.keywords if keyword.arg == "out"), None)
        if hit.use.call
        else None
    )
    if not isinstance(out, ast.Name):
        return False
    scope, parents = hit.use.scope.node, file.names.parents
    stores = [node for node in every.get(out.id, ()) if is_below(node, scope, parents)]
    return len(stores) == 1 and _asks(stores[0].value, hit)


def _asks(value: ast.expr, hit: RuleMatch) -> bool:
    """Whether an expression makes a tensor that needs a gradient."""
    if not isinstance(value, ast.Call):
        return False
    if any(item.arg == "requires_grad" and hit.place.value(item.value) is True for item in value.keywords):
        return True
    if isinstance(value.func, ast.Attribute) and value.func.attr == "requires_grad_":
        return not value.args and not value.keywords
    return hit.place.qualified(value.func) in _PARAMETERS
