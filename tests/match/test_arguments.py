"""Argument operations: what changes in a call, and that everything else stays."""

from __future__ import annotations

import ast
import itertools
import textwrap

import pytest
from match_support import apply, call, first_rewrite, make_rule

from torchmigrate.catalogue.model import Case
from torchmigrate.findings import Applicability, because
from torchmigrate.rewrite.comments import COMMENT_LOST

LOST = COMMENT_LOST


def lines(code: str) -> str:
    return textwrap.dedent(code).strip("\n")


DROP = [
    ("torch.old(a, b, c)", "torch.old(a, c=c)"),
    ("torch.old(a, b)", "torch.old(a)"),
    ("torch.old(a, b,)", "torch.old(a,)"),
    ("torch.old(a , b )", "torch.old(a )"),
    ("torch.old(b=1, a=a)", "torch.old(a=a)"),
    ("torch.old(a, c=c, b=1)", "torch.old(a, c=c)"),
    ("torch.old(a=a, b=b, c=c)", "torch.old(a=a, c=c)"),
    ("torch.old(a, b, *[], c=c)", None),
    ("torch.old(a, b, **o)", None),
    ("torch.old(a, b())", None),
    ("torch.old(a, [await_(x)])", None),
    ("torch.old(a, b=(y := 1))", None),
    ("torch.old(a, b=x.T[0] + 1)", "torch.old(a)"),
    ("torch.old(g(z), 2)", "torch.old(g(z))"),
    ("torch.old(a,\n          b,\n          c=c)", "torch.old(a,\n          c=c)"),
    ("torch.old(b=b,\n          a=a)", "torch.old(a=a)"),
    ("torch.old(\n    a,\n    b,\n)", "torch.old(\n    a,\n)"),
    ("torch.old(\n    a,\n    b\n)", "torch.old(\n    a\n)"),
    ("torch.old(\n    a,\n    b)", "torch.old(\n    a)"),
    ("torch.old(\n    a, b,\n    c=c,\n)", "torch.old(\n    a,\n    c=c,\n)"),
    ("torch.old(\n    a=a,\n    b=b,\n    c=c,\n)", "torch.old(\n    a=a,\n    c=c,\n)"),
    ("torch.old(\r\n    a,\r\n    b,\r\n)", "torch.old(\r\n    a,\r\n)"),
    ("torch.old(\n    a,  # one\n    b\n)", "torch.old(\n    a,  # one\n)"),
    ("torch.old(\n    a,  # one\n    b)", "torch.old(\n    a,  # one\n    )"),
    ("torch.old(a  # one\n          , b)", "torch.old(a  # one\n          )"),
    ("torch.old(\n    # above\n    a,\n\n    b,\n    # below\n    c=c,\n)", "torch.old(\n    # above\n    a,\n\n    # below\n    c=c,\n)"),
    ("torch.old(a, b,  # both\n          c=c)", "torch.old(a,  # both\n          c=c)"),
    ("torch.old(\n    a\n    , b\n    , c=c\n)", "torch.old(\n    a\n    , c=c\n)"),
    ("torch.old(a,\n          (\n              b  # in\n          ),\n          c=c)", "torch.old(a,\n          c=c)"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), DROP)
def test_drop(before: str, after: str | None) -> None:
    assert call(before + "\n", Case(drop=("b",))) == (None if after is None else after + "\n")


def test_drop_everything() -> None:
    case = Case(drop=("a", "b", "c"))
    assert call("torch.old(a)\n", case) == "torch.old()\n"
    assert call("torch.old(\n    a,\n    c=c,\n)\n", case) == "torch.old()\n"


def test_drop_neighbours() -> None:
    case = Case(drop=("b", "c"))
    assert call("torch.old(a, b, c)\n", case) == "torch.old(a)\n"
    assert call("torch.old(\n    a,\n    b, c,\n)\n", case) == "torch.old(\n    a,\n)\n"
    assert call("torch.old(a, b,\n          c)\n", case) == "torch.old(a)\n"


