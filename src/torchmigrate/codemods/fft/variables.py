"""The variables of a function that computes with complex tensors: which need not be, which nothing reads."""

from __future__ import annotations

import ast
from collections import defaultdict

from torchmigrate.codemods.fft.complex import ComplexForm
from torchmigrate.codemods.fft.layouts import Local
from torchmigrate.semantics.flow.reaching import Definition, Reaching
from torchmigrate.source.trees import walk


def idle(form: ComplexForm, layouts: Local) -> set[Definition]:
    """Definitions of pairs that no transform has to do with: they stay real."""
    pairs = {item for item in layouts.variables.every if layouts.of_definition(item) is not None}
    return {item for item in pairs - form.demanded if not _touches(item, layouts)}


def _touches(definition: Definition, layouts: Local) -> bool:
    """Whether a pair comes from a transform."""
    seen = {definition}
    todo = [definition]
    while todo:
        value = todo.pop().value
        for node in walk(value) if value is not None else ():
            transform = layouts.transforms.get(node)
            if transform is not None and transform.gives_pairs:
                return True
            more = layouts.variables.of(node) - seen if isinstance(node, ast.Name) else ()
            seen.update(more)
            todo += more
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


def mixed(function: ast.AST, layouts: Local) -> bool:
    """Whether an operation reads both results that became complex and ones that keep the real layout."""
    for operation in walk(function):
        if not isinstance(operation, ast.BinOp):
            continue
        read = [layouts.variables.of(node) for node in walk(operation) if isinstance(node, ast.Name)]
        results = {item for seen in read for item in seen if _touches(item, layouts)}
        if results & layouts.refused and any(layouts.of_definition(item) is not None for item in results):
            return True
    return False
