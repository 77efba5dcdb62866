"""The end of an attempt: something is in the way of a rewrite."""

from __future__ import annotations

import ast


class Unclear(Exception):
    """Why nothing is rewritten, in words for a person; node: an expression that is in the way, if one is."""

    def __init__(self, reason: str, node: ast.expr | None = None) -> None:
        super().__init__(reason)
        self.node = node
