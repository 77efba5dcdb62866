"""The documentation as it is built: what is made from the code is there, and says what the program says."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pytest
from harness.project import Project
from harness.site import built_site, squeezed, text_of

from torchmigrate.authoring.schemas import SCHEMAS
from torchmigrate.catalogue.pages import SITE
from torchmigrate.cli.commands import commands
from torchmigrate.config.keys import KEYS


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_site(tmp_path_factory.mktemp("site"))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    return Project(tmp_path, monkeypatch)


def test_every_rule_has_a_page_where_its_findings_say(site: Path, project: Project) -> None:
    rules = json.loads(project.run("rules", "--output-format", "json", code=0).stdout)
    listed = (site / "rules" / "index.html").read_text("utf-8")
    for rule in rules:
        page = site / rule["url"].removeprefix(SITE) / "index.html"
        text = page.read_text("utf-8")
        assert f"<title>{rule['code']} {rule['name']} - torchmigrate</title>" in text
        assert f'<link rel="canonical" href="{rule["url"]}">' in text
        assert f'<a href="{rule["code"]}/">{rule["code"]}</a>' in listed
    assert len(list((site / "rules").glob("TM*"))) == len(rules)


def test_the_index_has_releases_for_every_rule(site: Path, project: Project) -> None:
    rows = re.findall(r"<tr>\s*(.*?)\s*</tr>", (site / "rules" / "index.html").read_text("utf-8"), re.DOTALL)
    cells = [re.findall(r"<td>(.*?)</td>", row, re.DOTALL) for row in rows]
    found = {re.sub("<.*?>", "", row[0]): row[2] for row in cells if len(row) == 5}
    rules = json.loads(project.run("rules", "--output-format", "json", code=0).stdout)
    assert set(found) == {rule["code"] for rule in rules}
    for rule in rules:
        text = found[rule["code"]]
        assert re.fullmatch(
            r"(\w+: )?(any release|((out|deprec|chang|remov)\w+ in \d+\.\d+( to \d+\.\d+)?(, )?)+)", text
        ), (rule["code"], text)
        assert text.startswith(f"{rule['library']}: ") or rule["library"] == "torchmigrate"
    assert found["TM455"] == "torch: deprecated in 2.4, removed in 2.7 to 2.9"
    assert found["TM001"] == "any release"


def test_the_page_about_rules_that_are_on_has_the_groups(site: Path, project: Project) -> None:
    page = (site / "which-rules" / "index.html").read_text("utf-8")
    index = (site / "rules" / "index.html").read_text("utf-8")
    groups = json.loads(
        project.run("rules", "--groups", "--output-format", "json", "--isolated", code=0).stdout
    )
    rules = json.loads(project.run("rules", "--output-format", "json", code=0).stdout)
    on = sum(not rule["opt_in"] for rule in rules)
    assert f"Of {len(rules)} rules, {on} are on by default. The others are in {len(groups)} groups:" in page
    for group in groups:
        row = re.search(rf'<tr>\s*<td><a id="{group["group"]}"></a>.*?</tr>', page, re.DOTALL)
        assert row is not None, group
        text = squeezed(html.unescape(re.sub(r"<[^>]*>", "", row[0])))
        assert text == squeezed(f"{group['group']} {group['purpose']} {', '.join(group['rules'])}")
        assert all(f'href="../rules/{code}/"' in row[0] for code in group["rules"])
        assert index.count(f'href="../which-rules/#{group["group"]}"') == len(group["rules"])


def test_pages_say_what_explain_prints(site: Path) -> None:
    from torchmigrate.catalogue.builtin import RULES
    from torchmigrate.cli.explain import explanation
    from torchmigrate.cli.session import examples
    from torchmigrate.report.explanation import sections
    from torchmigrate.report.style import Style
    from torchmigrate.run.configurations import load_rules

    for rule in [*load_rules()[0].rules, *RULES]:
        shown = text_of(site / "rules" / rule.code / "index.html").replace("→", "->")
        parts = sections(rule, examples(rule))
        printed = explanation(rule, examples(rule), Style())
        for section in parts:
            if section.table:  # whose lines hold parts of several cells
                printed = re.sub(r"^  condition  (?:.*\n(?=  |\n))*", "", printed, flags=re.MULTILINE)
                for text in ("".join(row) for row in (*section.table, *zip(section.lines, strict=True))):
                    assert squeezed(text) in shown, (rule.code, text)
        for line in printed.splitlines():
            if not line.startswith(("Documentation: ", "  ... and ")):
                assert squeezed(line) in shown, (rule.code, line)


def test_the_reference_of_the_command_line(site: Path) -> None:
    shown = text_of(site / "reference" / "cli" / "index.html")
    for name, command in commands.everything().items():
        assert f"{name}" in shown
        for parameter in command.params:
            if getattr(parameter, "hidden", False):
                continue
            for option in (*parameter.opts, *parameter.secondary_opts):
                assert option in shown or not option.startswith("-"), (name, option)
        for paragraph in re.split(r"\n\s*\n", command.help or ""):
            assert squeezed(paragraph) in shown


def test_the_reference_of_the_configuration(site: Path) -> None:
    shown = text_of(site / "reference" / "configuration" / "index.html")
    for key in KEYS:
        assert squeezed(key.text) in shown and squeezed(f"{key.name} = {key.example}") in shown


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas_are_those_of_the_program(site: Path, project: Project, name: str) -> None:
    shown = json.loads((site / "schemas" / f"{name}.json").read_text("utf-8"))
    assert shown == json.loads(project.run("config", "--schema", name, code=0).stdout)
    assert shown["$id"] == f"{SITE}schemas/{name}.json"


def test_the_list_for_agents(site: Path) -> None:
    from docs_site.llms import DESCRIPTIONS

    from torchmigrate.catalogue.builtin import RULES
    from torchmigrate.run.configurations import load_rules

    text = (site / "llms.txt").read_text("utf-8")
    title, summary, *_ = text.split("\n\n")
    assert title == "# torchmigrate"
    assert re.fullmatch(r"> [^\n.]+\.", summary)
    entries = re.findall(r"^- \[(.+)\]\((.+)\): (.+)$", text, re.MULTILINE)
    assert len(entries) == text.count("\n- "), "each has an address and a description on its line"
    addresses = [address for _, address, _ in entries]
    assert len(set(addresses)) == len(addresses)
    for name, address, description in entries:
        page = site / address.removeprefix(SITE) / "index.html"
        assert f'<link rel="canonical" href="{address}">' in page.read_text("utf-8"), name
        assert len(description) < 400
    pages = {page.parent.relative_to(site).as_posix() for page in site.rglob("index.html")}
    listed = {address.removeprefix(SITE).strip("/") or "." for address in addresses}
    assert listed == pages
    rules = {rule.code for rule in [*load_rules()[0].rules, *RULES]}
    assert {name.split()[0] for name, address, _ in entries if "/rules/TM" in address} == rules
    described = {name.removesuffix(".md").removesuffix("index").strip("/") or "." for name in DESCRIPTIONS}
    assert described <= listed


def test_codes_in_texts_are_links(site: Path) -> None:
    text = (site / "migrations" / "apex" / "index.html").read_text("utf-8")
    assert '<a href="../../rules/TM220/"><code>TM220</code></a>' in text


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text("utf-8")
        loaded = re.findall(r'<(?:script|img|iframe)[^>]* src="([^"]*)"', text)
        loaded += re.findall(r'<link[^>]* rel="(?:stylesheet|preconnect|icon)"[^>]* href="([^"]*)"', text)
        loaded += re.findall(r'<link[^>]* href="([^"]*)"[^>]* rel="(?:stylesheet|preconnect|icon)"', text)
        assert [address for address in loaded if "//" in address] == []
