"""Templates: new code for a whole call."""

from __future__ import annotations

import ast
import itertools

import pytest
from match_support import ABSENT, ANY, apply, call, first_rewrite, fixed, is_, make_rule

from torchmigrate.catalogue.model import Case
from torchmigrate.report.reasons import sentence
from torchmigrate.rewrite.template import parse_template


def made_by(template: str, code: str, **others: object) -> str | None:
    case = Case(template=template, when={"b": ANY, "c": ANY}, map=others.pop("map", {}))  # type: ignore[arg-type]
    result = call(code + "\n", case, **others)
    return None if result is None else result[:-1]


CALLS = [
    # swapped, and by keyword
    ("torch.new($b, $a)", "torch.old(1, 2)", "torch.new(2, 1)"),
    ("torch.new($b, $a)", "torch.old(b=1, a=2)", "torch.new(1, 2)"),
    ("torch.new(x=$b, y=$a)", "torch.old(1, 2)", "torch.new(x=2, y=1)"),
    ("torch.new($a, k=$b)", "torch.old(1)", "torch.new(1)"),
    ("torch.new($a, k=$b, l=$c)", "torch.old(1, c=3)", "torch.new(1, l=3)"),
    ("torch.new($a, k=torch.z)", "torch.old(1)", "torch.new(1, k=torch.z)"),
    ("torch.new(0, $a)", "torch.old(1)", "torch.new(0, 1)"),
    ("torch.new($a, $b)", "torch.old(1)", "torch.new(1)"),
    ("torch.new($a, $b, $c)", "torch.old(1, c=3)", None),
    ("torch.new($b)", "torch.old(1, 2)", None),  # `a` is lost
    ("torch.new($a)", "torch.old(1, b())", None),
    ("torch.new($a)", "torch.old(1, b)", "torch.new(1)"),
    ("torch.new($a)", "torch.old(*args)", None),
    ("torch.new($a)", "torch.old(1, **options)", None),
    ("torch.new($a)", "torch.old(1, other=2)", None),
    ("torch.new($a, $a)", "torch.old(x.y)", "torch.new(x.y, x.y)"),
    ("torch.new($a, $a)", "torch.old(-1)", "torch.new(-1, -1)"),
    ("torch.new($a, $a)", "torch.old(f())", None),
    # around the call
    ("torch.new($b, $a).solution", "torch.old(1, 2)", "torch.new(2, 1).solution"),
    ("torch.wrap(torch.new($a, k=True))", "torch.old(1)", "torch.wrap(torch.new(1, k=True))"),
    ("torch.wrap(torch.new(-$a), dim=-1)", "torch.old(1)", "torch.wrap(torch.new(-1), dim=-1)"),
    ("-torch.new($a)", "torch.old(1)", "-torch.new(1)"),
    ("-torch.new($a)", "torch.old(1).T", "(-torch.new(1)).T"),
    ("-torch.new($a)", "2 ** torch.old(1)", "2 ** -torch.new(1)"),
    ("-torch.new($a)", "torch.old(1) ** 2", "(-torch.new(1)) ** 2"),
    # within an argument
    ('torch.new($a, m="x" if $b else "y")', "torch.old(1, f)", 'torch.new(1, m="x" if f else "y")'),
    ('torch.new($a, m="x" if $b else "y")', "torch.old(1, b=f or g)", 'torch.new(1, m="x" if f or g else "y")'),
    ('torch.new($a, m="x" if $b else "y")', "torch.old(1, p if q else r)",
     'torch.new(1, m="x" if (p if q else r) else "y")'),
    ('torch.new($a, m="x" if $b else "y")', "torch.old(1)", None),
    ("torch.new(($a, $b))", "torch.old(1, 2)", "torch.new((1, 2))"),
    # other expressions
    ("$a", "torch.old(1 + 2)", "1 + 2"),
    ("$a", "torch.old(1 + 2).T", "(1 + 2).T"),
    ("$a", "3 * torch.old(1 + 2)", "3 * (1 + 2)"),
    ("$a", "f(torch.old(1 + 2))", "f(1 + 2)"),
    ("$a", "(torch.old(1 + 2)).T", "(1 + 2).T"),
    ("$a", "torch.old(a=x)", "x"),
    ("$a", "torch.old((\n    x\n    + 1))", "(\n    x\n    + 1)"),
    ("$a", "torch.old(\n    x\n    + 1)", "(x\n    + 1)"),
    ("$a", "torch.old(\n    x\n)", "x"),
    ("$a.mH", "torch.old(x)", "x.mH"),
    ("$a.mH", "torch.old(x @ y)", "(x @ y).mH"),
    ("$a.mH", "torch.old(-x)", "(-x).mH"),
    ("$a.real", "torch.old(1)", "(1).real"),
    ("$a.upper()", "torch.old('a' 'b')", "('a' 'b').upper()"),
    ("$a[:, None] * $b", "torch.old(x, y + 1)", "x[:, None] * (y + 1)"),
    ("$a[:, None] * $b", "torch.old(x, y).sum()", "(x[:, None] * y).sum()"),
    ("$a[:, None] * $b", "torch.old(x, y) * 2", "x[:, None] * y * 2"),
    ("$a[:, None] * $b", "2 / torch.old(x, y)", "2 / (x[:, None] * y)"),
    ("($a)", "torch.old(1 + 2)", "(1 + 2)"),
    ("not $a", "torch.old(x == 1)", "not x == 1"),
    ("not $a", "torch.old(x) == 1", "(not x) == 1"),
    ("$b ** $a", "torch.old(-x, -y)", "(-y) ** -x"),
    ("lambda v: torch.new(v, $a)", "torch.old(x)", "lambda v: torch.new(v, x)"),
    ("lambda v: v.real", "torch.old()", "lambda v: v.real"),
    ("str", "f(torch.old())", "f(str)"),
    ("[$a, {1: $b}]", "torch.old(1, 2)", "[1, {1: 2}]"),
    ("$a[$b]", "torch.old(x, 0)", "x[0]"),
]  # fmt: skip


