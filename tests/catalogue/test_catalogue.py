"""Rules: the strict loader, the compiled form, the index, and where rules come from."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.program import only, run
from msgspec.structs import replace

from torchmigrate.authoring.examples import check_rule
from torchmigrate.catalogue import compiled, store
from torchmigrate.catalogue.builtin import RULES
from torchmigrate.catalogue.compiled_file import RuleName, StaleError, pack, unpack
from torchmigrate.catalogue.examples import CLEAN, FIX, REPORT_ONLY
from torchmigrate.catalogue.index import Catalogue
from torchmigrate.catalogue.loader import load_directory, load_file
from torchmigrate.catalogue.model import ALL_ROLES, Case, Condition, ResultUse, Rule, RuleHead
from torchmigrate.catalogue.problems import CatalogueError
from torchmigrate.catalogue.schema import CASE, EXAMPLE
from torchmigrate.catalogue.schema import RULE as RULE_SCHEMA
from torchmigrate.catalogue.variants import rule_for_symbol
from torchmigrate.findings import Applicability

ROOT = Path(__file__).parents[2]

RULE = """\
- code: TM110
  name: torch-ger
  summary: "`{name}` is an alias; use `{new}`"
  why: The outer product has one name now.
  library: torch
  deprecated: "1.7"
  symbols:
    torch.ger: torch.outer
    torch.Tensor.ger: torch.Tensor.outer
  references: ["https://example.org/ger"]
  examples:
    - before: torch.ger(a, b)
      after: torch.outer(a, b)
      prove: {a: "tensor(3)", b: "tensor(4)"}
    - report_only: torch.ger(*args)
    - clean: torch.outer(a, b)
"""

# A rule with cases; the marked lines are replaced in the tests below.
CASES = """\
- code: TM131
  name: linalg-symeig
  summary: use `torch.linalg.eigh`
  why: It was removed.
  library: torch
  removed: "2.0"
  symbols: [torch.symeig]
  signature: (input, eigenvectors=False, upper=True)
  cases:
CASES
  references: ["https://example.org/symeig"]
  examples:
    - before: torch.symeig(a, True)
      after: torch.linalg.eigh(a)
    - report_only: torch.symeig(*args)
    - clean: torch.linalg.eigh(a)
