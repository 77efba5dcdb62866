"""TM889: `Trainer(resume_from_checkpoint=path)`; `fit` takes the path as `ckpt_path`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import fix_by
from torchmigrate.codemods.base.unclear import Unclear
from torchmigrate.codemods.lightning.modules import attributes
from torchmigrate.findings import Edit, Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.calls import CallEditor
from torchmigrate.rewrite.code import code
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.statements import Crowded

_OLD, _NEW = "resume_from_checkpoint", "ckpt_path"


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every call with the argument."""
    for hit in hits:
        finding = file.fixes.finding(hit, None)
        if hit.use.call is None or not file.fixes.may_fix(hit):
            yield finding
            continue
        try:
            fix = fix_by(rule, file, f"Pass `{_NEW}` to `fit`", *_edits(hit.use.call, file))
        except (Unclear, Crowded) as error:
            yield replace(finding, blocked_by=error.reasons)
        else:
            yield replace(finding, fix=fix)


def _edits(made: ast.Call, file: FileContext) -> list[Edit]:
    """The trainer without the path, and `fit` with it. Raises Unclear, Crowded."""
    old = next((item for item in made.keywords if item.arg == _OLD), None)
    if old is None:
        raise Unclear("the argument comes from `**`")
    rewriting = file.rewriting()
    editor = CallEditor(file.source, made)
    editor.drop(old)
    rewriting.record(editor.edits())
    if isinstance(old.value, ast.Constant) and old.value.value is None:
        return rewriting.edits()
    if not isinstance(old.value, (ast.Constant, ast.Name, ast.Attribute)):
        raise Unclear("the path is computed where the trainer is made", old.value)
    fits = [node for node in attributes(file, "fit") if file.flow.only_origin(node.value) is made]
    if len(fits) != 1:
        raise Unclear("it is not clear which call of `fit` uses the trainer")
    call = next((item for item in file.names.nodes(ast.Call) if item.func is fits[0]), None)
    if call is None or any(item.arg in (_NEW, None) for item in call.keywords) or len(call.args) > 4:
        raise Unclear("`fit` is called with other arguments", fits[0])
    index = file.flow.index
    around = index.function_of(made)
    elsewhere = around is not None and all(outer is not around for outer in index.around(call))
    if not isinstance(old.value, ast.Constant) and elsewhere:
        raise Unclear("`fit` is called in another function", fits[0])
    editor = CallEditor(file.source, call)
    editor.add(code("$path", path=old.value), _NEW)
    rewriting.record(editor.edits())
    return rewriting.edits()
