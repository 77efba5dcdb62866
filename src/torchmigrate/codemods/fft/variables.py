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
    return pairs - form.demanded - _transformed(layouts)


def _transformed(layouts: Local) -> set[Definition]:
    """Definitions of what is computed from the result of a transform."""
    found: list[Definition] = []
    readers: dict[Definition, list[Definition]] = defaultdict(list)
    for item in layouts.variables.every:
        for node in walk(item.value) if item.value is not None else ():
            transform = layouts.transforms.get(node)
            if transform is not None and transform.gives_pairs:
                found.append(item)
            for read in layouts.variables.of(node) if isinstance(node, ast.Name) else ():
                readers[read].append(item)
    seen = set(found)
    for item in found:
        more = [reader for reader in readers[item] if reader not in seen]
        seen.update(more)
        found += more
    return seen


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
    transformed = _transformed(layouts)
    for operation in walk(function):
        if not isinstance(operation, ast.BinOp):
            continue
        read = [layouts.variables.of(node) for node in walk(operation) if isinstance(node, ast.Name)]
        results = transformed.intersection(item for seen in read for item in seen)
        if results & layouts.refused and any(layouts.of_definition(item) is not None for item in results):
            return True
    return False
