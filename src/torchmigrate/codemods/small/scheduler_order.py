"""TM454: a scheduler that steps before its optimizer does.

Only where both steps are seen: in the body of one loop or function, of a scheduler that the file makes once,
for an optimizer of the same name. What is called may step as well, so that a missing step says nothing.
"""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.findings import Edit, Finding, Fix
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.patterns import pattern
from torchmigrate.rewrite.calls import CallEditor
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.lines import move_to_end
from torchmigrate.rewrite.nodes import has_comment
from torchmigrate.semantics.model import Role
from torchmigrate.source.trees import children, walk
from torchmigrate.versions.range import applicability

_MADE = pattern(r"\w*(?:LR|Scheduler|WarmRestarts)\Z")
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_BODIES = (*_LOOPS, *_FUNCTIONS)


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every step that comes first in its loop or function."""
    tree = file.names.tree
    optimizers = _optimizers(tree)
    steps: _Steps | None = None
    blocks = {id(node.body): node for node in walk(tree) if isinstance(node, _BODIES)}
    for hit in hits:
        statement, call = hit.use.statement, hit.use.call
        owner = blocks.get(id(hit.use.block))
        if hit.use.role is not Role.CALL or owner is None or call is None or not file.fixes.may_fix(hit):
            continue
        if not isinstance(statement, ast.Expr) or statement.value is not call:
            continue
        if not isinstance(call.func, ast.Attribute):
            continue
        if (call.args or call.keywords) and not (counted_from(call, owner) or 0) > 0:
            continue  # counted from 0, the first value of the schedule belongs to the first epoch
        optimizer = optimizers.get(ast.unparse(call.func.value))
        if optimizer is None:
            continue
        steps = steps if steps is not None else _steps(tree)
        if _comes_first(hit, owner, steps.get(optimizer, [])):
            yield file.fixes.finding(hit, _moved(rule, hit, owner, file))


def _optimizers(tree: ast.Module) -> dict[str, str]:
    """Of every scheduler that the file makes in one place: its optimizer, as it is written there."""
    found: dict[str, set[str | None]] = {}
    for node in walk(tree):
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            if isinstance(target, (ast.Name, ast.Attribute)):
                found.setdefault(ast.unparse(target), set()).add(_optimizer_of(node.value))
    return {
        name: optimizer
        for name, made in found.items()
        if len(made) == 1
        for optimizer in made
        if optimizer is not None
    }


def _optimizer_of(value: ast.expr) -> str | None:
    """`optimizer` of `StepLR(optimizer, 3)`."""
    if not isinstance(value, ast.Call) or not isinstance(value.func, (ast.Name, ast.Attribute)):
        return None
    name = value.func.id if isinstance(value.func, ast.Name) else value.func.attr
    if _MADE.match(name) is None:
        return None
    given = [keyword.value for keyword in value.keywords if keyword.arg == "optimizer"]
    first = value.args[0] if value.args else given[0] if given else None
    return ast.unparse(first) if isinstance(first, (ast.Name, ast.Attribute)) else None


_Steps = dict[str, list[tuple[int, int]]]  # where each optimizer steps, in order


def _steps(tree: ast.Module) -> _Steps:
    """The places of `optimizer.step(...)`, and of `scaler.step(optimizer)`."""
    found: _Steps = {}
    for call in walk(tree):
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            continue
        if call.func.attr == "step":
            for name in {*map(ast.unparse, [call.func.value, *call.args])}:
                found.setdefault(name, []).append((call.lineno, call.col_offset))
    return {name: sorted(places) for name, places in found.items()}


def _comes_first(hit: RuleMatch, owner: ast.stmt, steps: list[tuple[int, int]]) -> bool:
    """Whether the optimizer, which steps there, steps later in the block, and nowhere before."""
    statement = hit.use.statement
    begin = bisect_left(steps, _end(statement))
    later = bisect_left(steps, _end(hit.use.block[-1])) - begin
    if not later:
        return False
    if isinstance(owner, _FUNCTIONS):  # it may be called after any other function
        return len(steps) == later
    scope = hit.use.scope.node
    top = (getattr(scope, "lineno", 0), getattr(scope, "col_offset", 0))
    return steps[bisect_left(steps, top)] > (statement.lineno, statement.col_offset)


def _end(statement: ast.stmt) -> tuple[int, int]:
    return statement.end_lineno or statement.lineno, statement.end_col_offset or 0


def _moved(rule: Rule, hit: RuleMatch, owner: ast.stmt, file: FileContext) -> Fix | None:
    """The step at the end of the loop, if every turn gets there."""
    call = hit.use.call
    if call is None or call.args or call.keywords:
        return None
    edits = at_end(hit, owner, file)
    if edits is None:
        return None
    level, reason = applicability(rule.cases[0], rule, file.versions)
    return file.fixes.fix(rule, "Step the scheduler at the end of the loop", level, reason, edits)


def loops_by_block(tree: ast.Module) -> dict[int, ast.stmt]:
    """Loops by the id() of their body."""
    return {id(node.body): node for node in walk(tree) if isinstance(node, _LOOPS)}


def counted_from(call: ast.Call, loop: ast.stmt | None) -> int | None:
    """What `step(epoch)` in a loop gets first, where each turn gives one more; None if that is not plain.

    `epoch` is the variable of `for epoch in range(...)`, with a number added or not.
    """
    given = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg == "epoch")]
    if not isinstance(loop, ast.For) or not isinstance(loop.target, ast.Name) or len(given) != 1:
        return None
    turns = loop.iter
    if not isinstance(turns, ast.Call) or turns.keywords or not 0 < len(turns.args) < 3:
        return None
    if not (isinstance(turns.func, ast.Name) and turns.func.id == "range"):
        return None
    start = _number(turns.args[0]) if len(turns.args) == 2 else 0
    more: int | None = 0
    node: ast.expr = given[0]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        more, node = _number(node.right), node.left
    if not isinstance(node, ast.Name) or node.id != loop.target.id or start is None or more is None:
        return None
    name = loop.target.id
    rebound = any(
        isinstance(inner, ast.Name) and inner.id == name and not isinstance(inner.ctx, ast.Load)
        for statement in loop.body
        for inner in walk(statement)
    )
    return None if rebound else start + more


def _number(node: ast.expr) -> int | None:
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None


def _leaves(statement: ast.stmt) -> bool:
    """Whether a statement of a loop may end its turn; those of loops inside end turns of their own."""
    todo: list[tuple[ast.AST, bool]] = [(statement, False)]
    while todo:
        node, inside = todo.pop()
        if isinstance(node, (ast.Return, ast.Yield, ast.YieldFrom)):
            return True
        if isinstance(node, (ast.Continue, ast.Break)) and not inside:
            return True
        own = set(map(id, node.body)) if isinstance(node, _LOOPS) else set()
        todo += [(child, inside or id(child) in own) for child in children(node)]
    return False


def at_end(hit: RuleMatch, owner: ast.stmt, file: FileContext) -> tuple[Edit, Edit] | None:
    """Edits that move a step, without its arguments, to the end of its loop, if every turn gets there."""
    source, statement, call = file.source, hit.use.statement, hit.use.call
    if not isinstance(owner, _LOOPS) or call is None:
        return None
    if not isinstance(statement, ast.Expr) or statement.value is not call:
        return None
    if any(map(_leaves, hit.use.block)):
        return None
    editor = CallEditor(source, call)
    editor.keep([])
    changes = editor.edits() if call.args or call.keywords else ()
    if changes is None or (changes and has_comment(source, call)):
        return None
    return move_to_end(source, hit.use.block, statement, changes)
