"""TM904: checkpoints whose keys start with `_orig_mod.`, since a compiled model's state dict is saved.

`model.compile()` in place of `model = torch.compile(model)` gives back the keys of the model itself, at every
place at once and also where compiling is optional; `model._orig_mod.state_dict()` would have to be written at
each of them, and fails where the model was not compiled.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at
from torchmigrate.codemods.base.words import Words
from torchmigrate.codemods.compile.compiled import Compiled, CompiledModels, compiled_models, is_taken_over
from torchmigrate.findings import Edit, Finding, Fix
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.patterns import pattern
from torchmigrate.rewrite.calls import CallEditor
from torchmigrate.rewrite.code import code
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.lines import logical_line
from torchmigrate.rewrite.nodes import has_comment, unassigned
from torchmigrate.semantics.flow.domain import Sentinel
from torchmigrate.semantics.flow.forward import Forward
from torchmigrate.source.trees import last_name, walk
from torchmigrate.versions.range import applicability, required

# Who writes one of these knows of the prefix.
_MOST = 16  # models of a file that are followed: for each, all that may use it is looked through
_KNOWN = Words("_orig_mod", "OptimizedModule")
_SAVE = pattern(r"(?:^|_)save(?:_|$)|^save")
_ALIASED = "`{other}` is the plain model, which `{model}.compile()` would change: save `{other}`"
_ELSEWHERE = "save the original model: `{model}.state_dict()` has the plain keys"
_KEPT = "compile in place: `{model}.compile(...)` (torch 2.1), and then `{target} = {model}`"
_FORWARD = "call `{target}(...)` instead of its `forward`, which is not compiled, then compile in place"
_UNCLEAR = "compile in place (`{target}.compile(...)`, torch 2.1), or save `{target}._orig_mod.state_dict()`"


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding at every state dict that is saved with the prefix; those of one model share their fix."""
    if not hits or _KNOWN.are_in(file.source.text) or is_taken_over(file.names):
        return
    groups: dict[tuple[ast.AST, str], list[Compiled]] = {}
    for item in compiled_models(hits):
        region = _region(item, file)
        if region is not None:
            groups.setdefault((region, ast.unparse(item.target)), []).append(item)
    models = CompiledModels(file.flow, {item.call for group in groups.values() for item in group})
    saved: dict[ast.Call, set[ast.Call]] = {}  # by the call that compiles the model
    forward = Forward(file.flow)
    for call in file.names.nodes(ast.Call):
        if isinstance(call.func, ast.Attribute) and call.func.attr == "state_dict":
            made = {value[0] for value in models.of(call.func.value) if not isinstance(value, Sentinel)}
            if made and _is_saved(call, forward, file):
                for each in made:
                    saved.setdefault(each, set()).add(call)
    reported: set[ast.Call] = set()  # a function may save several models
    for (region, target), group in itertools.islice(groups.items(), _MOST):
        calls = set().union(*(saved.get(item.call, ()) for item in group))
        result = _fix(rule, group, region, models, file) if calls else ""
        for call in sorted(calls, key=lambda call: (call.lineno, call.col_offset)):
            if call in reported and isinstance(result, str):
                continue
            reported.add(call)
            fix = result if isinstance(result, Fix) else None
            span = file.source.span(call)
            finding = finding_at(rule, file, span, symbol=ast.unparse(call.func), fix=fix)
            yield replace(finding, help=result if isinstance(result, str) else _UNCLEAR.format(target=target))


def _region(item: Compiled, file: FileContext) -> ast.AST | None:
    """What may use the compiled model: the scope of a variable, the class of an attribute of `self`."""
    if isinstance(item.target, ast.Attribute):
        return file.flow.classes.owner_of(item.target.value)
    scope = item.hit.use.scope
    shared = item.target.id in scope.globals | scope.nonlocals
    return scope.node if scope.kind in ("function", "module") and not shared else None


