"""What `torch.compile` makes of a model: where it is assigned, and which expressions are it."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator, Sequence

from msgspec import Struct

from torchmigrate.codemods.compile.kinds import TAKEN_OVER, below
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.semantics.flow.domain import UNKNOWN, Domain, Sentinel, Values
from torchmigrate.semantics.flow.values import ValueFlow
from torchmigrate.semantics.model import Role, SemanticModel

COMPILE = "torch.compile"
_MOST_WRAPPERS = 2
_SAME = frozenset("to cuda cpu train eval float half double bfloat16 requires_grad_ apply".split())
DATA_PARALLEL = frozenset(["torch.nn.DataParallel", "torch.nn.parallel.DataParallel"])
DISTRIBUTED = frozenset(["torch.nn.parallel.DistributedDataParallel"])
WRAPPERS = DATA_PARALLEL | DISTRIBUTED


class Compiled(Struct, frozen=True, eq=False):
    """`model = torch.compile(model, ...)`: the target is a variable, or an attribute of one."""

    hit: RuleMatch
    statement: ast.Assign
    call: ast.Call
    target: ast.Name | ast.Attribute
    model: ast.expr


def is_taken_over(names: SemanticModel) -> bool:
    """Whether a file uses a library whose models are not compiled here: Lightning, accelerate, torchopt."""
    return any(
        below(name, TAKEN_OVER)
        for binding in names.imports
        for name in (binding.target or "", binding.module or "")
    )


def compiled_models(hits: Sequence[RuleMatch]) -> Iterator[Compiled]:
    """The assignments of what `torch.compile` gives."""
    for hit in hits:
        call, statement = hit.use.call, hit.use.statement
        if hit.name != COMPILE or hit.use.role is not Role.CALL or not hit.use.sure or call is None:
            continue
        if not isinstance(statement, ast.Assign) or statement.value is not call:
            continue
        target, model = statement.targets[0], compiled_argument(call)
        if len(statement.targets) == 1 and isinstance(target, (ast.Name, ast.Attribute)) and model:
            yield Compiled(hit, statement, call, target, model)


def compiled_argument(call: ast.Call) -> ast.expr | None:
    """The model of `torch.compile(model, ...)`, if it is the first that is given."""
    if call.args:
        return None if len(call.args) > 1 or isinstance(call.args[0], ast.Starred) else call.args[0]
    first = call.keywords[0] if call.keywords else None
    return first.value if first is not None and first.arg == "model" else None


class CompiledModels(Domain[tuple[ast.Call, int]]):
    """Which expressions are compiled models: the call that compiles one, and how many wrappers are around it.

    Args:
        calls: the calls of `torch.compile`.
    """

    def __init__(self, flow: ValueFlow, calls: Container[ast.AST]) -> None:
        super().__init__(flow)
        self._calls = calls

    def start(self, node: ast.AST) -> tuple[ast.Call, int] | None:
        return (node, 0) if isinstance(node, ast.Call) and node in self._calls else None

    def through(self, node: ast.AST) -> Values[tuple[ast.Call, int]]:
        if isinstance(node, ast.Attribute) and node.attr == "module":
            return self._wrapped(node.value, -1)
        if isinstance(node, ast.Call):
            if self.flow.names.qualified(node.func) in WRAPPERS and node.args:
                return self._wrapped(node.args[0], 1)
            if isinstance(node.func, ast.Attribute) and node.func.attr in _SAME:
                return self.of(node.func.value)
        return frozenset([UNKNOWN])

    def _wrapped(self, model: ast.expr, more: int) -> Values[tuple[ast.Call, int]]:
        found = [value for value in self.of(model) if not isinstance(value, Sentinel)]
        return frozenset((call, depth + more) for call, depth in found if 0 <= depth + more <= _MOST_WRAPPERS)


def makers(node: ast.expr | None, flow: ValueFlow) -> set[str | None]:
    """The library functions that may have made a value, in the same function before it."""
    if node is None:
        return set()
    start = node.lineno, node.col_offset
    calls = [step.node for step in flow.origins(node) if isinstance(step.node, ast.Call)]
    home = flow.index.home_of(node)
    return {
        flow.names.qualified(call.func)
        for call in calls
        if call is node
        or ((call.end_lineno or 0, call.end_col_offset or 0) <= start and flow.index.home_of(call) is home)
    }