@pytest.mark.parametrize(
    ("before", "safe"),
    [
        ("torch.old(\n    a,\n    b,  # why\n)", False),
        ("torch.old(\n    a,\n    b  # why\n)", False),
        ("torch.old(\n    a,\n    # about b\n    b,\n)", True),  # stays
        ("torch.old(\n    a,  # why\n    b,\n)", True),
        ("torch.old(\n    a,\n    (  # why\n        b),\n)", False),
        ("torch.old(\n    a,\n    b='# no comment',\n)", True),
    ],
)
def test_drop_with_a_comment(before: str, safe: bool) -> None:
    found = first_rewrite("import torch\n" + before + "\n", make_rule(Case(drop=("b",))))
    assert found is not None
    made, source = found
    assert made.losses == (() if safe else (LOST,))
    assert ("# why" in apply(made, source)) == (safe and "# why" in before)


def test_a_reason_is_added_to_that_of_the_case() -> None:
    case = Case(drop=("b",), applicability=Applicability.UNSAFE, reason="it changes")
    found = first_rewrite("import torch\ntorch.old(\n    a,\n    b,  # why\n)\n", make_rule(case))
    assert found is not None
    level, reason = found[0].with_losses(case.applicability, because("it changes"))
    assert (level, reason) == (Applicability.UNSAFE, (*because("it changes"), LOST))


KEYWORDS = [
    ("torch.old(a, b=1)", "torch.old(a, new=1)"),
    ("torch.old(a, b = 1)", "torch.old(a, new = 1)"),
    ("torch.old(a, 1)", "torch.old(a, 1)"),
    ("torch.old(a, c=b, b=b)", "torch.old(a, c=b, new=b)"),
    ("torch.old(\n    a,\n    b=1,  # why\n)", "torch.old(\n    a,\n    new=1,  # why\n)"),
    ("torch.old(a, b=torch.old(b=1))", "torch.old(a, new=torch.old(b=1))"),
    ("torch.old(a, *b, c=1)", None),
]


@pytest.mark.parametrize(("before", "after"), KEYWORDS)
def test_rename_keyword(before: str, after: str | None) -> None:
    expected = None if after is None or after == before else after + "\n"
    assert call(before + "\n", Case(keywords={"b": "new"})) == expected


def test_keyword_that_is_given_already() -> None:
    assert call("torch.old(a, b=1, c=2)\n", Case(keywords={"b": "c"})) is None


def test_dropped_positional_makes_later_ones_keywords_by_their_new_name() -> None:
    case = Case(drop=("a",), keywords={"b": "size"})
    assert call("torch.old(a, b, c)\n", case) == "torch.old(size=b, c=c)\n"
    assert call("torch.old(1, c)\n", Case(drop=("a",)), signature="(a, c, /)") == "torch.old(c)\n"
    assert call("torch.old(1, c)\n", Case(drop=("a",)), signature="(a, *c)") is None


