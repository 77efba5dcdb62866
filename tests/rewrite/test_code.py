"""New code as a template that quotes nodes: parentheses where they are needed, and the rest as it is written."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from torchmigrate.match.context import CannotFix
from torchmigrate.rewrite.code import Argument, Code, Quotes, Stretch, code
from torchmigrate.rewrite.expressions import ExpressionEdits
from torchmigrate.rewrite.nodes import replaced, replaced_around, suffix_replaced, target_added, unassigned
from torchmigrate.rewrite.written import written
from torchmigrate.source.text import Source


def parsed(text: str) -> tuple[Source, ast.expr]:
    """A source that is one expression statement, and the expression."""
    source = Source.from_text(text, Path("m.py"))
    statement = source.parse().body[0]
    assert isinstance(statement, ast.Expr)
    return source, statement.value


def made(template: str, text: str, **parts: str | None) -> str:
    source, node = parsed(text)
    return written(code(template, x=node, **parts), Quotes(source))


@pytest.mark.parametrize(
    ("template", "text", "new"),
    [
        ("f($x)", "a + b", "f(a + b)"),
        ("$x.y", "a + b", "(a + b).y"),
        ("$x.y", "a.b(c)[0]", "a.b(c)[0].y"),
        ("$x.y", "1", "(1).y"),
        ("$x.y", "True", "True.y"),
        ("$x.y", "'a' 'b'", "('a' 'b').y"),
        ("$x.y", "'a'", "'a'.y"),
        ("-$x", "a * b", "-(a * b)"),
        ("-$x", "a ** b", "-a ** b"),
        ("$x * 2", "a * b", "a * b * 2"),
        ("2 * $x", "a * b", "2 * (a * b)"),
        ("$x if t else None", "lambda: a", "(lambda: a) if t else None"),
        ("f($x)", "(a, b)", "f((a, b))"),
        ("f($x)", "a, b", "f((a, b))"),
        ("f($x)", "(a), (b)", "f(((a), (b)))"),
        ("y = $x", "a, b", "y = a, b"),
        ("y = $x", "yield", "y = yield"),
        ("f($x)", "(yield)", "f((yield))"),
        ("f(k=$x)", "(y := 1)", "f(k=(y := 1))"),
        # line breaks
        ("f($x)", "(a +\n b)", "f(a +\n b)"),
        ("y = $x", "(a +\n b)", "y = (a +\n b)"),
        ("y = $x", "f(a,\n  b)", "y = f(a,\n  b)"),
    ],
)
def test_parentheses(template, text, new):
    assert made(template, text) == new


def test_names_attributes_and_modules_are_parts():
    assert made("$x.$name($key=1)", "a + b", name="size", key="dim") == "(a + b).size(dim=1)"
    assert made("from $module import $name", "a", module="torch.nn", name="Linear") == (
        "from torch.nn import Linear"
    )


def test_what_is_none_vanishes():
    assert made("f($x, k=$k)", "a", k=None) == "f(a)"


def test_several_arguments():
    source, node = parsed("f(a, *b, c=d + e)")
    assert isinstance(node, ast.Call)
    given = [Argument(node.keywords[0].value), Argument("b", star="*"), Argument(code("-$y", y="c"), "k")]
    assert written(code("g(*$given)", given=given), Quotes(source)) == "g(d + e, *b, k=-c)"
    assert written(code("*$items,", items=["a", "b"]), Quotes(source)) == "a, b"


def test_a_name_that_the_template_binds_is_not_quoted():
    with pytest.raises(CannotFix):
        made("[p for p in $x]", "f(p)")


def test_code_in_code():
    source, node = parsed("a")
    inner = code("$x + 1", x=node)
    assert written(code("$y.z", y=inner), Quotes(source)) == "(a + 1).z"
    assert written(code("$y", y=inner), Quotes(source)) == "a + 1"


def test_a_stretch_of_an_index():
    source, node = parsed("x[..., 1:2,  3, 0]")
    assert isinstance(node, ast.Subscript)
    assert isinstance(node.slice, ast.Tuple)
    kept = node.slice.elts[:-1]
    new = code("y[$items]", items=Stretch(kept[0], kept[-1]))
    assert written(new, Quotes(source)) == "y[..., 1:2,  3]"


def applied(source: Source, *edits: object) -> str:
    text = source.text
    for edit in sorted(edits, reverse=True):  # type: ignore[type-var]
        text = text[: edit.start] + edit.text + text[edit.end :]  # type: ignore[attr-defined]
    return text


def test_a_node_in_brackets_may_have_line_breaks():
    source, node = parsed("f(k=(  # c\n    a\n    .b))")
    assert isinstance(node, ast.Call)
    value = node.keywords[0].value
    edit = replaced(source, value, code("w if $x else None", x=value))
    assert applied(source, edit) == "f(k=(  # c\n    w if a\n    .b else None))"


@pytest.mark.parametrize(
    ("text", "new"),
    [("1 - m", "~m"), ("1 - (a == b)", "~(a == b)"), ("1 - a * b", "~(a * b)"), ("1 - (m)", "~m")],
)
def test_what_is_kept_is_not_touched(text, new):
    source, node = parsed(text)
    assert isinstance(node, ast.BinOp)
    edits = replaced_around(source, node, code("~$m", m=node.right), node.right)
    assert applied(source, *edits) == new
    start, end = source.span(node.right)
    assert all(edit.end <= start or end <= edit.start for edit in edits)


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ("x.data[0]", "x.item()"),
        ("(a + b).data[0]", "(a + b).item()"),
        ("(x\n . data [ 0 ])", "(x\n .item())"),
        ("x.data[1]", None),
    ],
)
def test_something_else_behind_an_expression(text, new):
    source, node = parsed(text)
    assert isinstance(node, ast.Subscript)
    assert isinstance(node.value, ast.Attribute)
    owner = node.value.value
    tokens = (".", "data", "[", "0", "]")
    ends = source.span(owner)[1], source.span(node)[1]
    edit = suffix_replaced(source, owner, *ends, tokens, code("$x.item()", x=owner))
    assert (applied(source, edit) if edit is not None else None) == new


def test_assignments():
    source = Source.from_text("a.b = (f(x))", Path("m.py"))
    statement = source.parse().body[0]
    assert isinstance(statement, ast.Assign)
    assert applied(source, target_added(source, statement, code("c"))) == "c = a.b = (f(x))"
    assert applied(source, unassigned(source, statement)) == "(f(x))"


def test_expressions_inside_of_each_other():
    source, node = parsed("f(g(a) + 1)")
    assert isinstance(node, ast.Call)
    inner = node.args[0]
    assert isinstance(inner, ast.BinOp)
    edits = ExpressionEdits(source)
    edits.put(inner.left, code("a - b"))
    edits.put(node, code("$x.h()", x=node.args[0]))
    assert applied(source, *edits.edits()) == "(a - b + 1).h()"
    edits.put(node, code("h($f)", f=node))  # the expression itself, as it was
    assert applied(source, *edits.edits()) == "h(f(a - b + 1))"


def test_a_template_is_needed():
    with pytest.raises(ValueError, match="not a template"):
        written(Code("$x +", {"x": "a"}), Quotes(parsed("a")[0]))
