"""Templates: code with metavariables, such as `torch.linalg.solve($A, $B)`, filled in at a use.

A template is parsed once with LibCST. At a use its metavariables are replaced by numbered marks, with
parentheses where the source that they stand for needs them; then its qualified names are spelled, and
the code between the marks is what is new.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Sequence
from functools import cache
from typing import Literal, Protocol, TypeVar

import libcst as cst
from msgspec import Struct, field

from torchmigrate.match.conditions import binds_or_waits, names_in
from torchmigrate.match.context import CannotFix, DoesNotFit
from torchmigrate.match.pattern import PREFIX, mark
from torchmigrate.match.precedence import ATOM, BIT_OR, EXPRESSION, Hole, holes, tightness
from torchmigrate.patterns import pattern
from torchmigrate.rewrite.call_layout import CallLayout
from torchmigrate.rewrite.spelling import Spell, spell_name
from torchmigrate.semantics.public_names import public_name

_ABSENT = "__tma_"  # stand for parts that are not expressions until the node around them is reached
_MANY = "__tmm_"
_FILLED = "__tm_0"
_SPELLED = "__tms_"
_SPELLING = pattern(r"__tms_(\d+)_")
MARK = pattern(r"__tm_0(\d+)_")

Listed = TypeVar("Listed", cst.Arg, cst.BaseElement)


class Template(Struct, frozen=True):
    """A parsed template, what each of its metavariables' places asks for, and the names it binds itself."""

    node: cst.BaseExpression
    holes: dict[int, Hole]
    bound: frozenset[str]


@cache
def parse_template(text: str) -> Template:
    """Read a template. Raises ValueError if it is not an expression."""
    try:
        node = cst.parse_expression(mark(text).strip())
    except cst.ParserSyntaxError as error:
        raise ValueError(f"not a template: {text}") from error
    return Template(node, holes(node), names_bound_in(node))


def names_bound_in(node: cst.CSTNode) -> frozenset[str]:
    """The names that lambdas and comprehensions of a template bind."""
    binders = _Binders()
    node.visit(binders)
    return frozenset(binders.found)


class _Binders(cst.CSTVisitor):
    """Finds the names that lambdas and comprehensions of a template bind."""

    def __init__(self) -> None:
        self.found: set[str] = set()

    def visit_Param(self, node: cst.Param) -> None:
        self.found.add(node.name.value)

    def visit_CompFor(self, node: cst.CompFor) -> None:
        target = node.target
        targets = [item.value for item in target.elements] if isinstance(target, cst.Tuple) else [target]
        self.found.update(item.value for item in targets if isinstance(item, cst.Name))


class Content(Struct, frozen=True):
    """An expression that a metavariable stands for.

    code: its source, or (`new`) a template without metavariables that replaces it.
    binds: how tightly it does.
    expression: what is in the file; None for a default. start, end: where; -1 for a default.
    slot: index of the call's argument.
    """

    code: str
    binds: int
    expression: ast.expr | None
    start: int = -1
    end: int = -1
    slot: int | None = None
    new: bool = False


class Item(Struct, frozen=True):
    """One of the arguments that `*$args` or `**$kw` stands for."""

    star: str
    keyword: str | None
    content: Content


class Environment(Protocol):
    """Looks metavariables up. layout: of the call that they are the arguments of, if there is one."""

    @property
    def layout(self) -> CallLayout | None: ...

    def get(self, name: str, /) -> Content | list[Item] | None:
        """What a metavariable stands for; None: nothing, it is absent. Raises DoesNotFit, CannotFix."""

    def is_optional(self, name: str, /) -> bool:
        """Whether what is absent needs no place in the new call."""


class Part(Struct, frozen=True):
    """One metavariable where it stands in a filled template. kept: the source may stay where it is."""

    name: str
    content: Content
    kept: bool
    parentheses: bool


class Filled(Struct):
    """A template at a use: numbered marks, by the index of their part, for the metavariables."""

    node: cst.BaseExpression
    parts: list[Part] = field(default_factory=list)


def fill(template: Template, environment: Environment, symbol: str) -> Filled:
    """Fill a template in.

    `keyword=$x` vanishes where `x` is absent, and so does a positional `$x` after which none is given;
    `*$xs` and `**$kw` become what they stand for. In a call of the symbol itself (whose parameters are
    known) arguments stay positional or keywords as they were.

    Raises:
        DoesNotFit: an absent parameter is needed, or a value is not in the case's map.
        CannotFix: the call does not say what is given, or an argument would mean something else inside of
            a lambda or comprehension of the template.
    """
    node, parts = fill_node(template.node, template.holes, template.bound, environment, symbol)
    assert isinstance(node, cst.BaseExpression), "an expression stays one"
    return Filled(node, parts)


