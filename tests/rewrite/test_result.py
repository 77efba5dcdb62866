"""Results: a call whose new form returns something else, and the uses of what it returns."""

from __future__ import annotations

import textwrap

import pytest
from match_support import apply, call, first_rewrite, fixed, make_rule, with_result

from torchmigrate.catalogue.model import Case
from torchmigrate.rewrite.comments import COMMENT_LOST

SOLVE = with_result(Case(template="torch.linalg.solve($A, $input)"), fields=("solution", "LU"), take=0)
SVD = with_result(
    Case(template="torch.linalg.svd($input, full_matrices=False)"),
    fields=("U", "S", "V"),
    adjust={2: "$.mH"},
    new_fields=("U", "S", "Vh"),
)
PRODUCT = with_result(Case(template="$A @ $input"), fields=("solution", "LU"), take=0)
TWO = "(input, A)"

TAKE = [
    ("X = torch.old(B, A)[0]", "X = torch.linalg.solve(A, B)"),
    ("X = torch.old(B, A)[-2]", "X = torch.linalg.solve(A, B)"),
    ("X = torch.old(B, A) [ 0 ].T", "X = torch.linalg.solve(A, B).T"),
    ("X = (torch.old(B, A))[0]", "X = (torch.linalg.solve(A, B))"),
    ("X = torch.old(B, A).solution", "X = torch.linalg.solve(A, B)"),
    ("X = (torch.old(B, A)\n     .solution)", "X = (torch.linalg.solve(A, B))"),
    ("X = torch.old(B, A).LU", None),
    ("X = torch.old(B, A)[1]", None),
    ("X = torch.old(B, A)[2]", None),
    ("X = torch.old(B, A)[i]", None),
    ("X = torch.old(B, A)[:1]", None),
    ("X = torch.old(B, A)[False]", None),
    ("torch.old(B, A)[0] = 1", None),
    ("del torch.old(B, A)[0]", None),
    ("X = torch.old(B, A)", None),
    ("X, LU = torch.old(B, A)", "X = torch.linalg.solve(A, B)"),
    ("X, _ = torch.old(B, A)", "X = torch.linalg.solve(A, B)"),
    ("(X, _) = torch.old(B, A)", "X = torch.linalg.solve(A, B)"),
    ("[X, _] = torch.old(B, A)", "X = torch.linalg.solve(A, B)"),
    ("x.y[0], _ = torch.old(B, A)", "x.y[0] = torch.linalg.solve(A, B)"),
    ("X, __ = (torch.old(B, A))", "X = (torch.linalg.solve(A, B))"),
    ("X, LU = torch.old(B, A)\nprint(LU)", None),
    ("X, x.LU = torch.old(B, A)", None),
    ("_, LU = torch.old(B, A)\nprint(LU)", None),
    ("X, LU = pair = torch.old(B, A)", None),
    ("X, *_ = torch.old(B, A)", None),
    ("X, (a, b) = torch.old(B, A)", None),
    ("X, a, b = torch.old(B, A)", None),
    ("torch.old(B, A)", "torch.linalg.solve(A, B)"),
    ("f(torch.old(B, A)[0], 1)", "f(torch.linalg.solve(A, B), 1)"),
    ("f(*torch.old(B, A))", None),
    ("for X in torch.old(B, A): pass", None),
    ("return_ = torch.old(\n    B,\n    A,\n)[0]", "return_ = torch.linalg.solve(\n    A,\n    B,\n)"),
]


@pytest.mark.parametrize(("before", "after"), TAKE)
def test_take(before: str, after: str | None) -> None:
    code = call(before + "\n", SOLVE, signature=TWO)
    assert code == (None if after is None else after + "\n")


def test_take_from_an_operator() -> None:
    assert call("X = torch.old(B, A)[0]\n", PRODUCT, signature=TWO) == "X = A @ B\n"
    assert call("X = torch.old(B, A)[0].T\n", PRODUCT, signature=TWO) == "X = (A @ B).T\n"
    assert call("X = 2 * torch.old(B, A)[0]\n", PRODUCT, signature=TWO) == "X = 2 * (A @ B)\n"
    assert call("X = (torch.old(B, A))[0].T\n", PRODUCT, signature=TWO) == "X = (A @ B).T\n"
    assert call("X, _ = torch.old(B, A)\n", PRODUCT, signature=TWO) == "X = A @ B\n"


