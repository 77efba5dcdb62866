"""TM903: `torch.compile` around a parallel wrapper, and `DataParallel` around a compiled model."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.compile.compiled import (
    COMPILE,
    DATA_PARALLEL,
    WRAPPERS,
    compiled_argument,
    is_taken_over,
    last_value,
    uses_by_node,
)
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext
from torchmigrate.semantics.model import Role, Scope
from torchmigrate.source.trees import walk

_COPIES = (
    "`DataParallel` copies the module in every call, which compiled code does not support: use "
    "`DistributedDataParallel`, with one process per device"
)
_OUTSIDE = (
    "call `model.compile()` before `DistributedDataParallel(model)`; compiling the wrapper also traces its "
    "own code, which only pays off if exchanging gradients while computing others gains more: measure both"
)


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding at every call that wraps in the wrong order; nothing is rewritten."""
    names = file.names
    if is_taken_over(names):
        return
    known = uses_by_node(names)
    compiles: dict[int, dict[str, list[int]]] = {}
    for hit in hits:
        call, use = hit.use.call, hit.use
        if use.role is not Role.CALL or not use.sure or call is None:
            continue
        if hit.name == COMPILE:
            inner = compiled_argument(call)
            wrapper = _called(inner, use.statement, use.scope, known)
            if wrapper in WRAPPERS:
                text = _COPIES if wrapper in DATA_PARALLEL else _OUTSIDE
                yield replace(file.fixes.finding(hit, None), help=text)
        elif hit.name in DATA_PARALLEL and call.args:
            model = call.args[0]
            inside = _called(model, use.statement, use.scope, known) == COMPILE
            if inside or _in_place(model, use.statement, use.scope, compiles):
                yield replace(file.fixes.finding(hit, None), help=_COPIES)


def _called(node: ast.expr | None, statement: ast.stmt, scope: Scope, known: dict[int, str]) -> str | None:
    """The library function that made a value: in the expression itself, or where its variable is bound."""
    if isinstance(node, ast.Name):
        node = last_value(node, statement, scope)
    return known.get(id(node.func)) if isinstance(node, ast.Call) else None


def _in_place(
    node: ast.expr, statement: ast.stmt, scope: Scope, compiles: dict[int, dict[str, list[int]]]
) -> bool:
    """Whether `model.compile()` stands above, for the same value of the variable.

    compiles: the lines of such calls, by id() of the scope's node and variable; filled on demand.
    """
    if not isinstance(node, ast.Name):
        return False
    by_name = compiles.get(id(scope.node))
    if by_name is None:
        by_name = compiles[id(scope.node)] = {}
        for inner in walk(scope.node):
            if (
                isinstance(inner, ast.Expr)
                and isinstance(inner.value, ast.Call)
                and isinstance(inner.value.func, ast.Attribute)
                and inner.value.func.attr == "compile"
                and isinstance(inner.value.func.value, ast.Name)
                and not any(isinstance(item, ast.Constant) for item in inner.value.args)
                and not {"optimizer", "loss"} & {item.arg for item in inner.value.keywords}
            ):
                by_name.setdefault(inner.value.func.value.id, []).append(inner.lineno)
    lines = [line for line in by_name.get(node.id, ()) if line < statement.lineno]
    if not lines:
        return False
    bound = [
        binding.statement.lineno
        for binding in scope.bindings.get(node.id, ())
        if binding.statement is not None and binding.statement.lineno < statement.lineno
    ]
    return max(bound, default=0) < max(lines)
