"""Walking the statements of a function: much less than all that `ast.walk` visits."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

# `try` and, since Python 3.11, `try` with `except*`: they have the same fields.
TRY: tuple[type[ast.Try], ...] = (ast.Try, getattr(ast, "TryStar", ast.Try))
_BLOCKS = ("body", "orelse", "finalbody")


def statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Every statement in a body, at any depth."""
    for statement in body:
        yield statement
        for block in _BLOCKS:
            yield from statements(getattr(statement, block, ()))
        if isinstance(statement, TRY):
            for handler in statement.handlers:
                yield from statements(handler.body)
        elif isinstance(statement, ast.Match):
            for case in statement.cases:
                yield from statements(case.body)


def stored(statement: ast.stmt) -> Iterator[ast.expr]:
    """What a statement itself assigns to, element by element."""
    targets: list[ast.expr | None] = []
    match statement:
        case ast.Assign():
            targets += statement.targets
        case ast.AugAssign() | ast.AnnAssign() | ast.For() | ast.AsyncFor():
            targets.append(statement.target)
        case ast.With() | ast.AsyncWith():
            targets += [item.optional_vars for item in statement.items]
    while targets:
        target = targets.pop()
        if isinstance(target, (ast.Tuple, ast.List)):
            targets += target.elts
        elif isinstance(target, ast.Starred):
            targets.append(target.value)
        elif target is not None:
            yield target