def fill_node(
    node: cst.CSTNode, holes: dict[int, Hole], bound: frozenset[str], environment: Environment, symbol: str
) -> tuple[cst.CSTNode, list[Part]]:
    """The same for any node, by what is known of it as a template."""
    filler = _Filler(holes, environment, symbol)
    visited = node.visit(filler)
    assert isinstance(visited, cst.CSTNode), "a template is not removed as a whole"
    node = visited
    if filler.pending:
        remains = _Remains()
        node.visit(remains)
        if remains.found:
            raise DoesNotFit("the call does not pass an argument that the new code needs")
    for part in filler.parts if bound else ():
        expression = part.content.expression
        if expression is not None and (binds_or_waits(expression) or bound & names_in(expression)):
            raise CannotFix("the new code would shadow a name in the argument")
    return node, filler.parts


def binds(filled: Filled) -> int:
    """How tightly a filled template binds."""
    index = mark_index(filled.node)
    if index is not None and not filled.node.lpar:
        return filled.parts[index].content.binds
    return tightness(filled.node)


class _Remains(cst.CSTVisitor):
    def __init__(self) -> None:
        self.found = False

    def visit_Name(self, node: cst.Name) -> None:
        self.found = self.found or node.value.startswith((_ABSENT, _MANY))


class _Filler(cst.CSTTransformer):
    def __init__(self, holes: dict[int, Hole], environment: Environment, symbol: str) -> None:
        super().__init__()
        self.holes = holes
        self.environment = environment
        self.symbol = symbol
        self.parts: list[Part] = []
        self.many: dict[str, list[Item]] = {}
        self.pending = False  # names were left for the nodes around them

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        name = updated_node.value
        if not name.startswith(PREFIX):
            return updated_node
        name = name[len(PREFIX) :]
        content = self.environment.get(name)
        self.pending = self.pending or not isinstance(content, Content)
        if content is None:
            return cst.Name(_ABSENT + name)
        if isinstance(content, list):
            self.many[name] = content
            return cst.Name(_MANY + name)
        filled = self._mark(name, content, self.holes.get(id(original_node), Hole(ATOM)))
        return filled.with_changes(
            lpar=[*updated_node.lpar, *filled.lpar], rpar=[*filled.rpar, *updated_node.rpar]
        )

    def _mark(self, name: str, content: Content, hole: Hole) -> cst.Name:
        binds = content.binds >= hole.needs
        parentheses = not binds or (not hole.bracketed and breaks_lines(content.code))
        kept = hole.delimited and not parentheses and not content.new and content.start >= 0
        node = cst.Name(f"{_FILLED}{len(self.parts)}_")
        self.parts.append(Part(name, content, kept, parentheses))
        return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()]) if parentheses else node

    def leave_Arg(
        self, original_node: cst.Arg, updated_node: cst.Arg
    ) -> cst.Arg | cst.FlattenSentinel[cst.Arg] | cst.RemovalSentinel:
        value = updated_node.value
        if not isinstance(value, cst.Name):
            return updated_node
        if value.value.startswith(_ABSENT) and updated_node.keyword is not None:
            return cst.RemoveFromParent()
        if value.value.startswith(_MANY) and updated_node.star:
            return cst.FlattenSentinel([self._argument(value.value, item) for item in self._items(value)])
        return updated_node

    def _items(self, value: cst.Name) -> list[Item]:
        return self.many[value.value[len(_MANY) :]]

    def _argument(self, name: str, item: Item) -> cst.Arg:
        node = self._mark(name[len(_MANY) :], item.content, _ARGUMENT)
        keyword = cst.Name(item.keyword) if item.keyword is not None else None
        equal = _EQUAL if keyword is not None else cst.MaybeSentinel.DEFAULT
        return cst.Arg(node, keyword=keyword, equal=equal, star=_STARS[item.star])

    def leave_StarredElement(  # type: ignore[override]
        self, original_node: cst.StarredElement, updated_node: cst.StarredElement
    ) -> cst.StarredElement | cst.FlattenSentinel[cst.BaseElement]:
        value = updated_node.value
        if not isinstance(value, cst.Name) or not value.value.startswith(_MANY):
            return updated_node
        elements: list[cst.BaseElement] = []
        for item in self._items(value):
            if item.keyword is not None or item.star == "**":
                raise DoesNotFit("keywords have no place in a list")
            node = self._mark(value.value[len(_MANY) :], item.content, _STARRED if item.star else _ARGUMENT)
            elements.append(cst.StarredElement(node) if item.star else cst.Element(node))
        return cst.FlattenSentinel(elements)

    def leave_List(self, original_node: cst.List, updated_node: cst.List) -> cst.BaseExpression:
        return updated_node.with_changes(elements=_with_commas(updated_node.elements))

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        same = called(updated_node.func)
        known = same is not None and public_name(same) == public_name(self.symbol)
        args: list[cst.Arg] = []
        gap = ""  # why the arguments from here on need keywords
        for arg in updated_node.args:
            if arg.keyword is None and not arg.star and isinstance(arg.value, cst.Name):
                name = arg.value.value
                if name.startswith(_ABSENT):
                    if not self.environment.is_optional(name[len(_ABSENT) :]):
                        raise DoesNotFit("the call does not pass a required argument")
                    gap = "absent"
                    continue
                part = self.part_of(arg.value)
                keyword = self._keyword(part) if known else None
                if part is not None and (keyword or (gap and known)):
                    gap = gap or "keyword"
                    arg = arg.with_changes(keyword=cst.Name(keyword or part.name), equal=_EQUAL)
            if gap and arg.keyword is None and arg.star != "**":
                raise DoesNotFit("the call omits an argument before one that it passes")
            args.append(arg)
        return updated_node.with_changes(args=_with_commas(args))

    def part_of(self, node: cst.BaseExpression) -> Part | None:
        index = mark_index(node)
        return None if index is None else self.parts[index]

    def _keyword(self, part: Part | None) -> str | None:
        slot = part.content.slot if part is not None else None
        layout = self.environment.layout
        return layout.slots[slot].keyword if slot is not None and layout is not None else None


