"""Cases, roles and names: which case is taken, and where there is no fix."""

from __future__ import annotations

import sys

import pytest
from match_support import ABSENT, GIVEN, apply, call, first_rewrite, fixed, is_, make_rule, places, source_of

from torchmigrate.catalogue.model import ALL_ROLES, Case
from torchmigrate.findings import Edit
from torchmigrate.rewrite.cases.rewriting import matches, rewrite
from torchmigrate.rewrite.comments import COMMENT_LOST
from torchmigrate.semantics.facts.dtypes import ValueFacts
from torchmigrate.semantics.facts.file_facts import FileFacts
from torchmigrate.semantics.walk.resolver import resolve

RENAME = Case(rename="torch.new", roles=ALL_ROLES)

RENAMES = [
    ("import torch\ny = torch.old(a, 1)\n", "torch.old(", "torch.new("),
    ("import torch as t\ny = t.old(*a, **b)\n", "t.old(", "torch.new("),
    ("from torch import old\ny = [old(a)for a in b]\n", "[old(", "[torch.new("),
    ("import torch\ny = torch . old(a)\n", "torch . old(", "torch.new("),
    ("import torch\ny = (torch.old)(a)\n", "(torch.old)", "(torch.new)"),
    ("import torch\n@torch.old\ndef f(): pass\n", "@torch.old", "@torch.new"),
    ("import torch\n@torch.old(1)\ndef f(): pass\n", "@torch.old", "@torch.new"),
    ("import torch\nclass A(torch.old, metaclass=B): pass\n", "(torch.old", "(torch.new"),
    ("import torch\ndef f(a: torch.old) -> None: pass\n", ": torch.old", ": torch.new"),
    ("import torch\ndef f(a: 'list[torch.old]') -> None: pass\n", "[torch.old", "[torch.new"),
    ("import torch\nf = torch.old\n", "torch.old", "torch.new"),
    ("import torch\nisinstance(a, torch.old)\n", "torch.old", "torch.new"),
    ("import torch\r\ny = torch.old(\r\n    a,  # é\r\n)\r\n", "torch.old", "torch.new"),
    ("# -*- coding: utf-8 -*-\nimport torch\nz = 'ü€𝒳', torch.old\n", "torch.old", "torch.new"),
]


@pytest.mark.parametrize(("code", "old", "new"), RENAMES)
def test_rename_changes_the_name_only(code: str, old: str, new: str) -> None:
    found = first_rewrite(code, make_rule(RENAME))
    assert found is not None
    made, source = found
    assert apply(made, source) == code.replace(old, new)
    assert len(made.edits) == 1
    assert made.callee == "torch.new"
    assert made.title == "Replace with `torch.new`"
    assert made.losses == ()


def test_rename_with_a_comment_in_the_name() -> None:
    found = first_rewrite("import torch\ny = (torch  # here\n     .old(a))\n", make_rule(RENAME))
    assert found is not None
    assert found[0].losses == (COMMENT_LOST,)


@pytest.mark.parametrize(
    "code",
    [
        "import torch\ntorch.old = mine\n",
        "import torch\ndel torch.old\n",
        "from torch import *\nold(a)\n",
        "import torch\ngetattr(torch, 'old')(a)\n",
        "import torch\ngetattr(torch, 'old', None)(a)\n",
        "import torch\nx = torch.zeros(3)\nf = x.symeig\nf(True)\n",
    ],
)
def test_no_fix(code: str) -> None:
    cases = [Case(rename="torch.new", roles=ALL_ROLES), Case(template="torch.new(1)", roles=ALL_ROLES)]
    source = source_of(code)
    rule = make_rule(*cases, symbols=["torch.old", "torch.Tensor.symeig"])
    for place in places(source, rule):
        match = matches(rule, place)
        assert match is not None
        assert rewrite(rule, {}, place, match) is None


def test_method_is_renamed_within_its_class() -> None:
    symbols = {"torch.Tensor.symeig": {"new": "torch.Tensor.eigh"}}
    code = "import torch\nx = torch.zeros(3)\ny = (x  # receiver\n     .symeig(True))\n"
    found = first_rewrite(code, make_rule(Case(rename="$new"), symbols=symbols))
    assert found is not None
    assert found[0].edits == (Edit(code.index("symeig"), code.index("symeig") + 6, "eigh"),)
    assert not found[0].losses
    symbols = {"torch.Tensor.symeig": {"new": "torch.eigh"}}
    assert fixed(code, make_rule(Case(rename="$new"), symbols=symbols)) is None


