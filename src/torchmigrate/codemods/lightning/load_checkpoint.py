"""TM878: `Net.load_from_checkpoint(path)` of a module that saves hyperparameters of OmegaConf."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at, fix_by
from torchmigrate.codemods.lightning.modules import attributes, subclasses
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.calls import CallEditor
from torchmigrate.rewrite.code import code
from torchmigrate.rewrite.context import FileContext
from torchmigrate.source.trees import walk

_MAKERS = ("omegaconf", "hydra")
_NEW, _SAVES = "weights_only", "save_hyperparameters"


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every call that leaves it to torch what may be loaded."""
    imports: list[ast.Import | ast.ImportFrom] = [
        *file.names.nodes(ast.Import),
        *file.names.nodes(ast.ImportFrom),
    ]
    if not any(map(_imports, imports)):
        return
    saving = {
        item.node.name
        for base in ("LightningModule", "LightningDataModule")
        for item in subclasses(file, base)
        if any(isinstance(part, ast.Attribute) and part.attr == _SAVES for part in walk(item.node))
    }
    formatted = {id(part): text for text in file.names.nodes(ast.JoinedStr) for part in walk(text)}
    functions = {id(node) for node in attributes(file, "load_from_checkpoint")}
    for call in file.names.nodes(ast.Call):
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        if id(call.func) not in functions or not isinstance(owner, ast.Name) or owner.id not in saving:
            continue
        if any(item.arg in (_NEW, None) for item in call.keywords) or file.runs_elsewhere(call):
            continue
        fix, around = None, formatted.get(id(call))
        if around is None:
            editor = CallEditor(file.source, call)
            editor.add(code("False"), _NEW)
            edits = editor.edits()
            fix = None if edits is None else fix_by(rule, file, f"Add `{_NEW}=False`", *edits)
        span = file.source.span(around or call.func)
        yield finding_at(rule, file, span, symbol=next(iter(rule.symbols)), fix=fix)


def _imports(node: ast.Import | ast.ImportFrom) -> bool:
    """Whether a statement imports a package that makes such hyperparameters."""
    names = [item.name for item in node.names] if isinstance(node, ast.Import) else [node.module or ""]
    return any(name.partition(".")[0] in _MAKERS for name in names)