@pytest.mark.parametrize(("template", "before", "after"), CALLS)
def test_template(template: str, before: str, after: str | None) -> None:
    assert made_by(template, before, signature="(a=0, b=1, c=None)") == after


def test_layout_of_the_call_stays() -> None:
    before = "torch.old(\n    f(a),\n\n    # second\n    [\n        1,\n    ],\n)"
    assert made_by("torch.new($a, k=$b)", before) == before.replace("old", "new").replace("    [", "    k=[")
    after = "torch.wrap(torch.new(\n    f(a),\n\n    # second\n    [\n        1,\n    ],\n    c=0,\n)).T"
    assert made_by("torch.wrap(torch.new($a, $b, c=0)).T", before) == after
    before = "torch.old(a,  # one\n          b)"
    assert made_by("torch.new($a, torch.cat([$b, $b]))", before) == (
        "torch.new(a,  # one\n          torch.cat([b, b]))"
    )


def test_swapped_arguments_take_each_others_places() -> None:
    before = "torch.old(\r\n    f(1),\r\n    [2,\r\n     3],\r\n)"
    assert made_by("torch.new($b, $a)", before) == "torch.new(\r\n    [2,\r\n     3],\r\n    f(1),\r\n)"


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("torch.old(\n    b,  # side\n    a,\n)", "torch.new(\n    a,  # side\n    b,\n)",
         "a comment would move to another argument"),
        ("torch.old(\n    # side\n    b,\n    a,\n)", "torch.new(\n    # side\n    a,\n    b,\n)",
         "a comment would move to another argument"),
        ("torch.old(  # side\n    b,\n    a,\n)", "torch.new(  # side\n    a,\n    b,\n)", None),
        ("torch.old(\n    b,\n    a,\n    # end\n)", "torch.new(\n    a,\n    b,\n    # end\n)", None),
    ],
)  # fmt: skip
def test_comments_of_swapped_arguments(before: str, after: str, reason: str | None) -> None:
    found = first_rewrite(f"import torch\n{before}\n", make_rule(Case(template="torch.new($b, $a)")))
    assert found is not None
    assert sentence(found[0].losses) == reason
    assert apply(*found) == f"import torch\n{after}\n"