ADD = [
    ("torch.old()", "torch.old(k=1)"),
    ("torch.old( )", "torch.old(k=1 )"),
    ("torch.old(\n)", "torch.old(k=1\n)"),
    ("torch.old(a)", "torch.old(a, k=1)"),
    ("torch.old(a, )", "torch.old(a, k=1, )"),
    ("torch.old(a, b=1)", "torch.old(a, b=1, k=1)"),
    ("torch.old(\n    a, b=1\n)", "torch.old(\n    a, b=1, k=1\n)"),
    ("torch.old(\n    a, b=1,\n)", "torch.old(\n    a, b=1, k=1,\n)"),
    ("torch.old(\n    a,\n    b=1,\n)", "torch.old(\n    a,\n    b=1,\n    k=1,\n)"),
    ("torch.old(\n    a,\n    b=1\n)", "torch.old(\n    a,\n    b=1,\n    k=1\n)"),
    ("torch.old(\n\ta,\n\tb=1)", "torch.old(\n\ta,\n\tb=1,\n\tk=1)"),
    ("torch.old(a,\n          b=1)", "torch.old(a,\n          b=1,\n          k=1)"),
    ("torch.old(\r\n    a,\r\n)", "torch.old(\r\n    a,\r\n    k=1,\r\n)"),
    ("torch.old(\n    a,  # one\n    b=1  # two\n)", "torch.old(\n    a,  # one\n    b=1,  # two\n    k=1\n)"),
    ("torch.old(\n    a,\n    b=1,  # two\n    # end\n)", "torch.old(\n    a,\n    b=1,  # two\n    k=1,\n    # end\n)"),
    ("torch.old(a, b=1  # two\n)", "torch.old(a, b=1, k=1  # two\n)"),
    ("torch.old(\n    a,\n    b=1,)", "torch.old(\n    a,\n    b=1,\n    k=1,)"),
    ("torch.old(v for v in w)", "torch.old((v for v in w), k=1)"),
    ("torch.old((v for v in w))", "torch.old((v for v in w), k=1)"),
    ("torch.old(a := 1)", "torch.old(a := 1, k=1)"),
    ("torch.old(a, b=[\n    1,\n    2,\n])", "torch.old(a, b=[\n    1,\n    2,\n], k=1)"),
    ("torch.old(a, k=2)", None),
    ("torch.old(a, *b)", None),
    ("torch.old(a, **b)", None),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), ADD)
def test_add(before: str, after: str | None) -> None:
    code = call(before + "\n", Case(add={"k": "1"}), signature="(a=0, b=1, *, k=None)")
    assert code == (None if after is None else after + "\n")


def test_add_before_double_star_where_that_is_understood() -> None:
    case = Case(add={"k": "1"})
    assert call("torch.old(a, **o)\n", case, signature="(a, **options)") == "torch.old(a, k=1, **o)\n"
    code = "torch.old(\n    a,\n    **o,\n)\n"
    assert call(code, case, signature="(a, **options)") == "torch.old(\n    a,\n    k=1,\n    **o,\n)\n"


def test_add_keeps_an_existing_argument() -> None:
    case = Case(add={"k": "1"}, rename="torch.new")
    assert call("torch.old(a, k=2)\n", case, signature="(a, k=0)") == "torch.new(a, k=2)\n"
    assert call("torch.old(a, 2)\n", case, signature="(a, k=0)") == "torch.new(a, 2)\n"


def test_added_sources_are_templates() -> None:
    case = Case(drop=("b",), add={"mode": '"sum" if $b else torch.mode'})
    assert call("torch.old(a, b=flag)\n", case) == 'torch.old(a, mode="sum" if flag else torch.mode)\n'
    assert call("torch.old(a, b=f(1))\n", case) == 'torch.old(a, mode="sum" if f(1) else torch.mode)\n'
    assert call("torch.old(b=flag, a=a)\n", case) == 'torch.old(mode="sum" if flag else torch.mode, a=a)\n'
    assert call("torch.old(a)\n", case) is None
    before = "torch.old(\n    a=a,\n    b=False,  # summed\n)\n"
    after = 'torch.old(\n    a=a,\n    reduction="sum",  # summed\n)\n'
    assert call(before, Case(drop=("b",), add={"reduction": '"sum"'})) == after


INSERT = [
    ("torch.old()", 'torch.old("cuda")'),
    ("torch.old(a)", 'torch.old("cuda", a)'),
    ("torch.old(a,)", 'torch.old("cuda", a,)'),
    ("torch.old(\n    a,\n    b,\n)", 'torch.old(\n    "cuda",\n    a,\n    b,\n)'),
    ("torch.old(\n    a, b\n)", 'torch.old(\n    "cuda", a, b\n)'),
    ("torch.old(a,\n          b)", 'torch.old("cuda",\n          a,\n          b)'),
    ("torch.old(  # why\n    a)", 'torch.old(  # why\n    "cuda",\n    a)'),
    ("torch.old(v for v in w)", 'torch.old("cuda", (v for v in w))'),
    ("torch.old(b=1)", 'torch.old("cuda", b=1)'),
    ("torch.old(*a)", None),
]


