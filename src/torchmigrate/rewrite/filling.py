"""From `code` to text: what its metavariables stand for is quoted, with parentheses where they are needed."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import cache

import libcst as cst
from msgspec import Struct

from torchmigrate.match.pattern import mark
from torchmigrate.match.precedence import YIELD, holes, tightness, tightness_in
from torchmigrate.rewrite.code import Argument, Code, Part, Quotes
from torchmigrate.rewrite.template import (
    MARK,
    Content,
    Item,
    breaks_lines,
    fill_node,
    mark_index,
    names_bound_in,
)


def filled_in(new: Code, quotes: Quotes, *, bracketed: bool = False) -> tuple[str, int]:
    """New code as text, and how tightly it binds (a statement: not at all).

    Args:
        bracketed: whether it stands inside of brackets, so that it may have line breaks.

    Raises CannotFix if the template binds a name of what it quotes.
    """
    given = _Parts(new, quotes)
    if new.template.startswith("$") and new.template[1:].isidentifier():  # one part as it is, which many are
        only = given.get(new.template[1:])
        if isinstance(only, Content) and (bracketed or not breaks_lines(only.code)):
            return only.code, only.binds
    template = _parsed(new.template)
    places = holes(template, bracketed=bracketed)
    node, parts = fill_node(template, places, names_bound_in(template), given, "")
    text = MARK.sub(lambda found: parts[int(found[1])].content.code, _PRINTER.code_for_node(node))
    if not isinstance(node, cst.BaseExpression):
        return text.rstrip("\n"), YIELD
    index = None if node.lpar else mark_index(node)
    return text, tightness(node) if index is None else parts[index].content.binds


_PRINTER = cst.Module([])


@cache
def _parsed(template: str) -> cst.BaseExpression | cst.SimpleStatementLine:
    """A template as LibCST sees it.

    Raises ValueError if it is neither an expression nor a simple statement.
    """
    try:
        return cst.parse_expression(mark(template))
    except cst.ParserSyntaxError:
        pass
    try:
        statement = cst.parse_statement(mark(template))
    except cst.ParserSyntaxError as error:
        raise ValueError(f"not a template: {template}") from error
    return cst.ensure_type(statement, cst.SimpleStatementLine)


class _Parts(Struct, frozen=True):
    """What the metavariables of new code stand for, as templates ask for it."""

    new: Code
    quotes: Quotes
    layout: None = None

    def get(self, name: str) -> Content | list[Item] | None:
        found = self.new.parts[name]
        if found is None:
            return None
        if isinstance(found, Sequence) and not isinstance(found, str):
            return [self._item(part) for part in found]
        return self._content(found)

    def is_optional(self, name: str) -> bool:
        return True

    def _item(self, part: Part | Argument) -> Item:
        if isinstance(part, Argument):
            return Item(part.star, part.keyword, self._content(part.value))
        return Item("", None, self._content(part))

    def _content(self, part: Part) -> Content:
        if isinstance(part, ast.expr):
            return Content(*self.quotes.quoted(part), part)
        if isinstance(part, Code):
            return Content(*filled_in(part, self.quotes), None)
        if isinstance(part, str):
            return Content(part, tightness_in(ast.parse(part, mode="eval").body, part), None)
        return Content(*part.quoted(self.quotes), None)
