"""More values in what is returned, in every form of it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from torchmigrate.rewrite.apply import splice
from torchmigrate.rewrite.returns import values_returned
from torchmigrate.source.text import Source

# Statement, with two values behind it.
FORMS = [
    ("return", "return None, 0"),
    ("return x", "return x, None, 0"),
    ("return x, y", "return x, y, None, 0"),
    ("return x,", "return x, None, 0,"),
    ("return (x, y)", "return (x, y, None, 0)"),
    ("return (x,)", "return (x, None, 0,)"),
    ("return (x), (y)", "return (x), (y), None, 0"),
    ("return(x)", "return(x), None, 0"),
    ("return \\\n x", "return \\\n x, None, 0"),
    (
        "return (  # all\n    x,  # one\n    y,  # two\n)",
        "return (  # all\n    x,  # one\n    y, None, 0,  # two\n)",
    ),
    ("return (  # a\r\n x  # b\r\n )", "return (  # a\r\n x  # b\r\n ), None, 0"),
]
UNPACKED = [
    ("return x", "return *x, None, 0"),
    ("return tuple(x)", "return *tuple(x), None, 0"),
    ("return x + y", "return *(x + y), None, 0"),
    ("return (x + y)", "return *(x + y), None, 0"),
    ("return x if y else z", "return *(x if y else z), None, 0"),
    ("return x, y", "return x, y, None, 0"),
]


def returned(statement: str, *, unpacked: bool = False) -> str:
    head, tail = "def f():\n    ", "; pass\n"
    source = Source.from_text(f"{head}{statement}{tail}", Path("example.py"))
    node = next(node for node in ast.walk(source.parse()) if isinstance(node, ast.Return))
    edits = values_returned(source, node, ["None", "0"], unpacked=unpacked)
    assert edits is not None
    text = splice(source.text, sorted(edits))
    ast.parse(text)
    return text[len(head) : -len(tail)]


@pytest.mark.parametrize(("before", "after"), FORMS)
def test_values_are_added(before: str, after: str):
    assert returned(before) == after


@pytest.mark.parametrize(("before", "after"), UNPACKED)
def test_a_tuple_is_unpacked(before: str, after: str):
    assert returned(before, unpacked=True) == after
