"""TM053: `loss.data[0]` of a tensor without dimensions, which raises; `loss.item()` is what was meant.

Images, rows and the data of other objects are indexed like this as well. So the tensor must be known to hold
one number: by how it is made, or since `backward()` is called on it, which only such tensors allow. What only
looks like that, a loss by its name or by that of the function that gives it, gets an unsafe fix.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods._findings import finding_at, fix_by
from torchmigrate.codemods._loss_names import Likely
from torchmigrate.fixes import FixPlanner
from torchmigrate.hits import Hit
from torchmigrate.model import Applicability, Edit, Finding
from torchmigrate.names.model import Kind, Scope
from torchmigrate.places import Surroundings
from torchmigrate.source import Source
from torchmigrate.trees import children

TITLE = "Replace with `.item()`"
REASON = "only its name says that it holds one number; with more, `item()` raises"
SCREEN = re.compile(r"data\s*\[\s*0\s*\]")
_REDUCTIONS = frozenset("sum mean prod norm max min std var".split())
_LOSSES = re.compile(r"torch\.nn\.functional\.\w*(?:loss|entropy\w*|kl_div|l1_loss)\Z")


def find(rule: Rule, hits: Sequence[Hit], planner: FixPlanner) -> Iterator[Finding]:
    """A finding for every `x.data[0]` where x holds one number."""
    if not SCREEN.search(planner.source.text):
        return
    likely = Likely(planner)
    scopes = {id(scope.node): scope for scope in planner.names.scopes}
    around = Surroundings(planner.names)
    stack: list[tuple[ast.AST, Scope]] = [(planner.names.tree, planner.names.module)]
    while stack:
        node, scope = stack.pop()
        if isinstance(node, ast.JoinedStr):
            inside = list(_in_text(node, planner.source))
        else:
            scope = scopes.get(id(node), scope)
            stack += [(child, scope) for child in reversed(children(node))]
            if not isinstance(node, ast.Subscript) or not _reads_first(node):
                continue
            inside = [(node, planner.source.span(node), planner.source.span(_tensor(node))[1])]
        for found, span, end in inside:
            tensor = _tensor(found)
            sure = _is_scalar(tensor, scope, around) or _is_differentiated(tensor, scope)
            if not sure and not likely.holds_one_number(found, tensor, scope):
                continue
            last = span[1]
            fix = None
            if re.fullmatch(r"\s*\)*\s*\.\s*data\s*\[\s*0\s*\]", planner.source.text[end:last]):
                dot = planner.source.text.index(".", end)
                edit = Edit(dot, last, ".item()")
                fix = fix_by(rule, planner, TITLE, edit)
                if not sure:
                    fix = planner.fix(rule, TITLE, Applicability.UNSAFE, REASON, (edit,))
            yield finding_at(rule, planner, span, symbol="torch.Tensor.data", fix=fix)


def _tensor(node: ast.Subscript) -> ast.expr:
    """The x of `x.data[0]`."""
    assert isinstance(node.value, ast.Attribute), "that is what was asked for"
    return node.value.value


def _in_text(node: ast.JoinedStr, source: Source) -> Iterator[tuple[ast.Subscript, tuple[int, int], int]]:
    """The values of an f-string that are `x.data[0]`, with where they and their x end, if that is plain.

    Where things are in there is known since Python 3.12 only, so they are looked for in the text.
    """
    start, stop = source.span(node)
    for part in node.values:
        value = part.value if isinstance(part, ast.FormattedValue) else None
        if not isinstance(value, ast.Subscript) or not _reads_first(value):
            continue
        code = ast.unparse(value)
        begin = source.text.find("{" + code, start, stop) + 1
        if begin and source.text.count("{" + code, start, stop) == 1:
            yield value, (begin, begin + len(code)), begin + len(ast.unparse(_tensor(value)))


def _reads_first(node: ast.Subscript) -> bool:
    return (
        isinstance(node.ctx, ast.Load)
        and isinstance(node.value, ast.Attribute)
        and node.value.attr == "data"
        and isinstance(node.slice, ast.Constant)
        and type(node.slice.value) is int
        and node.slice.value == 0
    )


def _is_scalar(node: ast.expr, scope: Scope, around: Surroundings) -> bool:
    """Whether an expression surely is a tensor without dimensions."""
    if isinstance(node, ast.Name):
        bindings = scope.bindings.get(node.id, [])
        return bool(bindings) and all(
            binding.kind is Kind.ASSIGNMENT
            and isinstance(binding.statement, ast.Assign)
            and binding.node in binding.statement.targets
            and isinstance(binding.statement.value, ast.Call)
            and _is_scalar(binding.statement.value, scope, around)
            for binding in bindings
        )
    if not isinstance(node, ast.Call):
        return False
    name = around.qualified(node.func) or ""
    owner, _, last = name.rpartition(".")
    if owner == "torch.Tensor":
        return last in _REDUCTIONS and not node.args and not node.keywords
    if owner == "torch":
        plain = len(node.args) == 1 and not isinstance(node.args[0], ast.Starred)
        return last in _REDUCTIONS and plain and not node.keywords
    if not _LOSSES.match(name):
        return False
    return not any(item.arg in (None, "reduction", "reduce") for item in node.keywords)


def _is_differentiated(node: ast.expr, scope: Scope) -> bool:
    """Whether `node.backward()`, without a gradient, is called in the same function."""
    if not isinstance(node, ast.Name | ast.Attribute):
        return False
    wanted = ast.dump(node)
    for inner in ast.walk(scope.node):
        if (
            isinstance(inner, ast.Call)
            and isinstance(inner.func, ast.Attribute)
            and inner.func.attr == "backward"
            and not inner.args
            and all(
                item.arg in ("retain_graph", "create_graph", "retain_variables") for item in inner.keywords
            )
            and ast.dump(inner.func.value) == wanted
        ):
            return True
    return False
