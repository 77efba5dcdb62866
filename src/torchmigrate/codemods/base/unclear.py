"""The end of an attempt: something is in the way of a rewrite."""

from __future__ import annotations

import ast

from torchmigrate.findings import Reason, because


class Unclear(Exception):
    """Why nothing is rewritten, in words for a person.

    Args:
        node: an expression that is in the way, if one is.
        line: where it is, if not at the node.
    """

    def __init__(self, reason: str, node: ast.expr | None = None, *, line: int | None = None) -> None:
        super().__init__(reason)
        self.node = node
        self.line = line if line is not None else getattr(node, "lineno", None)

    @classmethod
    def at(cls, line: int, reason: str) -> Unclear:
        """What is in the way in a line, which the words begin with."""
        return cls(f"line {line}: {reason}", line=line)

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """The same as data of a finding."""
        return because(str(self), line=self.line)
