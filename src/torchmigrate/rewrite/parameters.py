"""The parameters of a function: added and dropped, with nothing else of its header changed."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

import libcst as cst
from msgspec import Struct

from torchmigrate.findings import Edit
from torchmigrate.match.context import CannotFix
from torchmigrate.rewrite.call_layout import CallLayout, NewArgument, Slot, relayout
from torchmigrate.rewrite.cursor import Cursor
from torchmigrate.source.text import Source

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_NOTHING = cst.SimpleWhitespace("")


class NewParameter(Struct, frozen=True):
    """A parameter whose annotation and default are copied from elsewhere in the file."""

    name: str
    annotation: ast.expr | None = None
    default: ast.expr | None = None


def parameters_added(
    source: Source, function: _Function, behind: ast.arg, new: Iterable[NewParameter]
) -> list[Edit] | None:
    """More parameters after one that is there, in the style of the others.

    None where LibCST does not see the function as Python does.
    """
    try:
        layout = _layout(source, function)
        at = 1 + _slot_of(layout, behind, source)
    except CannotFix:
        return None
    kept = [NewArgument(index) for index in range(len(layout.slots))]
    added = [NewArgument(text=_code_of(item, source)) for item in new]
    edits, _ = relayout(layout, [*kept[:at], *added, *kept[at:]])
    return edits


def _code_of(item: NewParameter, source: Source) -> str:
    code = item.name
    if item.annotation is not None:
        code += f": {source.segment(item.annotation)}"
    if item.default is not None:
        code += f"{' = ' if item.annotation is not None else '='}{source.segment(item.default)}"
    return code


def parameter_added(source: Source, function: _Function, name: str) -> list[Edit] | None:
    """One more parameter after all but `**options`, by keyword alone where others have defaults.

    None where LibCST does not see the function as Python does.
    """
    arguments = function.args
    try:
        layout = _layout(source, function)
        if arguments.vararg is not None or arguments.kwonlyargs:
            last, added = [arguments.vararg, *arguments.kwonlyargs][-1], [name]
        else:
            last = [*arguments.posonlyargs, *arguments.args][-1]
            added = ["*", name] if arguments.defaults else [name]
        assert last is not None, "it has one of them"
        at = 1 + _slot_of(layout, last, source)
        at += last in arguments.posonlyargs  # which `/` ends
    except CannotFix:
        return None
    kept = [NewArgument(index) for index in range(len(layout.slots))]
    new = [NewArgument(text=item) for item in added]
    edits, _ = relayout(layout, [*kept[:at], *new, *kept[at:]], as_last=True)
    return edits


def parameters_dropped(
    source: Source, function: _Function, parameters: Sequence[ast.arg]
) -> list[Edit] | None:
    """A function without some parameters, their annotations and their defaults.

    None where LibCST does not see the function as Python does.
    """
    try:
        layout = _layout(source, function)
        gone = {_slot_of(layout, parameter, source) for parameter in parameters}
    except CannotFix:
        return None
    codes = [layout.text[slot.start : slot.end] for slot in layout.slots]
    for mark in (
        "*",
        "/",
    ):  # it says how what follows, or what is before, is given, and nothing is left there
        if mark in codes:
            at = codes.index(mark)
            others = range(at + 1, len(codes)) if mark == "*" else range(at)
            if all(number in gone or codes[number].startswith("**") for number in others):
                gone.add(at)
    edits, _ = relayout(layout, [NewArgument(number) for number in range(len(codes)) if number not in gone])
    return edits


def _slot_of(layout: CallLayout, parameter: ast.arg, source: Source) -> int:
    """The index of a parameter."""
    start, _ = source.span(parameter)
    for index, slot in enumerate(layout.slots):
        if slot.value == start:
            return index
    raise CannotFix("LibCST sees another parameter")


def _layout(source: Source, function: _Function) -> CallLayout:
    """The parameters, laid out as the arguments of a call are."""
    start, _ = source.span(function)
    code = _header(source.text[start : source.span(function.body[0])[0]])
    try:
        node = cst.parse_statement(f"{code} pass\n")
    except (cst.ParserSyntaxError, RecursionError) as error:
        raise CannotFix("LibCST cannot read it") from error
    if not isinstance(node, cst.FunctionDef):
        raise CannotFix("LibCST sees no function")
    cursor = Cursor(source.text, start, start + len(code))
    skip = cursor.skip
    if node.asynchronous is not None:
        skip(node.asynchronous)
    name_end = skip("def", node.whitespace_after_def, node.name)
    skip(node.whitespace_after_name)
    if node.type_parameters is not None:
        skip(node.type_parameters)
    opened = skip(node.whitespace_after_type_parameters, "(")
    skip(node.whitespace_before_params)
    slots: list[Slot] = []
    for item in _items(node.params):
        first = value = cursor.position
        after: cst.BaseParenthesizableWhitespace = _NOTHING
        if isinstance(item, cst.Param):
            star = item.star if isinstance(item.star, str) else ""
            value = skip(star, item.whitespace_after_star)
            after = item.whitespace_after_param
            bare = item.with_changes(star="", whitespace_after_star=_NOTHING, whitespace_after_param=_NOTHING)
            skip(bare.with_changes(comma=cst.MaybeSentinel.DEFAULT))
        elif isinstance(item, cst.ParamSlash):
            skip("/", item.whitespace_after)
        else:
            skip("*")
        end, comma = cursor.position, None
        if isinstance(item.comma, cst.Comma):
            comma = skip(item.comma.whitespace_before)
            skip(",", item.comma.whitespace_after)
        skip(after)
        slots.append(Slot(first, value, end, comma, cursor.position, "", None, cst.Name("_")))
    closed = cursor.position
    skip(")")
    return CallLayout(source.text, start, name_end, opened, closed, tuple(slots), None, start)


def _items(parameters: cst.Parameters) -> Iterator[cst.Param | cst.ParamSlash | cst.ParamStar]:
    """Everything that has a comma, in order."""
    yield from parameters.posonly_params
    if isinstance(parameters.posonly_ind, cst.ParamSlash):
        yield parameters.posonly_ind
    yield from parameters.params
    if isinstance(parameters.star_arg, (cst.Param, cst.ParamStar)):
        yield parameters.star_arg
    yield from parameters.kwonly_params
    if parameters.star_kwarg is not None:
        yield parameters.star_kwarg


def _header(text: str) -> str:
    """A function up to the colon before its body. text: at least that, as far as its first statement."""
    lines = list(io.StringIO(text, newline=""))
    starts = list(accumulate(map(len, lines), initial=0))
    depth = 0
    try:
        for token in tokenize.generate_tokens(iter(lines).__next__):
            if token.type == tokenize.OP:
                depth += (token.string in "([{") - (token.string in ")]}")
                if token.string == ":" and not depth:
                    return text[: starts[token.end[0] - 1] + token.end[1]]
    except (tokenize.TokenError, SyntaxError) as error:
        raise CannotFix("the header of the function cannot be parsed") from error
    raise CannotFix("the header of the function has no end")
