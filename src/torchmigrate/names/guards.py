"""Guard formulas (first form; the whole set follows)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Union

from torchmigrate.names.model import TryGuard


@dataclass(frozen=True, slots=True)
class Unknown:
    """A test that says nothing."""


@dataclass(frozen=True, slots=True)
class TryWorked:
    """The body of this try ran to its end."""

    attempt: TryGuard


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite."""

    inner: Formula


Formula = Union[Unknown, TryWorked, Not]
UNKNOWN = Unknown()


def negate(formula: Formula) -> Formula:
    """The opposite of a formula."""
    if formula is UNKNOWN:
        return UNKNOWN
    return formula.inner if isinstance(formula, Not) else Not(formula)