def _is_saved(state: ast.Call, forward: Forward, file: FileContext) -> bool:
    """Whether a value goes to something that saves, directly, in a container or in a variable."""
    parents, index = file.names.parents, file.flow.index
    todo: list[ast.AST] = [state]
    seen = {*todo}
    for node in todo:
        outer = parents[node]
        while isinstance(outer, (ast.Dict, ast.Tuple, ast.List, ast.keyword, ast.IfExp)) or (
            isinstance(outer, ast.Call) and last_name(outer.func) in ("dict", "OrderedDict")
        ):
            node, outer = outer, parents[outer]
        if isinstance(outer, ast.Call) and outer.func is not node and _SAVE.search(last_name(outer.func)):
            return True
        goes = [*forward.of(node)]
        if isinstance(outer, ast.Assign):
            home = index.home_of(outer)
            roots = [item.value if isinstance(item, ast.Subscript) else item for item in outer.targets]
            names = [name for root in roots if isinstance(root, ast.Name) for name in index.named(root.id)]
            goes += [name for name in names if index.home_of(name) is home and isinstance(name.ctx, ast.Load)]
        todo += [each for each in goes if each not in seen]
        seen.update(goes)
    return False


# ---- the fix ------------------------------------------------------------------------------------------


def _fix(
    rule: Rule, group: list[Compiled], region: ast.AST, models: CompiledModels, file: FileContext
) -> Fix | str:
    """Compile in place, everywhere in the group; or what is in the way, and what to write."""
    edits: list[Edit] = []
    target = ast.unparse(group[0].target)
    compiled = {(item.call, 0) for item in group}
    if any(models.of(node.value) & compiled for node in file.flow.index.attributes("forward")):
        return _FORWARD.format(target=target)
    for item in group:
        model = ast.unparse(item.model)
        if model != target:
            text = _ELSEWHERE if isinstance(item.target, ast.Name) else _KEPT
            simple = isinstance(item.model, (ast.Name, ast.Attribute))
            return (text if simple else _UNCLEAR).format(model=model, target=target)
        other = _alias(item, region)
        if other is not None:
            return _ALIASED.format(other=other, model=target)
        made = _in_place(item, file) if file.fixes.may_fix(item.hit) else None
        given = [step.node for step in file.flow.origins(item.model)]
        if made is None or any(isinstance(node, ast.Lambda) for node in given):
            return _UNCLEAR.format(target=target)
        edits += made
    level, reason = applicability(rule.cases[0], rule, file.versions)
    title = f"Compile `{target}` in place, which keeps the keys of its state dict"
    return file.fixes.fix(rule, title, level, reason, edits, requires=required(rule.cases[0], rule))


def _alias(item: Compiled, region: ast.AST) -> str | None:
    """Another variable that was given the model before it was compiled."""
    model = ast.unparse(item.model)
    for node in walk(region):
        if isinstance(node, ast.Assign) and node.lineno < item.statement.lineno:
            for target in node.targets:
                if isinstance(target, (ast.Name, ast.Attribute)) and ast.unparse(node.value) == model:
                    return ast.unparse(target)
    return None


def _in_place(item: Compiled, file: FileContext) -> tuple[Edit, ...] | None:
    """`model.compile(mode="max-autotune")` for `model = torch.compile(model, mode="max-autotune")`."""
    source, call = file.source, item.call
    use = item.hit.use
    if not any(statement is item.statement for statement in use.block):
        return None
    line = logical_line(source, use.block, item.statement)
    rest = [keyword for keyword in call.keywords if keyword.value is not item.model]
    editor = CallEditor(source, call)
    editor.call_instead(code("$model.compile", model=item.target))
    editor.keep(rest)
    edits = editor.edits()
    if line.indent is None or edits is None or has_comment(source, item.statement, *rest[:1]):
        return None
    return (unassigned(source, item.statement), *edits)
