"""From a filled template to edits.

Where the template has a call that takes the old call's arguments, the arguments stay where they are and
the new code grows around them; otherwise the whole expression is replaced, but for the arguments that can
stay in place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst
from msgspec import Struct

from torchmigrate.findings import Edit
from torchmigrate.match.context import CannotFix
from torchmigrate.match.precedence import BIT_OR, tightness
from torchmigrate.rewrite.call_layout import CallLayout, NewArgument, increasing, relayout
from torchmigrate.rewrite.spelling import Spell
from torchmigrate.rewrite.template import (
    MARK,
    Filled,
    Part,
    called,
    code_of,
    dotted,
    mark_index,
    source_of,
    text_of,
)

_CORE = "__tm_core"
_LEAVES = (
    cst.BaseParenthesizableWhitespace, cst.BaseBinaryOp, cst.BaseUnaryOp, cst.Comma, cst.AssignEqual, cst.Dot,
    cst.LeftParen, cst.RightParen, cst.LeftSquareBracket, cst.RightSquareBracket, cst.SimpleString,
    cst.BaseNumber,
)  # fmt: skip


def callee_of(node: cst.BaseExpression) -> str | None:
    """The qualified name that a template calls (or is)."""
    return dotted(node.func if isinstance(node, cst.Call) else node)


def _count_marks(node: cst.CSTNode, counts: dict[int, tuple[int, list[cst.CSTNode]]]) -> int:
    """Note for each part of a filled template how many metavariables are in it, and its own parts."""
    if isinstance(node, cst.Name):
        return int(mark_index(node) is not None)
    children = [] if isinstance(node, _LEAVES) else list(node.children)
    total = sum([_count_marks(child, counts) for child in children])
    counts[id(node)] = (total, children)
    return total


def find_core(node: cst.BaseExpression) -> cst.Call | None:
    """The call of a template that all metavariables are arguments of: the outermost that takes one as it
    is, or else the innermost."""
    counts: dict[int, tuple[int, list[cst.CSTNode]]] = {}
    total = _count_marks(node, counts)
    if not total:
        return node if isinstance(node, cst.Call) and called(node.func) else None
    core: cst.Call | None = None
    current: cst.CSTNode = node
    while True:
        if isinstance(current, cst.Call) and called(current.func) is not None:
            core = current
            if any(mark_index(arg.value) is not None for arg in current.args):
                return core
        children = counts[id(current)][1] if id(current) in counts else []
        inner = [child for child in children if counts.get(id(child), (0,))[0] == total]
        if not inner:
            return core
        current = inner[0]


class Core(Struct, frozen=True):
    """A template around the arguments of the old call.

    before: new code up to the call's opening parenthesis; after: from the closing one on.
    opening, closing: brackets inside of the parentheses, for a call whose one argument is a list of them.
    """

    before: str
    opening: str
    arguments: list[NewArgument]
    closing: str
    after: str


def around_arguments(filled: Filled, core: cst.Call, layout: CallLayout, spell: Spell) -> Core:
    """Split a filled template at the arguments of its core call."""
    prefix = suffix = ""
    if core is not filled.node:
        whole = filled.node.deep_replace(core, cst.Name(_CORE))
        assert isinstance(whole, cst.BaseExpression), "an expression stays one"
        prefix, _, suffix = code_of(whole, spell).partition(_CORE)
    opening = closing = ""
    listed: Sequence[cst.Arg | cst.BaseElement] = core.args
    only = core.args[0] if len(core.args) == 1 else None
    if only is not None and isinstance(only.value, cst.List) and only.keyword is None and not only.star:
        listed = only.value.elements
        opening, closing = "[", "]"
        for slot in layout.slots:
            if slot.star and tightness(slot.node) < BIT_OR:
                raise CannotFix("what is unpacked needs parentheses")
    before = prefix + "(" * len(core.lpar) + code_of(core.func, spell)
    arguments = [_new_argument(item, filled.parts, layout, spell) for item in listed]
    return Core(before, opening, arguments, closing, ")" * len(core.rpar) + suffix)


def _new_argument(
    item: cst.Arg | cst.BaseElement, parts: Sequence[Part], layout: CallLayout, spell: Spell
) -> NewArgument:
    keyword = item.keyword.value if isinstance(item, cst.Arg) and item.keyword is not None else None
    star = item.star if isinstance(item, cst.Arg) else "*" if isinstance(item, cst.StarredElement) else ""
    index = mark_index(item.value)
    if index is not None:
        content = parts[index].content
        if content.slot is not None and not content.new:
            return NewArgument(content.slot, keyword, star)
    found = {
        parts[int(number)].content.slot for number in MARK.findall(cst.Module([]).code_for_node(item.value))
    }
    origin = found.pop() if len(found) == 1 else None
    text = text_of(item.value, parts, spell)
    if isinstance(item.value, cst.GeneratorExp) and not item.value.lpar and layout.slots[-1:]:
        # `sum(x for x in y,)` does not parse.
        text = f"({text})" if layout.slots[-1].comma is not None else text
    return NewArgument(origin, keyword, star, text)


def core_edits(core: Core, layout: CallLayout, end: int) -> tuple[list[Edit], bool]:
    """Edits that turn the call into the template, and whether a comment then stands at another argument."""
    edits = [Edit(layout.start, layout.function_end, core.before)]
    if core.opening:
        edits.append(Edit(layout.open, layout.open, core.opening))
    changed, misplaced = relayout(layout, core.arguments, bracketed=bool(core.opening))
    edits += changed
    edits.append(Edit(layout.close, layout.close, core.closing))
    edits.append(Edit(end, end, core.after))
    return edits, misplaced


def whole_edits(filled: Filled, start: int, end: int, spell: Spell, parentheses: bool) -> list[Edit]:
    """Edits that replace the expression from `start` to `end` by the template."""
    pieces = list(_pieces(filled, spell))
    if parentheses:
        pieces = ["(", *pieces, ")"]
    kept = [index for index, piece in enumerate(pieces) if isinstance(piece, Part) and piece.kept]
    starts = [piece.content.start for piece in pieces if isinstance(piece, Part) and piece.kept]
    stay = {kept[index] for index in increasing(starts)}
    edits: list[Edit] = []
    position, text = start, ""
    for index, piece in enumerate(pieces):
        if isinstance(piece, str):
            text += piece
        elif index in stay:
            edits.append(Edit(position, piece.content.start, text))
            position, text = piece.content.end, ""
        else:
            text += source_of(piece.content, spell)
    edits.append(Edit(position, end, text))
    return edits


def _pieces(filled: Filled, spell: Spell) -> Iterator[str | Part]:
    for index, code in enumerate(MARK.split(code_of(filled.node, spell))):
        if index % 2:
            yield filled.parts[int(code)]
        else:
            yield code
