"""TM868: imports of TorchServe's packages, whose short names (`ts`) are looked for in imports alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext

_ARCHIVER = "model_archiver"
# The parts of `ts` that handlers import, but for `ts.utils`, which other packages have as well.
_PARTS = frozenset("torch_handler context handler_utils metrics model_service protocol service".split())


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every statement that imports a part of TorchServe, unless it may fail."""
    guarded = {id(item.statement): item.guards.attempt is not None for item in file.names.imports}
    statements: list[ast.Import | ast.ImportFrom] = [
        *file.names.nodes(ast.Import),
        *file.names.nodes(ast.ImportFrom),
    ]
    for statement in statements:
        name = next(filter(_is_torchserve, _modules(statement)), None)
        if name is not None and not guarded.get(id(statement), False):
            yield finding_at(rule, file, file.source.span(statement), symbol=name, fix=None)


def _modules(statement: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(statement, ast.Import):
        return [item.name for item in statement.names]
    if statement.level or statement.module is None:
        return []
    return [statement.module, *(f"{statement.module}.{item.name}" for item in statement.names)]


def _is_torchserve(module: str) -> bool:
    root, _, rest = module.partition(".")
    return root == _ARCHIVER or (root == "ts" and rest.partition(".")[0] in _PARTS)
