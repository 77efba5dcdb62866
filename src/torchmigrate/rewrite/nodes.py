"""Edits of single expressions: replaced, renamed, with something else around or after them."""

from __future__ import annotations

import ast
import re

from torchmigrate.findings import Edit
from torchmigrate.patterns import pattern
from torchmigrate.rewrite.code import Code, Quotes
from torchmigrate.rewrite.lines import start_of
from torchmigrate.rewrite.parentheses import GAP, with_parentheses
from torchmigrate.rewrite.written import written
from torchmigrate.semantics.model import Use
from torchmigrate.source.text import Positioned, Source

Span = tuple[int, int]
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef

_HEAD = pattern(rf"(?:async{GAP})?(?:def|class){GAP}")
_CLOSERS = rf"(?P<closing>(?:{GAP}\))*)"


def replaced(source: Source, node: Positioned, new: Code) -> Edit:
    """Something else in the place of a node; the parentheses around it stay.

    Raises CannotFix if the code binds a name of what it quotes.
    """
    return Edit(*source.span(node), written(new, Quotes(source), instead_of=source.segment(node)))


def replaced_around(source: Source, node: ast.expr, new: Code, kept: ast.expr) -> tuple[Edit, ...]:
    """The same, but one part of an expression (or all of it), which the code quotes once, is not touched.

    Raises CannotFix as `replaced` does.
    """
    start, end = source.span(node)
    first, last = source.span(kept)
    before, after = written(new, _Gap(source, kept), instead_of=source.segment(node)).split(_GAP)
    edits = Edit(start, first, before), Edit(last, end, after)
    return tuple(edit for edit in edits if edit.text != source.text[edit.start : edit.end])


_GAP = "\0"  # stands for what is kept; in no source


class _Gap(Quotes):
    """Quotes with a gap in the place of one node."""

    def __init__(self, source: Source, kept: ast.expr) -> None:
        super().__init__(source)
        self.kept = kept

    def quoted(self, node: ast.expr) -> tuple[str, int]:
        text, binds = super().quoted(node)
        return _GAP if node is self.kept else text, binds


def name_replaced(use: Use, name: str) -> Edit:
    """Another qualified name at a use, as it is spelled there."""
    return Edit(use.start, use.end, name)


def has_comment(source: Source, node: Positioned, before: Positioned | None = None) -> bool:
    """Whether a comment may be in a node, in front of another that is in there: a `#` is."""
    start, end = source.span(node)
    return "#" in source.text[start : end if before is None else source.span(before)[0]]


def word_replaced(start: int, old: str, new: str) -> Edit:
    """Another word for one that begins at an offset."""
    return Edit(start, start + len(old), new)


def keyword_renamed(source: Source, keyword: ast.keyword, new: str) -> Edit:
    """Another keyword for an argument that has one."""
    assert keyword.arg is not None, "it has one"
    return word_replaced(source.span(keyword)[0], keyword.arg, new)


def is_written(source: Source, node: Positioned, text: str) -> bool:
    """Whether a node is written so, and its place is right: in f-strings it may not be before Python 3.12."""
    return source.segment(node) == text


def renamed(source: Source, node: Positioned, old: str, new: str) -> Edit | None:
    """Another name at the end of a chain of attributes; None where it is not written there as it is."""
    end = source.span(node)[1]
    start = end - len(old)
    return Edit(start, end, new) if source.text[start:end] == old else None


def suffix_replaced(
    source: Source, owner: ast.expr, owner_end: int, end: int, tokens: tuple[str, ...], new: Code | None
) -> Edit | None:
    """Something else for what follows an expression, such as `.data[0]`; None where it is written otherwise.

    Args:
        owner_end: offset of the end of the owner, before the parentheses that close around it.
        end: offset of the end of what follows.
        tokens: of what follows, from the dot on.
        new: the new expression, which begins with its owner; None: the owner alone, so that the gap before
            the dot goes, too.
    """
    follows = GAP.join(map(re.escape, tokens))
    found = re.compile(rf"{_CLOSERS}{GAP}(?P<tokens>{follows})").fullmatch(source.text, owner_end, end)
    if found is None:
        return None
    if new is None:
        return Edit(found.end("closing"), end, "")
    before, after = written(new, _Gap(source, owner)).split(_GAP)
    return Edit(found.start("tokens"), end, after[len(before) :])  # the parentheses around it are there


def target_added(source: Source, statement: ast.Assign, target: Code) -> Edit:
    """One more target for an assignment, in front of the others."""
    start = source.span(statement)[0]
    return Edit(start, start, f"{written(target, Quotes(source))} = ")


def span_in_fstring(source: Source, fstring: ast.JoinedStr, node: ast.expr) -> tuple[int, int] | None:
    """Where a value stands in an f-string, at its beginning in the braces; None if that is not plain.

    Where things are in there is known since Python 3.12 only, so that it is looked for in the text.
    """
    start, stop = source.span(fstring)
    text = ast.unparse(node)
    if source.text.count("{" + text, start, stop) != 1:
        return None
    begin = source.text.index("{" + text, start, stop) + 1
    return begin, begin + len(text)


def name_span(source: Source, definition: Definition) -> Span:
    """Where the name of a function or class stands in its definition."""
    start = source.offset(definition.lineno, definition.col_offset)
    found = _HEAD.match(source.text, start)
    assert found is not None, "a definition begins so"
    return found.end(), found.end() + len(definition.name)


def add_decorator(source: Source, definition: Definition, decorator: Code) -> Edit:
    """One more decorator for a definition of the module, on a line of its own above the others."""
    start = start_of(source, definition)
    line = f"@{written(decorator, Quotes(source))}{source.newline}"
    return Edit(start, start, line, mergeable=True)


def unassigned(source: Source, statement: ast.Assign) -> Edit:
    """The value of an assignment as a statement of its own."""
    since = source.span(statement.targets[-1])[1]
    value = with_parentheses(*source.span(statement.value), since, source.text)
    return Edit(source.span(statement)[0], value[0], "")


def keyed_comprehension(
    source: Source, node: ast.ListComp | ast.GeneratorExp, whole: ast.expr, key: str
) -> list[Edit]:
    """A comprehension as one of a dict, with the variable `key` as the keys.

    Args:
        whole: what it takes the place of: the comprehension, or a call around it.
    """
    start, end = source.span(whole)
    first, last = source.span(node)  # with the brackets, also of the call that a generator may share
    return [Edit(start, first + 1, f"{{{key}: "), Edit(last - 1, end, "}")]


def opens_behind_function(source: Source, call: ast.Call) -> bool:
    """Whether a call has its parenthesis right after its function, which has none around it."""
    start, end = source.span(call.func)
    return source.span(call)[0] == start and source.text[end : end + 1] == "("
