"""New code, written as a template that quotes the source: `code("$f($x, dim=-1)", f="torch.foo", x=node)`.

The templates are those of the YAML rules. The value of a metavariable gets parentheses where its place
needs them, and only there.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeAlias

from msgspec import Struct

from torchmigrate.source.text import Source


class Argument(Struct, frozen=True):
    """One of the arguments that `*$x` stands for in a call: by keyword, with a star, or neither."""

    value: Part
    keyword: str | None = None
    star: str = ""


class Code(Struct, frozen=True):
    """New code that is not put together yet; to be made by `code`.

    template: an expression or a simple statement with `$names`.
    parts: what they stand for.
    """

    template: str
    parts: Mapping[str, Parts]


class Quotable(Protocol):
    """What else may stand for a metavariable."""

    def quoted(self, quotes: Quotes, /) -> tuple[str, int]:
        """Its text, and how tightly that binds. Raises CannotFix."""


# A name or a literal; an expression of the source; other new code, or what gives some.
Part: TypeAlias = str | ast.expr | Code | Quotable
Parts: TypeAlias = Part | Sequence[Part | Argument] | None


def code(template: str, /, **parts: Parts) -> Code:
    """New code.

    Args:
        template: an expression such as `"$f($x, dim=$dim)"`, or a simple statement such as `"$a = $b"`.
        parts: what its metavariables stand for: a name or a literal as text, an expression of the source, or
            other new code; for `*$x` several of them, also as `Argument`. For None, `keyword=$x` vanishes.
    """
    return Code(template, parts)


def several(parts: Sequence[Part]) -> Code:
    """Expressions with commas between them; a single one is not a tuple."""
    names = [f"part_{number}" for number in range(len(parts))]
    return Code(", ".join(f"${name}" for name in names), dict(zip(names, parts, strict=True)))


def code_of(tree: ast.expr) -> Code:
    """New code from a new syntax tree: the nodes of the file in it stay as they are written there."""
    parts: dict[str, ast.expr] = {}

    def quoted(node: ast.expr) -> ast.expr | None:
        if not hasattr(node, "lineno"):
            return None
        name = f"part_{len(parts)}"
        parts[name] = node
        return ast.Name(f"${name}", ast.Load())

    return Code(ast.unparse(with_parts(tree, quoted)).replace("'", '"'), parts)


def with_parts(tree: ast.expr, other: Callable[[ast.expr], ast.expr | None]) -> ast.expr:
    """A copy of an expression with other expressions in the place of some; it is new code."""
    new = other(tree)
    if new is not None:
        return new
    made = copy.copy(tree)
    vars(made).pop("lineno", None)
    for name, value in ast.iter_fields(tree):
        parts = [with_parts(item, other) if isinstance(item, ast.expr) else item for item in _listed(value)]
        setattr(made, name, parts if isinstance(value, list) else parts[0])
    return made


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]


class Quotes:
    """How expressions of a source are quoted in new code: as they are written there."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def quoted(self, node: ast.expr) -> tuple[str, int]:
        """The text of an expression, and how tightly it binds."""
        from torchmigrate.match.precedence import tightness_in  # with LibCST

        text = self.stretch(*self.source.span(node))
        return text, tightness_in(node, text)

    def stretch(self, start: int, end: int) -> str:
        """The text between two offsets."""
        return self.source.text[start:end]


class Stretch(Struct, frozen=True):
    """All that stands from one expression to another, such as some of the items of an index."""

    first: ast.expr
    last: ast.expr

    def quoted(self, quotes: Quotes, /) -> tuple[str, int]:
        """See `Quotable`."""
        from torchmigrate.match.precedence import ATOM  # with LibCST

        return quotes.stretch(quotes.source.span(self.first)[0], quotes.source.span(self.last)[1]), ATOM
