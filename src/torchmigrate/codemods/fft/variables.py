"""The variables of a function that computes with complex tensors: which need not be, which nothing reads."""

from __future__ import annotations

import ast
from collections import defaultdict

from torchmigrate.codemods.fft.complex import ComplexForm
from torchmigrate.codemods.fft.values import Values
from torchmigrate.semantics.flow.reaching import Definition, Reaching
from torchmigrate.source.trees import walk


def idle(form: ComplexForm, values: Values) -> set[Definition]:
    """Definitions of pairs that no transform has to do with: they stay real."""
    pairs = {item for item in values.reaching.every if values.of_definition(item) is not None}
    busy = form.demanded & pairs
    hard = {item for item in pairs if _touches(item, values, set())}
    return pairs - busy - hard


def _touches(definition: Definition, values: Values, seen: set[Definition]) -> bool:
    """Whether a pair comes from a transform."""
    if definition in seen or definition.value is None:
        return False
    seen.add(definition)
    for node in walk(definition.value):
        transform = values.transforms.get(id(node))
        if transform is not None and transform.gives_pairs:
            return True
        if isinstance(node, ast.Name) and any(
            _touches(item, values, seen) for item in values.reaching.of(node)
        ):
            return True
    return False


def unread(form: ComplexForm, found: Reaching) -> list[ast.stmt]:
    """Statements that only assign to parts which nothing reads after the rewriting."""
    needless = {id(node) for node in form.needless}
    candidates: dict[int, list[Definition]] = defaultdict(list)
    statements: dict[int, ast.stmt] = {}
    touched = {item for node in form.needless for item in found.of(node)}
    for item in found.every:
        if item.statement is not None:
            candidates[id(item.statement)].append(item)
            statements[id(item.statement)] = item.statement
    return [
        statements[key]
        for key, items in candidates.items()
        if touched & set(items)
        and isinstance(statements[key], ast.Assign)
        and not any(item.name in found.captured for item in items)
        and all(id(read) in needless for read in found.reads(frozenset(items)))
    ]


def mixed(function: ast.AST, values: Values) -> bool:
    """Whether an operation reads both results that became complex and ones that keep the real layout."""
    for operation in walk(function):
        if not isinstance(operation, ast.BinOp):
            continue
        read = [values.reaching.of(node) for node in walk(operation) if isinstance(node, ast.Name)]
        results = {item for seen in read for item in seen if _touches(item, values, set())}
        if results & values.refused and any(values.of_definition(item) is not None for item in results):
            return True
    return False