"""


def write(directory: Path, text: str, name: str = "rules.yaml") -> Path:
    path = directory / name
    path.write_text(text, encoding="utf-8")
    return path


def one(directory: Path, text: str) -> Rule:
    (loaded,) = load_file(write(directory, text))
    return loaded.rule


def with_cases(text: str) -> str:
    return CASES.replace("CASES", textwrap.indent(textwrap.dedent(text).strip(), "    "))


def case(directory: Path, text: str) -> Case:
    (found,) = one(directory, with_cases(text)).cases
    return found


def problems(directory: Path, text: str) -> list[str]:
    """Line and text of everything that the loader has against a file."""
    path = write(directory, text)
    with pytest.raises(CatalogueError) as raised:
        load_file(path)
    lines = str(raised.value).splitlines()
    assert all(line.startswith(f"{path}:") for line in lines)
    return [line.removeprefix(f"{path}:") for line in lines]


# ---- what is loaded ---------------------------------------------------------------------------------


def test_a_plain_rename(tmp_path: Path) -> None:
    path = write(tmp_path, RULE)
    ((rule, examples),) = load_file(path)
    assert rule.symbols == {
        "torch.ger": {"new": "torch.outer"},
        "torch.Tensor.ger": {"new": "torch.Tensor.outer"},
    }
    assert rule.cases == (Case(rename="$new", roles=ALL_ROLES),)
    assert (rule.deprecated, rule.removed, rule.path, rule.line) == ("1.7", None, str(path), 1)
    assert [example.kind for example in examples] == [FIX, REPORT_ONLY, CLEAN]
    assert [example.line for example in examples] == [12, 15, 16]
    assert examples[0].prove == {"a": "tensor(3)", "b": "tensor(4)"}
    assert examples[0].applicability is Applicability.SAFE


def test_defaults_of_the_rule_reach_its_cases(tmp_path: Path) -> None:
    text = RULE.replace(
        "  references", '  requires: "1.7"\n  applicability: unsafe\n  reason: slower\n  references'
    )
    (found,) = one(tmp_path, text).cases
    assert (found.requires, found.applicability, found.reason) == ("1.7", Applicability.UNSAFE, "slower")
    text = with_cases("""
        - rename: torch.linalg.eigh
        - replace: torch.linalg.eigh($input)
          applicability: safe
    """).replace("  cases", "  applicability: unsafe\n  reason: slower\n  cases")
    first, second = one(tmp_path, text).cases
    assert (first.applicability, first.reason) == (Applicability.UNSAFE, "slower")
    assert (second.applicability, second.reason) == (Applicability.SAFE, None)


def test_modules(tmp_path: Path) -> None:
    text = RULE.replace(
        "  symbols:\n    torch.ger: torch.outer\n    torch.Tensor.ger: torch.Tensor.outer\n",
        "  modules: {torch.quantization: torch.ao.quantization}\n  members: [quantize, convert]\n",
    )
    rule = one(tmp_path, text)
    assert rule.modules == {"torch.quantization": "torch.ao.quantization"}
    assert rule.members == {"quantize", "convert"}
    assert rule.cases[0].rename == "$new"


def test_conditions(tmp_path: Path) -> None:
    found = case(
        tmp_path,
        """
        - when:
            input: {type: [tuple, list]}
            eigenvectors: true
            upper: [true, null, 1, "U", [0, 1]]
          replace: torch.linalg.eigh($input)
        """,
    )
    assert found.when == {
        "input": Condition("type", ("tuple", "list")),
        "eigenvectors": Condition("value", (True,)),
        "upper": Condition("value", (True, None, 1, "U", (0, 1))),
    }
    found = case(
        tmp_path,
        """
        - when: {input: {name: torch.float32}, eigenvectors: given, upper: {not: [false, 0]}}
          rename: torch.linalg.eigh
        """,
    )
    assert found.when == {
        "input": Condition("name", ("torch.float32",)),
        "eigenvectors": Condition("given"),
        "upper": Condition("not-value", (False, 0)),
    }
    assert found.roles == ("call",)
    assert case(
        tmp_path, "- {when: {upper: {not_prefix: [pytorch/, a]}}, rename: torch.linalg.eigh}"
    ).when == {"upper": Condition("not-prefix", ("pytorch/", "a"))}
    assert case(tmp_path, "- {when: {upper: {matches: 'a+b'}}, rename: torch.linalg.eigh}").when == {
        "upper": Condition("matches", ("a+b",))
    }
    assert case(tmp_path, "- {when: {upper: {keys: [a, b]}}, rename: torch.linalg.eigh}").when == {
        "upper": Condition("keys", ("a", "b"))
    }
    assert case(tmp_path, "- {when: {upper: {takes: 2}}, rename: torch.linalg.eigh}").when == {
        "upper": Condition("takes", (2,))
    }
    assert case(
        tmp_path,
        "- {when: {upper: {value: given}, input: {call: [torch.eye]}}, arguments: {add: {UPLO: \"'U'\"}}}",
    ).when == {"upper": Condition("value", ("given",)), "input": Condition("call", ("torch.eye",))}


def test_results_arguments_and_maps(tmp_path: Path) -> None:
    found = case(
        tmp_path,
        """
        - result: {fields: [U, S, V], adjust: {V: $.mH}, new_fields: [U, S, Vh]}
          map: {upper: {True: "'U'", "0 ,": 1}}
          replace: torch.linalg.eigh($input, UPLO=$upper)
        """,
    )
    assert found.result == ResultUse(("U", "S", "V"), adjust={2: "$.mH"}, new_fields=("U", "S", "Vh"))
    assert found.map == {"upper": {"True": "'U'", "(0,)": "1"}}  # keys as ast.unparse writes them
    found = case(
        tmp_path,
        """
        - rename: torch.linalg.eigh
          result: {fields: [a, b], take: b}
          arguments:
            drop: [eigenvectors]
            keywords: {upper: UPLO}
            add: {out: null, n: 3, s: "$input.shape"}
            insert: ['"cuda"']
            set: {upper: not $upper}
            to_keyword: [upper]
          title: Use eigh
        """,
    )
    assert found.result == ResultUse(("a", "b"), take=1)
    assert (found.drop, found.keywords, found.to_keyword) == (
        ("eigenvectors",),
        {"upper": "UPLO"},
        ("upper",),
    )
    assert found.add == {"out": "None", "n": "3", "s": "$input.shape"}
    assert (found.insert, found.set, found.title) == (('"cuda"',), {"upper": "not $upper"}, "Use eigh")


def test_a_list_of_patterns_is_a_case_for_each(tmp_path: Path) -> None:
    text = "- {pattern: ['torch.symeig($x)[0]', 'torch.symeig(input=$x)[0]'], replace: f($x)}"
    rule = one(tmp_path, with_cases(text).replace("  cases", "  only_in_patterns: true\n  cases"))
    assert rule.only_in_patterns
    assert [case.pattern for case in rule.cases] == ["torch.symeig($x)[0]", "torch.symeig(input=$x)[0]"]
    assert [case.template for case in rule.cases] == ["f($x)"] * 2
    assert compiled.load(compiled.dump([rule], "", [])).rules == [rule]


def test_patterns_of_methods(tmp_path: Path) -> None:
    text = with_cases("- {pattern: '(1 + $x).symeig()', replace: f($x)}")
    assert one(tmp_path, text.replace("torch.symeig]", "torch.symeig, torch.Tensor.symeig]")).cases
    assert problems(tmp_path, text) == ["10: `pattern` names none of the symbols `torch.symeig`"]


def test_patterns_bring_variables_of_their_own(tmp_path: Path) -> None:
    found = case(tmp_path, '- {pattern: "torch.symeig($x)[0]", replace: torch.linalg.eigvalsh($x)}')
    assert (found.pattern, found.template) == ("torch.symeig($x)[0]", "torch.linalg.eigvalsh($x)")


def test_signatures_by_symbol(tmp_path: Path) -> None:
    text = RULE.replace("torch.ger: torch.outer", 'torch.ger: {signature: "(input, vec2)"}').replace(
        "torch.Tensor.ger: torch.Tensor.outer", 'torch.Tensor.ger: {signature: "(input, other)"}'
    )
    text = text.replace("use `{new}`", "use outer").replace(
        "  references", "  parameters: [vec2, other]\n  cases: [{rename: torch.outer}]\n  references"
    )
    rule = one(tmp_path, text)
    assert rule.signature is None
    assert rule.parameters == ("vec2", "other")
    assert rule.cases[0].roles == ("call",)


def test_a_codemod_states_its_applicability(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "codemods" / "compile").mkdir(parents=True)
    (tmp_path / "codemods" / "compile" / "model.py").write_text("import ast\n\ndef find():\n    pass\n")
    monkeypatch.setattr("torchmigrate.catalogue.convert._CODEMODS", tmp_path / "codemods")
    text = with_cases("- {rename: x}").replace(
        "  cases:\n    - {rename: x}\n",
        "  codemod: compile.model\n  opt_in: true\n  applicability: unsafe\n  reason: slow\n",
    )
    rule = one(tmp_path, text)
    assert rule.codemod == "compile.model"
    assert rule.opt_in
    assert rule.cases == (Case(roles=(), applicability=Applicability.UNSAFE, reason="slow"),)
    assert problems(tmp_path, text.replace("compile.model", "compile.modle")) == [
        "9: no codemod `compile.modle`; did you mean `compile.model`?; there is `compile.model`"
    ]


def test_only_in_patterns_needs_one(tmp_path: Path) -> None:
    text = with_cases("- {replace: f()}").replace("  cases", "  only_in_patterns: true\n  cases")
    assert problems(tmp_path, text) == ["9: `only_in_patterns` needs a case with a `pattern`"]


# ---- what is refused --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "  summary",
            "  sumary",
            "3: unknown key `sumary` in a rule; did you mean `summary`?; allowed: code, name, ",
        ),
        (
            '"1.7"',
            "1.7",
            '6: `deprecated` must be a release in quotes, such as "1.10": write "1.7", YAML reads it as a',
        ),
        ('"1.7"', "1.10", 'write "1.10", YAML reads it as a number'),
        ('"1.7"', '"1.7.1"', '6: `deprecated` must be a release in quotes, such as "1.10", not `1.7.1`'),
        ('"1.7"', '"1.17"', "6: there is no torch 1.17"),
        ('"1.7"', '"2.0"\n  removed: "1.9"', "7: `removed` 1.9 is before `deprecated` 2.0"),
        (
            '  deprecated: "1.7"\n',
            "",
            "1: a rule needs a release in `outdated`, `deprecated`, `changed` or `removed`",
        ),
        ("TM110", "TM11", "1: `code` must be capital letters and three digits, such as TM131, not `TM11`"),
        ("torch-ger", "Torch_ger", "2: `name` must be kebab-case, such as linalg-symeig, not `Torch_ger`"),
        ("  why: The outer product has one name now.\n", "", "1: a rule needs `why`"),
        (
            "  library: torch\n",
            "  library: torch\n  library: torch\n",
            "6: duplicate key `library`, first on line 5",
        ),
        (
            "    torch.Tensor.ger: torch.Tensor.outer",
            "    torch.ger: torch.dot",
            "9: duplicate key `torch.ger`, first on",
        ),
        (
            "library: torch",
            "library: torchvision",
            "8: `torch.ger` is not of library `torchvision`: its names start with",
        ),
        (
            "torch.ger: torch.outer",
            "ger: torch.outer",
            "8: `ger` in `symbols` must be a qualified name such as",
        ),
        ("torch.ger: torch.outer", "torch.ger: {x: y}", "8: `torch.ger` lacks the variable `new`"),
        (
            "torch.ger: torch.outer",
            "torch.ger: torch outer",
            "8: `symbols.torch.ger` must be a qualified name, or",
        ),
        ("use `{new}`", "use `{mew}`", "3: `{mew}` is not known here; allowed: `name` or `new`"),
        ("https://example.org/ger", "see above", "10: `references[0]` must be a URL, not `see above`"),
        (
            '["https://example.org/ger"]',
            "[]",
            "10: `references` has the wrong size; it must be a list of URLs",
        ),
        (
            "  references:",
            "  applicability: unsafe\n  references:",
            "10: applicability unsafe needs a `reason`",
        ),
        ("  references:", "  reason: because\n  references:", "10: `reason` says why a fix is not safe"),
        (
            "  references:",
            "  applicability: maybe\n  references:",
            "10: `applicability` must be safe, unsafe or display",
        ),
        ("  references:", "  members: [a]\n  references:", "10: `members` needs `modules`"),
        ("  references:", "  opt_in: 1\n  references:", "10: `opt_in` must be true, not `1`"),
        ("  references:", "  signature: (a, b\n  references:", "10: `signature` must be a signature such as"),
        (
            "  references:",
            "  signature: (a, a)\n  references:",
            "10: `signature` does not parse as Python: duplicate arg",
        ),
        (
            "  references:",
            "  signature: (new)\n  references:",
            "10: `new` is a parameter and a variable of the symbols",
        ),
        ("  references:", "  missing: [dim]\n  references:", "10: `dim` needs a `signature` that has it"),
        (
            "  references:",
            "  roles: [cal]\n  references:",
            "10: `roles[0]` must be one of call, decorator, base",
        ),
        ("    - clean: torch.outer(a, b)\n", "", "11: no example with `clean`"),
        ("    - report_only: torch.ger(*args)\n", "", "11: no example with `report_only`"),
        (
            "clean: torch.outer",
            "cleen: torch.outer",
            "16: unknown key `cleen` in an example; did you mean `clean`?",
        ),
        ("      after: torch.outer(a, b)\n", "", "12: `before` and `after` go together"),
        ("after: torch.outer(a, b)", "after: torch.outer(a b)", "13: `after` does not parse"),
        ("after: torch.outer(a, b)", "after: torch.ger(a, b)", "13: `after` is the same as `before`"),
        (
            "- clean: torch.outer(a, b)",
            '- clean: x\n      prove: {a: "1"}',
            "17: `prove` needs `before` and `after`",
        ),
        ('b: "tensor(4)"', 'b: "tensor(4"', "14: `tensor(4` is not a Python expression"),
        (
            '      prove: {a: "tensor(3)", b: "tensor(4)"}',
            "      target: 1.10",
            "14: `examples[0].target` must be a release",
        ),
        ("why: The", "why: 2026-01-01 #", "4: `2026-01-01` is read as a timestamp: put it in quotes"),
        ("torch.ger: torch.outer", "torch.ger: torch.ger", "8: `torch.ger` is found as `torch.ger`, so that"),
        (
            "torch.ger: torch.outer",
            "torch.ger: torch.functional.ger",
            "8: `torch.functional.ger` is found as `torch.ger`, so that it would be renamed again",
        ),
        ("symbols:\n", "modules: {torch.a: torch.a}\n  symbols:\n", "7: `torch.a` does not move"),
        ("- code", "- [", "YAML: "),
        ("library: torch", "library: &a [*a]", "5: "),
    ],
)
def test_mistakes_in_a_rule(tmp_path: Path, old: str, new: str, expected: str) -> None:
    assert old in RULE
    found = problems(tmp_path, RULE.replace(old, new, 1))
    assert any(expected in line for line in found), found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "- {rename: torch.a, replace: torch.b($input)}",
            "10: a case has either `replace` or `rename`, not both",
        ),
        (
            "- {replace: torch.b($inptu)}",
            "`$inptu` is not known here; did you mean `input`?; allowed: `$input`, `$eigen",
        ),
        ("- {replace: torch.b($input}", "10: "),
        ('- {replace: "torch.b($input"}', "10: `torch.b(__input` is not a Python expression"),
        ("- {rename: $new}", "10: `$new` is not a variable of the symbols"),
        (
            "- {rename: torch.linalg()}",
            "10: `cases[0].rename` must be a qualified name, or a variable such as $new",
        ),
        ("- {requires: '1.8'}", "10: a case needs `replace`, `rename` or `arguments`"),
        ("- {rename: torch.a, requires: 1.8}", 'write "1.8", YAML reads it as a number'),
        (
            "- {rename: torch.a, requires: 'tensor 1.8 x'}",
            "10: `cases[0].requires` must be a release in quotes",
        ),
        (
            "- {rename: torch.a, when: {uper: true}}",
            "`uper` is not in the signature; did you mean `upper`?; it has `input`,",
        ),
        (
            "- {rename: torch.a, when: {upper: [given, 1]}}",
            "10: `given` stands alone, or is a string literal as {value: ",
        ),
        (
            "- {rename: torch.a, when: {upper: {type: [integer]}}}",
            "10: unknown type `integer`; did you mean `int`?",
        ),
        (
            "- {rename: torch.a, when: {upper: torch.float32}}",
            "would be a string: a name is written {name: torch.float32}",
        ),
        (
            "- {rename: torch.a, when: {upper: {be: 1}}}",
            "10: unknown key `be` in a condition; allowed: type, not_type, name, call, ",
        ),
        ("- {rename: torch.a, when: {upper: {matches: 'a('}}}", "10: `a(` is not a regular expression"),
        ("- {rename: torch.a, when: {upper: {name: 'a b'}}}", "10: `a b` is not a qualified name"),
        (
            "- {rename: torch.a, when: {upper: []}}",
            "10: `cases[0].when.upper` has the wrong size; it must be a literal",
        ),
        ("- {rename: torch.a, map: {low: {a: b}}}", "10: `low` is not in the signature"),
        ("- {rename: torch.a, map: {upper: {a b: b}}}", "10: `a b` is not a Python expression"),
        ("- {arguments: {drop: [low]}}", "10: `low` is not in the signature"),
        (
            "- {arguments: {drop: [upper], set: {upper: 1}}}",
            "10: `upper` is dropped: it cannot be in `set` as well",
        ),
        (
            "- {arguments: {remove: [upper]}}",
            "10: unknown key `remove` in `arguments`; allowed: drop, keywords, add",
        ),
        (
            "- {arguments: {keywords: {upper: a b}}}",
            "10: `cases[0].arguments.keywords.upper` must be a Python name",
        ),
        (
            "- {rename: torch.a, result: {fields: [a], take: b}}",
            "10: `b` is not one of the `fields`; they are `a`",
        ),
        ("- {rename: torch.a, result: {fields: [a]}}", "10: `result` needs `take`, `adjust` or `plain`"),
        (
            "- {rename: torch.a, result: {fields: [a], adjust: {a: x.mH}}}",
            "10: `x.mH` must have `$` for the field",
        ),
        (
            "- {rename: torch.a, result: {fields: [a, b], take: a, new_fields: [c]}}",
            "needs as many names as `fields`: 2",
        ),
        ("- {rename: torch.a, pattern: torch.symeig($x)}", "10: `pattern` needs `replace`"),
        (
            "- {pattern: [], replace: $x}",
            "10: `cases[0].pattern` has the wrong size; it must be a pattern or a list of patterns",
        ),
        (
            "- {pattern: 'torch.eig($x)[0]', replace: $x}",
            "10: `pattern` names none of the symbols `torch.symeig`",
        ),
        ("- {rename: torch.a, applicability: unsafe}", "10: applicability unsafe needs a `reason`, one line"),
        (
            "- {rename: torch.a, reason: because}",
            "10: `reason` says why a fix is not safe: it needs `applicability`",
        ),
        (
            "- {rename: torch.a, roles: [string]}",
            "10: `cases[0].roles[0]` must be one of call, decorator, base, annot",
        ),
        ("- rename", "10: `cases[0]` must be a mapping, not `rename`"),
    ],
)
def test_mistakes_in_a_case(tmp_path: Path, text: str, expected: str) -> None:
    found = problems(tmp_path, with_cases(text))
    assert any(expected in line for line in found), found


def test_a_rule_without_a_fix_needs_other_examples(tmp_path: Path) -> None:
    text = RULE.replace("torch.ger: torch.outer", "torch.ger: {what: outer}").replace(
        "torch.Tensor.ger: torch.Tensor.outer", "torch.Tensor.ger: {what: outer}"
    )
    text = text.replace("`{new}`", "`{what}`")
    assert problems(tmp_path, text) == [
        "11: an example has `before` and `after`, but no case of the rule makes a fix"
    ]
    text = re.sub(r"    - before.*?(?=    - report)", "", text, flags=re.DOTALL)
    assert one(tmp_path, text).cases == ()
    assert problems(tmp_path, text.replace("  references", '  requires: "1.7"\n  references')) == [
        "10: `requires` is about a fix, and the rule has no `cases`"
    ]


def test_everything_wrong_is_said_at_once(tmp_path: Path) -> None:
    text = RULE.replace("TM110", "ger").replace('"1.7"', "1.7").replace("torch-ger", "Ger")
    second = RULE.replace("summary", "sumary").replace("    - clean: torch.outer(a, b)\n", "")
    found = problems(tmp_path, text + second)
    assert [line.split(":")[0] for line in found] == ["1", "2", "6", "17", "19", "27"]


def test_other_mistakes(tmp_path: Path) -> None:
    assert problems(tmp_path, "") == ["1: a rule file must be a list of rules, not empty"]
    assert problems(tmp_path, "code: TM100\n") == ["1: a rule file must be a list of rules, not a mapping"]
    assert problems(tmp_path, "- TM100\n") == ["1: a rule must be a mapping, not text"]
    assert problems(tmp_path, "? [a]\n: b\n")[-1] == "1: a rule file must be a list of rules, not a mapping"
    with pytest.raises(CatalogueError, match="is not UTF-8"):
        (tmp_path / "rules.yaml").write_bytes(b"- code: \xff\n")
        load_file(tmp_path / "rules.yaml")
    with pytest.raises(CatalogueError, match="cannot read: no such file"):
        load_file(tmp_path / "gone.yaml")
    with pytest.raises(CatalogueError, match="is not a directory with rules"):
        load_directory(tmp_path / "gone")
    (tmp_path / "empty").mkdir()
    with pytest.raises(CatalogueError, match=re.escape("contains no rule files (*.yaml)")):
        load_directory(tmp_path / "empty")


def test_codes_and_names_are_used_once(tmp_path: Path) -> None:
    assert problems(tmp_path, RULE + RULE.replace("torch-ger", "other")) == [
        "17: code `TM110` is used already, by line 1"
    ]
    first = write(tmp_path, RULE, "a.yaml")
    write(tmp_path, RULE.replace("TM110", "TM111"), "b.yml")
    write(tmp_path, RULE, ".hidden.yaml")
    (tmp_path / "rules.yaml").unlink()
    with pytest.raises(CatalogueError) as raised:
        load_directory(tmp_path)
    assert str(raised.value) == f"{tmp_path / 'b.yml'}:1: name `torch-ger` is used already, by {first}:1"


# ---- the compiled form ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def own() -> list[Rule]:
    return [item.rule for item in load_directory(ROOT / "rules", relative=True)]


def test_compiling_loses_nothing(own: list[Rule]) -> None:
    code = Rule("TM999", "made-of-code", "", "torch", {}, opt_in=True, group="made")
    data = compiled.dump(own, "a b", [code])
    catalogue = compiled.load(data)
    assert catalogue.rules == own
    assert catalogue.heads == [RuleHead.of(rule) for rule in own]
    assert compiled.dump(catalogue.rules, "a b", [code]) == data
    file = unpack(data)
    assert file.made_from == "a b"
    assert file.names == tuple(
        RuleName(rule.code, rule.name, rule.opt_in, rule.group) for rule in [*own, code]
    )


def test_compiling_keeps_every_kind_of_field(tmp_path: Path) -> None:
    text = with_cases("""
        - when: {input: {name: torch.a}, upper: [[0, [1]], null, 2.5]}
          result: {fields: [a, b], take: a, adjust: {b: $.T}}
          map: {upper: {"1": "2"}}
          replace: torch.linalg.eigh($input)
          applicability: display
          reason: because
        - arguments: {drop: [upper], keywords: {input: A}, add: {x: 1}, insert: [2], to_keyword: [input]}
    """).replace(
        "  cases", "  modules: {torch._six: null}\n  members: [b, a]\n  match: {upper: literal}\n  cases"
    )
    rule = one(tmp_path, text)
    assert compiled.load(compiled.dump([rule], "", [])).rules == [rule]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[]",
        b"torchmigrate-rules-1 \n\n[]",
        pack("", [], b""),
        pack("", [], b"[{}]"),
        pack("", [], b'{"a":1}'),
        pack("", [], b"[]").replace(b"\n", b"\nTM1\n"),
        pack("", [], b"[]").replace(b"\n", b"\n\xff\n"),
    ],
)
def test_damaged_files(data: bytes) -> None:
    with pytest.raises(StaleError):
        compiled.load(data)


def generated(own: list[Rule], count: int) -> Iterator[Rule]:
    for number in range(count):
        rule = own[number % len(own)]
        symbols = {f"{symbol}_{number}": values for symbol, values in rule.symbols.items()}
        yield replace(rule, code=f"TM{number:03}", name=f"rule-{number}", symbols=symbols)


def test_500_rules_are_loaded_without_building_one(own: list[Rule]) -> None:
    catalogue = compiled.load(compiled.dump(generated(own, 500), "", []))
    assert len(catalogue) == 500
    assert len(catalogue.for_name("torch.qr_of_nothing")) == 0
    assert catalogue._built == {}


# ---- the index --------------------------------------------------------------------------------------


def test_for_name() -> None:
    def rule(code: str, symbols: list[str], modules: list[str], members: list[str] | None = None) -> Rule:
        return Rule(
            code=code,
            name=code.lower(),
            summary="",
            library="torch",
            symbols={symbol: {} for symbol in symbols},
            modules=dict.fromkeys(modules),
            members=frozenset(members) if members else None,
        )

    vmap = rule("TM300", ["functorch.vmap"], [])
    package = rule("TM301", [], ["functorch"])
    six = rule("TM100", [], ["torch._six"], ["inf"])
    catalogue = Catalogue.of([vmap, package, six])
    assert catalogue.for_name("functorch.vmap") == [(vmap, "functorch.vmap"), (package, "functorch")]
    assert catalogue.for_name("functorch") == [(package, "functorch")]
    assert catalogue.for_name("functorch.compile.f") == [(package, "functorch")]
    assert catalogue.for_name("functorch2.vmap") == []
    assert catalogue.for_name("torch._six.inf") == [(six, "torch._six")]
    assert catalogue.for_name("torch._six") == [(six, "torch._six")]
    assert catalogue.for_name("torch._six.nan") == []
    assert catalogue.for_name("torch._six.nan") is catalogue.for_name("torch._six.nan")
    assert catalogue.last_parts == {"vmap", "functorch", "_six"}
    assert catalogue.find("TM301") is package
    assert catalogue.find("tm100") is six
    assert catalogue.find("tm999") is None
    assert dict(catalogue.by_symbol) == {"functorch.vmap": [vmap]}
    assert list(catalogue.by_module) == ["functorch", "torch._six"]
    assert "torch.x" not in catalogue.by_symbol
    some = catalogue.where(lambda head: head.code < "TM301")
    assert some.rules == [vmap, six]
    assert some.for_name("functorch.vmap") == [(vmap, "functorch.vmap")]
    assert len(some) == 2


def test_screen() -> None:
    rule = Rule(code="TM1", name="x", summary="", library="torch", symbols={"torch.qr": {}, "torch.s_1": {}})
    screen = Catalogue.of([rule]).screen
    assert screen("from torch import qr")
    assert screen(b"x=torch.qr(a)")
    assert screen("é".join(["# torch", "qr"]))
    assert not screen("qr(a)")
    assert screen("mock.patch('torch.s_1')")
    assert not screen("from torch import qr2, _qr, s_10")
    assert not screen("")
    filler = "name = 1\n" * 20_000
    assert screen(filler + "torch.qr")
    assert not screen(filler + "torch.qr_")
    assert screen("\udcff torch.qr")
    assert not Catalogue.of([]).screen("torch.qr")


def test_a_catalogue_can_be_sent_to_another_process(own: list[Rule]) -> None:
    catalogue = compiled.load(compiled.dump(own, "", [])).where(lambda head: head.code > "TM1")
    assert pickle.loads(pickle.dumps(catalogue)).rules == catalogue.rules


# ---- where rules come from --------------------------------------------------------------------------


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one rule file; the path of its compiled file."""
    (tmp_path / "rules" / "torch").mkdir(parents=True)
    write(tmp_path / "rules" / "torch", RULE)
    monkeypatch.setattr(store, "_CHECKOUT_RULES", tmp_path / "rules")
    monkeypatch.setattr(store, "_INSTALLED_RULES", tmp_path / "none")
    monkeypatch.setattr(store, "COMPILED", tmp_path / "_compiled.rules")
    return tmp_path / "_compiled.rules"


