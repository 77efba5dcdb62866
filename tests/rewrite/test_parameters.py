"""Parameters of functions: more of them and less, with everything else of the header as it was."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from torchmigrate.rewrite.apply import splice
from torchmigrate.rewrite.parameters import (
    NewParameter,
    parameter_added,
    parameters_added,
    parameters_dropped,
)
from torchmigrate.source.text import Source


def function_of(code: str) -> tuple[Source, ast.FunctionDef | ast.AsyncFunctionDef]:
    source = Source.from_text(code, Path("example.py"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return source, next(node for node in ast.walk(source.parse()) if isinstance(node, kinds))


def named(function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> ast.arg:
    return next(node for node in ast.walk(function.args) if isinstance(node, ast.arg) and node.arg == name)


@pytest.mark.parametrize(
    ("before", "behind", "after"),
    [
        ("def f(self): return 1\n", "self", "def f(self, new): return 1\n"),
        ("def f(self,): return 1\n", "self", "def f(self, new,): return 1\n"),
        ("def f(self, x, *args, **kw):\n    pass\n", "self", "def f(self, new, x, *args, **kw):\n    pass\n"),
        (
            "async  def f ( a , b , / , c ) : pass\n",
            "c",
            "async  def f ( a , b , / , c, new ) : pass\n",
        ),
        (
            "@mark(a := 1)\ndef f(\n    self,  # me\n    x: dict[str, int],  # it\n):\n    pass\n",
            "self",
            "@mark(a := 1)\ndef f(\n    self,  # me\n    new,\n    x: dict[str, int],  # it\n):\n    pass\n",
        ),
        (
            "class A:\r\n    def f(self,\r\n          x=(2)):\r\n        pass\r\n",
            "x",
            "class A:\r\n    def f(self,\r\n          x=(2),\r\n          new):\r\n        pass\r\n",
        ),
    ],
)
def test_added(before: str, behind: str, after: str):
    source, function = function_of(before)
    edits = parameters_added(source, function, named(function, behind), [NewParameter("new")])
    assert edits is not None
    assert splice(before, sorted(edits)) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("def f(x): pass\n", "def f(x, new): pass\n"),
        ("def f(x, /): pass\n", "def f(x, /, new): pass\n"),
        ("def f(x, y=1): pass\n", "def f(x, y=1, *, new): pass\n"),
        ("def f(x, *args, k=1, **kw): pass\n", "def f(x, *args, k=1, new, **kw): pass\n"),
    ],
)
def test_added_as_the_last(before: str, after: str):
    source, function = function_of(before)
    edits = parameter_added(source, function, "new")
    assert edits is not None
    assert splice(before, sorted(edits)) == after


def test_annotation_and_default_are_those_of_another_function():
    before = "def f(a, b: int = (1,\n  2), c=3): pass\ndef g(x): pass\n"
    source = Source.from_text(before, Path("example.py"))
    one, other = source.parse().body
    assert isinstance(one, ast.FunctionDef) and isinstance(other, ast.FunctionDef)
    _, b, c = one.args.args
    new = [
        NewParameter("b", b.annotation, one.args.defaults[0]),
        NewParameter("c", c.annotation, one.args.defaults[1]),
    ]
    edits = parameters_added(source, other, other.args.args[0], new)
    assert edits is not None
    assert splice(before, sorted(edits)).endswith("\ndef g(x, b: int = (1,\n  2), c=3): pass\n")


@pytest.mark.parametrize(
    ("before", "name", "after"),
    [
        ("def f(x): pass\n", "x", "def f(): pass\n"),
        ("def f(x, y=(1), z=2): pass\n", "y", "def f(x, z=2): pass\n"),
        ("def f(x, y: int = 1,): pass\n", "y", "def f(x,): pass\n"),
        ("def f(x,  # one\n      y,  # two\n      z): pass\n", "y", "def f(x,  # one\n      z): pass\n"),
        ("def f(\n    x,\n    # why\n    y=lambda a: 1,\n):\n    pass\n", "x", None),
        ("def f(x, *, y): pass\n", "y", "def f(x): pass\n"),
        ("def f(x, *, y, z): pass\n", "y", "def f(x, *, z): pass\n"),
        ("def f(x, *, y, **z): pass\n", "y", "def f(x, **z): pass\n"),
        ("def f(x, /, y): pass\n", "x", "def f(y): pass\n"),
        ("def f(x, y, /): pass\n", "x", "def f(y, /): pass\n"),
        ("def f(x \\\n      , y): pass\n", "y", "def f(x): pass\n"),
    ],
)
def test_dropped(before: str, name: str, after: str | None):
    source, function = function_of(before)
    edits = parameters_dropped(source, function, [named(function, name)])
    assert edits is not None
    result = splice(before, sorted(edits))
    _, left = function_of(result)
    assert name not in [item.arg for item in ast.walk(left.args) if isinstance(item, ast.arg)]
    assert after is None or result == after
    assert "# why" in result or "# why" not in before
