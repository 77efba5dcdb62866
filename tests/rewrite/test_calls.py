"""The arguments of one call, changed one by one."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pytest

from torchmigrate.rewrite.calls import CallEditor
from torchmigrate.rewrite.code import Quotes, code
from torchmigrate.rewrite.written import written
from torchmigrate.source.text import Source


def edited(text: str, change: Callable[[CallEditor, ast.Call], None]) -> str:
    source = Source.from_text(text, Path("m.py"))
    statement = source.parse().body[0]
    assert isinstance(statement, ast.Expr)
    assert isinstance(statement.value, ast.Call)
    editor = CallEditor(source, statement.value)
    change(editor, statement.value)
    edits = editor.edits()
    assert edits is not None
    new = text
    for edit in reversed(edits):
        new = new[: edit.start] + edit.text + new[edit.end :]
    assert written(code("$call", call=editor), Quotes(source)) == new, (
        "as a part of other code it is the same"
    )
    return new


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ("f(a, b)", "f(a)"),
        ("f(a, b,)", "f(a,)"),
        ("f(\n    a,  # one\n    b,  # two\n)", "f(\n    a,  # one\n)"),
        ("f(b)", "f()"),
    ],
)
def test_drop(text, new):
    assert edited(text, lambda editor, call: editor.drop(call.args[-1])) == new


def test_keep():
    assert edited("f(a, b, c=1, d=2)", lambda editor, call: editor.keep(call.keywords[:1])) == "f(c=1)"


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ("f(a)", "f(new)"),
        ("f((a  # why\n))", "f((new  # why\n))"),
        ("f(k = a)", "f(k = new)"),
    ],
)
def test_set(text, new):
    def change(editor: CallEditor, call: ast.Call) -> None:
        editor.set([*call.args, *call.keywords][0], code("new"))

    assert edited(text, change) == new


def test_set_by_name():
    def change(editor: CallEditor, call: ast.Call) -> None:
        editor.set(call.args[0], code("'w' if $x else None", x=call.args[0]), keyword="weights")

    assert edited("f(a or b)", change) == "f(weights='w' if a or b else None)"


def test_rename():
    def change(editor: CallEditor, call: ast.Call) -> None:
        editor.rename(call.keywords[0], "new")

    assert edited("f(a, old=(1))", change) == "f(a, new=(1))"


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ("f()", "f(k=1)"),
        ("f(a)", "f(a, k=1)"),
        ("f(a, **rest)", "f(a, k=1, **rest)"),
        ("f(\n    a,\n    b,  # two\n)", "f(\n    a,\n    b,  # two\n    k=1,\n)"),
        ("f(a, b,\n  c)", "f(a, b,\n  c,\n  k=1)"),
        ("f((a  # (\n   ))", "f((a  # (\n   ), k=1)"),
    ],
)
def test_add(text, new):
    assert edited(text, lambda editor, call: editor.add(code("1"), "k")) == new


def test_add_by_position():
    assert edited("f(a, k=1)", lambda editor, call: editor.add(code("b"))) == "f(a, b, k=1)"


def test_insert_and_another_function():
    def change(editor: CallEditor, call: ast.Call) -> None:
        assert isinstance(call.func, ast.Attribute)
        editor.call_instead(code("torch.f"))
        editor.insert(code("$x", x=call.func.value))

    assert edited("(a + b).f(1)", change) == "torch.f(a + b, 1)"


def test_add_behind():
    def change(editor: CallEditor, call: ast.Call) -> None:
        editor.add_behind(call.args[0], code("new"))

    assert edited("f(\n    a,  # one\n    b,\n)", change) == "f(\n    a, new,  # one\n    b,\n)"


def test_comments():
    source = Source.from_text("f(a,  # one\n  b, c)", Path("m.py"))
    call = source.parse().body[0].value  # type: ignore[attr-defined]
    editor = CallEditor(source, call)
    assert [editor.has_comment(item) for item in call.args] == [False, True, False]