def test_a_checkout_compiles_when_something_changed(checkout: Path) -> None:
    rules = store.rules_directory()
    assert [rule.path for rule in store.default_catalogue().rules] == ["torch/rules.yaml"]
    data = checkout.read_bytes()
    changed = checkout.stat().st_mtime_ns
    assert store.default_catalogue().heads[0].code == "TM110"
    assert checkout.stat().st_mtime_ns == changed

    write(rules, RULE.replace("TM110", "TM111").replace("torch-ger", "other"), "more.yaml")
    assert [head.code for head in store.default_catalogue().heads] == ["TM111", "TM110"]
    (rules / "more.yaml").unlink()
    assert [head.code for head in store.default_catalogue().heads] == ["TM110"]
    assert checkout.read_bytes() == data

    file = write(rules / "torch", RULE.replace("TM110", "TM112"))
    os.utime(file, ns=(1, 1))
    assert [head.code for head in store.default_catalogue().heads] == ["TM112"]
    checkout.write_bytes(b"{")
    assert [head.code for head in store.default_catalogue().heads] == ["TM112"]
    assert [path.name for path in checkout.parent.iterdir() if "compiled" in path.name] == ["_compiled.rules"]


def test_a_checkout_that_cannot_be_written(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "COMPILED", checkout.parent / "gone" / "_compiled.rules")
    assert len(store.default_catalogue()) == 1


