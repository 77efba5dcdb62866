"""What the files for other systems run, run in bash. What they install is there already."""

from __future__ import annotations

import json
import re
import subprocess
import venv
from pathlib import Path

import pytest
import yaml
from harness.repository import Repository
from harness.steps import bash, filled, programs
from test_files_of_ci import component

pytestmark = pytest.mark.one_python

ROOT = Path(__file__).parents[2]
OLD = "import torch\n\ny = torch.ger(a, b)\nz = torch.load(p)\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A checkout with two findings."""
    path = tmp_path / "project"
    path.mkdir()
    subprocess.run(["git", "init", "--quiet", path], check=True)
    (path / "a.py").write_text(OLD, "utf-8")
    return path


# ---- GitLab ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, ["TM110", "TM600"]),
        ({"args": "--select TM6"}, ["TM600"]),
        ({"target": "2.9", "minimum": "1.6", "paths": "a.py"}, ["TM110", "TM600"]),
        ({"target": "1.6"}, []),
        ({"args": "--no-such-option"}, None),
    ],
)
def test_gitlab(project: Path, tmp_path: Path, given: dict[str, str], expected: list[str] | None) -> None:
    (job,) = component(report="quality.json", **given).values()
    path = programs(tmp_path / "bin", pip=f'echo "$@" >> "{tmp_path}/pip"')
    done = bash("\n".join(job["script"]), project, path, **job["variables"])
    assert done.returncode == (2 if expected is None else int(bool(expected))), done.stderr
    assert (tmp_path / "pip").read_text("utf-8").startswith("install --quiet torchmigrate==")
    if expected is not None:
        report = json.loads((project / job["artifacts"]["reports"]["codequality"]).read_text("utf-8"))
        assert [each["check_name"] for each in report] == expected
        assert {each["location"]["path"] for each in report} <= {"a.py"}


# ---- Azure Pipelines, Jenkins ---------------------------------------------------------------------------


def test_azure_pipelines(project: Path, tmp_path: Path) -> None:
    steps = yaml.safe_load((ROOT / "integrations" / "azure-pipelines.yml").read_text("utf-8"))["steps"]
    scripts = [step["script"] for step in steps if "script" in step]
    path = programs(tmp_path / "bin", python=f'echo "$@" >> "{tmp_path}/python"')
    results = [bash(script, project, path) for script in scripts]
    assert (tmp_path / "python").read_text("utf-8") == "-m pip install torchmigrate\n"
    assert [done.returncode for done in results] == [0, 1]
    assert results[1].stdout.count("##vso[task.logissue type=warning;") == 2


def test_jenkins(project: Path, tmp_path: Path) -> None:
    """Its environment is made in the project, and is not checked."""
    text = (ROOT / "integrations" / "Jenkinsfile").read_text("utf-8")
    scripts = re.findall(r"sh '(.*)'", text)
    assert len(scripts) == 2
    made = programs(tmp_path / "made", pip="true")
    (made / "old.py").write_text(OLD, "utf-8")
    path = programs(tmp_path / "bin", python=f'mkdir "$3" && cp -r "{made}" "$3/bin"')
    for script in scripts:
        done = bash(script, project, path)
        assert done.returncode == 0, done.stderr
    (pattern,) = re.findall(r"pattern: '(.*?)'", text)
    results = json.loads((project / pattern).read_text("utf-8"))["runs"][0]["results"]
    assert [each["ruleId"] for each in results] == ["TM110", "TM600"]


# ---- the pull request with an upgrade -------------------------------------------------------------------

MODEL = "import torch\n\n\ndef outer(a, b):\n    return torch.ger(a, b)\n"
TEST = "import model\n\n\ndef test_outer():\n    assert model.outer(1, 2) == (1, 2)\n"
TORCH = '__version__ = "2.13.0"\n\n\ndef outer(a, b):\n    return a, b\n\n\nger = outer\n'


