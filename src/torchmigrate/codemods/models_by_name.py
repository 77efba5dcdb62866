"""TM799: `getattr(models, name)(pretrained=True)`, where the name of the model is known at run time only."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods._findings import finding_at
from torchmigrate.fixes import FixPlanner
from torchmigrate.hits import Hit
from torchmigrate.model import Applicability, Edit, Finding, Fix
from torchmigrate.quotes import requoted
from torchmigrate.versions.range import applicability

NEEDS_HITS = True
_OLD = "pretrained"


def find(rule: Rule, hits: Sequence[Hit], planner: FixPlanner) -> Iterator[Finding]:
    """A finding for every call that gives a model of unknown name the old argument."""
    modules = {id(hit.use.node): hit for hit in hits}
    if not modules:
        return
    builders = _Builders(modules, planner)
    for node in ast.walk(planner.names.tree):
        if not isinstance(node, ast.Call):
            continue
        hit = builders.module_of(node.func)
        given = _pretrained(node)
        if hit is None or given is None:
            continue
        span = planner.source.span(given)
        fix = _fix(given, node, rule, planner) if hit.use.sure else None
        yield finding_at(rule, planner, span, symbol=hit.name.removesuffix(".__dict__"), fix=fix)


class _Builders:
    """Which expressions are a model's builder that is looked up by name."""

    def __init__(self, modules: dict[int, Hit], planner: FixPlanner) -> None:
        self._modules = modules
        self._variables: dict[str, list[ast.expr | None]] = {}
        self._names: dict[str, Hit] = {}
        for scope in planner.names.scopes:
            for name, bindings in scope.bindings.items():
                for binding in bindings:
                    statement = binding.statement
                    value = (
                        statement.value
                        if isinstance(statement, ast.Assign) and statement.targets == [binding.node]
                        else None
                    )
                    self._variables.setdefault(name, []).append(value)

    def module_of(self, node: ast.expr) -> Hit | None:
        """The use of the module in `getattr(models, name)`, or in what a variable is given."""
        if isinstance(node, ast.Name):
            values = self._variables.get(node.id, [])
            found = [self._looked_up(value) if value is not None else None for value in values]
            return found[0] if found and all(hit is not None for hit in found) else None
        return self._looked_up(node)

    def _looked_up(self, node: ast.expr) -> Hit | None:
        if isinstance(node, ast.Subscript):  # `models.__dict__[name]`, `vars(models)[name]`
            if isinstance(node.slice, ast.Constant):
                return None
            inner = node.value
            if isinstance(inner, ast.Call) and _called(inner) == "vars" and len(inner.args) == 1:
                inner = inner.args[0]
            elif not (isinstance(inner, ast.Attribute) and inner.attr == "__dict__"):
                return None
            return self._modules.get(id(inner))
        if isinstance(node, ast.Call) and _called(node) == "getattr" and len(node.args) in (2, 3):
            return None if isinstance(node.args[1], ast.Constant) else self._modules.get(id(node.args[0]))
        return None


def _called(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) and not call.keywords else ""


def _pretrained(call: ast.Call) -> ast.keyword | ast.expr | None:
    """The argument: by its name, or a flag in the first place."""
    named = {keyword.arg: keyword for keyword in call.keywords}
    if "weights" in named:
        return None
    if _OLD in named:
        return named[_OLD]
    first = call.args[0] if call.args else None
    return first if isinstance(first, ast.Constant) and isinstance(first.value, bool) else None


def _fix(given: ast.keyword | ast.expr, call: ast.Call, rule: Rule, planner: FixPlanner) -> Fix | None:
    source = planner.source
    value = given.value if isinstance(given, ast.keyword) else given
    start, end = source.span(given)
    text = source.text[slice(*source.span(value))]
    level, reason = applicability(rule.cases[0], rule, planner.versions)
    if text == "True":
        new = '"DEFAULT"'
    elif text in ("False", "None"):
        new = "None"
        safe = rule.cases[0]._replace(applicability=Applicability.SAFE, reason=None)
        level, reason = applicability(safe, rule, planner.versions)
    elif isinstance(value, ast.Name | ast.Attribute | ast.Call | ast.Subscript | ast.UnaryOp | ast.Compare):
        new = f'"DEFAULT" if {text} else None'
    else:
        new = f'"DEFAULT" if ({text}) else None'
    if "\n" in text or (not isinstance(given, ast.keyword) and len(call.args) > 1):
        return None
    edit = Edit(start, end, requoted(f"weights={new}", text, source.text))
    return planner.fix(rule, "Pass `weights`", level, reason, (edit,), requires={"torchvision 0.13"})
