"""The cases of a rule as `explain` shows them: a table of condition, result and safety."""

from __future__ import annotations

import json
import re
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import pytest
from harness.project import Project

from torchmigrate.catalogue.builtin import RULES
from torchmigrate.catalogue.store import default_catalogue
from torchmigrate.cli.explain import explanation
from torchmigrate.report.cases import ways
from torchmigrate.report.rule_texts import generic
from torchmigrate.report.style import Style

RULE = """\
- code: ACM001
  name: acme-old
  summary: "`{name}` is old"
  why: It is old.
  library: torch
  outdated: "1.5"
  symbols: {SYMBOLS}
  signature: "(input, other=None, upper=True, *, p=2)"
  references: [https://example.com/]
  examples:
    - {before: torch.ger(a), after: torch.outer(a), no_proof: not a real rule}
    - report_only: torch.ger(*args)
    - clean: torch.outer(a, b)
  cases:
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    made = Project(tmp_path, monkeypatch)
    made.write("torchmigrate.toml", "rules = ['lint']\n")
    return made


def cases(project: Project, text: str, symbols: str = "[torch.ger]") -> list[dict[str, Any]]:
    project.write("lint/acme.yaml", RULE.replace("{SYMBOLS}", symbols) + indent(dedent(text), " " * 4))
    done = project.run("explain", "ACM001", "--output-format", "json", code=0)
    return list(json.loads(done.stdout)["cases"])


def shown(project: Project) -> list[str]:
    """The lines of the table and its notes."""
    text = project.run("explain", "ACM001", code=0).stdout
    return text.split("What the fix does\n")[1].split("\n\nBefore")[0].splitlines()


# ---- conditions ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("when", "words"),
    [
        ("upper: true", "`upper` is `True` (the default)"),
        ("upper: false", "`upper` is `False`"),
        ("p: 2", "`p` is `2` (the default)"),
        ("p: [1, null, fro]", "`p` is `1`, `None` or `'fro'`"),
        ("p: [1, 2, 3, 4, 5]", "`p` is `1`, `2`, `3` or 2 others (the default)"),
        ("p: [[1, 2], 3]", "`p` is `(1, 2)` or `3`"),
        ("p: given, upper: absent", "with `p`, and without `upper`"),
        ("p: given, other: given, upper: absent", "with `p` and `other`, and without `upper`"),
        ("p: absent, other: absent", "without `p` or `other`"),
        ("p: positional", "`p` is positional"),
        ("input: object", "`input` is neither `self` nor `super()`"),
        ("p: literal", "`p` is a literal"),
        ("p: any", "always"),
        ("p: {type: [int, str]}", "`p` is a literal of type `int` or `str`"),
        ("p: {not_type: str}", "`p` is not a literal of type `str`"),
        ("p: {not: null}", "`p` is not `None`"),
        ("p: {not_prefix: pytorch/}", "`p` does not begin with `'pytorch/'`"),
        ("p: {matches: '^a|b$'}", "`p` matches `^a|b$`"),
        ("p: {keys: [a, b]}", "`p` has the key `'a'` or `'b'`"),
        ("p: {name: torch.float32}", "`p` is `torch.float32`"),
        ("p: {call: [torch.zeros]}", "`p` is a call of `torch.zeros`"),
        ("p: {is: tensor}", "`p` is a tensor"),
        ("p: {is: [uint8, integer]}", "`p` is a `uint8` tensor or an integer tensor"),
        ("other: {other_shape: input}", "`other` and `input` had different shapes in a recorded run"),
        ("p: {takes: 2}", "`p` takes 2 parameters"),
        ("p: {value: given}", "`p` is `'given'`"),
    ],
)
def test_conditions(project: Project, when: str, words: str) -> None:
    (case,) = cases(project, f"- {{when: {{{when}}}, replace: 'f($input)'}}\n")
    assert case["condition"] == words


def test_conditions_on_the_use(project: Project) -> None:
    found = cases(
        project,
        """\
        - {pattern: "torch.ger($x).T", when: {x: {is: tensor}}, replace: $x.T}
        - {result: {fields: [a, b], take: a}, replace: torch.f($input)}
        - {result: {fields: [a, b], adjust: {}}, replace: torch.f($input)}
        - {result: {fields: [a, b], plain: true}, replace: torch.f($input)}
        - {roles: [decorator], rename: torch.outer}
        - {roles: [base, annotation, reference], rename: torch.outer}
        - {map: {upper: {"True": "'U'", "0": "1"}}, replace: torch.f($upper)}
        - {rename: torch.outer}
        """,
    )
    assert [case["condition"] for case in found] == [
        "`torch.ger(x).T`, and `x` is a tensor",
        "called, and only `a` of the result is used",
        "called, and the result is unpacked",
        "called, and the result is used as a whole",
        "as a decorator",
        "as a base class, in an annotation or not called",
        "called, and `upper` is `True` or `0`",
        "otherwise",
    ]


# ---- results ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("replace: 'torch.outer($input, p=$p)'", "`torch.outer(input, p=p)`"),
        ("rename: torch.outer", "`torch.outer`"),
        ("replace: f($input), title: 'Use `f` of `{name}`'", "Use `f` of `torch.ger`"),
        ("arguments: {drop: [p, upper]}", "Remove `p` and `upper`"),
        ("arguments: {keywords: {p: q, upper: lower}}", "Rename `p` to `q`, rename `upper` to `lower`"),
        ("arguments: {add: {a: 1, b: $p}}", "Pass `a=1` and `b=p`"),
        ("arguments: {insert: [\"'cuda'\"]}", "Pass `'cuda'` first"),
        ("arguments: {set: {p: $p + 1}}", "Set `p` to `p + 1`"),
        ("arguments: {keywords: {p: q}, set: {p: '3'}}", "Replace `p` with `q=3`"),
        (
            "arguments: {keywords: {p: q}, to_keyword: [p, upper]}",
            "Rename `p` to `q`, pass `upper` by keyword",
        ),
        ("arguments: {to_keyword: [p]}", "Pass `p` by keyword"),
        ("rename: torch.outer, arguments: {drop: [p]}", "`torch.outer`, remove `p`"),
        ("map: {p: {'1': '2'}}, arguments: {drop: [upper]}", "Remove `upper`, replace `1` with `2`"),
        ("map: {p: {'1': '2', '3': '3'}}, replace: f($p)", "`f(p)`, with `2` for `1`"),
        (
            "map: {p: {'1': a, '2': b, '3': c, '4': d}}, replace: f($p)",
            "`f(p)`, with the new value of `p`",
        ),
    ],
)
def test_results(project: Project, case: str, words: str) -> None:
    (found,) = cases(project, f"- {{{case}, when: {{input: given}}}}\n")
    assert found["result"] == words


def test_a_variable_of_several_symbols(project: Project) -> None:
    (one,) = cases(project, "- {rename: $new, when: {p: 1}}\n", "{torch.ger: torch.outer}")
    assert one["result"] == "`torch.outer`"
    text = "- {rename: $new, when: {p: 1}}\n"
    (two,) = cases(project, text, "{torch.ger: torch.outer, torch.Tensor.ger: torch.Tensor.outer}")
    assert two["result"] == "`torch.outer…`"


# ---- the table ----------------------------------------------------------------------------------------


def test_the_table(project: Project) -> None:
    found = cases(
        project,
        """\
        - {when: {upper: true}, replace: torch.outer($input), requires: "1.8"}
        - when: {upper: false}
          replace: torch.linalg.something.with_a_long_name_for_a_matrix($input, upper=False)
          applicability: unsafe
          reason: rounds differently
        - {replace: "torch.outer($input, upper=$upper)", applicability: display, reason: may raise an error}
        """,
    )
    assert [(case["applicability"], case["requires"], case["reason"]) for case in found] == [
        ("safe", "1.8", None),
        ("unsafe", None, "rounds differently"),
        ("display", None, "may raise an error"),
    ]
    assert shown(project) == [
        "  condition                        result                             safety",
        "  `upper` is `True` (the default)  `torch.outer(input)`               safe (1)",
        "  `upper` is `False`               `torch.linalg.something.with_a_    unsafe (2)",
        "                                   long_name_for_a_matrix(input,",
        "                                   upper=False)`",
        "",
        "  otherwise                        `torch.outer(input, upper=upper)`  advice (3)",
        "",
        "  (1) unsafe if the code must also run on a release before torch 1.8",
        "  (2) rounds differently",
        "  (3) may raise an error",
    ]


def test_cases_with_the_same_result_are_one_row(project: Project) -> None:
    found = cases(
        project,
        """\
        - {pattern: "torch.ger($x)[0]", when: {x: {is: tensor}}, replace: "f($x)"}
        - {pattern: "torch.ger($x)[-1]", when: {x: {is: tensor}}, replace: "f($x)"}
        - {when: {upper: false}, replace: "g($input)"}
        - {when: {upper: true}, replace: "h($input)"}
        - {replace: "h($input)"}
        """,
    )
    assert len(found) == 5
    assert shown(project) == [
        "  condition                                                   result      safety",
        "  `torch.ger(x)[0]` or `torch.ger(x)[-1]`, and `x` is a       `f(x)`      safe",
        "  tensor",
        "",
        "  `upper` is `False`                                          `g(input)`  safe",
        "  otherwise                                                   `h(input)`  safe",
    ]


def test_one_case_that_always_holds_needs_no_table(project: Project) -> None:
    (found,) = cases(project, '- {replace: "f($input)", requires: "1.8"}\n')
    assert (found["condition"], found["result"]) == ("always", "`f(input)`")
    assert shown(project) == ["  safe; unsafe if the code must also run on a release before torch 1.8"]


def test_a_codemod_has_no_condition(project: Project) -> None:
    done = project.run("explain", "TM900", "--output-format", "json", "--isolated", code=0)
    found = json.loads(done.stdout)["cases"]
    assert [(case["condition"], case["result"], case["applicability"]) for case in found] == [
        (None, None, "unsafe")
    ]


def test_every_table_fits_80_columns() -> None:
    tables = 0
    for rule in [*default_catalogue().rules, *RULES]:
        for way in ways(rule):
            assert bool(way.condition) is bool(way.result), rule.code
            assert "$" not in way.condition + way.result, rule.code
        text = explanation(rule, [], Style())
        for table in re.findall(r"^  condition  .*\n(?:(?:  .*)?\n)*?(?=\n  \S|\n\S)", text, re.MULTILINE):
            tables += 1
            assert max(map(len, table.splitlines())) <= 80, (rule.code, table)
    assert tables > 150


# ---- texts --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "summary"),
    [
        ("TM900", "`model` is trained or called without `torch.compile`"),
        ("TM902", "`train_step` runs one step with a model and its loss without `torch.compile`"),
        ("TM905", "`.item()` in `forward` breaks the graph of `torch.compile`"),
        ("TM996", "`import torchvision.models as ...` is usually written `from torchvision import ...`"),
        ("TM074", "environment variable `NCCL_BLOCKING_WAIT` is deprecated; set `TORCH_NCCL_BLOCKING_WAIT`"),
        ("TM075", "PyTorch no longer reads the environment variable `TORCHDYNAMO_DYNAMIC_SHAPES`"),
    ],
)
def test_texts_name_what_findings_name(project: Project, code: str, summary: str) -> None:
    done = project.run("explain", code, "--output-format", "json", "--isolated", code=0)
    assert summary in json.loads(done.stdout)["summary"]


def test_a_module_does_not_stand_for_the_names_of_findings() -> None:
    for rule in default_catalogue().rules:
        assert not re.match(r"`?torch\.nn\.Module[` ]", generic(rule, rule.summary)), rule.code
