"""TM534: parts of a device mesh that are taken by the name of flattened dimensions."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext

_FLATTEN = "_flatten"
_SYMBOL = "torch.distributed.device_mesh.DeviceMesh.__getitem__"


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every `mesh["dp_cp"]` of a file that makes it by `mesh["dp", "cp"]._flatten("dp_cp")`."""
    made = {key for node in file.names.nodes(ast.Call) for key in _flattened(node)}
    if not made:
        return
    for node in file.names.nodes(ast.Subscript):
        if isinstance(node.ctx, ast.Load):
            mesh = ast.dump(node.value)
            if any((mesh, name) in made for name in _names(node.slice)):
                yield finding_at(rule, file, file.source.span(node), symbol=_SYMBOL, fix=None)


def _flattened(node: ast.Call) -> Iterator[tuple[str, str]]:
    """The mesh, and the name of the dimension that a call makes: given, or the old names with `_` between."""
    if not isinstance(node.func, ast.Attribute) or node.func.attr != _FLATTEN:
        return
    part = node.func.value
    if not isinstance(part, ast.Subscript):
        return
    mesh, dimensions = ast.dump(part.value), list(_names(part.slice))
    given = [*node.args, *(item.value for item in node.keywords if item.arg == "mesh_dim_name")]
    if given:
        name = given[0].value if isinstance(given[0], ast.Constant) else None
        if isinstance(name, str) and name not in dimensions:
            yield mesh, name
    elif len(dimensions) > 1:
        yield mesh, "_".join(dimensions)


def _names(node: ast.expr) -> Iterator[str]:
    for item in node.elts if isinstance(node, ast.Tuple) else [node]:
        if isinstance(item, ast.Constant) and isinstance(item.value, str):
            yield item.value