def test_roles_of_a_case() -> None:
    code = "import torch\n@torch.old\ndef f(): pass\n"
    cases = [Case(rename="torch.new"), Case(template='torch.new(device_type="cuda")', roles=("decorator",))]
    assert fixed(code, make_rule(*cases)) == code.replace("torch.old", 'torch.new(device_type="cuda")')
    assert fixed("import torch\n@torch.old()\ndef f(): pass\n", make_rule(*cases)) == (
        "import torch\n@torch.new()\ndef f(): pass\n"
    )


def test_template_for_a_reference() -> None:
    case = Case(template="(str, bytes)", roles=("reference", "annotation", "base"))
    rule = make_rule(case)
    assert (
        fixed("import torch\nisinstance(a, torch.old)\n", rule)
        == "import torch\nisinstance(a, (str, bytes))\n"
    )
    assert fixed("import torch\ntorch.old(a)\n", rule) is None
    case = Case(template="a if b else c", roles=("reference",))
    assert fixed("import torch\nf(torch.old, torch.old.x)\n", make_rule(case)) == (
        "import torch\nf(a if b else c, torch.old.x)\n"
    )
    assert fixed("import torch\ny = torch.old or 1\n", make_rule(case)) == (
        "import torch\ny = (a if b else c) or 1\n"
    )


def test_template_in_a_string_annotation() -> None:
    code = "import torch\ndef f(a: 'torch.old'): pass\n"
    assert fixed(code, make_rule(Case(template="str", roles=("annotation",)))) == code.replace(
        "torch.old", "str"
    )
    assert fixed(code, make_rule(Case(template="d['k']", roles=("annotation",)))) is None


def test_conditions_choose_the_case() -> None:
    cases = [
        Case(rename="torch.one", when={"b": is_(True)}),
        Case(rename="torch.two", when={"b": GIVEN}),
        Case(rename="torch.three", when={"b": ABSENT}),
    ]
    assert call("torch.old(a, True)\n", *cases) == "torch.one(a, True)\n"
    assert call("torch.old(a, b=True)\n", *cases) == "torch.one(a, b=True)\n"
    assert call("torch.old(a, n)\n", *cases) == "torch.two(a, n)\n"
    assert call("torch.old(a)\n", *cases) == "torch.three(a)\n"
    assert call("torch.old(**a)\n", *cases) is None
    assert call("f = torch.old\n", Case(rename="torch.one", when={"b": is_(1)}, roles=ALL_ROLES)) is None


def test_defaults_count() -> None:
    case = Case(rename="torch.one", when={"b": is_(1), "c": is_(None)})
    assert call("torch.old(a)\n", case) == "torch.one(a)\n"
    assert call("torch.old(a, 1, None)\n", case) == "torch.one(a, 1, None)\n"
    assert call("torch.old(a, 2)\n", case) is None


def test_constant_through_a_name() -> None:
    case = Case(template="torch.new($a)", when={"b": is_(True)})
    assert call("FLAG = True\ny = torch.old(a, FLAG)\n", case) == "FLAG = True\ny = torch.new(a)\n"
    assert call("FLAG = f()\ny = torch.old(a, FLAG)\n", case) is None


def test_rename_with_operations() -> None:
    case = Case(rename="torch.amp.autocast", insert=('"cuda"',), to_keyword=("a",), keywords={"a": "enabled"})
    code = "import torch\nwith torch.old(amp): pass\n"
    found = first_rewrite(code, make_rule(case))
    assert found is not None
    assert apply(*found) == 'import torch\nwith torch.amp.autocast("cuda", enabled=amp): pass\n'
    assert found[0].callee == "torch.amp.autocast"
    assert len(found[0].edits) == 2


def test_operations_alone_keep_the_callee() -> None:
    found = first_rewrite("import torch\ntorch.old(a, 1)\n", make_rule(Case(drop=("b",))))
    assert found is not None
    assert found[0].callee == "torch.old"
    assert found[0].title == "Drop `b`"


def test_callee_of_a_template() -> None:
    def callee(template: str) -> str | None:
        found = first_rewrite("import torch\ntorch.old(a)\n", make_rule(Case(template=template)))
        assert found is not None
        return found[0].callee

    assert callee("torch.new($a)") == "torch.new"
    assert callee("torch.wrap(torch.new($a))") == "torch.wrap"
    assert callee("$a.T") is None
    assert callee("torch.new($a).T") is None


