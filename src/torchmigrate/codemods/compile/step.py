"""TM902: functions that do one step of training or evaluation, as `@torch.compile` would have them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from msgspec.structs import replace

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at
from torchmigrate.codemods.compile.compiled import COMPILE, is_taken_over
from torchmigrate.codemods.compile.kinds import ModelKinds
from torchmigrate.findings import Finding, Fix
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.patterns import pattern
from torchmigrate.rewrite.code import code
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.imports.planner import Refusal
from torchmigrate.rewrite.lines import begins_line
from torchmigrate.rewrite.nodes import add_decorator, name_span
from torchmigrate.rewrite.placing import use_at
from torchmigrate.semantics.flow.mentions import LOOPS
from torchmigrate.source.trees import last_name, walk, walk_own
from torchmigrate.versions.range import applicability, required

_STEP = pattern(r"(?:(?:(?:pre)?train|finetune|eval|val|valid|validation|test)(?:ing)?(?:_one)?_)?step")
_MODEL = pattern(r"(?:\w+_)?(?:model|net|network|module|mod)")
_LOSS = pattern(r"loss|criterion|entropy|mse|nll", re.IGNORECASE)
_OTHERS = frozenset("flax haiku jax keras mxnet paddle tensorflow torch_xla pytest unittest".split())
_MODEL_RULE = "TM900"  # compiles the models themselves

_READS = frozenset(["item", "tolist", "numpy"])
_NO_FIX = (
    "`{}` ends the graph in the middle of the function: move it to the caller, then add `@torch.compile`"
)
_TWICE = "it uses a backward graph twice, which compiled code rejects"
_SCALER = "gradient scaling is not traced: compile the model instead"
_MODELS = "TM900 compiles the models themselves: use one of the two rules"


def find(rule: Rule, hits: list[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding at the name of every step function.

    Args:
        rule: TM902.
        hits: not needed; what matters is what the functions do.
        file: names, source, versions and imports of the file.
    """
    if is_taken_over(file.names) or ModelKinds(file.flow, file.source).compiler_lines:
        return
    imported = {(binding.target or binding.module or "").partition(".")[0] for binding in file.names.imports}
    if "torch" not in imported or imported & _OTHERS:
        return
    for node in file.names.tree.body:
        if isinstance(node, ast.FunctionDef) and _STEP.fullmatch(node.name) and _is_step(node):
            made = _obstacle(node, file) or _fix(rule, node, file)
            fix = made if isinstance(made, Fix) else None
            finding = finding_at(rule, file, name_span(file.source, node), symbol=node.name, fix=fix)
            yield finding if fix else replace(finding, help=str(made))


def _is_step(node: ast.FunctionDef) -> bool:
    """Whether a function runs a model once, and a loss on what comes out; without a loop around it."""
    if node.decorator_list:
        return False
    called = False
    scored = False
    for inner in walk_own(node.body):
        if isinstance(inner, LOOPS) and any(_calls_model(call) for call in walk(inner)):
            return False
        if isinstance(inner, (ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal)):
            return False
        called = called or _calls_model(inner)
        scored = scored or (isinstance(inner, ast.Call) and _LOSS.search(last_name(inner.func)) is not None)
    return called and scored


def _calls_model(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and _MODEL.fullmatch(node.func.id.lower()) is not None
    )


def _obstacle(node: ast.FunctionDef, file: FileContext) -> str | None:
    """Why the decorator cannot simply be put there."""
    backward = 0
    for inner in walk_own(node.body):
        if isinstance(inner, ast.keyword) and inner.arg in ("create_graph", "retain_graph"):
            return _TWICE
        if not isinstance(inner, ast.Call):
            continue
        name = last_name(inner.func)
        if isinstance(inner.func, ast.Attribute):
            if name in _READS and not inner.args and not inner.keywords:
                return _NO_FIX.format(f".{name}()")
            if "scaler" in ast.unparse(inner.func.value).lower():
                return _SCALER
            backward += name == "backward"
        elif name in ("print", "float", "int", "bool"):
            return _NO_FIX.format(f"{name}(...)")
    if backward > 1:
        return _TWICE
    return _MODELS if _MODEL_RULE in file.settings.codes else None


def _fix(rule: Rule, node: ast.FunctionDef, file: FileContext) -> Fix | str:
    """The decorator, on a line of its own; or why not."""
    body = file.names.tree.body
    if not begins_line(file.source, node):
        return "other statements are on the same line"
    use = use_at(COMPILE, node, [body], file.names.module, file)
    spelling = file.imports.spell(COMPILE, use)
    if isinstance(spelling, Refusal):
        return spelling.reason
    case = rule.cases[0]
    level, reason = applicability(case, rule, file.versions)
    edit = add_decorator(file.source, node, code("$compile", compile=spelling.text))
    title = f"Put `@{COMPILE}` on `{node.name}`"
    return file.fixes.fix(rule, title, level, reason, (edit, *spelling.edits), requires=required(case, rule))
