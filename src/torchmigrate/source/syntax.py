"""Why a file does not parse, in words that help: most often it is Python 2, or `async=`."""

from __future__ import annotations

import re
import sys
from typing import Protocol

from torchmigrate.patterns import pattern

_ASYNC = pattern(r"\basync\b(\s*=(?!=))?")
_IN_DEFINITION = pattern(r"\b(?:def\s+\w+\s*\(|lambda\b)[^)]*\Z")


class Lines(Protocol):
    """A text with its lines, counted from 1."""

    text: str

    def line_text(self, line: int) -> str: ...

    def line_start(self, line: int) -> int: ...


def explain(error: SyntaxError, source: Lines) -> str:
    """One line for a person about a syntax error that Python found in `source`."""
    message = " ".join((error.msg or "").split()).rstrip(".")
    line = source.line_text(error.lineno or 0)
    column = (error.offset or 1) - 1  # 0-based; Python points at the first character of what it rejects
    reserved = _async(source, error.lineno or 0, line, column)
    if reserved is not None:
        return reserved
    newer = _newer(message, line, source)
    if newer is not None and newer > sys.version_info[:2]:
        needed, here = (f"Python {major}.{minor}" for major, minor in (newer, sys.version_info[:2]))
        return f"needs {needed}, but torchmigrate runs on {here}: run torchmigrate with {needed}"
    construct = _python2(message, line, column)
    if construct is not None:
        return f"Python 2 code ({construct}): convert it to Python 3 first"
    if not message or message == "invalid syntax":
        return "syntax error"
    return f"syntax error: {message}"


def _async(source: Lines, number: int, line: str, column: int) -> str | None:
    """`async` became a keyword in Python 3.7; PyTorch had arguments of that name until 0.4."""
    for found in _ASYNC.finditer(line):
        # Python rejects the word itself, or what follows it (`async = 1`).
        if not found.start() <= column <= found.end():
            continue
        start = source.line_start(number) + found.start()
        before = source.text[max(0, start - 2000) : start].rstrip()
        if found[1] and before.endswith(("(", ",")) and not _IN_DEFINITION.search(before):
            return "`async` is a keyword since Python 3.7; use PyTorch's new argument `non_blocking=`"
        if found.start() == column and re.match(r"async\s+(def|for|with)\b", line[column:]):
            return None
        return "`async` is a keyword since Python 3.7 and cannot be a name: rename it"
    return None


def _newer(message: str, line: str, source: Lines) -> tuple[int, int] | None:
    """The Python that has what the rejected line shows, if it is one of the newer things."""
    if re.match(r"\s*(?:async\s+)?(?:def|class)\s+\w+\s*\[", line) or re.match(
        r"\s*type\s+[^\W\d]\w*\s*(?:\[.*\]\s*)?=(?!=)", line
    ):
        return 3, 12
    if re.match(r"\s*except\s*\*", line):
        return 3, 11
    if message.startswith("f-string") or re.search(r"\b[rR]?[fF][rR]?['\"]", line):
        import libcst

        try:  # it knows what f-strings may hold since 3.12, whatever Python it runs on
            libcst.parse_module(source.text)
        except (libcst.ParserSyntaxError, RecursionError):
            return None
        return 3, 12
    return None


def _python2(message: str, line: str, column: int) -> str | None:
    """What in the rejected line is Python 2 and never was Python 3; None if nothing is."""
    for name in ("print", "exec"):
        if message.startswith(f"Missing parentheses in call to '{name}'"):
            return f"{name} statement"
    # Python 3.14 allows `except A, B:`; in Python 2 the second is a variable.
    if "exception types must be parenthesized" in message and re.search(r",\s*[a-z_]\w*\s*:", line):
        return "`except X, name`"
    if message.startswith("leading zeros in decimal integer") and re.match(r"0[0-7]+\b", line[column:]):
        return "octal number without `0o`"
    if message.startswith("invalid ") and re.search(r"\b(?:0[xX][\da-fA-F]+|\d+)[lL]\b", line):
        return "long integer with `L`"
    if line[column : column + 1] == "`":
        return "backticks"
    if line[column : column + 2] == "<>":
        return "`<>`"
    if (
        message == "'u' and 'r' prefixes are incompatible"
        or (  # the words of Python 3.14
            re.search(r"\b[uU][rR]\Z", line[:column]) and line[column : column + 1] in ("'", '"')
        )
    ):
        return '`ur""` string'
    if "cannot be parenthesized" in message or (
        message == "invalid syntax"
        and line[column : column + 1] == "("
        and _IN_DEFINITION.search(line[:column])
    ):
        return "tuple as a parameter"
    if re.search(r"\braise\s+[\w.]+\s*\Z", line[:column]) and line[column : column + 1] == ",":
        return "`raise X, value`"
    return None