def test_a_compiled_file_with_damaged_rules(checkout: Path) -> None:
    store.default_catalogue()
    file = unpack(checkout.read_bytes())
    checkout.write_bytes(pack(file.made_from, file.names, b"[{"))
    names, catalogue = store.own_rules()
    assert [name.code for name in names] == ["TM110", *(rule.code for rule in RULES)]
    assert [head.code for head in catalogue.heads] == ["TM110"]


def test_rules_that_do_not_load(checkout: Path) -> None:
    write(store.rules_directory(), "- code: TM1\n")
    with pytest.raises(CatalogueError, match=r"rules\.yaml:1: a rule needs `name`, `summary`"):
        store.default_catalogue()


def test_an_installation_without_rules(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_CHECKOUT_RULES", checkout.parent / "gone")
    with pytest.raises(CatalogueError, match="the rules are missing: reinstall torchmigrate"):
        store.default_catalogue()


def test_examples_and_source_of_a_rule(checkout: Path, tmp_path: Path) -> None:
    (rule,) = store.default_catalogue().rules
    path, line = store.source_of(rule)
    assert (path.read_text(encoding="utf-8"), line) == (RULE, 1)
    assert [example.kind for example in store.examples_of(rule)] == [FIX, REPORT_ONLY, CLEAN]
    assert store.rule_files() == [path]


def test_rules_of_a_user(checkout: Path, tmp_path: Path) -> None:
    directory = tmp_path / "mine"
    directory.mkdir()
    text = RULE.replace("TM110", "MINE001").replace("torch-ger", "my-ger").replace("torch", "mylib")
    file = write(directory, text)
    catalogue = store.merge(store.default_catalogue(), store.load_user_rules([directory, file]))
    assert [head.code for head in catalogue.heads] == ["TM110", "MINE001"]
    mine = catalogue.find("my-ger")
    assert mine is not None
    assert store.source_of(mine) == (file, 1)
    assert len(store.examples_of(mine)) == 3
    assert [(rule.code, len(examples)) for rule, examples in store.load_user_rules([file])] == [
        ("MINE001", 3)
    ]

    write(directory, RULE.replace("torch-ger", "my-ger"))
    with pytest.raises(CatalogueError) as raised:
        store.merge(store.default_catalogue(), store.load_user_rules([directory]))
    assert (
        str(raised.value)
        == f"{file}:1: code `TM110` is used already, by torchmigrate's own TM110 (torch-ger)"
    )


def test_a_run_with_compiled_rules_reads_no_yaml() -> None:
    code = (
        "import sys; from torchmigrate.catalogue.store import default_catalogue; c = default_catalogue();"
        "c = default_catalogue(); assert len(c.rules) == len(c)"
    )
    check = "; print(sorted({'yaml', 'jsonschema', 'packaging', 'libcst', 'click'} & set(sys.modules)))"
    for expected in (None, "[]\n"):  # the first may have to compile
        run = subprocess.run([sys.executable, "-c", code + check], capture_output=True, text=True, check=True)
        assert expected is None or run.stdout == expected


def test_the_example_of_the_contributing_guide(tmp_path: Path) -> None:
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"```yaml\n(.*?)```", guide, flags=re.DOTALL)
    assert one(tmp_path, textwrap.dedent(text)).cases == (
        Case(rename="$new", roles=ALL_ROLES, requires="1.7"),
    )


