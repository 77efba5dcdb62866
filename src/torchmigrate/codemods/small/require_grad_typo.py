"""TM995: `parameter.require_grad = False`, which sets an attribute that nothing reads."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at, fix_by
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.nodes import renamed
from torchmigrate.source.trees import walk

WRONG, RIGHT = "require_grad", "requires_grad"


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every assignment to the attribute, unless the file knows it as one of its own."""
    stored: list[ast.Attribute] = []
    named: list[ast.Constant] = []  # in setattr
    strings = 0
    for node in walk(file.names.tree):
        if isinstance(node, ast.Attribute) and node.attr == WRONG:
            if not isinstance(node.ctx, ast.Store):
                return  # it is read, so that it means something here
            stored.append(node)
        elif isinstance(node, ast.Constant) and node.value == WRONG:
            strings += 1
        elif isinstance(node, ast.Call) and _sets_attribute(node):
            name = node.args[1]
            if isinstance(name, ast.Constant) and name.value == WRONG:
                named.append(name)
        elif isinstance(node, ast.ClassDef) and any(map(_defines, node.body)):
            return
    if strings > len(named):
        return  # read by name: getattr, a table of attributes
    for attribute in stored:
        edit = renamed(file.source, attribute, WRONG, RIGHT)
        fix = fix_by(rule, file, f"Replace with `{RIGHT}`", edit) if edit is not None else None
        yield finding_at(rule, file, file.source.span(attribute), symbol=f"torch.Tensor.{RIGHT}", fix=fix)
    for constant in named:
        span = file.source.span(constant)
        yield finding_at(rule, file, span, symbol=f"torch.Tensor.{RIGHT}", fix=None)


def _sets_attribute(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id == "setattr" and len(call.args) == 3


def _defines(statement: ast.stmt) -> bool:
    """Whether a statement of a class gives it an attribute or property of this name."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return statement.name == WRONG
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    return any(isinstance(target, ast.Name) and target.id == WRONG for target in targets)
