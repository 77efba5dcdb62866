"""Variables that hold what `torch.compile` makes of a model, and where they are bound."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from msgspec import Struct

from torchmigrate.codemods.compile.kinds import TAKEN_OVER, below
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.semantics.model import Role, Scope, SemanticModel

COMPILE = "torch.compile"
_MOST = 200  # bindings of a variable that are looked through for every use
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


def last_value(name: ast.Name, before: ast.stmt, scope: Scope) -> ast.expr | None:
    """What the last assignment in the same scope, above a statement, gives a variable; None: not known."""
    bound = scope.bindings.get(name.id, ())
    if len(bound) > _MOST:
        return None
    found: list[ast.stmt] = [
        binding.statement
        for binding in bound
        if binding.statement is not None and binding.statement.lineno < before.lineno
    ]
    last = max(found, key=lambda statement: statement.lineno, default=None)
    if not isinstance(last, ast.Assign) or len(last.targets) != 1:
        return None
    return last.value if isinstance(last.targets[0], ast.Name) else None


def uses_by_node(names: SemanticModel) -> dict[int, str]:
    """The library names that expressions surely are, by id()."""
    return {id(use.node): use.candidates[0] for use in names.uses if use.sure}
