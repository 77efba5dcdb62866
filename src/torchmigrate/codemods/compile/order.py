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
    makers,
)
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext
from torchmigrate.semantics.model import Role

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
    if is_taken_over(file.names):
        return
    for hit in hits:
        call, use = hit.use.call, hit.use
        if use.role is not Role.CALL or not use.sure or call is None:
            continue
        if hit.name == COMPILE:
            wrappers = makers(compiled_argument(call), file.flow) & WRAPPERS
            if wrappers:
                text = _COPIES if wrappers & DATA_PARALLEL else _OUTSIDE
                yield replace(file.fixes.finding(hit, None), help=text)
        elif hit.name in DATA_PARALLEL and call.args:
            model = call.args[0]
            if COMPILE in makers(model, file.flow) or _in_place(model, use.statement, file):
                yield replace(file.fixes.finding(hit, None), help=_COPIES)


def _in_place(model: ast.expr, statement: ast.stmt, file: FileContext) -> bool:
    """Whether `model.compile()` stands above, for the same value of the variable."""
    index = file.flow.index
    for function in index.attributes("compile") if isinstance(model, ast.Name) else ():
        call, owner = file.names.parents[function], function.value
        if (
            isinstance(call, ast.Call)
            and isinstance(file.names.parents[call], ast.Expr)
            and ast.unparse(owner) == ast.unparse(model)
            and call.lineno < statement.lineno
            and not any(isinstance(item, ast.Constant) for item in call.args)
            and not {"optimizer", "loss"} & {item.arg for item in call.keywords}
        ):
            assert isinstance(owner, ast.Name), "it is written like the model"
            if index.is_kept(owner, statement):
                return True
    return False