def test_comment_that_has_no_place() -> None:
    code = "import torch\ny = torch.old(\n    a,  # left\n    b,\n)\n"
    found = first_rewrite(code, make_rule(Case(template="$a @ $b")))
    assert found is not None
    assert apply(*found) == "import torch\ny = a @ b\n"
    assert sentence(found[0].losses) == "the fix removes a comment"
    code = "import torch\ny = torch.old(\n    [a,  # in\n    ], b)\n"
    found = first_rewrite(code, make_rule(Case(template="torch.cat($a) @ $b")))
    assert found is not None
    assert found[0].losses == ()


def test_map() -> None:
    uplo = {"b": {"True": '"U"', "False": '"L"'}}
    template = "torch.new($a, UPLO=$b)"
    assert made_by(template, "torch.old(1)", map=uplo, signature="(a, b=True)") == 'torch.new(1, UPLO="U")'
    assert made_by(template, "torch.old(1, b=False)", map=uplo) == 'torch.new(1, UPLO="L")'
    assert made_by(template, "torch.old(1, False)", map=uplo) == 'torch.new(1, UPLO="L")'
    assert made_by(template, "torch.old(1, b=flag)", map=uplo) is None
    assert made_by(template, "torch.old(1, b=1)", map=uplo) is None
    assert made_by(template, "torch.old(1)", map=uplo) is None  # the default is not in the map
    assert made_by(template, "torch.old(1, 'x')", map={"b": {"'x'": '"y"'}}) == "torch.new(1, UPLO='y')"
    names = {"b": {"torch.half": "torch.bfloat16"}}
    assert made_by(template, "torch.old(1, torch.half)", map=names) == "torch.new(1, UPLO=torch.bfloat16)"
    same = {"b": {"1": "1"}}
    assert made_by(template, "torch.old(1, b=1)", map=same) == "torch.new(1, UPLO=1)"
    assert made_by(template, "torch.old(1)", map=same) == "torch.new(1, UPLO=1)"
    before = "torch.old(\n    a,\n    b=False,  # lower\n)"
    assert made_by(template, before, map=uplo) == 'torch.new(\n    a,\n    UPLO="L",  # lower\n)'


VARIADIC = [
    ("torch.new([*$ms])", "torch.old(a, b)", "torch.new([a, b])"),
    ("torch.new([*$ms])", "torch.old(*ms)", "torch.new([*ms])"),
    ("torch.new([*$ms])", "torch.old(a, *ms)", "torch.new([a, *ms])"),
    ("torch.new([*$ms])", "torch.old(v for v in w)", "torch.new([(v for v in w)])"),
    ("torch.new([*$ms])", "torch.old(\n    a,\n    b,  # c\n)", "torch.new([\n    a,\n    b,  # c\n])"),
    ("torch.new([*$ms]).T", "torch.old(a, b, out=o)", None),
    ("torch.new([*$ms], out=$out)", "torch.old(a, b, out=o)", "torch.new([a, b], out=o)"),
    ("torch.new(*$ms, out=$out)", "torch.old(a, *b, out=o)", "torch.new(a, *b, out=o)"),
    ("torch.new(*$ms, out=$out)", "torch.old()", "torch.new()"),
    ("torch.new([*$ms])", "torch.old()", "torch.new([])"),
    ("torch.new([$ms])", "torch.old(a)", None),
    ("torch.new([*$ms])", "torch.old(*a or b)", None),
    ("torch.new(*$ms, out=$out)", "torch.old(*a or b)", "torch.new(*a or b)"),
    ("sum([*$ms])", "torch.old(a, b)", "sum([a, b])"),
]


@pytest.mark.parametrize(("template", "before", "after"), VARIADIC)
def test_variadic(template: str, before: str, after: str | None) -> None:
    code = call(before + "\n", Case(template=template), signature="(*ms, out=None)")
    assert code == (None if after is None else after + "\n")