@pytest.mark.parametrize(("before", "after"), INSERT)
def test_insert(before: str, after: str | None) -> None:
    code = call(before + "\n", Case(insert=('"cuda"',)), signature="(a=0, b=1)")
    assert code == (None if after is None else after + "\n")


def test_insert_with_keywords_for_what_moves() -> None:
    case = Case(insert=('"cuda"',), to_keyword=("a", "b"), keywords={"a": "enabled"}, rename="torch.new")
    assert call("torch.old(amp, 1)\n", case) == 'torch.new("cuda", enabled=amp, b=1)\n'
    assert call("torch.old(not a)\n", case) == 'torch.new("cuda", enabled=not a)\n'
    assert call("torch.old(a := 1)\n", case) == 'torch.new("cuda", enabled=(a := 1))\n'
    assert call("torch.old(v for v in w)\n", case) == 'torch.new("cuda", enabled=(v for v in w))\n'


def test_insert_without_a_signature() -> None:
    assert call("torch.old(k=1)\n", Case(insert=("0",)), signature=None) == "torch.old(0, k=1)\n"
    assert call("torch.old(1)\n", Case(insert=("0",)), signature=None) is None


def test_to_keyword_takes_the_later_ones_along() -> None:
    case = Case(to_keyword=("b",))
    assert call("torch.old(a, b, c)\n", case) == "torch.old(a, b=b, c=c)\n"
    assert call("torch.old(a, (b), c)\n", case) == "torch.old(a, b=(b), c=c)\n"
    assert call("torch.old(a, b=b)\n", case) is None
    assert call("torch.old(a, b, c)\n", case, signature="(a, b, *c)") is None


SET = [
    ("torch.old(a, b='one')", "torch.old(a, b='two')"),
    ('torch.old(a, "one")', 'torch.old(a, "two")'),
    ("torch.old(a, b='''one''')", "torch.old(a, b='two')"),
    ("torch.old(a, b=r'one')", "torch.old(a, b='two')"),
    ("torch.old(a, b=ONE)", 'torch.old(a, b="two")'),
    ("torch.old(a, b=one())", None),
    ("torch.old(a)", None),
    ("torch.old(a, b='two')", None),
]


@pytest.mark.parametrize(("before", "after"), SET)
def test_set_keeps_the_quotes(before: str, after: str | None) -> None:
    code = call(before + "\n", Case(set={"b": '"two"'}))
    assert code == (None if after is None else after + "\n")


def test_set_to_a_template_between_quotes() -> None:
    code = call("torch.old(a, 'x')\n", Case(set={"b": '"one" if $b else "two"'}))
    assert code == "torch.old(a, 'one' if 'x' else 'two')\n"


def test_set_and_rename_of_one_argument() -> None:
    case = Case(set={"b": "torch.weights.DEFAULT"}, keywords={"b": "weights"})
    assert call("torch.old(a, b=True)\n", case) == "torch.old(a, weights=torch.weights.DEFAULT)\n"
    assert call("torch.old(a, True)\n", case) == "torch.old(a, torch.weights.DEFAULT)\n"


def test_map_of_values() -> None:
    case = Case(map={"b": {"True": '"U"', "False": '"L"'}}, keywords={"b": "UPLO"})
    assert call("torch.old(a, b=False)\n", case) == 'torch.old(a, UPLO="L")\n'
    assert call("torch.old(a, b=upper)\n", case) is None
    assert call("torch.old(a, b=1)\n", case) is None


def test_without_a_signature_only_keywords_are_touched() -> None:
    case = Case(drop=("b",), keywords={"c": "d"})
    assert call("torch.old(1, 2, b=3, c=4)\n", case, signature=None) == "torch.old(1, 2, d=4)\n"
    assert call("torch.old(1, *a, b=3, c=4)\n", case, signature=None) is None


# ---- every layout with every operation ----------------------------------------------------------------

