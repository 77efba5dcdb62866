"""The `if` around statements that fixes remove, which goes with them where it has nothing else to do."""

from __future__ import annotations

import ast
from functools import cached_property
from typing import cast

from torchmigrate.rewrite.lines import SourceText, end_of, start_of
from torchmigrate.source.trees import has_effects, walk

# Calls in a test that only ask.
_ASKING = frozenset("isinstance hasattr len bool type is_available is_tensor".split())


class Suites:
    """The suites of a file."""

    def __init__(self, tree: ast.Module, source: SourceText) -> None:
        self._tree = tree
        self._source = source

    def idle_test(self, suite: list[ast.stmt]) -> tuple[ast.If, list[ast.stmt]] | None:
        """The `if` that does nothing without its suite, with the block around it."""
        outer = self._owners.get(id(suite))
        return outer if outer is not None and self._is_idle(outer[0], suite) else None

    @cached_property
    def _owners(self) -> dict[int, tuple[ast.If, list[ast.stmt]]]:
        """The `if` of every suite, and the block that it stands in, by the id() of the suite."""
        found: dict[int, tuple[ast.If, list[ast.stmt]]] = {}
        for node in walk(self._tree):
            for field_name in ("body", "orelse", "finalbody"):
                block: list[ast.stmt] | ast.expr | None = getattr(node, field_name, None)
                for statement in block if isinstance(block, list) else ():
                    if isinstance(statement, ast.If):
                        found[id(statement.body)] = statement, cast("list[ast.stmt]", block)
        return found

    def _is_idle(self, statement: ast.If, suite: list[ast.stmt]) -> bool:
        """Whether an `if` does nothing without its suite, and holds no comment; `elif` is part of another."""
        if statement.body is not suite or statement.orelse or has_effects(statement.test, harmless=_ASKING):
            return False
        start, end = start_of(self._source, statement), end_of(self._source, statement)
        line = self._source.text[start:end] + self._source.text[end:].partition("\n")[0]
        return line.startswith("if") and "#" not in line