def test_double_star() -> None:
    case = Case(template="torch.new(0, $f, **$kw)")
    assert call("torch.old(g, a=1, **o)\n", case, signature="(f, **kw)") == "torch.new(0, g, a=1, **o)\n"
    assert call("torch.old(f=g)\n", case, signature="(f, **kw)") == "torch.new(0, g)\n"


METHODS = [
    ("x.symeig(True)", "torch.new(x, k=True)"),
    ("x.T.symeig()", "torch.new(x.T)"),
    ("(x + 1).symeig()", "torch.new(x + 1)"),
    ("torch.Tensor.symeig(x, True)", "torch.new(x, k=True)"),
    ("torch.zeros(3).symeig(\n    True,  # c\n)", "torch.new(\n    torch.zeros(3),\n    k=True,  # c\n)"),
    ("(torch.zeros(3)\n .symeig())", "(torch.new(torch.zeros(3)))"),
    ("(  # c\n    x\n).symeig()", "torch.new((  # c\n    x\n))"),
    ("(x).symeig()", "torch.new(x)"),
    ("assert(x).symeig()", "assert torch.new(x)"),
    ("y = 1 if(x).symeig()else 2", "y = 1 if torch.new(x) else 2"),
]


@pytest.mark.parametrize(("before", "after"), METHODS)
def test_method(before: str, after: str | None) -> None:
    code = call(before + "\n", Case(template="torch.new($a, k=$b)"), signature="(a, b=None)")
    if after is not None and " else 2" in after:
        after = after.replace(" else", "else")  # a parenthesis needs no space
    assert code == (None if after is None else after + "\n")


def test_receiver_in_another_place() -> None:
    case = Case(template="$b @ $a.mH", when={"c": ABSENT})
    assert call("x.symeig(y)\n", case) == "y @ x.mH\n"
    assert call("z = (x).symeig(await_)if z else 0\n", case) == "z = await_ @ x.mH if z else 0\n"


@pytest.mark.parametrize(
    ("call_", "fixable"),
    [
        ("torch.old(f(1), g(2))", True),
        ("torch.old(await f(1), g(2))", False),
        ("torch.old(f(1), (y := 2))", False),
        ("torch.old(y, lambda: 0)", True),
        ("torch.old((yield), 1)", False),
    ],
)
def test_order_of_evaluation(call_: str, fixable: bool) -> None:
    code = f"import torch\nasync def f():\n    return {call_}\n".replace(
        "async ", "" if "yield" in call_ else "async "
    )
    assert (fixed(code, make_rule(Case(template="torch.new($b, $a)"))) is not None) is fixable
    assert fixed(code, make_rule(Case(template="torch.new($a, $b)"))) is not None


def test_same_function_keeps_how_arguments_are_given() -> None:
    case = Case(template="torch.wrap(torch.old($a, $b, $c, k=1))")
    assert call("torch.old(1, c=3)\n", case) == "torch.wrap(torch.old(1, c=3, k=1))\n"
    assert call("torch.old(c=3, a=1)\n", case) == "torch.wrap(torch.old(c=3, a=1, k=1))\n"
    assert call("torch.old(1, 2)\n", case) == "torch.wrap(torch.old(1, 2, k=1))\n"


def test_names_are_spelled() -> None:
    asked: list[str] = []

    def spell(name: str) -> str | None:
        asked.append(name)
        return {"torch.linalg.new": "new", "torch.half": "th.half"}.get(name)

    code = "import torch\ntorch.old(1)\n"
    case = Case(template="torch.linalg.new($a, dtype=torch.half, n=len)")
    assert fixed(code, make_rule(case), spell) == "import torch\nnew(1, dtype=th.half, n=len)\n"
    assert sorted(asked) == ["torch.half", "torch.linalg.new"]
    assert fixed(code, make_rule(Case(template="torch.linalg.other($a)")), spell) is None


