"""What other systems read: workflows, actions, components, forms. Each is held against its published schema."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from torchmigrate import __version__

pytestmark = pytest.mark.one_python

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "ci.md").read_text("utf-8")
ACTION = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
BLOCKS = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
WORKFLOWS = [*sorted(ROOT.glob(".github/workflows/*.yml")), ROOT / "integrations" / "upgrade-bot.yml"]
FORMS = [path for path in sorted(ROOT.glob(".github/ISSUE_TEMPLATE/*.yml")) if path.stem != "config"]


def check(schema: str, *files: Path, options: Sequence[str] = ()) -> None:
    """Hold files against a schema that check-jsonschema has, without looking for a newer one."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "check_jsonschema",
            "--builtin-schema",
            f"vendor.{schema}",
            *options,
            *map(str, files),
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def component(**given: Any) -> dict[str, Any]:
    """The jobs of the GitLab component, with inputs as GitLab puts them in."""
    text = (ROOT / "templates" / "torchmigrate.yml").read_text("utf-8")
    spec, jobs = text.split("\n---\n")
    inputs = yaml.safe_load(spec)["spec"]["inputs"]
    values = {name: each["default"] for name, each in inputs.items()} | given
    assert values.keys() == inputs.keys()

    def value(match: re.Match[str]) -> str:
        found = values[match[1]]
        return str(found).lower() if isinstance(found, bool) else str(found)

    return yaml.safe_load(re.sub(r"\$\[\[ inputs\.([\w-]+) \]\]", value, jobs))


def test_workflows() -> None:
    assert len(WORKFLOWS) == 6
    check("github-workflows", *WORKFLOWS)


def test_the_action() -> None:
    check("github-actions", ROOT / "action.yml")


def test_forms_for_issues() -> None:
    assert len(FORMS) == 4
    check("github-issue-forms", *FORMS)
    check("github-issue-config", ROOT / ".github" / "ISSUE_TEMPLATE" / "config.yml")


def test_dependabot() -> None:
    check("dependabot", ROOT / ".github" / "dependabot.yml")


def test_azure_pipelines() -> None:
    # Its patterns are none of those that check-jsonschema takes otherwise.
    check(
        "azure-pipelines",
        ROOT / "integrations" / "azure-pipelines.yml",
        options=["--regex-variant", "nonunicode"],
    )


def test_the_component_of_gitlab(tmp_path: Path) -> None:
    for number, given in enumerate([{}, {"allow-failure": True, "job-name": "old torch", "target": "2.9"}]):
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps(component(**given)), "utf-8")
        check("gitlab-ci", path)


def test_the_page_shows_what_is_valid(tmp_path: Path) -> None:
    """Workflows that name inputs of the action, and files as they are."""
    workflows = [block for block in BLOCKS if "jobs:" in block]
    for number, block in enumerate(workflows):
        path = tmp_path / f"{number}.yml"
        path.write_text(block, "utf-8")
        check("github-workflows", path)
        for job in yaml.safe_load(block)["jobs"].values():
            (step,) = (each for each in job["steps"] if each["uses"].startswith("torchmigrate/"))
            assert step.get("with", {}).keys() <= ACTION["inputs"].keys()
    assert len(workflows) == 3
    for name in ("azure-pipelines.yml", "Jenkinsfile"):
        assert (
            f"```{'yaml' if name.endswith('yml') else 'groovy'}\n{(ROOT / 'integrations' / name).read_text('utf-8')}```"
            in PAGE
        )


def test_the_page_names_every_input() -> None:
    action, gitlab = PAGE.split("## GitLab CI/CD")
    assert named_in_tables(action) == [*ACTION["inputs"], *ACTION["outputs"]]
    spec = (ROOT / "templates" / "torchmigrate.yml").read_text("utf-8").split("\n---\n")[0]
    assert sorted(named_in_tables(gitlab)) == sorted(yaml.safe_load(spec)["spec"]["inputs"])


def named_in_tables(text: str) -> list[str]:
    """The names in the first column of its tables."""
    cells = re.findall(r"^\| (`.*?) \|", text, re.MULTILINE)
    return [name for cell in cells for name in re.findall(r"`([\w-]+)`", cell)]


@pytest.mark.parametrize("path", [*WORKFLOWS, ROOT / "action.yml"], ids=lambda path: path.name)
def test_actions_of_others_are_pinned(path: Path) -> None:
    """By the commit, with the release beside it; a tag may be moved."""
    used = re.findall(r"uses: (.*)", path.read_text("utf-8"))
    assert used
    for each in used:
        assert each == "./" or re.fullmatch(r"[\w.-]+(/[\w.-]+)+@[0-9a-f]{40} # v\d+\.\d+\.\d+", each), each


@pytest.mark.parametrize("path", [*WORKFLOWS, ROOT / "action.yml"], ids=lambda path: path.name)
def test_no_expression_is_part_of_a_script(path: Path) -> None:
    """Text of others, such as the name of a branch, would be executed."""
    data = yaml.safe_load(path.read_text("utf-8"))
    steps = [step for job in data.get("jobs", {"": data.get("runs")}).values() for step in job["steps"]]
    assert [step["run"] for step in steps if "${{" in step.get("run", "")] == []


def test_the_release_is_named_everywhere() -> None:
    """What users copy installs this release."""
    assert {f"v{__version__}"} == set(re.findall(r"torchmigrate/torchmigrate@(v[\w.]+)", PAGE))
    assert {__version__} == set(re.findall(r"torchmigrate/torchmigrate/torchmigrate@([\w.]+)", PAGE))
    assert component()["torchmigrate"]["script"][0].endswith(f'"torchmigrate=={__version__}"')
    assert f"torchmigrate@{__version__}\n" in (ROOT / "templates" / "torchmigrate.yml").read_text("utf-8")
    assert f"rev: v{__version__}\n" in (ROOT / "README.md").read_text("utf-8")


def test_scripts_parse() -> None:
    for path in (ROOT / ".ci").iterdir():
        assert path.stat().st_mode & 0o111, path
        subprocess.run(["bash", "-n", str(path)], check=True)