def test_the_page_on_the_rule_format_names_every_key() -> None:
    guide = (ROOT / "docs" / "develop" / "rules.md").read_text(encoding="utf-8")
    keys = {key for part in (RULE_SCHEMA, CASE, EXAMPLE) for key in part["properties"]}
    keys |= {key for part in ("arguments", "result") for key in CASE["properties"][part]["properties"]}
    assert [key for key in sorted(keys) if f"`{key}`" not in guide and f"`{key}:" not in guide] == []


VARIANTS = """
- code: TM990
  name: renamed-parameters
  summary: "`{old}` is now `{new_name}`"
  why: Parameters were renamed.
  library: torch
  removed: "1.9"
  symbols:
    torch.f: {old: a, new_name: b, signature: "(x, a=1)"}
    torch.g: {old: c, new_name: d, signature: "(c, y=2)", removed: "2.1"}
  parameters: [$old]
  cases:
    - arguments: {keywords: {$old: $new_name}}
  references: ["https://example.org"]
  examples:
    - before: |
        import torch
        torch.f(1, a=2)
        torch.g(c=1)
      after: |
        import torch
        torch.f(1, b=2)
        torch.g(d=1)
      no_proof: invented
    - report_only: |
        from torch import *
        f(1, a=2)
    - clean: |
        import torch
        torch.f(1, b=2)
"""


