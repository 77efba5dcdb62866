"""TM438: what `zero_grad()` left is used as a tensor, or is expected to make `step()` raise an exception.

The rule reports uses that follow in the same block, before anything that is called could compute gradients
again, and only of what surely was zeroed: `model.zero_grad()` leaves the gradient of its input alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at, fix_by
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.code import code
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.nodes import has_comment, replaced
from torchmigrate.source.trees import walk

_GRAD = "grad"
# Calls that compute no gradients.
_HARMLESS = frozenset(
    """
    parameters named_parameters print len list zip all any isinstance sum abs max min norm item float tolist
    numpy clone detach cpu equal allclose assertEqual assertTrue assertFalse assert_close assert_allclose
    """.split()
)
_PARAMETERS = frozenset(["parameters", "named_parameters", "param_groups"])
_RAISES = frozenset(["raises", "assertRaises", "assertRaisesRegex"])
_MOST_BEFORE = 16  # statements in which a gradient may be set
_OTHER_ERRORS = frozenset(["TypeError", "NotImplementedError"])  # of a step without a closure
_COMPOUND = (ast.If, ast.While, ast.Try, ast.With, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for the first use of a gradient after each call."""
    if not any((binding.target or "").partition(".")[0] == "torch" for binding in file.names.imports):
        return
    for call in file.names.nodes(ast.Call):
        if not isinstance(call.func, ast.Attribute) or call.func.attr != "zero_grad":
            continue
        if call.args or call.keywords:
            continue
        statement = file.names.parents.get(call)
        outer = file.names.parents.get(statement) if isinstance(statement, ast.Expr) else None
        if not isinstance(statement, ast.Expr) or outer is None:
            continue
        before, after = _around(statement, outer)
        node = _expected(call.func.value, before, after) or _used(after)
        if node is not None and (node.attr == "step" or _was_zeroed(node.value, call.func.value, file)):
            new = code("$x.zero_grad(set_to_none=False)", x=call.func.value)
            fix = None
            if not has_comment(file.source, call):
                fix = fix_by(rule, file, "Pass `set_to_none=False`", replaced(file.source, call, new))
            span = file.source.span(node)
            yield finding_at(rule, file, span, symbol="torch.optim.Optimizer.zero_grad", fix=fix)


def _around(statement: ast.stmt, outer: ast.AST) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """The statements before and after one in its block."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(outer, name, None)
        if isinstance(block, list) and statement in block:
            return block[: block.index(statement)], block[block.index(statement) + 1 :]
    return [], []


def _expected(owner: ast.expr, before: list[ast.stmt], after: list[ast.stmt]) -> ast.Attribute | None:
    """The `optimizer.step` of a test that expects an exception for gradients that were set before."""
    block = after[0] if after else None
    if not (isinstance(block, ast.With) and len(block.items) == 1 and len(block.body) == 1):
        return None
    raises, step = block.items[0].context_expr, block.body[0]
    if not (isinstance(raises, ast.Call) and isinstance(step, ast.Expr) and isinstance(step.value, ast.Call)):
        return None
    name, called = getattr(raises.func, "attr", getattr(raises.func, "id", "")), step.value.func
    if name not in _RAISES or not raises.args or ast.unparse(raises.args[0]) in _OTHER_ERRORS:
        return None
    if (
        not isinstance(called, ast.Attribute)
        or called.attr != "step"
        or step.value.args
        or step.value.keywords
    ):
        return None
    given = any(
        isinstance(node, ast.Attribute) and node.attr == _GRAD and isinstance(node.ctx, ast.Store)
        for item in before[-_MOST_BEFORE:]
        for node in walk(item)
    )
    return called if given and ast.dump(called.value) == ast.dump(owner) else None


def _was_zeroed(gradient: ast.expr, owner: ast.expr, file: FileContext) -> bool:
    """Whether a `.grad` surely belongs to a parameter of the object whose `zero_grad()` was called."""
    held = gradient.value if isinstance(gradient, ast.Attribute) else gradient
    if isinstance(held, ast.Name):
        return _is_parameter(held.id, gradient, file) or _is_given(held.id, owner, file)
    text, whole = ast.unparse(held), ast.unparse(owner)
    if text.startswith((f"{whole}.", f"{whole}[")):  # `model.weight`, `model[0].weight`
        return True
    # The weights of a model whose optimizer's `zero_grad()` was called.
    return text.endswith((".weight", ".bias")) and "optim" in whole.lower()


def _is_parameter(name: str, inside: ast.AST, file: FileContext) -> bool:
    """Whether a name goes over parameters in a loop around a place."""
    node: ast.AST | None = inside
    while (node := file.names.parents.get(node) if node is not None else None) is not None:
        if isinstance(node, ast.For):
            loops: list[ast.For | ast.comprehension] = [node]
        else:
            loops = list(getattr(node, "generators", ()))
        for loop in loops:
            if any(isinstance(target, ast.Name) and target.id == name for target in walk(loop.target)):
                return any(
                    isinstance(part, ast.Attribute) and part.attr in _PARAMETERS for part in walk(loop.iter)
                )
    return False


def _is_given(name: str, owner: ast.expr, file: FileContext) -> bool:
    """Whether an optimizer is made of what a name holds: `optimizer = SGD([x], lr=1)`."""
    text = ast.unparse(owner)
    for node in file.names.nodes(ast.Assign):
        if not isinstance(node.value, ast.Call) or text not in map(ast.unparse, node.targets):
            continue
        given = node.value.args[0] if node.value.args else None
        if isinstance(given, (ast.List, ast.Tuple)) and any(
            isinstance(item, ast.Name) and item.id == name for item in given.elts
        ):
            return True
    return False


def _used(statements: list[ast.stmt]) -> ast.Attribute | None:
    """The first attribute or method of a `.grad`; None where something may have made a new one, or asks."""
    for statement in statements:
        if isinstance(statement, _COMPOUND):
            return None
        nodes = walk(statement)
        if any(_may_compute(node) or _asks(node) for node in nodes):
            return None
        for node in nodes:
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Attribute)
                and node.value.attr == _GRAD
                and isinstance(node.value.ctx, ast.Load)
            ):
                return node
    return None


def _may_compute(node: ast.AST) -> bool:
    """Whether a call, or an assignment to `.grad`, may put a gradient there."""
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        of_gradient = isinstance(node.func, ast.Attribute) and _GRAD in ast.unparse(node.func.value).split(
            "."
        )
        return name not in _HARMLESS and not of_gradient
    return isinstance(node, ast.Attribute) and node.attr == _GRAD and not isinstance(node.ctx, ast.Load)


def _asks(node: ast.AST) -> bool:
    """Whether something is compared with None, or chosen."""
    return isinstance(node, (ast.IfExp, ast.If, ast.BoolOp)) or (
        isinstance(node, ast.Compare)
        and any(isinstance(side, ast.Constant) and side.value is None for side in node.comparators)
    )