def test_only_the_case_that_fits_is_spelled() -> None:
    asked: list[str] = []

    def spell(name: str) -> str | None:
        asked.append(name)
        return name

    cases = [
        Case(template="torch.one($a)", when={"b": is_(7)}),
        Case(template="torch.two($a, torch.x if $b else 0)"),
        Case(template="torch.three($a, m=$b)", map={"b": {"5": "torch.y"}}),
        Case(template="torch.four($a)"),
    ]
    assert fixed("import torch\ntorch.old(1)\n", make_rule(*cases), spell) == "import torch\ntorch.four(1)\n"
    assert asked == ["torch.four"]


def test_case_that_cannot_be_written_stops_the_search() -> None:
    cases = [Case(template="torch.one($a)"), Case(template="torch.two($a)")]
    code = "import torch\ntorch.old(1)\n"
    assert fixed(code, make_rule(*cases), lambda name: None if name == "torch.one" else name) is None


def test_nested_uses_do_not_get_in_each_others_way() -> None:
    code = "import torch\ny = torch.old(torch.old(a, 2), 3)\n"
    found = first_rewrite(code, make_rule(Case(template="torch.linalg.new($a, k=$b, l=0)")))
    assert found is not None
    inner = code.index("torch.old(a")
    assert [edit for edit in found[0].edits if edit.start < inner + 14 and edit.end > inner] == []
    found = first_rewrite(code, make_rule(Case(template="$a.T @ $b")))
    assert found is not None  # what is inside may need other parentheses then: not at once
    assert any(edit.start <= inner and edit.end > inner for edit in found[0].edits)


@pytest.mark.parametrize(
    ("template", "argument", "fits"),
    [
        ("lambda v: torch.new(v, $a)", "w", True),
        ("lambda v: torch.new(v, $a)", "v", False),
        ("lambda v: torch.new(v, $a)", "f(lambda: v)", False),
        ("lambda v: torch.new(v, $a)", "(w := 1)", False),
        ("[v.real for v in $a]", "w", True),
        ("[v.real for v in $a]", "v", False),
        ("[u for u, v in $a]", "v", False),
    ],
)
def test_names_that_the_template_binds(template: str, argument: str, fits: bool) -> None:
    code = call(f"y = torch.old({argument})\n", Case(template=template))
    assert code == (f"y = {template}\n".replace("$a", argument) if fits else None)


@pytest.mark.parametrize("text", ["torch.new(", "a = b", ""])
def test_bad_template(text: str) -> None:
    with pytest.raises(ValueError, match="not a template"):
        parse_template(text)


# ---- parentheses, exactly where they are needed --------------------------------------------------------

EXPRESSIONS = [
    "v", "v.w", "v(1)", "v[0]", "1", "1.5", "-1", "'s'", "'s' 't'", "f'{v}'", "(v, w)", "[v]", "{v: w}", "{v}",
    "v + w", "v * w", "v ** w", "-v", "~v", "v | w", "v << 1", "v < w", "v in w", "not v", "v and w", "v or w",
    "v if w else u", "lambda: v", "lambda v: v, ", "(v := w)", "[i for i in v]", "(i for i in v)", "v @ w", "...",
    "(v + w)", "(lambda: v)", "None", "v\n.w", "v +\n w", "'s'\n't'", "v[1:2, ...]", "v if w else lambda: u",
]  # fmt: skip
TEMPLATES = [
    "$a", "torch.new($a)", "torch.new(k=$a)", "torch.new(*$a)", "torch.new(**$a)", "torch.new([$a, *$a])", "$a.real",
    "$a[0]", "$a(1)", "u[$a]", "u[$a, 1:$a]", "$a + u", "u + $a", "$a - u", "u - $a", "$a ** u", "u ** $a", "-$a",
    "not $a", "$a and u", "u and $a", "u or $a", "$a < u", "u < $a", "$a if u else t", "u if $a else t",
    "u if t else $a", "lambda q: $a", "($a, 1)", "{$a: $a}", "{**$a}", "[q for q in $a]", "[q for q in u if $a]",
    "$a | u", "u << $a", "~$a", "($a)", "torch.new($a, 1)[0].T", "torch.new(-$a).T", "[$a for q in u]",
]  # fmt: skip
SURROUNDINGS = [
    "{}", "y = {}", "f({})", "f(k={})", "{}.T", "{}[0]", "{}()", "-{}", "not {}", "2 ** {}", "{} ** 2", "1 - {}",
    "{} - 1", "y < {} < z", "u and {}", "{} or u", "{} if u else t", "u if {} else t", "u if t else {}",
    "lambda: {}", "[{}, 1]", "{}, 1", "({})", "({}).T", "f(*{})", "[*{}]", "u[{}]", "u[1:{}]", "[q for q in {}]",
    "[q for q in u if {}]", "[{} for q in u]", "{{{}: 1}}", "{{**{}}}", "f(**{})", "assert {}", "(y := {})",
    "with {} as y: pass", "for y in {}: pass", "def f(y={}): pass", "def f(y: {}): pass",
]  # fmt: skip


