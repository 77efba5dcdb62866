"""The editor of statements: functions merged, statements that become several, and code that quotes other new code."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TypeVar

import pytest

from torchmigrate.findings import Edit
from torchmigrate.rewrite.apply import splice
from torchmigrate.rewrite.calls import CallEditor, arguments_removed, packed_call
from torchmigrate.rewrite.code import code, several
from torchmigrate.rewrite.nodes import keyed_comprehension
from torchmigrate.rewrite.statements import Crowded, Lines, NewFunction, Rewriting
from torchmigrate.source.text import Source

T = TypeVar("T", bound=ast.AST)


def editor(text: str) -> tuple[Rewriting, ast.Module]:
    source = Source.from_text(text, Path("example.py"))
    tree = source.parse()
    return Rewriting(source, Lines(source, tree)), tree


def nodes(tree: ast.AST, kind: type[T]) -> list[T]:
    return [node for node in ast.walk(tree) if isinstance(node, kind)]


def result(rewriting: Rewriting) -> str:
    text = splice(rewriting.source.text, rewriting.edits())
    ast.parse(text)
    return text


# ---- functions ---------------------------------------------------------------------------------------

MERGED = [
    (
        "class A:\n    # about both\n    def one(self):  # first\n        super().one()\n\n"
        "        # why\n        self.x = 1  # x\n        # end\n\n"
        "    def two(self):\n        '''Two.'''\n        # here\n        return self.x\n",
        "class A:\n    # about both\n\n    @staticmethod\n    def two(self):\n        '''Two.'''\n"
        "        # first\n        # why\n        self.y = 1  # x\n        # end\n        # here\n        return self.x\n",
    ),
    (
        "class A:\n    def two(self):\n        return self.x\n\n    def one(self):\n        self.x = 1\n",
        "class A:\n    @staticmethod\n    def two(self):\n        self.y = 1\n        return self.x\n",
    ),
    (
        "class A:\r\n\tdef one(self):\r\n\t\tself.x = 1; pass\r\n\r\n\t@mark\r\n\tdef two(self):\r\n\t\treturn self.x\r\n",
        "class A:\r\n\t@staticmethod\r\n\t@mark\r\n\tdef two(self):\r\n\t\tself.y = 1; pass\r\n\t\treturn self.x\r\n",
    ),
]


@pytest.mark.parametrize(("before", "after"), MERGED)
def test_merge(before: str, after: str):
    rewriting, tree = editor(before)
    methods = {item.name: item for item in nodes(tree, ast.FunctionDef)}
    for call in nodes(tree, ast.Expr):
        if isinstance(call.value, ast.Call):
            rewriting.remove(call)
    target = next(item for item in nodes(tree, ast.Attribute) if isinstance(item.ctx, ast.Store))
    rewriting.replace_node(target, code("self.y"))
    rewriting.decorate(methods["two"], code("staticmethod"))
    rewriting.merge(methods["one"], methods["two"])
    assert result(rewriting) == after


@pytest.mark.parametrize(
    ("before", "why"),
    [
        ("class A:\n    def one(self): pass\n    def two(self):\n        pass\n", "one line"),
        (
            "class A:\n    def one(self):\n      pass\n    def two(self):\n        pass\n",
            "have different indentation",
        ),
    ],
)
def test_what_cannot_be_merged(before: str, why: str):
    rewriting, tree = editor(before)
    one, two = nodes(tree, ast.FunctionDef)
    with pytest.raises(Crowded, match=why):
        rewriting.merge(one, two)


# ---- statements --------------------------------------------------------------------------------------

NEW = [code("a = 1"), NewFunction("f", ("x", "*args"), (code("return x"),))]


@pytest.mark.parametrize(
    ("before", "last", "after"),
    [
        ("x = 1  # why\ny = 2\n", [], "a = 1  # why\n\n\ndef f(x, *args):\n    return x\n\n\ny = 2\n"),
        ("x = 1  # why\n\ny = 2\n", [], "a = 1  # why\n\n\ndef f(x, *args):\n    return x\n\n\ny = 2\n"),
        (
            "x = 1  # why\n\n  \ny = 2\n",
            [],
            "a = 1  # why\n\n\ndef f(x, *args):\n    return x\n\n  \ny = 2\n",
        ),
        (
            "x = 1  # why\n\n\n\ny = 2\n",
            [],
            "a = 1  # why\n\n\ndef f(x, *args):\n    return x\n\n\n\ny = 2\n",
        ),
        ("x = 1  # why\n\n", [], "a = 1  # why\n\n\ndef f(x, *args):\n    return x\n\n"),
        ("x = 1\n", [], "a = 1\n\n\ndef f(x, *args):\n    return x\n"),
        ("x = 1  # why\n", [code("b = f")], "a = 1\n\n\ndef f(x, *args):\n    return x\n\n\nb = f  # why\n"),
        (
            "if y:\n  x = 1  # why\nz = 2\n",
            [code("b = f")],
            "if y:\n  a = 1\n\n  def f(x, *args):\n    return x\n\n  b = f  # why\nz = 2\n",
        ),
        ("if y:\r\n\tx = 1;\r\n", [code("b = f")], None),
    ],
)
def test_a_statement_becomes_several(before: str, last: list, after: str | None):
    rewriting, tree = editor(before)
    statement = next(item for item in nodes(tree, ast.Assign) if ast.unparse(item) == "x = 1")
    rewriting.replace_statement(statement, [*NEW, *last])
    text = result(rewriting)
    assert after is None or text == after
    assert "\r\n" not in before or "\n" not in text.replace("\r\n", "")


def test_blank_lines_above_the_last_statement_go_with_it():
    rewriting, tree = editor("a = 1\n\n\nb = 2\n")
    rewriting.remove(tree.body[1])
    assert result(rewriting) == "a = 1\n"


def test_what_is_taken_away_is_one_edit():
    rewriting, tree = editor(
        "class A:\n    def one(self):\n        pass\n\n    def two(self):\n        pass\n"
    )
    one, two = nodes(tree, ast.FunctionDef)
    rewriting.remove(one.body[0])
    rewriting.merge(one, two)
    assert [edit for edit in rewriting.edits() if edit.start < edit.end] == [
        Edit(9, rewriting.source.text.index("    def two"), "")
    ]


def test_a_removed_line_is_not_indented():
    rewriting, tree = editor("if x:\n    f(\n        a,\n        b,\n    )\n")
    call = nodes(tree, ast.Call)[0]
    arguments = CallEditor(rewriting.source, call)
    arguments.drop(call.args[1])
    rewriting.record(arguments.edits())
    branch = tree.body[0]
    assert isinstance(branch, ast.If)
    rewriting.wrap(branch.body, code("$f()", f="quiet"))
    assert result(rewriting) == "if x:\n    with quiet():\n        f(\n            a,\n        )\n"


# ---- code that quotes --------------------------------------------------------------------------------


def test_what_is_quoted_is_as_it_will_be():
    rewriting, tree = editor("found.append(f(params, x + 1))\n")
    outer, inner = nodes(tree, ast.Call)
    params = inner.args[0]
    rewriting.replace_node(outer, code("$found[$key] = $x", found="found", key="k", x=inner))
    rewriting.record(packed_call(rewriting.source, inner, code("call"), 1))
    rewriting.replace_node(params, code("dict($x)", x=params))
    assert result(rewriting) == "found[k] = call(f, dict(params), (x + 1,))\n"


def test_parentheses_are_those_that_the_new_code_needs():
    rewriting, tree = editor("y = outer(a(b))\n")
    outer, inner = nodes(tree, ast.Call)
    rewriting.replace_node(inner, code("$x + $y", x=inner.func, y=inner.args[0]))
    rewriting.replace_node(outer, code("$x.sum()", x=inner))
    assert result(rewriting) == "y = (a + b).sum()\n"


def test_text_that_overlaps_is_refused():
    rewriting, tree = editor("f(a, g(b))\n")
    outer, inner = nodes(tree, ast.Call)
    arguments = CallEditor(rewriting.source, outer)
    arguments.drop(inner)
    rewriting.record(arguments.edits())
    rewriting.replace_node(inner.args[0], code("c"))
    with pytest.raises(Crowded, match="two changes"):
        rewriting.edits()


def test_several():
    rewriting, tree = editor("a, b = c\n")
    target = tree.body[0]
    assert isinstance(target, ast.Assign)
    rewriting.replace_statement(
        target, [code("x = $y", y=several([target.value])), code("return_ = $y", y="a")]
    )
    assert result(rewriting) == "x = c\nreturn_ = a\n"


# ---- calls -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "leading", "after"),
    [
        ("f(p, x)", 1, "call(f, p, (x,))"),
        ("f(p)", 1, "call(f, p, ())"),
        ("f(p,)", 1, "call(f, p, (),)"),
        ("f(p, b)", 2, "call(f, (p, b), ())"),
        ("f(p, b, x, *y)", 2, "call(f, (p, b), (x, *y))"),
        ("f(p, x, k=1)", 1, 'call(f, p, (x,), {"k": 1})'),
        ("f(p, x, **k)", 1, "call(f, p, (x,), k)"),
        ("f(p, x, k=(1), **m)", 1, 'call(f, p, (x,), {"k": (1), **m})'),
        ("f(p, x, **m, k=1)", 1, 'call(f, p, (x,), {**m, "k": 1})'),
        ("f(\n    p,  # p\n    (x),\n)", 1, "call(f,\n    p,  # p\n    ((x),),\n)"),
        ("(f)(p, f(p, x))", 1, "call((f), p, (call(f, p, (x,)),))"),
    ],
)
def test_packed_call(before: str, leading: int, after: str):
    rewriting, tree = editor(f"{before}\n")
    for call in nodes(tree, ast.Call):  # the outer one first
        rewriting.record(packed_call(rewriting.source, call, code("call"), leading))
    assert result(rewriting) == f"{after}\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [("f(a)(b)\n", "f(b)\n"), ("(f)(a, k=1)(b)\n", "(f)(b)\n"), ("f ( a )(b)\n", "f(b)\n")],
)
def test_arguments_removed(before: str, after: str):
    rewriting, tree = editor(before)
    rewriting.record(arguments_removed(rewriting.source, nodes(tree, ast.Call)[1]))
    assert result(rewriting) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("y = [a for a in b]\n", "y = {k: a for a in b}\n"),
        ("y = tuple(a for a in b)\n", "y = {k: a for a in b}\n"),
        ("y = tuple([a for a in b])\n", "y = {k: a for a in b}\n"),
        ("y = [  # c\n    a for a in b\n]\n", "y = {k:   # c\n    a for a in b\n}\n"),
    ],
)
def test_keyed_comprehension(before: str, after: str):
    rewriting, tree = editor(before)
    statement = tree.body[0]
    assert isinstance(statement, ast.Assign)
    made = next(node for node in ast.walk(tree) if isinstance(node, ast.ListComp | ast.GeneratorExp))
    rewriting.record(keyed_comprehension(rewriting.source, made, statement.value, "k"))
    assert result(rewriting) == after
