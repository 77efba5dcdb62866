"""What the metavariables of a template stand for at one use."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from torchmigrate.match.conditions import ArgumentValue, literal, same
from torchmigrate.match.context import CannotFix, DoesNotFit, MatchContext
from torchmigrate.match.pattern import mark
from torchmigrate.match.precedence import tightness
from torchmigrate.match.signature import RECEIVER
from torchmigrate.rewrite.call_layout import CallLayout, parse_expression
from torchmigrate.rewrite.template import Content, Item
from torchmigrate.semantics.facts.file_facts import NOT_CONSTANT


class Environment:
    """Looks up metavariables: those of a pattern, then the parameters of the signature."""

    def __init__(
        self,
        given: ArgumentValue,
        place: MatchContext,
        layout: CallLayout | None,
        mapping: Mapping[str, Mapping[str, str]],
    ) -> None:
        self.given = given
        self.place = place
        self.layout = layout
        self.mapping = mapping

    def get(self, name: str) -> Content | list[Item] | None:
        """What a metavariable stands for; None for an absent parameter.

        Raises DoesNotFit for a value that the case's `map` does not have, CannotFix where the call does not
        say whether the parameter is given.
        """
        captured = self.given.captures.get(name)
        if isinstance(captured, list):
            return [self._item(node) for node in captured]
        if captured is not None:
            return self._mapped_content(name, self._captured(captured))
        state = self.given.state(name)
        if state == "unknown":
            raise CannotFix("the call passes arguments in a form that is not supported")
        if state == "absent":
            return self._absent(name)
        indices = self.given.bound.given[name]
        signature = self.given.signature
        parameter = signature.by_name.get(name) if signature else None
        if parameter is not None and parameter.kind in ("variadic", "keywords"):
            return [self._argument(index) for index in indices]
        content = self._receiver() if indices[0] == RECEIVER else self._argument(indices[0]).content
        return self._mapped_content(name, content)

    def is_optional(self, name: str) -> bool:
        """Whether a parameter has a default, so that an absent argument needs none in the new call."""
        return self.given.default(name) is not None

    def _mapped_content(self, name: str, content: Content) -> Content:
        """What the case's map makes of an argument."""
        if name not in self.mapping or content.expression is None:
            return content
        code = self._mapped(name, content.expression, self.place.value(content.expression))
        if same_code(code, content.expression):
            return content
        code = requote(code, content.code)
        binds = tightness(parse_expression(mark(code)))
        return Content(code, binds, content.expression, content.start, content.end, content.slot, new=True)

    def _absent(self, name: str) -> Content | list[Item] | None:
        signature = self.given.signature
        parameter = signature.by_name.get(name) if signature else None
        if parameter is not None and parameter.kind in ("variadic", "keywords"):
            return []
        if name not in self.mapping or parameter is None or parameter.default is None:
            return None
        code = self._mapped(name, parameter.default, literal(parameter.default))
        return Content(code, tightness(parse_expression(mark(code))), None, new=True)

    def _mapped(self, name: str, node: ast.expr, value: object) -> str:
        names = {ast.unparse(node), self.place.qualified(node)}
        for old, new in self.mapping[name].items():
            if old in names:
                return new
            wanted = literal(ast.parse(old.strip(), mode="eval").body)
            if wanted is not NOT_CONSTANT and value is not NOT_CONSTANT and same(wanted, value):
                return new
        raise DoesNotFit(f"no new value for {name}")

    def _argument(self, index: int) -> Item:
        layout, argument = self.layout, self.given.arguments[index]
        if layout is None:
            raise CannotFix("the argument is not in the source")
        slot = layout.slots[index]
        code = layout.text[slot.value : slot.end]
        value = argument.value.value if isinstance(argument.value, ast.Starred) else argument.value
        content = Content(code, tightness(slot.node), value, slot.value, slot.end, index)
        return Item(slot.star, slot.keyword, content)

    def _receiver(self) -> Content:
        layout = self.layout
        if layout is None or layout.receiver is None or self.given.receiver is None:
            raise CannotFix("the receiver is not in the source")
        node, start, end = layout.receiver, layout.start, layout.receiver_end
        code = layout.text[start:end]
        if node.lpar and "#" not in code:
            # Its parentheses were for the dot; the template gets its own where it needs them.
            code = code[1:-1].strip()
            node = node.with_changes(lpar=node.lpar[1:], rpar=node.rpar[:-1])
        return Content(code, tightness(node), self.given.receiver, start, end)

    def _captured(self, node: ast.expr) -> Content:
        start, end = self.place.span(node)
        code = self.place.source.text[start:end]
        return Content(code, tightness(parse_expression(code)), node, start, end)

    def _item(self, node: ast.AST) -> Item:
        start, end = self.place.span(node)
        text = self.place.source.text
        star, keyword, value = "", None, node
        if isinstance(node, ast.Starred):
            star, value = "*", node.value
            start += 1
        elif isinstance(node, ast.keyword):
            value = node.value
            star, keyword = ("", node.arg) if node.arg is not None else ("**", None)
            start = start + 2 if keyword is None else text.index("=", start) + 1
        while text[start].isspace():
            start += 1
        assert isinstance(value, ast.expr), "arguments have values"
        code = text[start:end]
        return Item(star, keyword, Content(code, tightness(parse_expression(code)), value, start, end))


def same_code(code: str, node: ast.expr) -> bool:
    """Whether a source says the same as an expression."""
    try:
        return ast.dump(ast.parse(code.strip(), mode="eval").body) == ast.dump(node)
    except (SyntaxError, ValueError):
        return False


def requote(code: str, old: str) -> str:
    """A string literal in the quotes of the one that it replaces; other code as it is."""
    quote = old.lstrip("rRuU")[:1]
    if quote not in ("'", '"') or code[:1] not in ("'", '"') or code.startswith(quote):
        return code
    try:
        value = literal(ast.parse(code, mode="eval").body)
    except SyntaxError:  # a template such as `"a" if $x else "b"`
        return code
    if not isinstance(value, str) or any(character in value for character in "'\"\\\n\r"):
        return code
    return f"{quote}{value}{quote}"
