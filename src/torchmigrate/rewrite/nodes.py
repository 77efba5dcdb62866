"""Edits of single expressions: replaced, renamed, with something else around or behind them."""

from __future__ import annotations

import ast
import re

from torchmigrate.findings import Edit
from torchmigrate.rewrite.code import Code, Quotes
from torchmigrate.rewrite.parentheses import GAP
from torchmigrate.rewrite.written import written
from torchmigrate.semantics.model import Use
from torchmigrate.source.text import Positioned, Source

_CLOSERS = rf"(?P<closing>(?:{GAP}\))*)"


def replaced(source: Source, node: Positioned, new: Code) -> Edit:
    """Something else in the place of a node; the parentheses around it stay.

    Raises CannotFix if the code binds a name of what it quotes.
    """
    return Edit(*source.span(node), written(new, Quotes(source)))


def replaced_around(source: Source, node: ast.expr, new: Code, kept: ast.expr) -> tuple[Edit, ...]:
    """The same, but one part of an expression (or all of it), which the code quotes once, is not touched.

    Raises CannotFix as `replaced` does.
    """
    start, end = source.span(node)
    first, last = source.span(kept)
    before, after = written(new, _Gap(source, kept)).split(_GAP)
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


def has_comment(source: Source, node: Positioned) -> bool:
    """Whether a comment may be in a node: a `#` is."""
    return "#" in source.segment(node)


def keyword_renamed(source: Source, keyword: ast.keyword, new: str) -> Edit:
    """Another keyword for an argument that has one."""
    assert keyword.arg is not None, "it has one"
    start = source.span(keyword)[0]
    return Edit(start, start + len(keyword.arg), new)


def renamed(source: Source, node: Positioned, old: str, new: str) -> Edit | None:
    """Another name at the end of a chain of attributes; None where it is not written there as it is."""
    end = source.span(node)[1]
    start = end - len(old)
    return Edit(start, end, new) if source.text[start:end] == old else None


def suffix_replaced(
    source: Source, owner_end: int, end: int, written: tuple[str, ...], code: str
) -> Edit | None:
    """Something else for what follows an expression, such as `.data[0]`; None where it is written otherwise.

    Args:
        owner_end: offset of the end of the expression, before the parentheses that close around it.
        end: offset of the end of what follows.
        written: the tokens of it, from the dot on.
        code: takes their place; empty: the gap before the dot goes, too.
    """
    tokens = GAP.join(map(re.escape, written))
    found = re.compile(rf"{_CLOSERS}{GAP}(?P<tokens>{tokens})").fullmatch(source.text, owner_end, end)
    if found is None:
        return None
    return Edit(found.start("tokens") if code else found.end("closing"), end, code)


def name_span(source: Source, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> tuple[int, int]:
    """Where the name of a function or a class stands that is defined."""
    start = source.text.index(node.name, source.span(node)[0] + len("def"))
    return start, start + len(node.name)