class _Substitute(ast.NodeTransformer):
    def __init__(self, names: dict[str, ast.expr]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.names.get(node.id, node)


class _Flat(ast.NodeTransformer):
    """`(a and b) and c` is `a and b and c`."""

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        self.generic_visit(node)
        values: list[ast.expr] = []
        for value in node.values:
            nested = isinstance(value, ast.BoolOp) and type(value.op) is type(node.op)
            values += value.values if nested else [value]  # type: ignore[attr-defined]
        return ast.BoolOp(node.op, values)


class _Replace(ast.NodeTransformer):
    def __init__(self, new: ast.expr) -> None:
        self.new = new

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if ast.unparse(node.func) == "torch.old":
            return self.new
        return self.generic_visit(node)  # type: ignore[return-value]


def check(template: str, expression: str, surrounding: str) -> bool:
    """Whether the rewrite means what the template says; False where there is none."""
    head = "import torch\n"
    code = head + surrounding.format(f"torch.old({expression})") + "\n"
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return False  # this expression does not fit there to begin with
    text = fixed(code, make_rule(Case(template=template), signature="(a)"))
    if text is None:
        return False
    marked = ast.parse(template.replace("$a", "meta"), mode="eval").body
    argument = ast.parse(f"f({expression})", mode="eval").body
    assert isinstance(argument, ast.Call)
    expected = _Replace(_Substitute({"meta": argument.args[0]}).visit(marked)).visit(tree)
    assert ast.dump(_Flat().visit(ast.parse(text))) == ast.dump(_Flat().visit(expected)), text
    return True


def test_parentheses_around_arguments() -> None:
    done = sum(
        check(template, expression, "y = {}")
        for template, expression in itertools.product(TEMPLATES, EXPRESSIONS)
    )
    assert done > 0.8 * len(TEMPLATES) * len(EXPRESSIONS)


def test_parentheses_around_the_whole() -> None:
    done = sum(
        check(template, "v", surrounding)
        for template, surrounding in itertools.product(TEMPLATES, SURROUNDINGS)
    )
    assert done > 0.9 * len(TEMPLATES) * len(SURROUNDINGS)


@pytest.mark.parametrize(
    ("template", "code", "expected"),
    [
        ("$a.T", "y = torch.old(v[0](1).w)", "y = v[0](1).w.T"),
        ("$a + 1", "y = torch.old(v * w)", "y = v * w + 1"),
        ("$a + 1", "y = torch.old(v) + 2", "y = v + 1 + 2"),
        ("$a + 1", "y = (torch.old(v)) * 2", "y = (v + 1) * 2"),
        ("$a + 1", "y = f(torch.old(v))", "y = f(v + 1)"),
        ("$a ** 2", "y = -torch.old(v)", "y = -v ** 2"),
        ("$a if $a else 0", "y = torch.old(v)", "y = v if v else 0"),
    ],
)
def test_no_parentheses_where_none_are_needed(template: str, code: str, expected: str) -> None:
    assert (
        fixed(f"import torch\n{code}\n", make_rule(Case(template=template))) == f"import torch\n{expected}\n"
    )