class Bot:
    """A repository with a remote, an environment with something like torch, and a `gh` that keeps what it is told."""

    def __init__(self, where: Path) -> None:
        self.where = where
        self.repository = Repository(
            where, {"model.py": MODEL, "test_model.py": TEST, "requirements.txt": "torch==1.13.0\n"}
        )
        self.remote = where / "remote.git"
        self.repository.git("init", "--quiet", "--bare", str(self.remote))
        self.repository.git("remote", "add", "origin", str(self.remote))
        self.temp = where / "temp"
        self.temp.mkdir()
        self.environment = where / "environment"
        venv.create(self.environment, with_pip=False)
        (packages,) = self.environment.glob("lib/python*/site-packages")
        (packages / "torch").mkdir()
        (packages / "torch" / "__init__.py").write_text(TORCH, "utf-8")
        info = packages / "torch-2.13.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.13.0\n", "utf-8")
        (packages / "tests.pth").write_text(f"{Path(pytest.__file__).parent.parent}\n", "utf-8")
        self.told = where / "told"
        body = f'for last; do :; done; cp "$last" "{where}/body.md"'
        self.path = programs(
            where / "bin",
            pip="true",
            gh=f'echo "$@" >> "{self.told}"; case "$2" in list) cat "{where}/open" ;; *) {body} ;; esac',
        )
        self.open = where / "open"
        self.open.write_text("", "utf-8")

    def run(self, target: str = "2.13") -> list[subprocess.CompletedProcess[str]]:
        """Run the steps that are scripts, up to the first one that fails."""
        data = yaml.safe_load((ROOT / "integrations" / "upgrade-bot.yml").read_text("utf-8"))
        (job,) = data["jobs"].values()
        assert "--unsafe-fixes\n" in job["env"]["OPTIONS"]
        given = {
            "TARGET": filled(job["env"]["TARGET"], {"inputs.target": target}),
            "OPTIONS": f"--unsafe-fixes\n--env={self.environment}\n\n--test=python -m pytest -q -p no:torchmigrate\n",
            "RUNNER_TEMP": str(self.temp),
            "GITHUB_STEP_SUMMARY": str(self.where / "summary"),
        }
        results = []
        for step in job["steps"]:
            if "run" in step:
                results.append(bash(step["run"], self.repository.path, self.path, **given))
                if results[-1].returncode:
                    break
        return results

    @property
    def commands(self) -> list[str]:
        """What `gh` was told, without paths."""
        lines = self.told.read_text("utf-8").splitlines() if self.told.exists() else []
        return [line.replace(f"{self.temp}/", "") for line in lines]


@pytest.fixture(scope="module")
def bot(tmp_path_factory: pytest.TempPathFactory) -> Bot:
    return Bot(tmp_path_factory.mktemp("bot"))


def test_the_bot_opens_a_pull_request(bot: Bot) -> None:
    results = bot.run()
    assert [done.returncode for done in results] == [0, 0, 0], results[-1]
    assert bot.commands == [
        "pr list --head torchmigrate/upgrade-2.13 --state open --json number --jq .[].number",
        "pr create --head torchmigrate/upgrade-2.13 --title Upgrade to torch 2.13 --body-file body.md",
    ]
    body = (bot.where / "body.md").read_text("utf-8")
    assert body.startswith(
        "# Upgrade to torch 2.13\n\nproject on torch 2.13: 1 passed (1 before), none failing."
    )
    assert "(TM110)" in body and (bot.where / "summary").read_text("utf-8") == body
    pushed = bot.repository.git("--git-dir", str(bot.remote), "show", "torchmigrate/upgrade-2.13:model.py")
    assert "torch.outer(a, b)" in pushed
    assert "torch==2.13.0" in bot.repository.git(
        "--git-dir", str(bot.remote), "show", "torchmigrate/upgrade-2.13:requirements.txt"
    )


def test_the_bot_renews_it(bot: Bot) -> None:
    """A runner begins with a new checkout, and the branch is there."""
    clone = bot.where / "clone"
    bot.repository.git("push", "--quiet", "origin", "main")
    bot.repository.git("clone", "--quiet", "--branch", "main", str(bot.remote), str(clone))
    (bot.where / "temp2").mkdir()
    bot.temp, bot.repository.path = bot.where / "temp2", clone
    bot.open.write_text("7\n", "utf-8")
    bot.told.unlink()
    results = bot.run()
    assert [done.returncode for done in results] == [0, 0, 0], results[-1]
    assert bot.commands[-1] == "pr edit 7 --body-file body.md"


def test_the_bot_has_nothing_to_do(bot: Bot) -> None:
    """Once the upgrade is merged."""
    clone = bot.where / "merged"
    bot.repository.git("clone", "--quiet", str(bot.remote), str(clone), at=bot.where)
    bot.repository.git("checkout", "--quiet", "-B", "main", "origin/torchmigrate/upgrade-2.13", at=clone)
    (bot.where / "temp3").mkdir()
    bot.temp, bot.repository.path = bot.where / "temp3", clone
    bot.told.unlink(missing_ok=True)
    results = bot.run()
    assert [done.returncode for done in results] == [0, 0, 0], results[-1]
    assert results[-1].stdout == "Nothing has changed.\n" and bot.commands == []


def test_the_bot_fails_where_it_cannot_be_done(bot: Bot) -> None:
    (bot.where / "temp4").mkdir(exist_ok=True)
    bot.temp = bot.where / "temp4"
    results = bot.run("99.0")
    assert [done.returncode for done in results] == [0, 1]
    assert "torch 99.0 is unknown" in results[-1].stderr