def test_take_the_last() -> None:
    case = with_result(Case(template="torch.lu($input)"), fields=("a", "LU"), take=1)
    assert call("_, X = torch.old(B)\n", case, signature="(input)") == "X = torch.lu(B)\n"
    assert call("X = torch.old(B)[-1]\n", case, signature="(input)") == "X = torch.lu(B)\n"
    assert call("X, X = torch.old(B)\n", case, signature="(input)") == "X = torch.lu(B)\n"


def test_lost_comment() -> None:
    code = "import torch\n(X,  # solution\n LU) = torch.old(B, A)\n"
    found = first_rewrite(code, make_rule(SOLVE, signature=TWO))
    assert found is not None
    assert apply(*found) == "import torch\nX = torch.linalg.solve(A, B)\n"
    assert found[0].losses == (COMMENT_LOST,)


NEW = "torch.linalg.svd(A, full_matrices=False)"
ADJUST = [
    ("U, S, V = torch.old(A)\nuse(U, S, V)", f"U, S, V = {NEW}\nV = V.mH\nuse(U, S, V)"),
    ("U, S, V = torch.old(A)  # svd\nuse(U, V)", f"U, S, V = {NEW}  # svd\nV = V.mH\nuse(U, V)"),
    ("U, S, _ = torch.old(A)\nuse(U, S)", f"U, S, _ = {NEW}\nuse(U, S)"),
    ("U, S, V = torch.old(A)\nuse(U, S)", f"U, S, V = {NEW}\nuse(U, S)"),
    ("x.U, x.S, x.V = torch.old(A)", f"x.U, x.S, x.V = {NEW}\nx.V = x.V.mH"),
    ("d[0], d[1], d['V'] = torch.old(A)", f"d[0], d[1], d['V'] = {NEW}\nd['V'] = d['V'].mH"),
    ("U, S, f().V = torch.old(A)", None),
    ("U, S, V = torch.old(A); use(U, S, V)", f"U, S, V = {NEW}; V = V.mH; use(U, S, V)"),
    ("if x: U, S, V = torch.old(A)\nuse(U, S, V)", f"if x: U, S, V = {NEW}; V = V.mH\nuse(U, S, V)"),
    ("U, S, V = torch.old(A);  # svd\nuse(V)", f"U, S, V = {NEW}; V = V.mH;  # svd\nuse(V)"),
    ("U, S, V = torch.old(A); use(U, S)", f"U, S, V = {NEW}; use(U, S)"),
    ("V, S, V = torch.old(A)\nuse(S, V)", None),
    ("V = torch.old(A)[2]", f"V = {NEW}[2].mH"),
    ("V = torch.old(A)[-1].T", f"V = {NEW}[-1].mH.T"),
    ("V = torch.old(A).V", f"V = {NEW}.Vh.mH"),
    ("V = torch.old(A) . V", f"V = {NEW} . Vh.mH"),
    ("S = torch.old(A)[1]", f"S = {NEW}[1]"),
    ("S = torch.old(A).S.T", f"S = {NEW}.S.T"),
    ("USV = torch.old(A)", None),
    ("f(torch.old(A))", None),
    ("torch.old(A)", NEW),
    ("U, S, V = [torch.old(A), 1, 2]", None),
]


@pytest.mark.parametrize(("before", "after"), ADJUST)
def test_adjust(before: str, after: str | None) -> None:
    code = call(before + "\n", SVD, signature="(input)")
    assert code == (None if after is None else after + "\n")