def test_what_a_symbol_says_of_itself(tmp_path: Path) -> None:
    (loaded,) = load_file(write(tmp_path, VARIANTS))
    rule = loaded.rule
    assert rule_for_symbol(rule, "torch.f").parameters == ("a",)
    assert rule_for_symbol(rule, "torch.g").cases[0].keywords == {"c": "d"}
    assert (rule_for_symbol(rule, "torch.f").removed, rule_for_symbol(rule, "torch.g").removed) == (
        "1.9",
        "2.1",
    )
    assert RuleHead.of(rule).removed == "1.9"
    assert list(check_rule(loaded, Catalogue.of([rule]))) == []


def test_a_symbol_that_is_still_there_at_the_target_is_not_found(tmp_path: Path) -> None:
    (loaded,) = load_file(write(tmp_path, VARIANTS))
    text = "import torch\ntorch.f(1, a=2)\ntorch.g(c=1)\n"
    result = run(text, *only(["TM990"]), "--target", "2.0", rules=Catalogue.of([loaded.rule]))
    assert [found.symbol for found in result.findings] == ["torch.f"]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("[$old]", "[$older]", "`$older` is not a variable of the symbols"),
        ("{old: c, new_name: d,", "{old: e, new_name: d,", "`e` is not in the signature of `torch.g`"),
        ('removed: "2.1"}', 'removed: "1.77"}', "there is no torch 1.77"),
    ],
)
def test_mistakes_in_what_a_symbol_says(tmp_path: Path, old: str, new: str, expected: str) -> None:
    assert any(expected in text for text in problems(tmp_path, VARIANTS.replace(old, new)))


def test_a_symbol_may_say_what_its_replacement_requires(own: list[Rule]) -> None:
    rule = next(item for item in own if item.code == "TM625")
    needs = {
        symbol.rpartition(".")[2]: {case.requires for case in rule_for_symbol(rule, symbol).cases}
        for symbol in rule.symbols
    }
    assert needs["scalar"] == {"1.13"}
    assert needs["FileWriter"] == {"1.2"}