def _with_commas(items: Sequence[Listed]) -> list[Listed]:
    """Arguments or elements with commas between them, and none after the last."""
    last = len(items) - 1
    return [
        item.with_changes(comma=cst.MaybeSentinel.DEFAULT if index == last else _COMMA)
        for index, item in enumerate(items)
    ]


def mark_index(node: cst.CSTNode) -> int | None:
    """The number of a mark; None for other nodes."""
    found = MARK.fullmatch(node.value) if isinstance(node, cst.Name) else None
    return int(found[1]) if found else None


def breaks_lines(code: str) -> bool:
    """Whether code has a newline that only brackets around it would allow."""
    if "\n" not in code and "\r" not in code:
        return False
    try:
        ast.parse(code, mode="eval")
    except SyntaxError:
        return True
    return False


def dotted(node: cst.BaseExpression) -> str | None:
    """`a.b.c` of a chain of plain names; None for anything else and for metavariables."""
    parts: list[str] = []
    while isinstance(node, cst.Attribute) and not node.lpar:
        parts.append(node.attr.value)
        node = node.value
    if not isinstance(node, cst.Name) or node.lpar or node.value.startswith(PREFIX):
        return None
    return ".".join([node.value, *reversed(parts)])


def called(function: cst.BaseExpression) -> str | None:
    """The qualified name that is called: of `a.b` in `a.b(x)`, and in `wrap(a.b)(x)`, which passes x on."""
    if isinstance(function, cst.Call) and len(function.args) == 1 and dotted(function.func) is not None:
        function = function.args[0].value
    return dotted(function)


# ---- code -------------------------------------------------------------------------------------------


class _Speller(cst.CSTTransformer):
    """Writes qualified names as the file can; names bound in the template itself and builtins stay."""

    def __init__(self, spell: Spell) -> None:
        super().__init__()
        self.spell = spell
        self.found: dict[int, str] = {}
        self.spelled: list[str] = []
        self.bound: set[str] = set()

    def _bind(self, node: cst.CSTNode) -> None:
        binders = _Binders()
        node.visit(binders)
        self.bound |= binders.found

    visit_Lambda = visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _bind

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        name = dotted(node)
        if name is None:
            return True
        head = name.partition(".")[0]
        if head not in self.bound and not hasattr(builtins, head):
            self.found[id(node)] = name
        return False

    def leave_Attribute(
        self, original_node: cst.Attribute, updated_node: cst.Attribute
    ) -> cst.BaseExpression:
        name = self.found.get(id(original_node))
        if name is None:
            return updated_node
        self.spelled.append(spell_name(name, self.spell))
        mark = cst.Name(f"{_SPELLED}{len(self.spelled) - 1}_")
        return mark.with_changes(lpar=updated_node.lpar, rpar=updated_node.rpar)


def code_of(node: cst.BaseExpression, spell: Spell) -> str:
    """The code of a (part of a) filled template, marks included."""
    speller = _Speller(spell)
    spelled = node.visit(speller)
    assert isinstance(spelled, cst.BaseExpression), "an expression stays one"
    code = cst.Module([]).code_for_node(spelled)
    return _SPELLING.sub(lambda found: speller.spelled[int(found[1])], code)


def source_of(content: Content, spell: Spell) -> str:
    """The value of a metavariable, as text."""
    return code_of(parse_template(content.code).node, spell) if content.new else content.code


def text_of(node: cst.BaseExpression, parts: Sequence[Part], spell: Spell) -> str:
    """The code of a (part of a) filled template, with the source of what its marks stand for."""
    return MARK.sub(lambda found: source_of(parts[int(found[1])].content, spell), code_of(node, spell))


_ARGUMENT = Hole(needs=EXPRESSION, delimited=True, bracketed=True)
_STARRED = Hole(needs=BIT_OR, delimited=True, bracketed=True)
_STARS: dict[str, Literal["", "*", "**"]] = {"": "", "*": "*", "**": "**"}
_EQUAL = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
_COMMA = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