def test_variables_of_the_symbol() -> None:
    symbols = {"torch.old": {"new": "torch.linalg.new", "device": "cuda", "signature": "(q, r=1)"}}
    case = Case(template='$new($r, "$device", $q)', title="Move it")
    found = first_rewrite("import torch\ntorch.old(1, r=2)\n", make_rule(case, symbols=symbols))
    assert found is not None
    assert apply(*found) == 'import torch\ntorch.linalg.new(2, "cuda", 1)\n'
    assert found[0].title == "Move it"
    case = Case(rename="$new", add={"device": '"$device"'}, set={"r": '"$device"'}, insert=("$new",))
    found = first_rewrite("import torch\ntorch.old(1, r=2)\n", make_rule(case, symbols=symbols))
    assert found is not None
    assert apply(*found) == ('import torch\ntorch.linalg.new(torch.linalg.new, 1, r="cuda", device="cuda")\n')


def test_import_line_gives_the_new_name_and_no_edits() -> None:
    source = source_of("from torch import old\n")
    names = resolve(source.parse(), source)
    (use,) = [use for use in names.uses if use.role.value == "import"]
    from torchmigrate.match.rule_matches import make_place

    place = make_place(use, source, ValueFacts(names, FileFacts(names)), lambda name: name)
    rule = make_rule(RENAME)
    match = matches(rule, place)
    assert match is not None
    made = rewrite(rule, {}, place, match)
    assert made is not None
    assert (made.edits, made.callee) == ((), "torch.new")
    assert rewrite(make_rule(Case(template="torch.new()", roles=("import",))), {}, place, match) is None


def test_new_name_may_be_written_like_the_old_one() -> None:
    found = first_rewrite("from torch import old\nold(a)\n", make_rule(RENAME), lambda name: "old")
    assert found is not None
    assert found[0].edits == ()


def test_name_that_cannot_be_written() -> None:
    assert fixed("import torch\ntorch.old(a)\n", make_rule(RENAME), lambda name: None) is None


def test_builtin_needs_no_spelling() -> None:
    code = "import torch\nisinstance(a, torch.old)\n"
    rule = make_rule(Case(rename="int", roles=ALL_ROLES))
    assert fixed(code, rule, lambda name: None) == "import torch\nisinstance(a, int)\n"


def test_f_strings() -> None:
    code = "import torch\ny = f'{torch.old(a)!r:>10} {torch.zeros(3)}'\n"
    expected = code.replace("torch.old(a)", "torch.new(a)") if sys.version_info >= (3, 12) else None
    assert fixed(code, make_rule(Case(template="torch.new($a)"))) == expected
    assert fixed(code, make_rule(Case(template="torch.new($a, 'k')"))) is None
    code = "import torch\ny = torch.old(f'{a}', f\"{b['#']}\")\n"
    assert fixed(code, make_rule(Case(template="torch.new($b, $a)"))) == (
        "import torch\ny = torch.new(f\"{b['#']}\", f'{a}')\n"
    )


def test_deep_nesting_is_no_error() -> None:
    code = f"import torch\ny = torch.old({' + '.join(['a'] * 900)}, 1)\n"
    fixed(code, make_rule(Case(drop=("b",))))
    assert fixed(code, make_rule(RENAME)) == code.replace("torch.old", "torch.new")


def test_nothing_to_change_is_no_fix() -> None:
    assert call("torch.old(a)\n", Case(drop=("b",))) is None
    assert call("torch.old(a)\n", Case(rename="torch.old")) is None
    assert call("torch.old(a)\n", Case(template="torch.old($a)")) is None


def test_case_for_no_role_fits_nothing() -> None:
    assert call("torch.old(a)\n", Case(roles=(), rename="torch.new")) is None


def test_canonical_spelling_of_a_symbol() -> None:
    code = "from torch.nn.modules.loss import MSELoss\nMSELoss(size_average=False)\n"
    source = source_of(code)
    rule = make_rule(
        Case(drop=("size_average",)), symbols=["torch.nn.MSELoss"], signature="(size_average=None)"
    )
    names = resolve(source.parse(), source)
    from torchmigrate.match.rule_matches import make_place

    (use,) = [use for use in names.uses if use.call is not None]
    place = make_place(use, source, ValueFacts(names, FileFacts(names)), lambda name: name)
    match = matches(rule, place)
    assert match is not None
    assert match.symbol == "torch.nn.MSELoss"
    made = rewrite(rule, {}, place, match)
    assert made is not None
    assert apply(made, source).endswith("MSELoss()\n")