ARGUMENTS = [
    ["a", "b"],
    ["a", "b", "c"],
    ["f.a[0]", "b=b"],
    ["a", "c=c", "b=b"],
    ["c=c", "a=a", "b=b"],
    ["(a + 1)", "(b)", "c=lambda: 0"],
]
LAYOUTS = [
    ("", ", ", ""),
    ("", ", ", ","),
    ("\n    ", ",\n    ", ",\n"),
    ("\n    ", ",\n    ", "\n"),
    ("", ",\n          ", ""),
    ("  # open\n    ", ",  # after\n    # above\n    ", ",  # last\n"),
    (" ", " , ", " "),
    ("\n\n  ", "\n  ,", "\n  # end\n"),
]
OPERATIONS = [
    Case(drop=("b",)),
    Case(drop=("a",)),
    Case(drop=("b", "c")),
    Case(keywords={"b": "bb"}, to_keyword=("b",)),
    Case(add={"k": "1", "m": "2"}),
    Case(insert=("0",), to_keyword=("a",)),
    Case(drop=("b",), add={"k": "$b"}),
    Case(insert=("0",), drop=("c",), set={"b": "9"}, add={"k": "1"}, to_keyword=("a", "b")),
]


def model(case: Case, arguments: list[str]) -> tuple[list[str], dict[str, str]]:
    """What the new call must be given: positional and keyword arguments, as ast.dump has them."""
    names = ["a", "b", "c"]
    given: dict[str, tuple[ast.expr, bool]] = {}
    for name, text in zip(names, arguments, strict=False):
        parsed = ast.parse(f"f({text})", mode="eval").body
        assert isinstance(parsed, ast.Call)
        if parsed.keywords:
            given[str(parsed.keywords[0].arg)] = (parsed.keywords[0].value, True)
        else:
            given[name] = (parsed.args[0], False)
    positional = [ast.dump(ast.parse(source, mode="eval").body) for source in case.insert]
    keywords: dict[str, str] = {}
    shifted = False
    for name, (value, keyword) in given.items():
        if name in case.drop:
            shifted = shifted or not keyword
            continue
        code = ast.dump(ast.parse(case.set[name], mode="eval").body if name in case.set else value)
        shifted = shifted or (not keyword and name in case.to_keyword)
        if keyword or shifted:
            keywords[case.keywords.get(name, name)] = code
        else:
            positional.append(code)
    for name, source in case.add.items():
        value = given[source[1:]][0] if source.startswith("$") else ast.parse(source, mode="eval").body
        keywords[name] = ast.dump(value)
    return positional, keywords


@pytest.mark.parametrize("case", OPERATIONS, ids=range(len(OPERATIONS)))
@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_every_layout(case: Case, newline: str) -> None:
    done = 0
    for arguments, (opening, separator, closing) in itertools.product(ARGUMENTS, LAYOUTS):
        code = f"import torch\nif y:\n  z = torch.old({opening}{separator.join(arguments)}{closing})  # end\n"
        code = code.replace("\n", newline)
        found = first_rewrite(code, make_rule(case))
        assert found is not None, code
        made, source = found
        text = apply(made, source)
        assert newline == "\n" or "\n" not in text.replace("\r\n", ""), text
        assert newline == "\r\n" or "\r" not in text
        new = next(node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
        got = ([ast.dump(arg) for arg in new.args], {str(kw.arg): ast.dump(kw.value) for kw in new.keywords})
        assert got == model(case, arguments), text
        assert not any(line.strip() and line != line.rstrip(" ") for line in text.split(newline)), repr(text)
        comments = {"# open", "# after", "# above", "# last", "# end"}
        kept = {comment: text.count(comment) for comment in comments}
        if not made.losses:
            assert kept == {comment: code.count(comment) for comment in comments}, text
        assert text.startswith(code[: code.index("torch.old")])
        assert text.endswith(f"  # end{newline}")
        done += 1
    assert done == len(ARGUMENTS) * len(LAYOUTS)
