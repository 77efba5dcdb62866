"""`torchmigrate config`: what holds for a file, and where that is from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from harness.project import Project

from torchmigrate.config.keys import KEYS
from torchmigrate.config.settings import _READERS


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    project = Project(tmp_path, monkeypatch)
    project.write(".git/HEAD", "ref: refs/heads/main\n")
    return project


def settings(project: Project, *arguments: str) -> dict[str, Any]:
    done = project.run("config", *arguments, "--output-format", "json", code=0)
    shown: dict[str, Any] = json.loads(done.stdout)
    return shown


def value_and_origins(shown: dict[str, Any], key: str) -> tuple[Any, list[str]]:
    return shown["settings"][key]["value"], shown["settings"][key]["from"]


def test_every_key_is_described_and_shown(project: Project) -> None:
    assert {key.name for key in KEYS} == set(_READERS)
    assert list(settings(project, "a.py")["settings"]) == [key.name for key in KEYS]
    text = project.run("config", "a.py", code=0).stdout
    assert all(f"\n{key.name} " in text for key in KEYS)


def test_defaults(project: Project) -> None:
    shown = settings(project, "a.py")
    assert {tuple(each["from"]) for each in shown["settings"].values()} == {("default",)}
    assert shown["filename"] == str(project.path / "a.py") and shown["excluded"] is False
    assert value_and_origins(shown, "minimum") == (None, ["default"])
    assert "TM100" in shown["rules"] and "TM002" not in shown["rules"]


def test_each_setting_names_its_file_or_the_command_line(project: Project) -> None:
    base = project.write("base.toml", 'target = "2.4"\nignore = ["TM4"]\nextend-exclude = ["old"]\n')
    near = project.write(
        "pkg/pyproject.toml",
        '[tool.torchmigrate]\nextend = "../base.toml"\nignore = ["TM5"]\nunsafe-fixes = true\n'
        'extend-exclude = ["new"]\n[tool.torchmigrate.per-file-ignores]\n"tests/**" = ["TM6"]\n',
    )
    shown = settings(project, "pkg/tests/a.py", "--exclude", "gone", "--target", "2.6")
    assert value_and_origins(shown, "target") == ("2.6", ["command line"])
    assert value_and_origins(shown, "ignore") == (["TM4", "TM5"], [str(base), str(near)])
    assert value_and_origins(shown, "unsafe-fixes") == (True, [str(near)])
    assert value_and_origins(shown, "exclude") == (["gone"], ["command line"])
    assert value_and_origins(shown, "extend-exclude") == (["old", "new"], [str(base), str(near)])
    assert value_and_origins(shown, "per-file-ignores") == ({"tests/**": ["TM6"]}, [str(near)])
    assert not {code for code in shown["rules"] if code.startswith(("TM4", "TM5", "TM6"))}
    assert {code[:3] for code in shown["ignored_here"]} == {"TM6"}
    assert settings(project, "a.py")["settings"]["target"]["from"] == ["default"]
    lines = project.run("config", "pkg/tests/a.py", code=0).stdout.splitlines()
    (ignore,) = [line for line in lines if line.startswith("ignore ")]
    assert ignore.split() == ["ignore", "base.toml,", "pkg/pyproject.toml", "TM4,", "TM5"]
    assert lines[-1].startswith(f"{len(shown['rules'])} of ")


def test_what_a_later_select_makes_void_is_not_shown(project: Project) -> None:
    project.write("torchmigrate.toml", 'select = ["TM1"]\nignore = ["TM100"]\n')
    shown = settings(project, "a.py", "--select", "TM10")
    assert value_and_origins(shown, "select") == (["TM10"], ["command line"])
    assert value_and_origins(shown, "ignore") == ([], ["default"])
    assert "TM100" in shown["rules"] and "TM110" not in shown["rules"]


def test_the_minimum_names_the_file_that_states_it(project: Project) -> None:
    path = project.write("requirements.txt", "torch>=1.13\n")
    assert value_and_origins(settings(project, "a.py"), "minimum") == ("1.13", [str(path)])
    assert value_and_origins(settings(project, "--isolated"), "minimum") == (None, ["default"])
    shown = settings(project, "a.py", "--minimum", "2.0")
    assert value_and_origins(shown, "minimum") == ("2.0", ["command line"])


def test_it_says_that_a_file_is_excluded(project: Project) -> None:
    assert settings(project, "build/a.py")["excluded"] is True
    assert "It is excluded" in project.run("config", "build/a.py", code=0).stdout


def test_a_configuration_that_cannot_be_used(project: Project) -> None:
    project.write("torchmigrate.toml", "tagret = 1\n")
    done = project.run("config", "a.py", code=2)
    assert done.stdout == "" and "tagret: unknown key; did you mean `target`?" in done.stderr