def test_new_line_has_indentation_and_newline_of_the_statement() -> None:
    code = textwrap.dedent(
        """
        import torch
        class A:
        \tdef f(self):
        \t\tU, S, V = torch.old(
        \t\t\tself.A,
        \t\t)  # svd
        \t\treturn V
        """
    ).lstrip()
    after = code.replace("old(", "linalg.svd(").replace("self.A,\n", "self.A,\n\t\t\tfull_matrices=False,\n")
    after = after.replace("# svd\n", "# svd\n\t\tV = V.mH\n")
    rule = make_rule(SVD, signature="(input)")
    assert fixed(code, rule) == after
    assert fixed(code.replace("\n", "\r\n"), rule) == after.replace("\n", "\r\n")


def test_new_line_at_the_end_of_a_file() -> None:
    rule = make_rule(SVD, signature="(input)", symbols=["torch.old"])
    code = "import torch\nU, S, x.V = torch.old(A)"
    assert fixed(code, rule) == f"import torch\nU, S, x.V = {NEW}\nx.V = x.V.mH"
    code = code.replace("\n", "\r\n")
    assert fixed(code, rule) == f"import torch\r\nU, S, x.V = {NEW}\r\nx.V = x.V.mH"


def test_adjust_with_more_than_a_suffix() -> None:
    case = with_result(
        Case(rename="torch.new"), fields=("a", "b"), adjust={1: "-torch.conj($)", 0: "$ if $ else 0"}
    )
    assert call("y = torch.old(A)[1]\n", case) == "y = -torch.conj(torch.new(A)[1])\n"
    assert call("y = torch.old(A)[1].T\n", case) == "y = (-torch.conj(torch.new(A)[1])).T\n"
    assert call("y = torch.old(A)[0]\n", case) is None  # it would be computed twice
    assert call("a, _ = torch.old(A)\nf(a)\n", case) == "a, _ = torch.new(A)\na = a if a else 0\nf(a)\n"
    code = "a, b = torch.old(A)\nf(a, b)\n"
    assert call(code, case) == ("a, b = torch.new(A)\na = a if a else 0\nb = -torch.conj(b)\nf(a, b)\n")


PLAIN = [
    ("y = torch.old(A)", True),
    ("y = z = torch.old(A)", True),
    ("x.y = torch.old(A)", True),
    ("f(torch.old(A), k=torch.zeros(1))", True),
    ("(y := torch.old(A))", True),
    ("torch.old(A)", True),
    ("y = [torch.old(A)]", True),
    ("lambda: torch.old(A)", True),
    ("y = torch.old(A)[0]", False),
    ("y = torch.old(A).a", False),
    ("y = torch.old(A).shape", False),
    ("a, b = torch.old(A)", False),
    ("a, b = y = torch.old(A)", False),
    ("f(*torch.old(A))", False),
    ("for y in torch.old(A): pass", False),
    ("[y for y in torch.old(A)]", False),
]


@pytest.mark.parametrize(("before", "fits"), PLAIN)
def test_plain(before: str, fits: bool) -> None:
    case = with_result(Case(rename="torch.new"), fields=("a", "b"), plain=True)
    assert call(before + "\n", case) == (before.replace("old", "new") + "\n" if fits else None)
    case = with_result(Case(rename="torch.new"), plain=True)
    assert call(before + "\n", case) == (before.replace("old", "new") + "\n" if fits else None)


def test_first_case_whose_use_of_the_result_fits() -> None:
    cases = [
        with_result(Case(template="torch.values($a)"), fields=("e", "v"), take=0),
        with_result(Case(template="torch.both($a)"), fields=("e", "v"), adjust={1: "$.T"}),
        with_result(Case(template="torch.whole($a)"), fields=("e", "v"), plain=True),
    ]
    assert call("e, _ = torch.old(A)\n", *cases) == "e = torch.values(A)\n"
    assert call("_, v = torch.old(A)\nf(v)\n", *cases) == "_, v = torch.both(A)\nv = v.T\nf(v)\n"
    assert call("f(torch.old(A))\n", *cases) == "f(torch.whole(A))\n"


def test_result_of_a_reference_is_not_known() -> None:
    case = with_result(Case(rename="torch.new", roles=("call", "reference")), fields=("a", "b"), take=0)
    assert fixed("import torch\nf = torch.old\n", make_rule(case)) is None
