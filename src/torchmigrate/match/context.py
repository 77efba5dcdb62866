"""What the matcher sees of a use, and what it gives back."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from torchmigrate.catalogue.model import Case
from torchmigrate.findings import Applicability, Edit, Reason
from torchmigrate.match.signature import Keywords
from torchmigrate.semantics.model import Use


class Positions(Protocol):
    """The part of `Source` that the matcher needs."""

    @property
    def text(self) -> str: ...

    def offset(self, line: int, column: int) -> int: ...

    def shows(self, statement: ast.Expr) -> bool: ...


class MatchContext(Struct):
    """A use and its surroundings.

    source: the file's text, and the way from `ast` places to offsets.
    spell: how to write a qualified name at this place; None: it cannot be written, so there is no fix.
    value: the value of a literal, or of a name bound to one literal; else `places.NOT_CONSTANT`.
    shown: the same in every run that the file shows, which is enough for a finding.
    qualified: the name, of a library or of another package, that an expression surely is.
    parameters: those of a lambda, or of a function of this file; None if it is not known.
    parents: the node around a node within the statement; None for the statement.
    unused: whether nothing reads what is assigned to this target.
    kinds: which of some kinds an expression surely is: "tensor", a dtype, "number" (see `dtypes.KINDS`).
    prepared: the call that `functools.partial` prepares of the function that the use names.
    keywords: what `**options` of a call gives; None: that is not looked up.
    seen: the same by what was seen in every run, or in one of them.
    recorded: whether anything of the file was recorded.
    depths: how many dimensions it had in the runs that were recorded; None: not known of one.
    shapes: whether the first two arguments of a function that is called there had the same shape in the runs
        that were recorded, or another one; both, or nothing, are possible.
    """

    use: Use
    source: Positions
    spell: Callable[[str], str | None]
    value: Callable[[ast.expr], object]
    shown: Callable[[ast.expr], object]
    qualified: Callable[[ast.expr], str | None]
    parameters: Callable[[ast.expr], ast.arguments | None]
    parents: Callable[[ast.AST], ast.AST | None]
    unused: Callable[[ast.Name], bool]
    kinds: Callable[[ast.expr, frozenset[str]], frozenset[str]]
    prepared: ast.Call | None = None
    keywords: Keywords | None = None
    seen: Callable[[ast.expr, bool], frozenset[str]] = lambda node, once: frozenset()
    recorded: bool = False
    depths: Callable[[ast.expr], frozenset[int | None]] = lambda node: frozenset()
    shapes: Callable[[ast.AST], frozenset[str]] = lambda node: frozenset()

    @property
    def call(self) -> ast.Call | None:
        """The call of the use, made or prepared."""
        return self.use.call or self.prepared

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Offsets of an expression, keyword argument or statement; parentheses around it left out."""
        line, column = node.lineno, node.col_offset  # type: ignore[attr-defined]
        end_line, end_column = node.end_lineno, node.end_col_offset  # type: ignore[attr-defined]
        return self.source.offset(line, column), self.source.offset(end_line, end_column)

    def segment(self, node: ast.AST) -> str:
        """The source of a node, as it is written."""
        start, end = self.span(node)
        return self.source.text[start:end]


class Match(Struct, frozen=True):
    """A rule applies to a use.

    start, end: what the finding points at, the name or the argument that the rule is about.
    parameter: the rule's parameter that was given. others: further parameters of the rule that were given.
    symbol: the qualified name by which the rule knows the use.
    """

    start: int
    end: int
    symbol: str
    parameter: str | None = None
    others: tuple[str, ...] = ()


class Rewrite(Struct, frozen=True):
    """A case that fits, as edits.

    edits: sorted, minimal, without overlaps. Empty for a use in an import statement (its change is planned
    elsewhere, by `callee`) and where the new name is written like the old one.
    losses: what the case does not know of, such as a comment that would be lost; with one it is not safe.
    callee: the qualified name that stands where the old one stood; None where no name does.
    """

    edits: tuple[Edit, ...]
    losses: tuple[Reason, ...]
    title: str
    case: Case
    callee: str | None

    def with_losses(
        self, level: Applicability, reasons: tuple[Reason, ...]
    ) -> tuple[Applicability, tuple[Reason, ...]]:
        """Applicability and reasons, lowered by what is lost here; reasons that are there already stay."""
        if not self.losses:
            return level, reasons
        return min(level, Applicability.UNSAFE), (*reasons, *self.losses)


class DoesNotFit(Exception):
    """The case is about another form of the use: try the next one."""


class CannotFix(Exception):
    """The case fits, but cannot be written here without harm: no fix."""
