"""Statements taken away with their lines; the comments in them stay."""

from __future__ import annotations

import ast
import io
import re
import textwrap
import tokenize
from collections.abc import Sequence

from torchmigrate.findings import Edit
from torchmigrate.rewrite.lines import line_start, logical_line, start_of
from torchmigrate.source.text import Source

_BLANK_LINE = re.compile(r"[ \t]*\r?\n")


def removals(statements: Sequence[ast.stmt], block: list[ast.stmt], source: Source) -> list[Edit]:
    """Take statements away with their lines; comments behind them stay, on lines of their own."""
    text = source.text
    edits: list[Edit] = []
    above = ""  # the text above a run of removed lines
    for statement in sorted(statements, key=lambda item: item.lineno):
        start = line_start(text, start_of(source, statement))
        if isinstance(statement, ast.If):
            end = logical_line(source, statement.body, statement.body[-1]).after
        else:
            end = logical_line(source, block, statement).after
        if not edits or edits[-1].end != start:
            above = text[:start].rstrip(" \t")
        comments = _comments(text[start:end], source)
        if comments:
            above = ""
        blank = _BLANK_LINE.match(text, end)
        if blank and (above.endswith(("\n\n", "\n\r\n")) or above.rstrip().endswith(":")):
            end = blank.end()  # there is one above, or the block begins here
        edits.append(Edit(start, end, comments))
    return edits


def _comments(code: str, source: Source) -> str:
    """The comments in the lines of a statement, each on its own line."""
    indent = code[: len(code) - len(code.lstrip())]
    found = [
        token.string
        for token in tokenize.generate_tokens(io.StringIO(textwrap.dedent(code)).readline)
        if token.type == tokenize.COMMENT
    ]
    return "".join(f"{indent}{comment}{source.newline}" for comment in found)
