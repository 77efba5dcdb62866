"""Reading tests into formulas (first form; the whole set follows)."""

from __future__ import annotations

import ast
from collections.abc import Callable

from torchmigrate.names.guards import UNKNOWN, Formula
from torchmigrate.names.model import Value


def parse_test(node: ast.expr, evaluate: Callable[[ast.expr], Value]) -> Formula:
    """What a test says."""
    return UNKNOWN


def evaluate_special(node: ast.expr, evaluate: Callable[[ast.expr], Value]) -> Value | None:
    """The value of an expression about versions."""
    return None


def unpack_version(node: ast.expr, evaluate: Callable[[ast.expr], Value], count: int) -> list[Value] | None:
    """The values of `major, minor = ...`."""
    return None


def catches_missing(node: ast.Try) -> bool:
    """Whether a try catches a missing import or attribute."""
    return True
