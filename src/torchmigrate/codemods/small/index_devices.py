"""TM090: a tensor on the CPU that is indexed by a tensor on a CUDA device."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at, fix_by
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.code import code
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.nodes import replaced_around
from torchmigrate.semantics.facts.devices import CPU, CUDA, KEPT
from torchmigrate.semantics.facts.dtypes import TENSOR, ValueFacts
from torchmigrate.semantics.flow.values import ValueFlow

_CUDA, _ON_CPU = frozenset([CUDA]), frozenset([CPU, TENSOR])
_MOST = 32  # operations between an index and where it is made
_PAIRS = frozenset(["topk", "sort"])
_TUPLES = frozenset("chunk split unbind topk sort nonzero unique max min".split())


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every index on another device."""
    kinds = file.once(ValueFacts, lambda: ValueFacts(file.names, file.around))
    for node, _, fstring in file.names.operations:
        if not isinstance(node, ast.Subscript) or fstring is not None:
            continue
        indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for index in indices:
            if isinstance(index, (ast.Slice, ast.Constant)) or CUDA not in kinds.of(index, _CUDA):
                continue
            if not kinds.of(node.value, _ON_CPU) >= _ON_CPU or file.runs_elsewhere(node):
                continue
            if _may_be_tuple(node.value, file.flow) or not _has_elements(index, file.flow):
                continue
            fix = None
            if kinds.devices.is_only(index, CUDA):
                edits = replaced_around(file.source, index, code("$index.cpu()", index=index), index)
                fix = fix_by(rule, file, "Add `.cpu()`", *edits)
            span = file.source.span(index)
            yield finding_at(rule, file, span, symbol="torch.Tensor.__getitem__", fix=fix)


def _may_be_tuple(node: ast.expr, flow: ValueFlow) -> bool:
    """Whether an expression may be a tuple of tensors."""
    return any(
        isinstance(step.node, ast.Call) and not step.path and _called(step.node) in _TUPLES
        for step in flow.origins(node)
    )


def _has_elements(index: ast.expr, flow: ValueFlow) -> bool:
    """Whether an index surely has dimensions: a tensor without any works as a number of Python."""
    todo: list[ast.AST] = [index]
    for node in todo:
        for step in flow.origins(node):
            made, inner = step.node, None
            if made is None:
                continue  # of another call
            if step.path and not (
                isinstance(made, ast.Call) and _called(made) in _PAIRS and len(step.path) == 1
            ):
                return False
            if isinstance(made, (ast.Compare, ast.BinOp)):
                inner = made.left if not isinstance(made.left, ast.Constant) else None
            elif isinstance(made, ast.UnaryOp):
                inner = made.operand
            elif isinstance(made, ast.Call):
                name, given = _called(made), [*made.args, *made.keywords]
                if name == "tensor" and made.args and not isinstance(made.args[0], (ast.List, ast.ListComp)):
                    return False
                if name in ("sum", "max", "min", "prod") and not given:
                    return False
                is_method = (
                    isinstance(made.func, ast.Attribute)
                    and flow.names.qualified(made.func) != f"torch.{name}"
                )
                if is_method and isinstance(made.func, ast.Attribute) and name in (*KEPT, "cuda", "to"):
                    inner = made.func.value
            elif isinstance(made, ast.Subscript):
                return False
            if inner is not None and inner not in todo:
                todo.append(inner)
        if len(todo) > _MOST:
            return False
    return True


def _called(call: ast.Call) -> str:
    return str(getattr(call.func, "attr", getattr(call.func, "id", "")))
