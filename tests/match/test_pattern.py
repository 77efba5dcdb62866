"""Patterns: expressions with metavariables around a symbol."""

from __future__ import annotations

import pytest
from match_support import call, first_rewrite, is_, make_rule

from torchmigrate.catalogue.model import Case, Condition
from torchmigrate.match.pattern import compile_pattern
from torchmigrate.rewrite.comments import COMMENT_LOST

PATTERNS = [
    ("torch.old($x)[2]", "torch.svd3($x)", "torch.old(a)[2]", "torch.svd3(a)"),
    ("torch.old($x)[2]", "torch.svd3($x)", "torch.old(a)[-2]", None),
    ("torch.old($x)[2]", "torch.svd3($x)", "torch.old(a)[2.0]", None),
    ("torch.old($x)[-1]", "torch.svd3($x)", "torch.old(a)[ - 1 ]", "torch.svd3(a)"),
    ("torch.old($x)[2]", "torch.svd3($x)", "torch.old(a, b)[2]", None),
    ("torch.old($x)[2]", "torch.svd3($x)", "torch.old(a)", None),
    ("torch.old($x)[2]", "torch.svd3($x)", "torch.old(a)[2] = 1", None),
    ("torch.old($x)[2]", "torch.svd3($x)", "(torch.old(a))[2].T", "torch.svd3(a).T"),
    ("torch.old($x).data", "$x.detach()", "torch.old(a).data", "a.detach()"),
    ("torch.old($x).data", "$x.detach()", "torch.old(a + b).data", "(a + b).detach()"),
    ("torch.old($x).data", "$x.detach()", "torch.old(x=a).data", None),
    ("torch.old($x, dim=$d)", "$x.new($d)", "torch.old(a, dim=1)", "a.new(1)"),
    ("torch.old($x, k='s')", "torch.new($x)", 'torch.old(a, k="s")', "torch.new(a)"),
    ("torch.old($x, k='s')", "torch.new($x)", "torch.old(a, k='t')", None),
    ("torch.old($x, a=$p, b=$q)", "torch.new($x, $p, $q)", "torch.old(a, b=1, a=2)", "torch.new(a, 2, 1)"),
    ("torch.old($x, k=True)", "torch.new($x)", "torch.old(a, k=1)", None),
    ("torch.old($_, $x)", "torch.new($x)", "torch.old(0, a)", "torch.new(a)"),
    ("torch.old($_, $x)", "torch.new($x)", "torch.old(f(), a)", None),
    ("torch.old($x, $x)", "torch.new($x)", "torch.old(a.b, (a . b))", "torch.new(a.b)"),
    ("torch.old($x, $x)", "torch.new($x)", "torch.old(a, b)", None),
    ("torch.old(*$xs)", "torch.new(0, *$xs)", "torch.old(a, *b)", "torch.new(0, a, *b)"),
    ("torch.old(*$xs)", "torch.new(0, *$xs)", "torch.old()", "torch.new(0)"),
    ("torch.old(*$xs)", "torch.new([*$xs])", "torch.old(a, *b or c)", "torch.new([a, *(b or c)])"),
    ("torch.old($x, *$xs)", "torch.new([*$xs], $x)", "torch.old(a, b, c)", "torch.new([b, c], a)"),
    ("torch.old($x, *$xs)", "torch.new([*$xs], $x)", "torch.old(*a)", None),
    ("torch.old($x, **$kw)", "torch.new($x, **$kw)", "torch.old(a, k=1, **b)", "torch.new(a, k=1, **b)"),
    ("torch.old($x, j=$j, **$kw)", "torch.new($x, $j, **$kw)", "torch.old(a, k=(1), j=2)",
     "torch.new(a, 2, k=(1))"),
    ("torch.old($x, **$kw)", "torch.new($x, **$kw)", "torch.old(a, b)", None),
    ("torch.cat([torch.old($x), $y])", "torch.both($x, $y)", "torch.cat([torch.old(a), b])", "torch.both(a, b)"),
    ("torch.cat([torch.old($x), $y])", "torch.both($x, $y)", "other.cat([torch.old(a), b])", None),
    ("-torch.old($x)", "torch.neg($x)", "-torch.old(a)", "torch.neg(a)"),
    ("torch.old($x) + 1", "$x * 2", "2 * (torch.old(a | b) + 1)", "2 * ((a | b) * 2)"),
    ("torch.old", "torch.new()", "f(torch.old)", "f(torch.new())"),
    ("torch.old($x)[2]", "torch.svd3($x)", "torch.old(\n    a  # in\n)[2]", "torch.svd3(a)"),
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "template", "before", "after"), PATTERNS)
def test_pattern(pattern: str, template: str, before: str, after: str | None) -> None:
    case = Case(pattern=pattern, template=template, roles=("call", "reference"))
    assert call(before + "\n", case, signature=None) == (None if after is None else after + "\n")


def test_method_pattern_around_an_operator() -> None:
    case = Case(pattern="(1 + $a).symeig()", template="$a.new()")
    assert call("(1 + (x.T @ x)).symeig()\n", case) == "(x.T @ x).new()\n"
    assert call("(1 - x.T).symeig()\n", case) is None
    assert compile_pattern("torch.symeig(1 + $a)", "torch.Tensor.symeig", True) is None


def test_method_pattern() -> None:
    case = Case(pattern="$a.symeig($b)[0]", template="torch.new($a, $b)")
    assert call("x.T.symeig(True)[0]\n", case) == "torch.new(x.T, True)\n"
    assert call("x.symeig(True)[1]\n", case) is None
    assert call("torch.Tensor.symeig(x, True)[0]\n", case) is None


def test_captures_in_conditions_and_maps() -> None:
    case = Case(pattern="torch.old($v)[$i]", template="torch.new($v, $i)", when={"i": is_(0, 1)})
    assert call("torch.old(a)[1]\n", case) == "torch.new(a, 1)\n"
    assert call("torch.old(a)[2]\n", case) is None
    case = Case(
        pattern="torch.old($v)[$i]", template="torch.new($v, $i)", when={"i": Condition("type", ("int",))}
    )
    assert call("torch.old(a)[True]\n", case) is None
    case = Case(pattern="torch.old($v)[$i]", template="torch.new($v, $i)", map={"i": {"0": "'U'"}})
    assert call("torch.old(a)[0]\n", case) == "torch.new(a, 'U')\n"
    assert call("torch.old(a)[1]\n", case) is None


def test_pattern_with_a_rename() -> None:
    case = Case(pattern="torch.old($v).item()", rename="torch.new")
    assert call("torch.old(a).item()\n", case) == "torch.new(a).item()\n"
    assert call("torch.old(a).items()\n", case) is None


def test_lost_comment() -> None:
    case = Case(pattern="torch.old($v)[2]", template="torch.new($v)")
    found = first_rewrite("import torch\ntorch.old(\n    a  # in\n)[2]\n", make_rule(case))
    assert found is not None
    assert found[0].losses == (COMMENT_LOST,)


def test_pattern_without_the_symbol() -> None:
    assert compile_pattern("torch.other($x)", "torch.old", False) is None
    with pytest.raises(ValueError, match="not a pattern"):
        compile_pattern("torch.old(", "torch.old", False)
