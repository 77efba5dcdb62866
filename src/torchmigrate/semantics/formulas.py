"""What tests say of library versions and names.

A `Formula` is what an `if` test says, as far as it concerns these. `semantics.guards.formulas` evaluates it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from msgspec import Struct, field

from torchmigrate.versions.releases import Version


class TryGuard(Struct, eq=False):
    """A try statement whose handlers catch a missing import or attribute.

    `with contextlib.suppress(...)` is one too: its handler passes.
    names: part -> qualified names used in it.
    calls: part -> what is called in it, by qualified name, with the keywords that are given
        ("**": others too).
    always: qualified names without which the body surely fails.
    asks: whether a handler tests versions or names.
    rest: the last statement of those after it that run only where the handler did.
    about_releases: whether a use in it was found to be taken care of by the other side; set by questions.
    """

    node: ast.Try
    names: dict[str, set[str]] = field(default_factory=dict)
    calls: dict[str, set[tuple[str, frozenset[str]]]] = field(default_factory=dict)
    always: set[str] = field(default_factory=set)
    asks: bool = False
    rest: ast.stmt | None = None
    about_releases: bool = False


class Known(Struct, frozen=True):
    """A literal: `if True:`."""

    value: bool


class HasName(Struct, frozen=True):
    """The attribute or module `qualified` exists.

    `torch.load(weights_only)` is the parameter of a function, or of a class that is called; `torch.load(*)`
    any parameter with a default after the star, `torch.load(=)` one before it.
    """

    qualified: str


class VersionTest(Struct, frozen=True):
    """The version of `library`, or the `part` of it that was compared, against `version`.

    op: "<" | "<=" | ">" | ">=" | "==" | "!=", or for strings "startswith" ("1.1" also holds for 1.10),
    "series" ("1.1." does not) and "contains".
    part: one of those of `VersionOf`, or "number" (a number made of major and minor in an unknown way).
    """

    library: str
    op: str
    version: Version
    part: str = "full"


class TryWorked(Struct, frozen=True):
    """The body of this `try` ran to its end (a flag set there, and reset in the handler)."""

    attempt: TryGuard


class Not(Struct, frozen=True):
    """The negation of an atom; `negate` keeps it from wrapping anything else."""

    formula: Formula


class All(Struct, frozen=True):
    """Every part holds."""

    parts: tuple[Formula, ...]


class Any_(Struct, frozen=True):
    """At least one part holds."""

    parts: tuple[Formula, ...]


class Unknown(Struct, frozen=True):
    """A test of something else; `UNKNOWN` is the only one."""


Formula = Known | HasName | VersionTest | TryWorked | Not | All | Any_ | Unknown
TRUE, FALSE, UNKNOWN = Known(True), Known(False), Unknown()


def is_certain(formula: Formula) -> bool:
    """Whether a formula depends on versions and names alone."""
    if isinstance(formula, (All, Any_)):
        return all(map(is_certain, formula.parts))
    return not isinstance(formula, Unknown)


def negate(formula: Formula) -> Formula:
    """The opposite, with negations pushed down to the atoms."""
    if isinstance(formula, Unknown):
        return formula
    if isinstance(formula, Known):
        return Known(not formula.value)
    if isinstance(formula, Not):
        return formula.formula
    if isinstance(formula, All):
        return any_of(negate(part) for part in formula.parts)
    if isinstance(formula, Any_):
        return all_of(negate(part) for part in formula.parts)
    return Not(formula)


def both(first: Formula, second: Formula) -> Formula:
    """Both hold."""
    if first is TRUE or first is second:  # most tests say nothing
        return second
    return first if second is TRUE else all_of((first, second))


def all_of(formulas: Iterable[Formula]) -> Formula:
    """Every one of `formulas` holds; flattened, without repetitions; of none: `TRUE`.

    What they say and deny at once: `FALSE`.
    """
    parts: dict[Formula, None] = {}
    for formula in formulas:
        if isinstance(formula, Known):
            if not formula.value:
                return FALSE
        elif isinstance(formula, All):
            parts.update(dict.fromkeys(formula.parts))
        else:
            parts[formula] = None
    if not parts:
        return TRUE
    if any(isinstance(part, Not) and part.formula in parts for part in parts):
        return FALSE
    return next(iter(parts)) if len(parts) == 1 else All(tuple(parts))


def any_of(formulas: Iterable[Formula]) -> Formula:
    """At least one of `formulas` holds; flattened, without repetitions; of none: `FALSE`."""
    parts: dict[Formula, None] = {}
    for formula in formulas:
        if isinstance(formula, Known):
            if formula.value:
                return TRUE
        elif isinstance(formula, Any_):
            parts.update(dict.fromkeys(formula.parts))
        else:
            parts[formula] = None
    if not parts:
        return FALSE
    return next(iter(parts)) if len(parts) == 1 else Any_(tuple(parts))


_MOST_BRANCHES = 32


def taken(tests: Iterable[Formula]) -> Iterator[Formula]:
    """Under which tests the branches of `if ... elif ... else` run; of the `else` last.

    In long chains the condition of "no branch" is unknown: it has as many parts as there are branches.
    """
    otherwise: Formula = TRUE
    for number, test in enumerate(tests):
        yield both(otherwise, test)
        otherwise = both(otherwise, negate(test)) if number < _MOST_BRANCHES else UNKNOWN
    yield otherwise
