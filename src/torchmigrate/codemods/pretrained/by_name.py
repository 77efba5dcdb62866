"""TM799: `getattr(models, name)(pretrained=True)`, where the name of the model is known at run time only."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at
from torchmigrate.codemods.pretrained.choice import namespace_of
from torchmigrate.codemods.pretrained.flag_edits import argument_edits, flag_argument
from torchmigrate.findings import Applicability, Edit, Finding, Fix
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext
from torchmigrate.semantics.flow.values import ValueFlow
from torchmigrate.semantics.model import Via
from torchmigrate.source.trees import walk
from torchmigrate.versions.range import applicability

_NEW = ("weights", "weights_backbone")
_BEST = '"DEFAULT"'
_FIRST = '"IMAGENET1K_V1"'  # what `True` stood for in all classification models, and in backbones
# What it stood for in the others, read in the sources of 0.28; of optical flow: the only weights of a name.
_FIRST_OF = {
    "detection": '"COCO_V1"',
    "optical_flow": _BEST,
    "quantization": _BEST,
    "segmentation": '"COCO_WITH_VOC_LABELS_V1"',
    "video": '"KINETICS400_V1"',
}
_OTHERS = 'the weights that `True` selected depend on `quantize`; `"DEFAULT"` selects the best weights'


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every flag that is given to a model of unknown name; those of one call are one fix."""
    modules = {hit.use.node: hit for hit in hits}
    if not modules:
        return
    tried = _tried(file)
    in_strings = {id(node) for string in file.names.nodes(ast.JoinedStr) for node in walk(string)}
    for node in file.names.nodes(ast.Call):
        given = _flags(node)
        hit = _module_of(node.func, modules, file.flow) if given and id(node) not in tried else None
        if hit is None:
            continue
        sure = (hit.use.sure or hit.use.via is Via.SELF) and id(node) not in in_strings
        fix = _fix(given, node, hit, file) if sure else None
        for argument in given:
            span = file.source.span(argument)
            yield finding_at(rule, file, span, symbol=hit.name.removesuffix(".__dict__"), fix=fix)


def _module_of(node: ast.expr, modules: dict[ast.AST, RuleMatch], flow: ValueFlow) -> RuleMatch | None:
    """The use of the module in `getattr(models, name)`, or in what surely gives the builder."""
    found: list[RuleMatch | None] = []
    for step in flow.origins(node):
        made, holder = step.node, namespace_of(step.node)
        if holder is not None and len(step.path) == 1 and isinstance(step.path[0], ast.expr):
            found.append(modules.get(holder) or (modules.get(made) if made is not None else None))
        elif isinstance(made, ast.Call) and _called(made) == "getattr" and len(made.args) in (2, 3):
            found.append(None if isinstance(made.args[1], ast.Constant) else modules.get(made.args[0]))
        else:
            return None
    known = [hit for hit in found if hit is not None]
    return min(known, key=lambda hit: hit.match.start) if len(known) == len(found) else None


def _tried(file: FileContext) -> set[int]:
    """The ids of calls that a `try` has in both forms, with `weights` and for releases without it."""
    found: set[int] = set()
    for node in file.names.nodes(ast.Try):
        sides = [node.body, [statement for handler in node.handlers for statement in handler.body]]
        calls: list[dict[str, list[ast.Call]]] = []
        for side in sides:
            by_function: dict[str, list[ast.Call]] = {}
            for call in (inner for statement in side for inner in walk(statement)):
                if isinstance(call, ast.Call):
                    by_function.setdefault(ast.dump(call.func), []).append(call)
            calls.append(by_function)
        for function in calls[0].keys() & calls[1].keys():
            both = [call for side in calls for call in side[function]]
            if len({any(keyword.arg in _NEW for keyword in call.keywords) for call in both}) == 2:
                found.update(map(id, both))
    return found


def _called(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) and not call.keywords else ""


def _flags(call: ast.Call) -> dict[ast.keyword | ast.expr, str]:
    """The arguments that give a flag, by name or as a literal in the first place, and what they are to be."""
    named = {keyword.arg for keyword in call.keywords}
    found = {}
    for old, new, position in (
        ("pretrained", "weights", 0),
        ("pretrained_backbone", "weights_backbone", None),
    ):
        given = flag_argument(call, old, position)
        if given is not None and new not in named:
            found[given] = new
    return found


def _is_off(argument: ast.keyword | ast.expr) -> bool:
    """Whether a flag is a literal that asks for no weights."""
    flag = argument.value if isinstance(argument, ast.keyword) else argument
    return isinstance(flag, ast.Constant) and not flag.value


def _fix(
    flags: dict[ast.keyword | ast.expr, str], call: ast.Call, hit: RuleMatch, file: FileContext
) -> Fix | None:
    rule = hit.rule
    module = hit.name.removesuffix(".__dict__").removeprefix("torchvision.models").removeprefix(".")
    one_file = bool(module) and module not in _FIRST_OF
    positional = any(not isinstance(argument, ast.keyword) for argument in flags)
    if positional and len(call.args) > 1:
        return None
    edits: list[Edit] = []
    for argument, new in flags.items():
        weights = _FIRST_OF.get(module, _FIRST) if new == "weights" else _FIRST
        made = argument_edits(argument, new, weights, file.source, call)
        if made is None:
            return None
        edits += made
    case = rule.cases[0]
    if hit.use.via is Via.SELF:
        case = replace(case, reason="the attribute may be something else")
    elif one_file or all(map(_is_off, flags)):
        case = replace(case, applicability=Applicability.SAFE, reason=None)
    elif module == "quantization":
        case = replace(case, reason=_OTHERS)
    level, reason = applicability(case, rule, file.versions)
    return file.fixes.fix(rule, "Pass `weights`", level, reason, edits, requires={"torchvision 0.13"})
