"""Groups of rules: what they hold, and that they are known wherever rules are selected."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent

import pytest
from harness.project import Project

from torchmigrate.catalogue.builtin import RULES
from torchmigrate.catalogue.groups import PURPOSES
from torchmigrate.catalogue.store import default_catalogue

# Places for adopt-fused (two, one in tests), adopt-sdpa's neighbor tf32, and a rule that is on.
CODE = dedent("""\
    import torch

    optimizer = torch.optim.Adam(model.parameters())
    torch.backends.cuda.matmul.allow_tf32 = True
    y = torch.log(1 + torch.ger(a, b))
""")
ON = ["TM110"]
OWN = dedent("""\
    - code: ACM001
      name: acme-step
      summary: "`{name}` is our own; use `torch.outer`"
      why: We have a new one.
      library: torch
      outdated: "1.0"
      opt_in: true
      group: acme-wrappers
      symbols: [torch.ger]
      references: [https://example.com/]
      examples:
        - report_only: |
            import torch
            torch.ger(a, b)
        - clean: |
            import torch
            torch.outer(a, b)
""")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    made = Project(tmp_path, monkeypatch)
    made.write("a.py", CODE)
    return made


def groups(project: Project, *arguments: str) -> dict[str, list[str]]:
    done = project.run("rules", "--groups", "--output-format", "json", *arguments, code=0)
    return {item["group"]: item["rules"] for item in json.loads(done.stdout)}


# ---- what there is ------------------------------------------------------------------------------------


def test_every_rule_that_is_off_belongs_to_a_group() -> None:
    for rule in [*default_catalogue().rules, *RULES]:
        assert (rule.group in PURPOSES) if rule.opt_in else rule.group is None, rule.code


def test_every_group_has_rules_and_a_purpose_in_one_line(project: Project) -> None:
    assert list(groups(project)) == sorted(PURPOSES)
    for purpose in PURPOSES.values():
        assert len(purpose) <= 90 and purpose[0].islower() and not purpose.endswith(".")


def test_a_group_brings_nothing_else(project: Project) -> None:
    found = groups(project)
    assert found["adopt-compile"] == ["TM900", "TM902", "TM903", "TM905"]
    assert found["adopt-sdpa"] == ["TM901"] and "TM925" in found["adopt-fused"]
    assert found["tf32"] == ["TM121", "TM919", "TM947"]
    assert sum(map(len, found.values())) == len({code for codes in found.values() for code in codes})


# ---- selecting ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], ON),
        (["--select", "tf32"], ["TM947"]),
        (["--select", "tf32,adopt-fused"], ["TM925", "TM947"]),
        (["--extend-select", "stable-math"], [*ON, "TM990"]),
        (["--select", "TM9", "--ignore", "tf32"], ["TM925", "TM990"]),
        (["--select", "tf32", "--ignore", "TM9"], ["TM947"]),  # the group is more specific than the prefix
        (["--select", "tf32", "--ignore", "TM947"], []),  # and the code than the group
        (["--select", "tf32", "--extend-select", "TM947", "--ignore", "tf32"], ["TM947"]),
        (["--select", "TM9", "--per-file-ignores", "a.py:tf32"], ["TM925", "TM990"]),
        (["--config", 'extend-select = ["adopt-fused"]'], [*ON, "TM925"]),
        (["--config", "per-file-ignores = {'a*' = ['tf32', 'stable-math']}", "--select", "TM9"], ["TM925"]),
        (["--select", "TOR,tf32"], ["TM110", "TM947", "TM990"]),
    ],
)
def test_selecting(project: Project, arguments: list[str], expected: list[str]) -> None:
    done = project.run("check", "a.py", "--exit-zero", "--output-format", "json", *arguments, code=0)
    assert sorted({item["code"] for item in json.loads(done.stdout)}) == expected


@pytest.mark.parametrize(
    ("configuration", "fixed"),
    [
        ("", True),
        ("unfixable = ['adopt-fused']\n", False),
        ("fixable = ['adopt-compile']\n", False),
        ("extend-unsafe-fixes = ['adopt-fused']\n", True),
        ("fixable = ['TM1']\nextend-fixable = ['adopt-fused']\n", True),
    ],
)
def test_fixing(project: Project, tmp_path: Path, configuration: str, fixed: bool) -> None:
    project.write("torchmigrate.toml", f"select = ['adopt-fused']\n{configuration}")
    project.run("check", "a.py", "--fix", "--unsafe-fixes", "--exit-zero", code=0)
    text = (tmp_path / "a.py").read_text()
    assert ("fused=True" in text) is fixed
    assert "allow_tf32" in text


@pytest.mark.parametrize(
    ("option", "configuration", "message"),
    [
        ("adopt-compil", "", "--select: unknown rule `adopt-compil`; did you mean `adopt-compile`?"),
        ("tf-32", "", "--select: unknown rule `tf-32`; did you mean `tf32`?"),
        ("TF32", "", "--select: unknown rule `TF32`; did you mean `tf32`?"),
        (
            "TM1",
            "ignore = ['stable-maths']",
            "ignore: unknown rule `stable-maths`; did you mean `stable-math`?",
        ),
    ],
)
def test_unknown_groups(project: Project, option: str, configuration: str, message: str) -> None:
    project.write("torchmigrate.toml", configuration)
    assert message in project.run("check", "a.py", "--select", option, code=2).stderr


def test_a_suppression_needs_codes(project: Project) -> None:
    project.write("a.py", "import torch\ny = torch.ger(a, b)  # torchmigrate: ignore[tf32]\n")
    done = project.run("check", "a.py", "--output-format", "concise", code=1)
    assert "TM010 `tf32` is a group, but a suppression needs whole codes" in done.stdout
    project.write("a.py", "import torch\ny = torch.ger(a, b)  # noqa: tf32\n")
    assert project.codes("a.py") == ["TM110"]


# ---- reading about them -------------------------------------------------------------------------------


def test_the_list_of_groups(project: Project) -> None:
    lines = project.run("rules", "--groups", code=0).stdout.splitlines()
    assert "tf32               control TF32 precision, with the API of torch 2.9" in lines
    assert f"{'':19}3 rules: TM121, TM919, TM947" in lines
    assert max(map(len, lines)) <= 100
    assert groups(project, "tf32", "TM901") == {"tf32": ["TM121", "TM919", "TM947"], "adopt-sdpa": ["TM901"]}
    assert "adopt-compile" not in groups(project, "--target", "1.13")


@pytest.mark.parametrize(
    ("arguments", "codes"),
    [
        (["tf32"], ["TM121", "TM919", "TM947"]),
        (["tf32", "adopt-sdpa,TM110"], ["TM110", "TM121", "TM901", "TM919", "TM947"]),
        (["TM99"], ["TM990", "TM991", "TM992", "TM993", "TM994", "TM995", "TM996", "TM997", "TM998"]),
        (["torch-compile"], ["TM900"]),
        (["tf32", "--target", "2.0"], ["TM121"]),
    ],
)
def test_rules_of_a_group(project: Project, arguments: list[str], codes: list[str]) -> None:
    head, *rows = project.run("rules", *arguments, code=0).stdout.splitlines()
    assert head.startswith("CODE") and [row.split()[0] for row in rows] == codes
    done = project.run("rules", *arguments, "--output-format", "json", code=0)
    assert [item["code"] for item in json.loads(done.stdout)] == codes


def test_rules_of_no_group(project: Project) -> None:
    done = project.run("rules", "tf33", code=2)
    assert done.stderr == "error: unknown rule `tf33`; did you mean `tf32`?\n"


@pytest.mark.parametrize("key", ["tf32", "TF32"])
def test_explaining_a_group_lists_its_rules(project: Project, key: str) -> None:
    assert project.run("explain", key, code=0).stdout == project.run("rules", "tf32", code=0).stdout
    found = json.loads(project.run("explain", key, "--output-format", "json", code=0).stdout)
    assert [item["group"] for item in found] == ["tf32"] * 3


def test_a_rule_names_its_group(project: Project) -> None:
    assert (
        "\nOff unless selected. Group: `adopt-compile`.\n" in project.run("explain", "TM900", code=0).stdout
    )
    found = json.loads(project.run("explain", "TM110", "--output-format", "json", code=0).stdout)
    assert found["group"] is None
    assert "(off unless selected: tf32)" in project.run("rules", "TM947", code=0).stdout


# ---- rules of one's own -------------------------------------------------------------------------------


@pytest.fixture
def own(project: Project) -> Project:
    project.write("torchmigrate.toml", "rules = ['lint']\n")
    project.write("lint/acme.yaml", OWN)
    return project


def test_own_rules_may_have_their_own_group(own: Project) -> None:
    assert own.codes() == ON
    assert own.codes("--select", "acme-wrappers") == ["ACM001"]
    assert groups(own)["acme-wrappers"] == ["ACM001"]
    assert "rules of this project" in own.run("rules", "--groups", "acme-wrappers", code=0).stdout
    assert "\nOff unless selected. Group: `acme-wrappers`.\n" in own.run("explain", "ACM001", code=0).stdout


def test_own_rules_may_join_a_group(own: Project) -> None:
    own.write("lint/acme.yaml", OWN.replace("acme-wrappers", "tf32"))
    assert own.codes("--select", "tf32") == ["TM947", "ACM001"]


def test_a_group_need_not_be_off(own: Project) -> None:
    own.write("lint/acme.yaml", OWN.replace("  opt_in: true\n", ""))
    assert own.codes() == ["ACM001", *ON]
    assert own.codes("--ignore", "acme-wrappers") == ON
    assert "\nGroup: `acme-wrappers`.\n" in own.run("explain", "ACM001", code=0).stdout


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("group: acme-wrappers", "group: acme-step", "group `acme-step` is the name of the rule ACM001"),
        ("group: acme-wrappers", "group: ger", "group `ger` is the name of the rule TM110"),
        ("group: acme-wrappers", "group: unknown-api", "group `unknown-api` is the name of the rule TM002"),
        ("group: acme-wrappers", "group: acm", "group `acm` is the beginning of the code ACM001"),
        ("group: acme-wrappers", "group: acm001", "group `acm001` is the beginning of the code ACM001"),
        ("group: acme-wrappers", "group: tm9", "group `tm9` is the beginning of the code TM9"),
        ("group: acme-wrappers", "group: all", "group `all` cannot be distinguished from `ALL`"),
        (
            "group: acme-wrappers",
            "group: TM9",
            "`group` must be kebab-case, such as adopt-compile, not `TM9`",
        ),
        (
            "group: acme-wrappers",
            "group: [a]",
            "`group` must be kebab-case, such as adopt-compile, not a list",
        ),
        ("name: acme-step", "name: tf32", "name `tf32` is the name of a group of rules"),
        ("name: acme-step", "name: api-hints", "name `api-hints` is the name of a group of rules"),
        ("name: acme-step", "name: unknown-api", "name `unknown-api` is used already, by torchmigrate's own"),
        ("group: acme-wrappers", "groups: tf32", "unknown key `groups` in a rule; did you mean `group`?"),
    ],
)
def test_groups_that_are_refused(own: Project, old: str, new: str, message: str) -> None:
    own.write("lint/acme.yaml", OWN.replace(old, new))
    assert message in own.run("check", code=2).stderr
