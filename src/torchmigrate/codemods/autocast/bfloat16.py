"""TM205 and TM206: a scaler of gradients, and replicas on several GPUs, in code with regions in bfloat16."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.autocast.regions import Regions, regions_of
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext
from torchmigrate.semantics.model import Role

_BFLOAT16 = "torch.bfloat16"


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every call that meets such regions."""
    calls = [hit for hit in hits if hit.use.role is Role.CALL and hit.use.call is not None]
    if calls:
        regions = regions_of(file)
        wanted = _WANTED[rule.name]
        yield from (file.fixes.finding(hit, None) for hit in calls if wanted(hit, regions, file))


def _scales_nothing(hit: RuleMatch, regions: Regions, file: FileContext) -> bool:
    """Whether a scaler is always on, in a file that computes in bfloat16 and in no other type."""
    call = hit.use.call
    assert call is not None, "only calls were taken"
    if any(item.arg in ("enabled", None) for item in call.keywords):
        return False
    if any(isinstance(item, ast.Starred) for item in call.args):
        return False
    types = {region.dtype for region in regions.every if not region.disabled}
    return types == {_BFLOAT16}


def _loses_type(hit: RuleMatch, regions: Regions, file: FileContext) -> bool:
    """Whether what wraps a model is called in a region in bfloat16, by the name that it is given."""
    parents = file.names.parents
    call = hit.use.call
    assert call is not None, "only calls were taken"
    made: ast.AST = call
    while isinstance(parents[made], (ast.Attribute, ast.Call)):  # `DataParallel(model).cuda()`
        made = parents[made]
    statement = parents[made]
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return False
    name = ast.unparse(statement.targets[0])
    for other in file.once("calls by what is called", lambda: _by_callee(file)).get(name, ()):
        region = regions.around(other)
        if region is not None and region.dtype == _BFLOAT16 and not region.disabled:
            return True
    return False


def _by_callee(file: FileContext) -> dict[str, list[ast.Call]]:
    """The calls of a file by the name or attribute that is called."""
    found: dict[str, list[ast.Call]] = {}
    for call in file.names.nodes(ast.Call):
        if isinstance(call.func, (ast.Name, ast.Attribute)):
            found.setdefault(ast.unparse(call.func), []).append(call)
    return found


_WANTED: dict[str, Callable[[RuleMatch, Regions, FileContext], bool]] = {
    "grad-scaler-with-bfloat16": _scales_nothing,
    "data-parallel-with-bfloat16": _loses_type,
}
